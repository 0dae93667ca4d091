//! The window that the ops of this folder move over all axes of an operand.

use crate::array::for_each_index;
use crate::attributes::{AttributeValue, Attributes};
use crate::lower::{Hlo, HloAttribute, HloOp, HloRegion, HloResults, HloValue, hlo_axes};
use crate::ops::TypeError;
use crate::ops::shape::prepended;
use crate::types::TensorType;

/// A box placed at every multiple of the strides on an operand with padding around it. All lists
/// have an entry for each axis. A window may overlap the padding but not lie entirely in it: it
/// contains at least one element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// The box's extents.
    pub dimensions: Vec<usize>,
    /// The step along each axis.
    pub strides: Vec<usize>,
    /// The padding in front, less than the box's extent.
    pub low: Vec<usize>,
    /// The padding behind, less than the box's extent.
    pub high: Vec<usize>,
}

impl Window {
    /// A window without padding that moves by one.
    pub fn new(dimensions: impl Into<Vec<usize>>) -> Window {
        let dimensions = dimensions.into();
        let rank = dimensions.len();
        Window { dimensions, strides: vec![1; rank], low: vec![0; rank], high: vec![0; rank] }
    }

    pub(super) fn attributes(&self) -> Attributes {
        Attributes(vec![
            ("dimensions", self.dimensions.to_attribute()),
            ("strides", self.strides.to_attribute()),
            ("low", self.low.to_attribute()),
            ("high", self.high.to_attribute()),
        ])
    }

    pub(super) fn parse(attributes: &Attributes) -> Result<Window, String> {
        Ok(Window {
            dimensions: attributes.parse("dimensions")?,
            strides: attributes.parse("strides")?,
            low: attributes.parse("low")?,
            high: attributes.parse("high")?,
        })
    }

    /// The window over a batch of operands.
    pub(super) fn batched(&self) -> Window {
        Window {
            dimensions: prepended(1, &self.dimensions),
            strides: prepended(1, &self.strides),
            low: prepended(0, &self.low),
            high: prepended(0, &self.high),
        }
    }

    /// The type with an element for each position of the window on an operand.
    pub(super) fn places(&self, x: &TensorType) -> Result<TensorType, TypeError> {
        let fail = |message: String| Err(TypeError::new(message));
        // XLA's select_and_scatter aborts on scalars.
        if x.rank() == 0 {
            return fail(format!("expected an operand with axes, got {x}"));
        }
        for (name, list) in [
            ("dimensions", &self.dimensions),
            ("strides", &self.strides),
            ("low", &self.low),
            ("high", &self.high),
        ] {
            if list.len() != x.rank() {
                return fail(format!(
                    "{name} must have an entry for each axis of {x}, got {list:?}"
                ));
            }
        }
        for (name, list) in [("dimensions", &self.dimensions), ("strides", &self.strides)] {
            if list.contains(&0) {
                return fail(format!("{name} must be positive, got {list:?}"));
            }
        }
        for (name, list) in [("low", &self.low), ("high", &self.high)] {
            if list.iter().zip(&self.dimensions).any(|(pad, extent)| pad >= extent) {
                return fail(format!(
                    "the padding {name} must be less than the window {:?}, got {list:?}",
                    self.dimensions
                ));
            }
        }
        let along = |axis: usize| {
            let padded = self.low[axis] + x.shape[axis] + self.high[axis];
            match padded.checked_sub(self.dimensions[axis]) {
                Some(room) if x.shape[axis] > 0 => room / self.strides[axis] + 1,
                _ => 0,
            }
        };
        Ok(x.with_shape((0..x.rank()).map(along).collect::<Vec<_>>()))
    }

    /// Calls `f` with the index of every element that the window at `place` contains, in row-major
    /// order, for an operand of this shape.
    pub(super) fn for_each(&self, shape: &[usize], place: &[usize], mut f: impl FnMut(&[usize])) {
        let mut index = vec![0; shape.len()];
        for_each_index(&self.dimensions, |element| {
            for axis in 0..shape.len() {
                let padded = place[axis] * self.strides[axis] + element[axis];
                match padded.checked_sub(self.low[axis]) {
                    Some(position) if position < shape[axis] => index[axis] = position,
                    _ => return,
                }
            }
            f(&index);
        });
    }

    /// Emits an op with a window.
    pub(super) fn lower(
        &self,
        hlo: &mut dyn Hlo,
        name: &'static str,
        operands: &[HloValue],
        regions: Vec<HloRegion>,
        results: &[TensorType],
    ) -> HloResults {
        let padding =
            self.low.iter().zip(&self.high).flat_map(|(&low, &high)| [low as i64, high as i64]);
        hlo.op(HloOp::new(name, operands, results)
            .attributes(vec![
                ("window_dimensions", hlo_axes(&self.dimensions)),
                ("window_strides", hlo_axes(&self.strides)),
                ("padding", HloAttribute::I64Tensor(vec![self.low.len(), 2], padding.collect())),
            ])
            .regions(regions))
    }
}
