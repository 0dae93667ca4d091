//! `convolution`: sums of products over a window that moves along the spatial axes.

mod derivative;
mod forms;
mod samples;

use super::shape::check_axes;
use super::{Op, Operand, Rule, Sample, TypeError};
use crate::array::{Array, for_each_index};
use crate::ir::{Batched, Builder, Slope, Slopes, Var};
use crate::lower::{
    Hlo, HloAttribute, HloResults, HloValue, hlo_axes, hlo_op, hlo_transpose, lower_func,
};
use crate::op_struct;
use crate::scalar::Scalar;
use crate::transform::VmapContext;
use crate::types::TensorType;

op_struct! {
    /// Slides a kernel (right) over an input (left), and sums the products over the window and the input's features:
    /// StableHLO's `convolution`, which is a cross-correlation, the kernel not being reversed.
    ///
    /// The three lists of axes give the meaning of each axis: batch and feature of the input and
    /// the result, output and input feature of the kernel. The spatial axes follow, in the same
    /// order in each list. Along a spatial axis, the input is dilated and padded, and the dilated
    /// kernel is applied at every multiple of the stride. The result has
    /// `floor((low + dilated + high - window) / stride) + 1` positions, or none if the window does
    /// not fit.
    ///
    /// With `feature_group_count` G, the input's features are G groups, each read by its own group
    /// of the kernel's output features. With `batch_group_count` G, the batch is in G groups, each
    /// read by its own group of output features. One of the two is 1. Integers wrap. XLA chooses
    /// the order of the sum. On accelerators it multiplies f32 in a faster and less accurate way,
    /// unless configured otherwise.
    Convolution = "convolution" {
        /// The step of the window along each spatial axis.
        strides: Vec<usize>,
        /// Zeros in front of the dilated input, for each spatial axis; a negative number crops.
        low: Vec<i64>,
        /// Zeros behind the dilated input, for each spatial axis; a negative number crops.
        high: Vec<i64>,
        /// The distance of the input's elements, for each spatial axis; at 1 no zeros are inserted
        /// between them.
        lhs_dilation: Vec<usize>,
        /// The distance of the kernel's elements, for each spatial axis.
        rhs_dilation: Vec<usize>,
        /// The input's axes: batch, feature, spatial axes.
        lhs_axes: Vec<usize>,
        /// The kernel's axes: output feature, input feature, spatial axes.
        rhs_axes: Vec<usize>,
        /// The result's axes: batch, feature, spatial axes.
        out_axes: Vec<usize>,
        /// Groups of the input's features.
        feature_group_count: usize,
        /// Groups of the input's batch.
        batch_group_count: usize,
    }
}

/// Positions of the first two entries of a list of axes: batch and feature, or output and input feature.
const FIRST: usize = 0;
const SECOND: usize = 1;

impl Convolution {
    /// A convolution over `spatial` axes, without strides, padding, dilation or groups. The spatial
    /// axes are in the middle: NHWC by HWIO gives NHWC.
    pub fn new(spatial: usize) -> Convolution {
        let middle = 1..=spatial;
        let image: Vec<usize> = [0, spatial + 1].into_iter().chain(middle).collect();
        let kernel = [spatial + 1, spatial].into_iter().chain(0..spatial);
        Convolution {
            strides: vec![1; spatial],
            low: vec![0; spatial],
            high: vec![0; spatial],
            lhs_dilation: vec![1; spatial],
            rhs_dilation: vec![1; spatial],
            rhs_axes: kernel.collect(),
            lhs_axes: image.clone(),
            out_axes: image,
            feature_group_count: 1,
            batch_group_count: 1,
        }
    }

    /// Examples for the generic tests.
    pub fn samples() -> Vec<Sample> {
        samples::samples()
    }

    /// The number of groups, of features or of examples.
    fn groups(&self) -> usize {
        self.feature_group_count.max(self.batch_group_count)
    }

    /// The extents of the spatial axes of an operand or of the result, given its list of axes.
    fn spatial(ty: &TensorType, axes: &[usize]) -> Vec<usize> {
        axes[2..].iter().map(|&axis| ty.shape[axis]).collect()
    }

