//! Comparing and choosing: `compare`, `select`, `clamp`.

use super::elementwise::{
    builder_methods, elementwise, integer_samples, peculiar_floats, same_dtype, sum_of,
};
use super::samples::ramp;
use super::{Direction, Elementwise, Op, Operand, Rule, Sample, TypeError};
use crate::array::Array;
use crate::ir::{Batched, Builder, Slope, Slopes, Var};
use crate::lower::{Hlo, HloResults, HloValue, hlo_compare, hlo_op, hlo_select};
use crate::op_struct;
use crate::ops::rules::no_transpose;
use crate::scalar::Scalar;
use crate::transform::VmapContext;
use crate::types::{DType, TensorType};

op_struct! {
    /// Compares two tensors of one type, element by element, into bools. `false < true`; -0 equals +0; NaN differs from
    /// everything, itself included, and is neither less nor greater.
    Compare = "compare" {
        /// The relation that is tested.
        direction: Direction,
    }
}

impl Compare {
    /// Examples for the generic tests.
    pub fn samples() -> Vec<Sample> {
        let mut samples = Vec::new();
        for &direction in Direction::ALL {
            let op = Compare { direction };
            samples.push(peculiar_floats(op.clone(), DType::F32, 0.0));
            samples.extend(integer_samples(op.clone(), &[DType::I32, DType::U8]));
            let bools = [[false, false, true, true], [false, true, false, true]];
            samples.push(Sample::new(op, bools.map(|values| Array::bools([4], &values)).to_vec()));
        }
        samples
    }
}

impl Elementwise for Compare {
    const HLO: &'static str = "stablehlo.compare";
    const ARITY: usize = 2;

    fn dtype(&self, dtypes: &[DType]) -> Result<DType, TypeError> {
        same_dtype(dtypes).map(|_| DType::Bool)
    }

    fn scalar(&self, _: DType, x: &[Scalar]) -> Scalar {
        let order = match (x[0], x[1]) {
            (Scalar::Float(x), Scalar::Float(y)) => x.partial_cmp(&y),
            (x, y) => Some(x.int().cmp(&y.int())),
        };
        Scalar::Bool(match self.direction {
            Direction::Eq => order.is_some_and(|order| order.is_eq()),
            Direction::Ne => order.is_none_or(|order| order.is_ne()),
            Direction::Lt => order.is_some_and(|order| order.is_lt()),
            Direction::Le => order.is_some_and(|order| order.is_le()),
            Direction::Gt => order.is_some_and(|order| order.is_gt()),
            Direction::Ge => order.is_some_and(|order| order.is_ge()),
        })
    }

    fn jvp(&self, _: &mut Builder, _: &[Var], _: Var, _: &[Slope]) -> Rule<Slope> {
        Rule::Some(None)
    }

    fn lower(&self, hlo: &mut dyn Hlo, x: &[HloValue], _: &TensorType) -> HloValue {
        hlo_compare(hlo, self.direction.word(), x[0], x[1])
    }
}

op_struct! {
    /// `select(p, on_true, on_false)` takes each element from `on_true` where `p` holds and from
    /// `on_false` elsewhere. `p` holds bools and has the branches' shape, or is a scalar; the
    /// branches have one type.
    Select = "select" {}
}

impl Select {
    /// Examples for the generic tests.
    pub fn samples() -> Vec<Sample> {
        let [x, y] = [
            ramp(DType::F32, [2, 3]),
            Array::floats(DType::F32, [2, 3], &[9.0, f64::NAN, 7.5, -0.0, 5.0, -4.0]),
        ];
        let sample = |predicate: Array, on_true: &Array, on_false: &Array| {
            Sample::new(Select {}, vec![predicate, on_true.clone(), on_false.clone()])
        };
        let flags = ramp(DType::Bool, [2, 3]);
        let [u8s, flag] = [ramp(DType::U8, [3]), ramp(DType::Bool, [])];
        vec![
            sample(flags.clone(), &x, &x),
            sample(flags, &x, &y).not_differentiable(),
            sample(Array::bools([], &[false]), &x, &x),
            sample(Array::bools([], &[true]), &u8s, &u8s),
            sample(Array::bools([], &[true]), &flag, &flag),
        ]
    }
}

