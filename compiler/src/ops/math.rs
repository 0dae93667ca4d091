//! Functions of one float: exponentials, logarithms, roots, circular functions, rounding.
//!
//! The reference semantics computes in f64 and rounds once. XLA's own functions differ from it by a few units in the last
//! place, which the samples' tolerances state.

use super::elementwise::{
    builder_methods, elementwise, float_and_peculiar_samples, floats, peculiar_floats,
};
use super::special::inverse_error_function;
use crate::ir::{Builder, Var};
use crate::lower::hlo_simple;
use crate::scalar::Scalar;
use crate::types::DType;

const ANY: [f64; 7] = [-4.2, -1.3, -0.4, 0.01, 0.7, 1.6, 5.3];
const POSITIVE: [f64; 6] = [0.02, 0.4, 0.9, 1.7, 12.0, 300.0];
const INSIDE: [f64; 7] = [-0.97, -0.6, -0.1, 0.003, 0.3, 0.8, 0.99];
const ABOVE_ONE: [f64; 5] = [1.06, 1.4, 2.5, 7.0, 300.0];

/// Declares functions of one float. An entry has `Name = "mnemonic", x -> value`, the tangent
/// (`None` if the derivative is zero), and samples with the tolerance of f32. If StableHLO lacks
/// the op, the entry also has the CHLO op for the lowering.
macro_rules! functions {
    ($($(#[$meta:meta])* $name:ident = $mnemonic:literal, |$v:ident| $value:expr, $jvp:expr, $samples:expr, $tolerance:literal $(, $chlo:literal)?;)+) => {
        $(elementwise! {
            $(#[$meta])*
            $name = $mnemonic(1, floats),
            exact: false,
            scalar: |_, x| {
                let $v = x[0].float();
                Scalar::Float($value)
            },
            jvp: |b, x, y, t| {
                let tangent: Option<fn(&mut Builder, Var, Var, Var) -> Var> = $jvp;
                Some(tangent?(b, x[0], y, t[0]?))
            },
            $(lower: |hlo, x, _| hlo_simple(hlo, $chlo, x),)?
            samples: |op| float_and_peculiar_samples(op, &[&$samples], $tolerance),
        })+
    };
}

functions! {
    /// The exponential function, `e^x`.
    Exponential = "exponential", |x| libm::exp(x), Some(|b, _, y, t| b.mul(t, y)), ANY, 1e-6;

    /// `e^x - 1`, exact near 0.
    ExponentialMinusOne = "exponential_minus_one", |x| libm::expm1(x), Some(|b, _, y, t| {
        let one = b.full_like(y, 1.0);
        let slope = b.add(y, one);
        b.mul(t, slope)
    }), ANY, 1e-6;

    /// The natural logarithm.
    Log = "log", |x| libm::log(x), Some(|b, x, _, t| b.div(t, x)), POSITIVE, 1e-6;

    /// `log(1 + x)`, exact near 0.
    LogPlusOne = "log_plus_one", |x| libm::log1p(x), Some(|b, x, _, t| {
        let one = b.full_like(x, 1.0);
        let shifted = b.add(x, one);
        b.div(t, shifted)
    }), POSITIVE, 1e-6;

    /// The square root.
    Sqrt = "sqrt", |x| x.sqrt(), Some(|b, _, y, t| {
        let half = b.full_like(y, 0.5);
        let slope = b.div(half, y);
        b.mul(t, slope)
    }), POSITIVE, 0.0;

    /// `1 / sqrt(x)`.
    Rsqrt = "rsqrt", |x| 1.0 / x.sqrt(), Some(|b, x, y, t| {
        let half = b.full_like(y, -0.5);
        let slope = b.div(y, x);
        let slope = b.mul(half, slope);
        b.mul(t, slope)
    }), POSITIVE, 1e-6;

    /// The cube root; the root of a negative number is negative.
    Cbrt = "cbrt", |x| libm::cbrt(x), Some(|b, _, y, t| {
        // 1 / (3 y^2), because y / (3 x) would be NaN at 0 and at infinity.
        let third = b.full_like(y, 1.0 / 3.0);
        let square = b.mul(y, y);
        let slope = b.div(third, square);
        b.mul(t, slope)
    }), ANY, 1e-6;

    /// The sine of an angle in radians.
    Sine = "sine", |x| libm::sin(x), Some(|b, x, _, t| {
        let slope = b.cos(x);
        b.mul(t, slope)
    }), ANY, 1e-6;

    /// The cosine of an angle in radians.
    Cosine = "cosine", |x| libm::cos(x), Some(|b, x, _, t| {
        let slope = b.sin(x);
        let slope = b.neg(slope);
        b.mul(t, slope)
    }), ANY, 1e-6;

    /// The tangent of an angle in radians.
    Tan = "tan", |x| libm::tan(x), Some(|b, _, y, t| {
        let one = b.full_like(y, 1.0);
        let square = b.mul(y, y);
        let slope = b.add(one, square);
        b.mul(t, slope)
    }), INSIDE, 1e-6;

    /// The hyperbolic tangent.
    Tanh = "tanh", |x| libm::tanh(x), Some(|b, _, y, t| {
        let one = b.full_like(y, 1.0);
        let square = b.mul(y, y);
        let slope = b.sub(one, square);
        b.mul(t, slope)
    }), ANY, 1e-6;

    /// The angle in [-pi/2, pi/2] with the sine `x`, in radians; NaN outside of [-1, 1].
    ///
    /// StableHLO lacks this op and the following ops down to [`Atanh`]: XLA's plugins expand CHLO's
    /// ops.
    Asin = "asin", |x| libm::asin(x), Some(|b, x, _, t| {
        let slope = slope_of_asin(b, x);
        b.mul(t, slope)
    }), INSIDE, 2e-6, "chlo.asin";

    /// The angle in [0, pi] with the cosine `x`, in radians; NaN outside of [-1, 1].
    Acos = "acos", |x| libm::acos(x), Some(|b, x, _, t| {
        let slope = slope_of_asin(b, x);
        let slope = b.neg(slope);
        b.mul(t, slope)
    }), INSIDE, 2e-6, "chlo.acos";

    /// The angle in [-pi/2, pi/2] with the tangent `x`, in radians.
    Atan = "atan", |x| libm::atan(x), Some(|b, x, _, t| {
        let one = b.full_like(x, 1.0);
        let square = b.mul(x, x);
        let scale = b.add(one, square);
        b.div(t, scale)
    }), ANY, 2e-6, "chlo.atan";

    /// The hyperbolic sine.
    Sinh = "sinh", |x| libm::sinh(x), Some(|b, x, _, t| {
        let slope = b.cosh(x);
        b.mul(t, slope)
    }), ANY, 2e-6, "chlo.sinh";

    /// The hyperbolic cosine.
    Cosh = "cosh", |x| libm::cosh(x), Some(|b, x, _, t| {
        let slope = b.sinh(x);
        b.mul(t, slope)
    }), ANY, 2e-6, "chlo.cosh";

    /// The inverse of the hyperbolic sine.
    Asinh = "asinh", |x| libm::asinh(x), Some(|b, x, _, t| {
        let one = b.full_like(x, 1.0);
        let square = b.mul(x, x);
        let square = b.add(square, one);
        let slope = b.rsqrt(square);
        b.mul(t, slope)
    }), ANY, 2e-6, "chlo.asinh";

    /// The nonnegative inverse of the hyperbolic cosine; NaN below 1.
    Acosh = "acosh", |x| libm::acosh(x), Some(|b, x, _, t| {
        let one = b.full_like(x, 1.0);
        let (below, above) = (b.sub(x, one), b.add(x, one));
        let square = b.mul(below, above);
        let slope = b.rsqrt(square);
        b.mul(t, slope)
    }), ABOVE_ONE, 2e-6, "chlo.acosh";

    /// The inverse of the hyperbolic tangent: infinite at -1 and 1, NaN outside.
    Atanh = "atanh", |x| libm::atanh(x), Some(|b, x, _, t| {
        let one = b.full_like(x, 1.0);
        let (below, above) = (b.sub(one, x), b.add(one, x));
        let scale = b.mul(below, above);
        b.div(t, scale)
    }), INSIDE, 2e-6, "chlo.atanh";

    /// The logistic function `1 / (1 + e^-x)`.
    Logistic = "logistic", |x| 1.0 / (1.0 + libm::exp(-x)), Some(|b, _, y, t| {
        let one = b.full_like(y, 1.0);
        let rest = b.sub(one, y);
        let slope = b.mul(y, rest);
        b.mul(t, slope)
    }), ANY, 1e-6;

    /// The greatest whole number that is not above `x`.
    Floor = "floor", |x| x.floor(), None, ANY, 0.0;

    /// The least whole number that is not below `x`.
    Ceil = "ceil", |x| x.ceil(), None, ANY, 0.0;

    /// The nearest whole number; ties round to even.
    RoundNearestEven = "round_nearest_even", |x| x.round_ties_even(), None, ANY, 0.0;

    /// The nearest whole number; ties round away from zero.
    RoundNearestAfz = "round_nearest_afz", |x| x.round(), None, ANY, 0.0;

    /// The error function, `2/sqrt(pi)` times the integral of `e^(-s^2)` from 0 to `x`. XLA's error
    /// is at most 4e-7 in f32.
    ///
    /// StableHLO has no such op. XLA's plugins for CPU, GPU and TPU expand the CHLO op or compute
    /// it natively.
    Erf = "erf", |x| libm::erf(x), Some(|b, x, _, t| {
        let slope = gaussian(b, x, std::f64::consts::FRAC_2_SQRT_PI);
        b.mul(t, slope)
    }), ANY, 1e-6, "chlo.erf";

    /// `1 - erf(x)`, with all its digits where it is small: XLA's relative error is at most 2e-6 in
    /// f32. Lowered like [`Erf`].
    Erfc = "erfc", |x| libm::erfc(x), Some(|b, x, _, t| {
        let slope = gaussian(b, x, -std::f64::consts::FRAC_2_SQRT_PI);
        b.mul(t, slope)
    }), ANY, 1e-6, "chlo.erfc";

    /// The inverse of the error function on (-1, 1): infinite at -1 and 1, NaN outside. A standard normal is
    /// `sqrt(2) erf_inv(u)` with `u` uniform on (-1, 1).
    ///
    /// XLA computes it with Giles' polynomials ("Approximating the erfinv function", 2010). The
    /// relative error is at most 6e-6 in f32 and 2e-12 in f64, both where `x` is nearest to 1.
    /// Lowered like [`Erf`].
    ErfInv = "erf_inv", |x| inverse_error_function(x), Some(|b, _, y, t| {
        // d erf_inv(x)/dx = sqrt(pi)/2 e^(y^2)
        let scale = b.full_like(y, 1.0 / std::f64::consts::FRAC_2_SQRT_PI);
        let square = b.mul(y, y);
        let exp = b.exp(square);
        let slope = b.mul(scale, exp);
        b.mul(t, slope)
    }), INSIDE, 1e-6, "chlo.erf_inv";
}

elementwise! {
    /// True for floats that are neither infinite nor NaN.
    IsFinite = "is_finite"(1, |dtypes: &[DType]| floats(dtypes).map(|_| DType::Bool)),
    scalar: |_, x| Scalar::Bool(x[0].float().is_finite()),
    jvp: |_, _, _, _| None,
    samples: |op| vec![peculiar_floats(op.clone(), DType::F32, 0.0), peculiar_floats(op, DType::BF16, 0.0)],
}

builder_methods! {
    exp = Exponential(x);
    expm1 = ExponentialMinusOne(x);
    log = Log(x);
    log1p = LogPlusOne(x);
    sqrt = Sqrt(x);
    rsqrt = Rsqrt(x);
    cbrt = Cbrt(x);
    sin = Sine(x);
    cos = Cosine(x);
    tan = Tan(x);
    tanh = Tanh(x);
    asin = Asin(x);
    acos = Acos(x);
    atan = Atan(x);
    sinh = Sinh(x);
    cosh = Cosh(x);
    asinh = Asinh(x);
    acosh = Acosh(x);
    atanh = Atanh(x);
    logistic = Logistic(x);
    floor = Floor(x);
    ceil = Ceil(x);
    round_nearest_even = RoundNearestEven(x);
    round_nearest_afz = RoundNearestAfz(x);
    is_finite = IsFinite(x);
    erf = Erf(x);
    erfc = Erfc(x);
    erf_inv = ErfInv(x);
}

/// `scale * e^(-x^2)`
fn gaussian(b: &mut Builder, x: Var, scale: f64) -> Var {
    let scale = b.full_like(x, scale);
    let square = b.mul(x, x);
    let square = b.neg(square);
    let exp = b.exp(square);
    b.mul(scale, exp)
}

/// `1 / sqrt(1 - x^2)`, from factors that keep their digits near -1 and 1.
fn slope_of_asin(b: &mut Builder, x: Var) -> Var {
    let one = b.full_like(x, 1.0);
    let (below, above) = (b.sub(one, x), b.add(one, x));
    let square = b.mul(below, above);
    b.rsqrt(square)
}