    /// Checks only the attributes, for operands of this rank.
    fn check(&self, lhs: &TensorType, rhs: &TensorType) -> Result<(), TypeError> {
        let fail = |message: String| Err(TypeError::new(message));
        let rank = lhs.rank();
        if rank < 2 || rhs.rank() != rank {
            return fail(format!(
                "expected an input and a kernel of one rank, two features and the spatial axes, got {lhs} and {rhs}"
            ));
        }
        for (name, axes) in [
            ("lhs_axes", &self.lhs_axes),
            ("rhs_axes", &self.rhs_axes),
            ("out_axes", &self.out_axes),
        ] {
            if axes.len() != rank {
                return fail(format!("{name} {axes:?} must name all {rank} axes"));
            }
            check_axes(name, axes, rank)?;
        }
        for (name, steps) in [
            ("strides", &self.strides),
            ("lhs_dilation", &self.lhs_dilation),
            ("rhs_dilation", &self.rhs_dilation),
        ] {
            if steps.len() != rank - 2 || steps.contains(&0) {
                return fail(format!(
                    "{name} must have a positive number for each of the {} spatial axes, got {steps:?}",
                    rank - 2
                ));
            }
        }
        for (name, amounts) in [("low", &self.low), ("high", &self.high)] {
            if amounts.len() != rank - 2 {
                return fail(format!(
                    "{name} must have an amount for each of the {} spatial axes, got {amounts:?}",
                    rank - 2
                ));
            }
        }
        let (features, batches) = (self.feature_group_count, self.batch_group_count);
        if features.min(batches) != 1 {
            return fail(format!(
                "one of feature_group_count and batch_group_count must be 1 and the other positive, got {features} and {batches}"
            ));
        }
        Ok(())
    }

    /// The type of the result.
    fn result(&self, lhs: &TensorType, rhs: &TensorType) -> Result<TensorType, TypeError> {
        self.check(lhs, rhs)?;
        let (features, batches) = (self.feature_group_count, self.batch_group_count);
        let batch = lhs.shape[self.lhs_axes[FIRST]];
        let inputs = lhs.shape[self.lhs_axes[SECOND]];
        let outputs = rhs.shape[self.rhs_axes[FIRST]];
        let per_group = rhs.shape[self.rhs_axes[SECOND]];
        if per_group.checked_mul(features) != Some(inputs) {
            refuse!(
                "the input {lhs} has {inputs} features (axis {}), where the kernel {rhs} takes {per_group} (axis {}) in {features} groups",
                self.lhs_axes[SECOND],
                self.rhs_axes[SECOND]
            );
        }
        for (what, extent, groups) in [
            ("batch of the input", batch, batches),
            ("output features of the kernel", outputs, batches),
            ("output features of the kernel", outputs, features),
        ] {
            if extent % groups != 0 {
                refuse!("the {extent} {what} are not a multiple of the {groups} groups");
            }
        }
        let mut shape = vec![0; lhs.rank()];
        shape[self.out_axes[FIRST]] = batch / batches;
        shape[self.out_axes[SECOND]] = outputs;
        let extents = Self::spatial(lhs, &self.lhs_axes);
        let windows = Self::spatial(rhs, &self.rhs_axes);
        for (i, (&extent, &window)) in extents.iter().zip(&windows).enumerate() {
            let covered = dilated(extent, self.lhs_dilation[i])
                .saturating_add(self.low[i])
                .saturating_add(self.high[i]);
            if covered < 0 {
                refuse!(
                    "low {} and high {} cut more off axis {} of {lhs} than it has",
                    self.low[i],
                    self.high[i],
                    self.lhs_axes[2 + i]
                );
            }
            let room = covered - dilated(window, self.rhs_dilation[i]);
            shape[self.out_axes[2 + i]] =
                if room < 0 || covered == 0 { 0 } else { room as usize / self.strides[i] + 1 };
        }
        Ok(lhs.with_shape(shape))
    }

