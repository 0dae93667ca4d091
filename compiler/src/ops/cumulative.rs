//! Cumulative sums, products, extrema and log-sum-exps along an axis.
//!
//! # How they are lowered
//! Short axes (up to `SHORT`) take `log2(n)` steps. Step by step, every element is combined with
//! the element `1, 2, 4, ...` places before it. Long axes are one `reduce_window`, which XLA turns
//! into a tree on CPU, GPU and TPU alike.
//!
//! Sums on XLA:CPU, two cores, in microseconds. The third column is a tree of odd and even halves;
//! its many ops take seconds to compile. The fourth column is a `while`, which is slow on
//! accelerators:
//!
//! | shape, axis | steps | window | tree | while |
//! |---|---|---|---|---|
//! | `[128]`, 0 | 1.0 | 1.1 | 0.8 | 0.7 |
//! | `[512, 32]`, 1 | 9.6 | 27 | 19 | 16 |
//! | `[512, 128]`, 1 | 99 | 132 | 90 | 82 |
//! | `[128, 512]`, 0 | 123 | 193 | 56 | 23 |
//! | `[1024, 1024]`, 1 | 10728 | 3820 | 2572 | 4322 |
//! | `[65536]`, 0 | 976 | 651 | 165 | 216 |

use super::reduce::{LogSumExp, Max, Min, Monoid, Prod, Sum};
use super::reduce_window::{self, Window};
use super::samples::ramp;
use super::{Direction, Elementwise, Op, Operand, Rule, Sample, TypeError};
use crate::array::{Array, for_each_index};
use crate::ir::{Builder, Slope, Slopes, Var};
use crate::lower::{Hlo, HloAttribute, HloResults, HloValue, hlo_op, hlo_splat};
use crate::op_struct;
use crate::ops::rules::batched_as;
use crate::scalar::Scalar;
use crate::types::{DType, TensorType};
use std::marker::PhantomData;

/// A [`Monoid`] with the name and derivative of its cumulative op.
pub trait Cumulation: Monoid {
    /// The name in the IR's text.
    const MNEMONIC: &'static str;

    /// The tangent of `y`, the cumulated `x`, from the tangent of `x`.
    fn jvp(b: &mut Builder, op: &Cumulative<Self>, x: Var, y: Var, t: Var) -> Var;

    /// The cotangent of the operand, from the cotangent of the result.
    fn transpose(b: &mut Builder, op: &Cumulative<Self>, ct: Var) -> Rule<Var> {
        let _ = (b, op, ct);
        Rule::None("it is not linear in its operand")
    }
}

op_struct! {
    /// Combines each element along one axis with all elements before it (after it, if `reverse`) by
    /// the [`Monoid`] `K`. Floats may be combined in any order.
    Cumulative<K: Cumulation> {
        /// The axis along which elements accumulate.
        axis: usize,
        /// True to accumulate from the end to the beginning.
        reverse: bool,
    }
}

/// Running sums along an axis.
pub type CumSum = Cumulative<Sum>;
/// Running products. Their derivative is right where factors are zero.
pub type CumProd = Cumulative<Prod>;
/// Running maxima; NaN from the first NaN on. The derivative goes to the greatest element; at a
/// tie, to the nearest to the position.
pub type CumMax = Cumulative<Max>;
/// Running logarithms of sums of exponentials, without overflow.
pub type CumLogSumExp = Cumulative<LogSumExp>;
/// Running minima; NaN from the first NaN on. The derivative goes to the least element; at a tie,
/// to the nearest to the position.
pub type CumMin = Cumulative<Min>;

impl<K> Cumulative<K> {
    /// The op along `axis`.
    pub fn new(axis: usize, reverse: bool) -> Self {
        Cumulative { axis, reverse, kind: PhantomData }
    }

    /// For each element, the element `by` places before it (or after it, if reversed); `fill` if
    /// there is none.
    fn shift(&self, b: &mut Builder, x: Var, by: usize, fill: Scalar) -> Var {
        let ty = b.ty(x).clone();
        let fill = b.constant(Array::single(ty.dtype, fill));
        let (low, high) = self.padding(ty.rank(), by as i64);
        b.pad(x, fill, &low, &high, &vec![0; ty.rank()])
    }

    /// The window that ends (or begins, if reversed) at each element and covers all elements before
    /// it.
    fn window(&self, ty: &TensorType) -> Window {
        let mut window = Window::new(vec![1; ty.rank()]);
        let extent = ty.shape[self.axis];
        window.dimensions[self.axis] = extent;
        let padding = if self.reverse { &mut window.high } else { &mut window.low };
        padding[self.axis] = extent - 1;
        window
    }

    /// The padding that shifts by `by` places.
    fn padding(&self, rank: usize, by: i64) -> (Vec<i64>, Vec<i64>) {
        let along = |by: i64| {
            (0..rank).map(|axis| if axis == self.axis { by } else { 0 }).collect::<Vec<i64>>()
        };
        let by = if self.reverse { -by } else { by };
        (along(by), along(-by))
    }
}

