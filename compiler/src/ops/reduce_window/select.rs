//! The element that a window selects: `SelectAndGather` reads a value at its position, and
//! `SelectAndScatter` adds a value at that position. The two ops are transposes of each other.

use super::{Window, uneven, windows};
use crate::array::Array;
use crate::attributes::{AttributeValue, Attributes};
use crate::ir::{Batched, Builder, Slope, Slopes, Var};
use crate::lower::{Hlo, HloRegion, HloResults, HloValue, hlo_compare, hlo_select, hlo_splat};
use crate::ops::elementwise::floats;
use crate::ops::reduce::{Max, Min, Monoid, Sum};
use crate::ops::{Direction, Op, OpStruct, Operand, Rule, Sample, TypeError};
use crate::scalar::Scalar;
use crate::transform::VmapContext;
use crate::types::{DType, TensorType};

/// For each position of a window, the element of `values` at the greatest (with [`Direction::Ge`])
/// or least ([`Direction::Le`]) element of `operand`; at a tie, the first.
///
/// Operands: `operand` and `values`, floats of one type. XLA gives 0 if every element under the
/// window is the neutral infinity (-inf with `Ge`). If a NaN is under the window, the selected
/// element is unspecified.
#[derive(Clone, Debug)]
pub struct SelectAndGather {
    /// The relation to a later element that keeps a selected element selected: `Ge` or `Le`.
    pub direction: Direction,
    /// The window that moves over `operand`.
    pub window: Window,
}

/// For each position of a window, adds an element of `source` at the greatest (with
/// [`Direction::Ge`]) or least ([`Direction::Le`]) element of `operand` under the window. At a tie
/// it adds to the first. Elements that receive nothing are 0.
///
/// Operands: `operand`, and `source` with an element for each position; floats of one dtype. The
/// result has the type of `operand`.
#[derive(Clone, Debug)]
pub struct SelectAndScatter {
    /// The relation to a later element that keeps a selected element selected: `Ge` or `Le`.
    pub direction: Direction,
    /// The window that moves over `operand`.
    pub window: Window,
}

/// The index of the selected element, if there is one.
fn selected(
    direction: Direction,
    window: &Window,
    x: &Array,
    place: &[usize],
) -> Option<Vec<usize>> {
    let mut best: Option<(Vec<usize>, f64)> = None;
    window.for_each(&x.ty().shape, place, |index| {
        let value = x.at(index).float();
        let stays = best.as_ref().is_some_and(|&(_, best)| match direction {
            Direction::Le => best <= value,
            _ => best >= value,
        });
        if !stays {
            best = Some((index.to_vec(), value));
        }
    });
    best.map(|(index, _)| index)
}

/// The type with an element for each position, after the checks that both ops share.
fn places(
    direction: Direction,
    window: &Window,
    inputs: &[TensorType],
) -> Result<TensorType, TypeError> {
    TypeError::check_arity(inputs, 2)?;
    floats(&[inputs[0].dtype, inputs[1].dtype])?;
    if !matches!(direction, Direction::Ge | Direction::Le) {
        refuse!("direction must be GE or LE, got {}", direction.word());
    }
    window.places(&inputs[0])
}

macro_rules! selection {
    ($op:ident, $mnemonic:literal, $transposed:ident) => {
        impl $op {
            pub(in crate::ops) const MNEMONIC: &'static str = $mnemonic;
            pub(in crate::ops) const ATTRIBUTES: &'static [&'static str] =
                &["direction", "dimensions", "strides", "low", "high"];

            pub(in crate::ops) fn parse(attributes: &Attributes) -> Result<Self, String> {
                Ok($op {
                    direction: attributes.parse("direction")?,
                    window: Window::parse(attributes)?,
                })
            }
        }

        impl OpStruct for $op {
            fn mnemonic(&self) -> &'static str {
                Self::MNEMONIC
            }

            fn attributes(&self) -> Attributes {
                let Attributes(mut attributes) = self.window.attributes();
                attributes.insert(0, ("direction", self.direction.to_attribute()));
                Attributes(attributes)
            }
        }

        impl Op for $op {
            fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
                Ok(vec![self.result(inputs)?])
            }

            fn eval(&self, inputs: &[Array]) -> Vec<Array> {
                vec![self.select(&inputs[0], &inputs[1])]
            }

            fn vmap(
                &self,
                b: &mut Builder,
                cx: &VmapContext,
                inputs: &[Var],
                batched: &[bool],
            ) -> Batched {
                let operand = cx.batch(b, inputs[0], batched[0]);
                let other = cx.batch(b, inputs[1], batched[1]);
                let wide = $op { direction: self.direction, window: self.window.batched() };
                vec![(b.emit1(wide, &[operand, other]), true)]
            }

            /// The tangent, linear in the tangent of `values`: small changes of `operand` do not
            /// change the selection.
            fn jvp(
                &self,
                b: &mut Builder,
                inputs: &[Var],
                _: &[Var],
                tangents: &[Slope],
            ) -> Rule<Slopes> {
                let tangent = tangents[1].map(|t| b.emit1(self.clone(), &[inputs[0], t]));
                Rule::Some(vec![tangent])
            }

            fn transpose(
                &self,
                b: &mut Builder,
                inputs: &[Operand],
                cotangents: &[Slope],
            ) -> Rule<Slopes> {
                let ct = cotangents[0].expect("transpose is called with a cotangent");
                let operand = inputs[0].known().expect("linear in the second operand only");
                let transposed =
                    $transposed { direction: self.direction, window: self.window.clone() };
                Rule::Some(vec![None, Some(b.emit1(transposed, &[operand, ct]))])
            }

            fn lower(
                &self,
                hlo: &mut dyn Hlo,
                inputs: &[HloValue],
                results: &[TensorType],
            ) -> HloResults {
                vec![self.emit(hlo, inputs, &results[0])]
            }
        }
    };
}

