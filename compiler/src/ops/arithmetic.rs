//! Arithmetic on numbers: `x + y` and similar ops. Integers wrap; floats are rounded after each op.
//!
//! XLA:CPU keeps a NaN in `maximum`, `minimum` and their compositions (`clamp`, reductions) only
//! with `xla_cpu_enable_fast_min_max=false`, which the runtime sets. Otherwise it may give the
//! other operand.

use super::elementwise::{
    builder_methods, elementwise, float_and_peculiar_samples, floats, integer_samples, numbers,
    signed_numbers, sum_of, to_linear,
};
use super::{Elementwise, Operand, Sample};
use crate::array::Array;
use crate::ir::{Builder, Slope, Var};
use crate::lower::{hlo_compare, hlo_select, hlo_simple};
use crate::scalar::Scalar;
use crate::types::DType;

elementwise! {
    /// `x + y`. Integers wrap.
    Add = "add"(2, numbers),
    scalar: |_, x| arithmetic(x, i128::wrapping_add, |x, y| x + y),
    jvp: |b, _, _, t| sum_of(b, t[0], t[1]),
    transpose: |_, x, ct| to_linear(x, ct),
    samples: number_samples,
}

elementwise! {
    /// `x - y`. Integers wrap.
    Subtract = "subtract"(2, numbers),
    scalar: |_, x| arithmetic(x, i128::wrapping_sub, |x, y| x - y),
    jvp: |b, _, _, t| match (t[0], t[1]) {
        (Some(t0), Some(t1)) => Some(b.sub(t0, t1)),
        (t0, t1) => t0.or_else(|| t1.map(|t1| b.neg(t1))),
    },
    transpose: |b, x, ct| vec![x[0].is_linear().then_some(ct), x[1].is_linear().then(|| b.neg(ct))],
    samples: number_samples,
}

elementwise! {
    /// `x * y`. Integers wrap.
    Multiply = "multiply"(2, numbers),
    scalar: |_, x| arithmetic(x, i128::wrapping_mul, |x, y| x * y),
    jvp: |b, x, _, t| {
        let left = t[0].map(|t| b.mul(t, x[1]));
        let right = t[1].map(|t| b.mul(x[0], t));
        sum_of(b, left, right)
    },
    transpose: |b, x, ct| match (&x[0], &x[1]) {
        (Operand::Known(x), _) => vec![None, Some(b.mul(*x, ct))],
        (_, Operand::Known(y)) => vec![Some(b.mul(ct, *y)), None],
        _ => unreachable!("a linear equation has at most one linear factor"),
    },
    samples: number_samples,
}

elementwise! {
    /// `x / y`. Integers round toward zero; an integer divided by zero is -1 (all bits set), and the least signed integer
    /// divided by -1 is itself.
    Divide = "divide"(2, numbers),
    scalar: |_, x| arithmetic(x, |x, y| if y == 0 { -1 } else { x / y }, |x, y| x / y),
    jvp: |b, x, quotient, t| {
        let left = t[0].map(|t| b.div(t, x[1]));
        // d(x/y)/dy = -(x/y)/y
        let right = t[1].map(|t| {
            let slope = b.div(quotient, x[1]);
            let slope = b.neg(slope);
            b.mul(slope, t)
        });
        sum_of(b, left, right)
    },
    transpose: |b, x, ct| {
        let divisor = x[1].known().expect("division is linear in its dividend alone");
        vec![Some(b.div(ct, divisor)), None]
    },
    samples: number_samples,
}