impl<K: Cumulation> Cumulative<K> {
    /// Examples for the generic tests.
    pub fn samples() -> Vec<Sample> {
        let mut samples = Vec::new();
        let sample = |x: Array, axis, tolerance| {
            Sample::new(Cumulative::<K>::new(axis, axis == 1), vec![x]).tolerance(tolerance)
        };
        let cases: [(&[usize], usize); 5] =
            [(&[5], 0), (&[2, 3], 0), (&[2, 5], 1), (&[2, 3, 2], 1), (&[1], 0)];
        for (shape, axis) in cases {
            samples.push(sample(ramp(DType::F32, shape), axis, 1e-6));
            samples.push(sample(ramp(DType::F64, shape), axis, 1e-14));
            for dtype in [DType::I32, DType::U8] {
                if K::COMBINE.dtype(&[dtype]).is_ok() {
                    samples.push(sample(ramp(dtype, shape), axis, 0.0));
                }
            }
        }
        let long = |n: usize| {
            Array::floats(
                DType::F32,
                [n, 2],
                &(0..2 * n).map(|i| 1.0 + 1e-2 * (i as f64).sin()).collect::<Vec<f64>>(),
            )
        };
        samples.push(sample(long(SHORT), 0, 2e-6).not_differentiable());
        samples.push(sample(long(SHORT + 3), 0, 2e-6).not_differentiable());
        let zeros = [1.5, 0.0, -2.0, 3.0, 0.0, 0.25, 2.0, 1.25];
        samples.push(sample(Array::floats(DType::F32, [8], &zeros), 0, 1e-6).not_differentiable());
        samples.push(
            sample(Array::floats(DType::F32, [4], &[1.0, f64::INFINITY, f64::NAN, 2.0]), 0, 0.0)
                .not_differentiable(),
        );
        samples
    }
}

impl<K: Cumulation> Op for Cumulative<K> {
    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        TypeError::check_arity(inputs, 1)?;
        K::COMBINE.dtype(&[inputs[0].dtype])?;
        if self.axis >= inputs[0].rank() {
            refuse!("axis {} is not an axis of {}", self.axis, inputs[0]);
        }
        Ok(inputs.to_vec())
    }

    fn eval(&self, inputs: &[Array]) -> Vec<Array> {
        let x = &inputs[0];
        let dtype = x.ty().dtype;
        let mut result = x.clone();
        let mut starts = x.ty().shape.clone();
        starts[self.axis] = starts[self.axis].min(1);
        for_each_index(&starts, |start| {
            let mut index = start.to_vec();
            let mut total = K::identity(dtype);
            for i in 0..x.ty().shape[self.axis] {
                index[self.axis] = if self.reverse { x.ty().shape[self.axis] - 1 - i } else { i };
                total = K::combine(dtype, total, x.at(&index));
                result.set(&index, total);
            }
        });
        vec![result]
    }

    batched_as! { |op, _cx| Cumulative::<K>::new(op.axis + 1, op.reverse) }

    fn jvp(
        &self,
        b: &mut Builder,
        inputs: &[Var],
        outputs: &[Var],
        tangents: &[Slope],
    ) -> Rule<Slopes> {
        Rule::Some(vec![tangents[0].map(|t| K::jvp(b, self, inputs[0], outputs[0], t))])
    }

    fn transpose(&self, b: &mut Builder, _: &[Operand], cotangents: &[Slope]) -> Rule<Slopes> {
        let cotangent = cotangents[0].expect("transpose is called with a cotangent");
        K::transpose(b, self, cotangent).map(|cotangent| vec![Some(cotangent)])
    }

    fn reads_many(&self) -> bool {
        true
    }

    fn lower(&self, hlo: &mut dyn Hlo, inputs: &[HloValue], results: &[TensorType]) -> HloResults {
        let ty = &results[0];
        let extent = ty.shape[self.axis];
        if extent > SHORT {
            return vec![reduce_window::lower::<K>(hlo, &self.window(ty), inputs[0], ty)];
        }
        let identity = hlo_splat(hlo, &TensorType::scalar(ty.dtype), K::identity(ty.dtype));
        let mut total = inputs[0];
        for by in steps(extent) {
            let (low, high) = self.padding(ty.rank(), by as i64);
            let attributes = vec![
                ("edge_padding_low", HloAttribute::I64Array(low)),
                ("edge_padding_high", HloAttribute::I64Array(high)),
                ("interior_padding", HloAttribute::I64Array(vec![0; ty.rank()])),
            ];
            let shifted = hlo_op(hlo, "stablehlo.pad", &[total, identity], attributes, ty);
            total = Elementwise::lower(&K::COMBINE, hlo, &[shifted, total], ty);
        }
        vec![total]
    }
}