    /// The position in the input, along each spatial axis, of an element of the window; `None` if
    /// it lies in the padding.
    fn meets(&self, extents: &[usize], place: &[usize], element: &[usize]) -> Option<Vec<usize>> {
        let along = |i: usize| {
            let position = (place[i] * self.strides[i] + element[i] * self.rhs_dilation[i]) as i64
                - self.low[i];
            let position = usize::try_from(position).ok()?;
            let index = position / self.lhs_dilation[i];
            (position % self.lhs_dilation[i] == 0 && index < extents[i]).then_some(index)
        };
        (0..extents.len()).map(along).collect()
    }
}

/// The extent of an axis with elements that are `by` apart.
fn dilated(extent: usize, by: usize) -> i64 {
    match extent {
        0 => 0,
        n => i64::try_from((n - 1).saturating_mul(by))
            .map_or(i64::MAX, |last| last.saturating_add(1)),
    }
}

/// The index with these entries at these axes: first, second, spatial.
fn index_of(axes: &[usize], first: usize, second: usize, spatial: &[usize]) -> Vec<usize> {
    let mut index = vec![0; axes.len()];
    index[axes[FIRST]] = first;
    index[axes[SECOND]] = second;
    for (&axis, &place) in axes[2..].iter().zip(spatial) {
        index[axis] = place;
    }
    index
}

impl Op for Convolution {
    fn library_work(&self, inputs: &[TensorType]) -> usize {
        let [lhs, rhs] = [&inputs[0], &inputs[1]];
        let ty = self.result(lhs, rhs).expect("the operands are well typed");
        let outputs = rhs.shape[self.rhs_axes[FIRST]];
        // Each element of the result is a sum over the window and the features of its group.
        ty.elements().saturating_mul(rhs.elements().checked_div(outputs).unwrap_or(0))
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        TypeError::check_arity(inputs, 2)?;
        super::elementwise::numbers(&[inputs[0].dtype, inputs[1].dtype])?;
        Ok(vec![self.result(&inputs[0], &inputs[1])?])
    }

    fn eval(&self, inputs: &[Array]) -> Vec<Array> {
        let [lhs, rhs] = [&inputs[0], &inputs[1]];
        let ty = self.result(lhs.ty(), rhs.ty()).expect("eval is given well-typed operands");
        let extents = Self::spatial(lhs.ty(), &self.lhs_axes);
        let windows = Self::spatial(rhs.ty(), &self.rhs_axes);
        let per_group = rhs.ty().shape[self.rhs_axes[SECOND]];
        let outputs = rhs.ty().shape[self.rhs_axes[FIRST]];
        let batch = ty.shape[self.out_axes[FIRST]];
        let result = Array::from_fn(ty.clone(), |index| {
            let output = index[self.out_axes[SECOND]];
            let place: Vec<usize> = self.out_axes[2..].iter().map(|&axis| index[axis]).collect();
            // The output feature's group decides which features of the input it reads, or which
            // part of the batch.
            let feature = output / (outputs / self.feature_group_count) * per_group;
            let part = output / (outputs / self.batch_group_count) * batch;
            let example = part + index[self.out_axes[FIRST]];
            let mut sum = Scalar::zero(ty.dtype);
            for_each_index(&windows, |element| {
                let Some(met) = self.meets(&extents, &place, element) else {
                    return;
                };
                for input in 0..per_group {
                    let x = lhs.at(&index_of(&self.lhs_axes, example, feature + input, &met));
                    let y = rhs.at(&index_of(&self.rhs_axes, output, input, element));
                    sum = super::dot::multiply_add(ty.dtype, sum, x, y);
                }
            });
            sum
        });
        vec![result]
    }

    fn vmap(&self, b: &mut Builder, cx: &VmapContext, inputs: &[Var], batched: &[bool]) -> Batched {
        vec![(self.batch(b, cx, inputs, batched), true)]
    }

    fn jvp(&self, b: &mut Builder, inputs: &[Var], _: &[Var], tangents: &[Slope]) -> Rule<Slopes> {
        let left = tangents[0].map(|t| b.convolution(t, inputs[1], self.clone()));
        let right = tangents[1].map(|t| b.convolution(inputs[0], t, self.clone()));
        Rule::Some(vec![super::elementwise::sum_of(b, left, right)])
    }