elementwise! {
    /// The remainder of `x / y` with the quotient rounded toward zero; it has the sign of `x`. The remainder of an integer
    /// by zero is `x`.
    Remainder = "remainder"(2, numbers),
    scalar: |_, x| arithmetic(x, |x, y| if y == 0 { x } else { x % y }, |x, y| x % y),
    jvp: |b, x, _, t| {
        // d(x - y trunc(x/y))/dy = -trunc(x/y)
        let right = t[1].map(|t| {
            let quotient = b.div(x[0], x[1]);
            let magnitude = b.abs(quotient);
            let magnitude = b.floor(magnitude);
            let sign = b.sign(quotient);
            let sign = b.neg(sign);
            let slope = b.mul(sign, magnitude);
            b.mul(slope, t)
        });
        sum_of(b, t[0], right)
    },
    samples: number_samples,
}

elementwise! {
    /// `x` to the power `y`. Integers wrap; an integer to a negative power is 0, except for the
    /// bases 1 and -1. An integer exponent must be below 64 (and fit the signed type of its width):
    /// XLA reads only six bits of larger exponents.
    ///
    /// The derivative by `x` is zero if `y` is zero, and the derivative by `y` is zero if `x` is
    /// zero.
    Power = "power"(2, numbers),
    exact: false,
    scalar: |dtype, x| arithmetic(x, |x, y| integer_power(dtype, x, y), libm::pow),
    jvp: |b, x, power, t| {
        let (base, exponent) = (x[0], x[1]);
        let left = t[0].map(|t| {
            let one = b.full_like(exponent, 1.0);
            let zero = b.full_like(exponent, 0.0);
            let less = b.sub(exponent, one);
            let lower_power = b.pow(base, less);
            let slope = b.mul(exponent, lower_power);
            // If the exponent is zero, 0 * 0^-1 would be NaN.
            let constant = b.compare(super::Direction::Eq, exponent, zero);
            let slope = b.select(constant, zero, slope);
            b.mul(slope, t)
        });
        let right = t[1].map(|t| {
            let zero = b.full_like(base, 0.0);
            let one = b.full_like(base, 1.0);
            let is_zero = b.compare(super::Direction::Eq, base, zero);
            let positive = b.select(is_zero, one, base);
            let log = b.log(positive);
            let slope = b.mul(log, power);
            b.mul(slope, t)
        });
        sum_of(b, left, right)
    },
    samples: |op| {
        let mut samples = float_and_peculiar_samples(op.clone(), &[&[2.5, 0.75, 0.5, 1.25, 3.0, 7.5], &[1.5, -0.5, 2.0, -3.25, 0.3, 2.5]], 1e-6);
        for dtype in [DType::I32, DType::U32, DType::I64, DType::U8] {
            let negative = if dtype.is_signed_integer() { [-1, -2, -3] } else { [4, 5, 6] };
            for exponent in [0, 1, 2, 7, 31, 33, 63].into_iter().chain(negative) {
                let bases = [0, 1, 2, 3, 7, dtype.wrap(-1), dtype.wrap(-3), dtype.integer_range().0, dtype.integer_range().1];
                let exponents = [exponent; 9];
                samples.push(Sample::new(op.clone(), vec![Array::ints(dtype, [9], &bases), Array::ints(dtype, [9], &exponents)]));
            }
        }
        samples
    },
}

elementwise! {
    /// The greater of two numbers; NaN if either is NaN; +0 is greater than -0. At a tie, each
    /// operand gets half of the derivative.
    Maximum = "maximum"(2, numbers),
    scalar: |_, x| arithmetic(x, i128::max, float_maximum),
    jvp: |b, x, _, t| extremum_jvp(b, super::Direction::Gt, x, t),
    samples: number_samples,
}

elementwise! {
    /// The lesser of two numbers; NaN if either is NaN; -0 is less than +0. At a tie, each operand
    /// gets half of the derivative.
    Minimum = "minimum"(2, numbers),
    scalar: |_, x| arithmetic(x, i128::min, |x, y| -float_maximum(-x, -y)),
    jvp: |b, x, _, t| extremum_jvp(b, super::Direction::Lt, x, t),
    samples: number_samples,
}