selection!(SelectAndGather, "select_and_gather", SelectAndScatter);
selection!(SelectAndScatter, "select_and_scatter", SelectAndGather);

impl SelectAndGather {
    /// Examples for the generic tests.
    pub fn samples() -> Vec<Sample> {
        let sample = |(i, (window, shape)): (usize, (Window, Vec<usize>))| {
            let operand = uneven(&shape);
            let values = Array::new(operand.ty().clone(), operand.scalars().rev());
            let op = SelectAndGather { direction: [Direction::Ge, Direction::Le][i % 2], window };
            Sample::new(op, vec![operand, values])
        };
        windows().into_iter().enumerate().map(sample).collect()
    }

    fn result(&self, inputs: &[TensorType]) -> Result<TensorType, TypeError> {
        let places = places(self.direction, &self.window, inputs)?;
        if inputs[0] != inputs[1] {
            refuse!("operand and values must have one type, got {} and {}", inputs[0], inputs[1]);
        }
        Ok(places)
    }

    fn select(&self, operand: &Array, values: &Array) -> Array {
        let types = [operand.ty().clone(), values.ty().clone()];
        let ty = self.result(&types);
        Array::from_fn(ty.expect("eval is given well-typed operands"), |place| {
            let index = selected(self.direction, &self.window, operand, place);
            index.map_or(Scalar::Float(0.0), |index| values.at(&index))
        })
    }

    /// Emits a reduction of pairs: the elements of `operand`, each with its value.
    fn emit(&self, hlo: &mut dyn Hlo, inputs: &[HloValue], result: &TensorType) -> HloValue {
        let scalar = TensorType::scalar(result.dtype);
        let least = match self.direction {
            Direction::Le => Min::identity(result.dtype),
            _ => Max::identity(result.dtype),
        };
        let start = [least, Scalar::zero(result.dtype)].map(|x| hlo_splat(hlo, &scalar, x));
        let arguments = hlo.begin_region(&vec![scalar.clone(); 4]);
        let stays = hlo_compare(hlo, self.direction.word(), arguments[0], arguments[2]);
        let chosen = [0, 1].map(|i| hlo_select(hlo, stays, arguments[i], arguments[i + 2]));
        let region = hlo.end_region(&chosen);
        let operands = [inputs[0], inputs[1], start[0], start[1]];
        let results = [result.clone(), result.clone()];
        let name = "stablehlo.reduce_window";
        self.window.lower(hlo, name, &operands, vec![region], &results)[1]
    }
}

impl SelectAndScatter {
    /// Examples for the generic tests.
    pub fn samples() -> Vec<Sample> {
        let sample = |(i, (window, shape)): (usize, (Window, Vec<usize>))| {
            let operand = uneven(&shape);
            let places = window.places(operand.ty()).expect("the windows fit");
            let op = SelectAndScatter { direction: [Direction::Le, Direction::Ge][i % 2], window };
            Sample::new(op, vec![operand, uneven(&places.shape)]).tolerance(1e-6)
        };
        let ties = SelectAndScatter { direction: Direction::Ge, window: Window::new([3]) };
        let ties = Sample::new(
            ties,
            vec![
                Array::floats(DType::F32, [5], &[2.0, 2.0, 1.0, 1.0, 1.0]),
                Array::floats(DType::F32, [3], &[1.0, 10.0, 100.0]),
            ],
        );
        let mut samples: Vec<Sample> = windows().into_iter().enumerate().map(sample).collect();
        samples.push(ties.not_differentiable());
        samples
    }

    fn result(&self, inputs: &[TensorType]) -> Result<TensorType, TypeError> {
        let places = places(self.direction, &self.window, inputs)?;
        if inputs[1] != places {
            refuse!(
                "the source must be {places}, an element for each place of the window on {}, got {}",
                inputs[0],
                inputs[1]
            );
        }
        Ok(inputs[0].clone())
    }

    fn select(&self, operand: &Array, source: &Array) -> Array {
        let mut sums = vec![0.0; operand.ty().elements()];
        crate::array::for_each_index(&source.ty().shape, |place| {
            let index = selected(self.direction, &self.window, operand, place)
                .expect("a window has an element");
            sums[crate::array::ravel(&operand.ty().shape, &index)] += source.at(place).float();
        });
        Array::new(operand.ty().clone(), sums.into_iter().map(Scalar::Float))
    }

    fn emit(&self, hlo: &mut dyn Hlo, inputs: &[HloValue], result: &TensorType) -> HloValue {
        let scalar = TensorType::scalar(result.dtype);
        let zero = hlo_splat(hlo, &scalar, Scalar::zero(result.dtype));
        let select = self.select_region(hlo, &scalar);
        let scatter = Sum::region(hlo, result.dtype);
        let name = "stablehlo.select_and_scatter";
        let operands = [inputs[0], inputs[1], zero];
        let results = std::slice::from_ref(result);
        self.window.lower(hlo, name, &operands, vec![select, scatter], results)[0]
    }

    fn select_region(&self, hlo: &mut dyn Hlo, scalar: &TensorType) -> HloRegion {
        let arguments = hlo.begin_region(&[scalar.clone(), scalar.clone()]);
        let stays = hlo_compare(hlo, self.direction.word(), arguments[0], arguments[1]);
        hlo.end_region(&[stays])
    }
}

impl Builder {
    /// Emits [`SelectAndGather`].
    #[track_caller]
    pub fn select_and_gather(
        &mut self,
        operand: Var,
        values: Var,
        direction: Direction,
        window: Window,
    ) -> Var {
        self.emit1(SelectAndGather { direction, window }, &[operand, values])
    }
}