impl Cumulation for Sum {
    const MNEMONIC: &'static str = "cumsum";

    fn jvp(b: &mut Builder, op: &CumSum, _: Var, _: Var, t: Var) -> Var {
        b.cumsum(t, op.axis, op.reverse)
    }

    fn transpose(b: &mut Builder, op: &CumSum, ct: Var) -> Rule<Var> {
        Rule::Some(b.cumsum(ct, op.axis, !op.reverse))
    }
}

impl Cumulation for Prod {
    const MNEMONIC: &'static str = "cumprod";

    /// `y_i = x_i y_(i-1)` gives `dy_i = x_i dy_(i-1) + y_(i-1) dx_i`. Factors may be zero, since
    /// it does not divide.
    fn jvp(b: &mut Builder, op: &CumProd, x: Var, y: Var, t: Var) -> Var {
        let before = op.shift(b, y, 1, Scalar::Float(1.0));
        let own = b.mul(before, t);
        recurrence(b, op, x, own)
    }
}

impl Cumulation for LogSumExp {
    const MNEMONIC: &'static str = "cumlogsumexp";

    /// `y_i = log(e^(y_(i-1)) + e^(x_i))`: each summand's share of its tangent.
    fn jvp(b: &mut Builder, op: &CumLogSumExp, x: Var, y: Var, t: Var) -> Var {
        let before = op.shift(b, y, 1, Scalar::Float(f64::NEG_INFINITY));
        let difference = b.sub(x, before);
        // Before the first summand and after the last, the difference is NaN, and no tangent
        // counts.
        let zero = b.full_like(difference, 0.0);
        let undefined = b.compare(Direction::Ne, difference, difference);
        let difference = b.select(undefined, zero, difference);
        let share = b.logistic(difference);
        let own = b.mul(share, t);
        let opposite = b.neg(difference);
        let rest = b.logistic(opposite);
        recurrence(b, op, rest, own)
    }
}

/// Solves `y_i = factor_i y_(i-1) + own_i` in `log2(n)` steps that double the look-back distance of
/// each position.
fn recurrence<K>(b: &mut Builder, op: &Cumulative<K>, factor: Var, own: Var) -> Var {
    let (mut factor, mut total) = (factor, own);
    let extent = b.ty(own).shape[op.axis];
    for by in steps(extent) {
        let earlier = op.shift(b, total, by, Scalar::Float(0.0));
        let earlier = b.mul(factor, earlier);
        total = b.add(total, earlier);
        if 2 * by < extent {
            let earlier = op.shift(b, factor, by, Scalar::Float(1.0));
            factor = b.mul(factor, earlier);
        }
    }
    total
}

impl Cumulation for Max {
    const MNEMONIC: &'static str = "cummax";

    fn jvp(b: &mut Builder, op: &CumMax, x: Var, _: Var, t: Var) -> Var {
        extremum_jvp(b, op, Direction::Gt, x, t)
    }
}

impl Cumulation for Min {
    const MNEMONIC: &'static str = "cummin";

    fn jvp(b: &mut Builder, op: &CumMin, x: Var, _: Var, t: Var) -> Var {
        extremum_jvp(b, op, Direction::Lt, x, t)
    }
}

/// Cumulates pairs of an element and its tangent in `log2(n)` steps.
fn extremum_jvp<K: Cumulation>(
    b: &mut Builder,
    op: &Cumulative<K>,
    wins: Direction,
    x: Var,
    t: Var,
) -> Var {
    let TensorType { dtype, shape } = b.ty(x).clone();
    let (mut extremum, mut tangent) = (x, t);
    for by in steps(shape[op.axis]) {
        let earlier = op.shift(b, extremum, by, K::identity(dtype));
        let earlier_tangent = op.shift(b, tangent, by, Scalar::Float(0.0));
        let from_earlier = b.compare(wins, earlier, extremum);
        extremum = b.select(from_earlier, earlier, extremum);
        tangent = b.select(from_earlier, earlier_tangent, tangent);
    }
    tangent
}

/// The powers of two below `extent`.
fn steps(extent: usize) -> impl Iterator<Item = usize> {
    std::iter::successors(Some(1), |by| Some(2 * by)).take_while(move |&by| by < extent)
}

macro_rules! builder_cumulations {
    ($($method:ident = $op:ident;)+) => {
        impl Builder {
            $(#[doc = concat!("Emits [`", stringify!($op), "`].")]
            #[track_caller]
            pub fn $method(&mut self, x: Var, axis: usize, reverse: bool) -> Var {
                self.emit1($op::new(axis, reverse), &[x])
            })+
        }
    };
}

builder_cumulations! {
    cumsum = CumSum;
    cumprod = CumProd;
    cummax = CumMax;
    cummin = CumMin;
}

/// The longest axis that is cumulated in steps.
const SHORT: usize = 128;