elementwise! {
    /// The angle, in (-pi, pi], of the point with ordinate `x` and abscissa `y`: the arc tangent of `x / y` in the right
    /// quadrant.
    Atan2 = "atan2"(2, floats),
    exact: false,
    scalar: |_, x| Scalar::Float(libm::atan2(x[0].float(), x[1].float())),
    jvp: |b, x, _, t| {
        let (xx, yy) = (b.mul(x[0], x[0]), b.mul(x[1], x[1]));
        let square = b.add(xx, yy);
        let left = t[0].map(|t| {
            let slope = b.div(x[1], square);
            b.mul(slope, t)
        });
        let right = t[1].map(|t| {
            let slope = b.div(x[0], square);
            let slope = b.neg(slope);
            b.mul(slope, t)
        });
        sum_of(b, left, right)
    },
    samples: |op| float_and_peculiar_samples(op, &[&X, &Y], 1e-6),
}

elementwise! {
    /// `log(e^x + e^y)`, without overflow: -inf stands for no summand.
    LogAddExp = "log_add_exp"(2, floats),
    exact: false,
    scalar: |_, x| {
        let (x, y) = (x[0].float(), x[1].float());
        let greater = float_maximum(x, y);
        let finite = greater.is_finite();
        Scalar::Float(if finite { greater + libm::log1p(libm::exp(-(x - y).abs())) } else { greater })
    },
    jvp: |b, x, _, t| {
        // Each operand has the share of its summand; equal infinities have half each.
        let difference = b.sub(x[0], x[1]);
        let zero = b.full_like(difference, 0.0);
        let undefined = b.compare(super::Direction::Ne, difference, difference);
        let difference = b.select(undefined, zero, difference);
        let left = t[0].map(|t| {
            let share = b.logistic(difference);
            b.mul(share, t)
        });
        let right = t[1].map(|t| {
            let opposite = b.neg(difference);
            let share = b.logistic(opposite);
            b.mul(share, t)
        });
        sum_of(b, left, right)
    },
    lower: |hlo, x, _| {
        let greater = hlo_simple(hlo, "stablehlo.maximum", x);
        let difference = hlo_simple(hlo, "stablehlo.subtract", x);
        let distance = hlo_simple(hlo, "stablehlo.abs", &[difference]);
        let negative = hlo_simple(hlo, "stablehlo.negate", &[distance]);
        let ratio = hlo_simple(hlo, "stablehlo.exponential", &[negative]);
        let log = hlo_simple(hlo, "stablehlo.log_plus_one", &[ratio]);
        let sum = hlo_simple(hlo, "stablehlo.add", &[greater, log]);
        // The difference of equal infinities is NaN: then the infinity is the result. NaN itself is
        // its own maximum.
        let undefined = hlo_compare(hlo, "NE", difference, difference);
        hlo_select(hlo, undefined, greater, sum)
    },
    samples: |op| float_and_peculiar_samples(op, &[&X, &Y], 1e-6),
}

elementwise! {
    /// `-x`. Integers wrap, including unsigned integers.
    Negate = "negate"(1, numbers),
    scalar: |_, x| unary(x[0], |x| -x, |x| -x),
    jvp: |b, _, _, t| t[0].map(|t| b.neg(t)),
    transpose: |b, _, ct| vec![Some(b.neg(ct))],
    samples: number_samples,
}

elementwise! {
    /// `x` without its sign. The least signed integer is its own absolute value. The derivative at 0 is 0.
    Abs = "abs"(1, signed_numbers),
    scalar: |_, x| unary(x[0], i128::abs, f64::abs),
    jvp: |b, x, _, t| t[0].map(|t| {
        let sign = b.sign(x[0]);
        b.mul(sign, t)
    }),
    samples: signed_samples,
}

elementwise! {
    /// -1, 0 or 1 as `x` is negative, zero or positive. A float zero keeps its sign; NaN gives NaN.
    Sign = "sign"(1, signed_numbers),
    scalar: |_, x| unary(x[0], i128::signum, |x| if x == 0.0 || x.is_nan() { x } else { x.signum() }),
    jvp: |_, _, _, _| None,
    samples: signed_samples,
}

