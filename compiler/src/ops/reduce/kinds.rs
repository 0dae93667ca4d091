//! The six reductions.

use super::{Monoid, Reduce, Reduction, other_axes, spread};
use crate::array::Array;
use crate::ir::{Builder, Var};
use crate::ops::samples::ramp;
use crate::ops::{
    Add, And, Direction, Elementwise, LogAddExp, Maximum, Minimum, Multiply, Or, Rule, Sample,
};
use crate::scalar::Scalar;
use crate::types::{DType, TensorType};

macro_rules! monoid {
    ($(#[$meta:meta])* $name:ident, $op:ident, $dtype:ident => $identity:expr) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name;

        impl Monoid for $name {
            type Combine = $op;
            const COMBINE: $op = $op {};

            fn identity($dtype: DType) -> Scalar {
                $identity
            }
        }
    };
}

monoid!(
    /// The sum, with neutral element 0.
    Sum, Add, dtype => Scalar::zero(dtype)
);
monoid!(
    /// The product, with neutral element 1.
    Prod, Multiply, dtype => Scalar::number(dtype, 1)
);
monoid!(
    /// The maximum; its neutral element is the least value of the dtype.
    Max, Maximum, dtype => if dtype.is_float() { Scalar::Float(f64::NEG_INFINITY) } else { Scalar::Int(dtype.integer_range().0) }
);
monoid!(
    /// The minimum; its neutral element is the greatest value of the dtype.
    Min, Minimum, dtype => if dtype.is_float() { Scalar::Float(f64::INFINITY) } else { Scalar::Int(dtype.integer_range().1) }
);
monoid!(
    /// The logarithm of the sum of exponentials, with neutral element -inf.
    LogSumExp, LogAddExp, _dtype => Scalar::Float(f64::NEG_INFINITY)
);
monoid!(
    /// Bitwise and, logical on bools; its neutral element has all bits set.
    All, And, dtype => if dtype == DType::Bool { Scalar::Bool(true) } else { Scalar::Int(dtype.wrap(-1)) }
);
monoid!(
    /// Bitwise or, logical on bools; its neutral element has no bit set.
    Any, Or, dtype => if dtype == DType::Bool { Scalar::Bool(false) } else { Scalar::Int(0) }
);

impl Reduction for Sum {
    const MNEMONIC: &'static str = "reduce_sum";

    fn jvp(b: &mut Builder, axes: &[usize], _: Var, _: Var, t: Var) -> Option<Var> {
        Some(b.reduce_sum(t, axes))
    }

    fn transpose(b: &mut Builder, axes: &[usize], ty: &TensorType, ct: Var) -> Rule<Var> {
        Rule::Some(spread(b, ct, &ty.shape, axes))
    }
}

impl Reduction for Prod {
    const MNEMONIC: &'static str = "reduce_prod";

    /// The sum of each tangent times the product of the other elements. That product is found
    /// without division, because elements may be zero: the elements before times the elements
    /// after.
    fn jvp(b: &mut Builder, axes: &[usize], x: Var, _: Var, t: Var) -> Option<Var> {
        let shape = b.ty(x).shape.clone();
        let kept = other_axes(shape.len(), axes);
        let order: Vec<usize> = kept.iter().chain(axes).copied().collect();
        let mut flat: Vec<usize> = kept.iter().map(|&axis| shape[axis]).collect();
        flat.push(axes.iter().map(|&axis| shape[axis]).product());
        let last = kept.len();
        let [x, t] = [x, t].map(|var| {
            let var = b.permute(var, &order);
            b.reshape(var, &flat)
        });
        let before = exclusive_product(b, x, last, false);
        let after = exclusive_product(b, x, last, true);
        let others = b.mul(before, after);
        let terms = b.mul(others, t);
        Some(b.reduce_sum(terms, &[last]))
    }
}

/// For each position of `axis`, the product of the elements before it, or after it.
fn exclusive_product(b: &mut Builder, x: Var, axis: usize, after: bool) -> Var {
    let ty = b.ty(x).clone();
    if ty.shape[axis] == 0 {
        return x;
    }
    let product = b.cumprod(x, axis, after);
    let one = b.full(&TensorType::scalar(ty.dtype), 1.0);
    let by =
        |sign: i64| (0..ty.rank()).map(|i| if i == axis { sign } else { 0 }).collect::<Vec<i64>>();
    let (low, high) = if after { (-1, 1) } else { (1, -1) };
    b.pad(product, one, &by(low), &by(high), &by(0))
}

impl Reduction for Max {
    const MNEMONIC: &'static str = "reduce_max";

    fn jvp(b: &mut Builder, axes: &[usize], x: Var, y: Var, t: Var) -> Option<Var> {
        Some(mean_over_ties(b, axes, x, y, t))
    }
}

impl Reduction for Min {
    const MNEMONIC: &'static str = "reduce_min";

    fn jvp(b: &mut Builder, axes: &[usize], x: Var, y: Var, t: Var) -> Option<Var> {
        Some(mean_over_ties(b, axes, x, y, t))
    }
}

/// The mean of the tangents at the elements of `x` that attain the extremum `y`.
fn mean_over_ties(b: &mut Builder, axes: &[usize], x: Var, y: Var, t: Var) -> Var {
    let ty = b.ty(x).clone();
    let extremum = spread(b, y, &ty.shape, axes);
    let is_extremum = b.compare(Direction::Eq, x, extremum);
    let weight = b.convert(is_extremum, ty.dtype);
    let count = b.reduce_sum(weight, axes);
    let weighted = b.mul(weight, t);
    let total = b.reduce_sum(weighted, axes);
    b.div(total, count)
}

impl Reduction for All {
    const MNEMONIC: &'static str = "reduce_and";

    fn jvp(_: &mut Builder, _: &[usize], _: Var, _: Var, _: Var) -> Option<Var> {
        None
    }
}

impl Reduction for Any {
    const MNEMONIC: &'static str = "reduce_or";

    fn jvp(_: &mut Builder, _: &[usize], _: Var, _: Var, _: Var) -> Option<Var> {
        None
    }
}

/// Samples in all dtypes that the monoid combines.
pub(super) fn samples<K: Reduction>() -> Vec<Sample> {
    let mut samples = Vec::new();
    for dtype in [
        DType::F32,
        DType::F64,
        DType::BF16,
        DType::I32,
        DType::U32,
        DType::I64,
        DType::U8,
        DType::Bool,
    ] {
        if K::COMBINE.dtype(&[dtype]).is_err() {
            continue;
        }
        // Sums and products of these numbers are exact in any order, except for the sign of a zero.
        let tolerance = if dtype.is_float() { 1e-15 } else { 0.0 };
        let narrow = dtype == DType::BF16;
        let cases: [(&[usize], &[usize]); 5] = [
            (&[2, 3], &[1]),
            (&[2, 3], &[0]),
            (&[2, 3, 2], &[2, 0]),
            (&[4], &[0]),
            (&[2, 0], &[1]),
        ];
        for (shape, axes) in cases {
            let sample =
                Sample::new(Reduce::<K>::new(axes), vec![ramp(dtype, shape)]).tolerance(tolerance);
            samples.push(if narrow || shape.contains(&0) {
                sample.not_differentiable()
            } else {
                sample
            });
        }
    }
    if K::COMBINE.dtype(&[DType::F32]).is_ok() {
        let (nan, inf) = (f64::NAN, f64::INFINITY);
        let values =
            [[1.0, nan, 2.0], [inf, 1.0, 2.0], [-0.0, 0.0, -0.0], [-inf, inf, 0.0]].concat();
        let peculiar = Array::floats(DType::F32, [4, 3], &values);
        samples.push(Sample::new(Reduce::<K>::new([1]), vec![peculiar]).not_differentiable());
        let zeros =
            Array::floats(DType::F32, [3, 3], &[1.5, 0.0, -2.0, 0.0, 3.0, 0.25, 2.0, 1.25, -1.0]);
        samples.push(Sample::new(Reduce::<K>::new([0]), vec![zeros]).tolerance(1e-6));
    }
    samples
}