    fn transpose(&self, b: &mut Builder, inputs: &[Operand], cotangents: &[Slope]) -> Rule<Slopes> {
        let ct = cotangents[0].expect("transpose is called with a cotangent");
        match (&inputs[0], &inputs[1]) {
            (Operand::Linear(lhs), Operand::Known(rhs)) => {
                Rule::Some(vec![Some(self.lhs_cotangent(b, lhs, *rhs, ct)), None])
            }
            (Operand::Known(lhs), Operand::Linear(rhs)) => {
                Rule::Some(vec![None, Some(self.rhs_cotangent(b, *lhs, rhs, ct))])
            }
            _ => unreachable!("a linear equation has exactly one linear factor"),
        }
    }

    /// Emits the convolution between transposes, so that it is NHWC by HWIO. XLA's CPU backend has
    /// a fast routine only for this order, and does not change other orders to it in the body of a
    /// loop. Other backends fold the transposes into the convolution. Some convolutions have
    /// another form (`forms.rs`).
    fn reads_many(&self) -> bool {
        true
    }

    fn lower(&self, hlo: &mut dyn Hlo, inputs: &[HloValue], results: &[TensorType]) -> HloResults {
        let usual = Convolution::new(self.strides.len());
        let lhs = hlo_transpose(hlo, inputs[0], &moved(&self.lhs_axes, &usual.lhs_axes));
        let rhs = hlo_transpose(hlo, inputs[1], &moved(&self.rhs_axes, &usual.rhs_axes));
        let order = moved(&self.out_axes, &usual.out_axes);
        let back = moved(&usual.out_axes, &self.out_axes);
        let ordered = Convolution {
            lhs_axes: usual.lhs_axes.clone(),
            rhs_axes: usual.rhs_axes.clone(),
            out_axes: usual.out_axes.clone(),
            ..self.clone()
        };
        if let Some(form) = ordered.other_form(&hlo.ty(lhs), &hlo.ty(rhs), hlo.loc()) {
            let y = lower_func(hlo, &form, &[lhs, rhs])[0];
            return vec![hlo_transpose(hlo, y, &back)];
        }
        let shape: Vec<usize> = order.iter().map(|&axis| results[0].shape[axis]).collect();
        let dimensions = HloAttribute::Convolution {
            lhs: usual.lhs_axes,
            rhs: usual.rhs_axes,
            out: usual.out_axes,
        };
        let padding: Vec<i64> =
            self.low.iter().zip(&self.high).flat_map(|(&low, &high)| [low, high]).collect();
        let attributes = vec![
            ("window_strides", hlo_axes(&self.strides)),
            ("padding", HloAttribute::I64Tensor(vec![self.low.len(), 2], padding)),
            ("lhs_dilation", hlo_axes(&self.lhs_dilation)),
            ("rhs_dilation", hlo_axes(&self.rhs_dilation)),
            ("dimension_numbers", dimensions),
            ("feature_group_count", HloAttribute::I64(self.feature_group_count as i64)),
            ("batch_group_count", HloAttribute::I64(self.batch_group_count as i64)),
        ];
        let result = results[0].with_shape(shape);
        let y = hlo_op(hlo, "stablehlo.convolution", &[lhs, rhs], attributes, &result);
        vec![hlo_transpose(hlo, y, &back)]
    }
}

/// The permutation that moves axes with the meanings `from` into the order `to`.
fn moved(from: &[usize], to: &[usize]) -> Vec<usize> {
    let mut permutation = vec![0; from.len()];
    for (&from, &to) in from.iter().zip(to) {
        permutation[to] = from;
    }
    permutation
}

impl Builder {
    /// Emits [`Convolution`].
    #[track_caller]
    pub fn convolution(&mut self, lhs: Var, rhs: Var, op: Convolution) -> Var {
        self.emit1(op, &[lhs, rhs])
    }
}