impl Op for Select {
    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        TypeError::check_arity(inputs, 3)?;
        let [predicate, on_true, on_false] = [&inputs[0], &inputs[1], &inputs[2]];
        if on_true != on_false {
            refuse!("both branches must have one type, got {on_true} and {on_false}");
        }
        if predicate.dtype != DType::Bool {
            refuse!("expected a predicate of bools, got {predicate}: compare it with something");
        }
        if predicate.rank() != 0 && predicate.shape != on_true.shape {
            refuse!(
                "expected a predicate that is a scalar or has the branches' shape, got {predicate} for {on_true}"
            );
        }
        Ok(vec![on_true.clone()])
    }

    fn eval(&self, inputs: &[Array]) -> Vec<Array> {
        let [predicate, on_true, on_false] = [&inputs[0], &inputs[1], &inputs[2]];
        let data = (0..on_true.ty().elements()).map(|i| {
            let holds = predicate.get(if predicate.ty().rank() == 0 { 0 } else { i }).bool();
            if holds { on_true.get(i) } else { on_false.get(i) }
        });
        vec![Array::new(on_true.ty().clone(), data)]
    }

    fn vmap(&self, b: &mut Builder, cx: &VmapContext, inputs: &[Var], batched: &[bool]) -> Batched {
        let on_true = cx.batch(b, inputs[1], batched[1]);
        let on_false = cx.batch(b, inputs[2], batched[2]);
        let predicate = batch_or_scalar(b, cx, inputs[0], batched[0], on_true);
        vec![(b.select(predicate, on_true, on_false), true)]
    }

    fn jvp(
        &self,
        b: &mut Builder,
        inputs: &[Var],
        outputs: &[Var],
        tangents: &[Slope],
    ) -> Rule<Slopes> {
        if tangents[1].is_none() && tangents[2].is_none() {
            return Rule::Some(vec![None]);
        }
        let [on_true, on_false] =
            [1, 2].map(|i| tangents[i].unwrap_or_else(|| b.full_like(outputs[0], 0.0)));
        Rule::Some(vec![Some(b.select(inputs[0], on_true, on_false))])
    }

    fn transpose(&self, b: &mut Builder, inputs: &[Operand], cotangents: &[Slope]) -> Rule<Slopes> {
        let cotangent = cotangents[0].expect("transpose is called with a cotangent");
        let predicate = inputs[0].known().expect("bools are never linear");
        let zero = b.full_like(cotangent, 0.0);
        let on_true = inputs[1].is_linear().then(|| b.select(predicate, cotangent, zero));
        let on_false = inputs[2].is_linear().then(|| b.select(predicate, zero, cotangent));
        Rule::Some(vec![None, on_true, on_false])
    }

    fn pointwise(&self) -> bool {
        true
    }

    fn exact(&self) -> bool {
        true
    }

    fn lower(&self, hlo: &mut dyn Hlo, inputs: &[HloValue], _: &[TensorType]) -> HloResults {
        vec![hlo_select(hlo, inputs[0], inputs[1], inputs[2])]
    }
}

op_struct! {
    /// `clamp(low, x, high)` is `minimum(maximum(low, x), high)`: `x` clamped to the range. The
    /// bounds have the type of `x` or are scalars of its dtype. The derivative goes to `x` strictly
    /// inside the range, otherwise to the bound in force.
    Clamp = "clamp" {}
}

impl Clamp {
    /// Examples for the generic tests.
    pub fn samples() -> Vec<Sample> {
        let scalar = |dtype, value| Array::single(dtype, Scalar::number(dtype, value));
        let x = ramp(DType::F32, [2, 3]);
        let bounds = [-0.5, 0.5].map(|by| {
            Array::floats(DType::F32, [2, 3], &[by, by + 0.25, by, by - 0.25, by - 1.0, by + 2.0])
        });
        let peculiar = Array::floats(DType::F32, [5], &[1.0, f64::NAN, f64::INFINITY, -3.0, 0.0]);
        let sample = |low, x, high| Sample::new(Clamp {}, vec![low, x, high]);
        vec![
            sample(scalar(DType::F32, -1), x.clone(), Array::floats(DType::F32, [], &[0.5])),
            sample(bounds[0].clone(), x.clone(), bounds[1].clone()),
            sample(scalar(DType::F32, -1), x, bounds[1].clone()),
            sample(scalar(DType::I32, -3), ramp(DType::I32, [4]), scalar(DType::I32, 4)),
            sample(scalar(DType::F32, -1), peculiar, scalar(DType::F32, 2)).not_differentiable(),
            // The upper bound takes precedence.
            sample(scalar(DType::U8, 9), ramp(DType::U8, [4]), scalar(DType::U8, 2)),
        ]
    }
}