builder_methods! {
    add = Add(x, y);
    sub = Subtract(x, y);
    mul = Multiply(x, y);
    div = Divide(x, y);
    rem = Remainder(x, y);
    pow = Power(x, y);
    maximum = Maximum(x, y);
    minimum = Minimum(x, y);
    atan2 = Atan2(x, y);
    log_add_exp = LogAddExp(x, y);
    neg = Negate(x);
    abs = Abs(x);
    sign = Sign(x);
}

fn arithmetic(
    x: &[Scalar],
    integer: impl Fn(i128, i128) -> i128,
    float: impl Fn(f64, f64) -> f64,
) -> Scalar {
    match (x[0], x[1]) {
        (Scalar::Float(x), Scalar::Float(y)) => Scalar::Float(float(x, y)),
        (x, y) => Scalar::Int(integer(x.int(), y.int())),
    }
}

fn unary(x: Scalar, integer: impl Fn(i128) -> i128, float: impl Fn(f64) -> f64) -> Scalar {
    match x {
        Scalar::Float(x) => Scalar::Float(float(x)),
        x => Scalar::Int(integer(x.int())),
    }
}

/// IEEE 754's `maximum`.
pub(super) fn float_maximum(x: f64, y: f64) -> f64 {
    if x.is_nan() || y.is_nan() {
        f64::NAN
    } else if x == y {
        if x.is_sign_positive() { x } else { y }
    } else {
        x.max(y)
    }
}

fn integer_power(dtype: DType, base: i128, exponent: i128) -> i128 {
    if exponent < 0 {
        return match base {
            1 => 1,
            -1 if exponent % 2 == 0 => 1,
            -1 => -1,
            _ => 0,
        };
    }
    let (mut power, mut square, mut left) = (1i128, base, exponent);
    while left > 0 {
        if left % 2 == 1 {
            power = dtype.wrap(power.wrapping_mul(square));
        }
        square = dtype.wrap(square.wrapping_mul(square));
        left /= 2;
    }
    power
}

/// The tangent of the extremum: the first operand's tangent if `wins(x, y)`.
fn extremum_jvp(b: &mut Builder, wins: super::Direction, x: &[Var], t: &[Slope]) -> Option<Var> {
    let (one, half, zero) =
        (b.full_like(x[0], 1.0), b.full_like(x[0], 0.5), b.full_like(x[0], 0.0));
    let tie = b.compare(super::Direction::Eq, x[0], x[1]);
    let share = |b: &mut Builder, mine: Var, other: Var, t: Option<Var>| {
        t.map(|t| {
            let mine = b.compare(wins, mine, other);
            let strict = b.select(mine, one, zero);
            let share = b.select(tie, half, strict);
            b.mul(share, t)
        })
    };
    let left = share(b, x[0], x[1], t[0]);
    let right = share(b, x[1], x[0], t[1]);
    sum_of(b, left, right)
}

const X: [f64; 6] = [-2.5, -0.75, 0.5, 1.25, 3.25, 7.25];
const Y: [f64; 6] = [1.5, -0.5, 2.0, -3.25, 0.375, 2.5];

/// Samples for every kind of dtype.
fn number_samples<T: Elementwise>(op: T) -> Vec<Sample> {
    let mut samples = float_and_peculiar_samples(op.clone(), &[&X[..], &Y][..T::ARITY], 0.0);
    samples.extend(integer_samples(
        op,
        &[DType::I32, DType::U32, DType::I64, DType::U64, DType::I8, DType::U8],
    ));
    samples
}

fn signed_samples<T: Elementwise>(op: T) -> Vec<Sample> {
    let mut samples = float_and_peculiar_samples(op.clone(), &[&X], 0.0);
    samples.extend(integer_samples(op, &[DType::I32, DType::I64, DType::I8]));
    samples
}