impl Op for Clamp {
    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        TypeError::check_arity(inputs, 3)?;
        let x = &inputs[1];
        if x.dtype == DType::Bool {
            refuse!("expected numbers, got {x}");
        }
        for (name, bound) in [("lower", &inputs[0]), ("upper", &inputs[2])] {
            if bound.dtype != x.dtype || (bound.rank() != 0 && bound.shape != x.shape) {
                refuse!(
                    "expected the {name} bound to be a scalar {} or to have the operand's type {x}, got {bound}",
                    x.dtype
                );
            }
        }
        Ok(vec![x.clone()])
    }

    fn eval(&self, inputs: &[Array]) -> Vec<Array> {
        let at = |array: &Array, i: usize| array.get(if array.ty().rank() == 0 { 0 } else { i });
        let dtype = inputs[1].ty().dtype;
        let data = (0..inputs[1].ty().elements()).map(|i| {
            let raised = super::Maximum {}.scalar(dtype, &[at(&inputs[0], i), inputs[1].get(i)]);
            super::Minimum {}.scalar(dtype, &[raised, at(&inputs[2], i)])
        });
        vec![Array::new(inputs[1].ty().clone(), data)]
    }

    fn vmap(&self, b: &mut Builder, cx: &VmapContext, inputs: &[Var], batched: &[bool]) -> Batched {
        let x = cx.batch(b, inputs[1], batched[1]);
        let low = batch_or_scalar(b, cx, inputs[0], batched[0], x);
        let high = batch_or_scalar(b, cx, inputs[2], batched[2], x);
        vec![(b.clamp(low, x, high), true)]
    }

    fn jvp(&self, b: &mut Builder, inputs: &[Var], _: &[Var], tangents: &[Slope]) -> Rule<Slopes> {
        let ty = b.ty(inputs[1]).clone();
        let full = |b: &mut Builder, var: Var| {
            if b.ty(var).rank() == ty.rank() {
                var
            } else {
                b.broadcast_in_dim(var, &ty.shape, &[])
            }
        };
        let [low, x, high] = [0, 1, 2].map(|i| full(b, inputs[i]));
        let zero = b.zeros(&ty);
        let mut total = None;
        for (i, tangent) in tangents.iter().enumerate() {
            let Some(tangent) = *tangent else { continue };
            let in_force = match i {
                0 => {
                    let below = b.compare(Direction::Gt, low, x);
                    let proper = b.compare(Direction::Lt, low, high);
                    b.and(below, proper)
                }
                1 => {
                    let above = b.compare(Direction::Gt, x, low);
                    let below = b.compare(Direction::Lt, x, high);
                    b.and(above, below)
                }
                _ => b.compare(Direction::Lt, high, x),
            };
            let tangent = full(b, tangent);
            let part = b.select(in_force, tangent, zero);
            total = sum_of(b, total, Some(part));
        }
        Rule::Some(vec![total])
    }

    no_transpose! { "it is not linear in any operand" }

    fn pointwise(&self) -> bool {
        true
    }

    fn exact(&self) -> bool {
        true
    }

    fn lower(&self, hlo: &mut dyn Hlo, inputs: &[HloValue], results: &[TensorType]) -> HloResults {
        vec![hlo_op(hlo, "stablehlo.clamp", inputs, Vec::new(), &results[0])]
    }
}

elementwise! {
    /// `x` itself, with a derivative of zero.
    StopGradient = "stop_gradient"(1, same_dtype),
    scalar: |_, x| x[0],
    jvp: |_, _, _, _| None,
    lower: |_, x, _| x[0],
    samples: |op| vec![
        Sample::new(op.clone(), vec![ramp(DType::F32, [2, 3])]).not_differentiable(),
        Sample::new(op, vec![ramp(DType::Bool, [3])]),
    ],
}

impl Builder {
    /// Emits [`Compare`].
    #[track_caller]
    pub fn compare(&mut self, direction: Direction, x: Var, y: Var) -> Var {
        self.emit1(Compare { direction }, &[x, y])
    }

    /// `yes` for the examples of a batch that `examples`, `bool[N]`, marks, and `no` for the
    /// others; both have the batch as leading axis.
    #[track_caller]
    pub fn select_examples(&mut self, examples: Var, yes: Var, no: Var) -> Var {
        let shape = self.ty(yes).shape.clone();
        let mask = self.broadcast_in_dim(examples, &shape, &[0]);
        self.select(mask, yes, no)
    }
}

builder_methods! {
    select = Select(predicate, on_true, on_false);
    clamp = Clamp(low, x, high);
    stop_gradient = StopGradient(x);
}

/// An operand that may be a scalar next to `like`, which is batched: it stays a scalar if it is not
/// batched.
fn batch_or_scalar(b: &mut Builder, cx: &VmapContext, var: Var, batched: bool, like: Var) -> Var {
    let shape = b.ty(like).shape.clone();
    match (batched, b.ty(var).rank()) {
        (false, 0) => var,
        (true, 1) if shape.len() > 1 => b.broadcast_in_dim(var, &shape, &[0]),
        _ => cx.batch(b, var, batched),
    }
}
