//! Numbers of the traced dynamics: constants that are known while tracing, and scalar tensors.
//!
//! Zeros, factors of 1 and products of constants disappear while tracing. So the equations of a planar robot are planar,
//! although the code is for three dimensions. Every tensor is a scalar: under `vmap` it is one contiguous array over the
//! environments.

use std::ops::{Add, AddAssign, Div, Mul, Neg, Sub, SubAssign};

use podracer_dsl::prelude::*;

use Real::{Constant, Value};

/// Number of the traced dynamics.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Real {
    /// A number of the model.
    Constant(f64),
    /// A scalar that depends on the state.
    Value(Tensor),
}

pub(crate) const ZERO: Real = Constant(0.0);
pub(crate) const ONE: Real = Constant(1.0);

impl Real {
    /// The scalar, with the dtype of `like`.
    pub(crate) fn tensor(self, like: Tensor) -> Tensor {
        match self {
            Constant(x) => like.full_like(x),
            Value(x) => x,
        }
    }

    pub(crate) fn is_zero(self) -> bool {
        matches!(self, Constant(x) if x == 0.0)
    }

    pub(crate) fn square(self) -> Self {
        self * self
    }

    /// `f` of a constant, `g` of a tensor.
    fn map(self, f: impl FnOnce(f64) -> f64, g: impl FnOnce(Tensor) -> Tensor) -> Self {
        match self {
            Constant(x) => Constant(f(x)),
            Value(x) => Value(g(x)),
        }
    }

    pub(crate) fn sqrt(self) -> Self {
        self.map(f64::sqrt, Tensor::sqrt)
    }

    pub(crate) fn abs(self) -> Self {
        self.map(f64::abs, Tensor::abs)
    }

    pub(crate) fn sin_cos(self) -> (Self, Self) {
        match self {
            Constant(x) => (Constant(x.sin()), Constant(x.cos())),
            Value(x) => {
                let (sin, cos) = if x.dtype() == F32 { sin_cos(x) } else { (x.sin(), x.cos()) };
                (Value(sin), Value(cos))
            }
        }
    }

    /// A power with a constant exponent; for a negative base, the exponent must be whole.
    pub(crate) fn powf(self, exponent: f64) -> Self {
        self.map(
            |x| x.powf(exponent),
            |x| match exponent {
                _ if exponent.fract() == 0.0 && (0.0..8.0).contains(&exponent) => {
                    x.powi(exponent as u32)
                }
                _ => x.pow(exponent),
            },
        )
    }

    pub(crate) fn atan2(y: Self, x: Self) -> Self {
        y.with(x, f64::atan2, |y, x| atan2(y, x))
    }

    /// `f` of constants, `g` of tensors.
    fn with(
        self,
        other: Self,
        f: impl FnOnce(f64, f64) -> f64,
        g: impl FnOnce(Tensor, Tensor) -> Tensor,
    ) -> Self {
        match (self, other) {
            (Constant(a), Constant(b)) => Constant(f(a, b)),
            (Value(a), b) => Value(g(a, b.tensor(a))),
            (a, Value(b)) => Value(g(a.tensor(b), b)),
        }
    }

    pub(crate) fn max(self, other: Self) -> Self {
        self.with(other, f64::max, |a, b| a.maximum(b))
    }

    pub(crate) fn min(self, other: Self) -> Self {
        self.with(other, f64::min, |a, b| a.minimum(b))
    }

    pub(crate) fn clamp(self, [low, high]: [f64; 2]) -> Self {
        self.max(Constant(low)).min(Constant(high))
    }

    /// True for a length or an angle that rounding may have made of zero. MuJoCo computes in f64 and takes 1e-15.
    pub(crate) fn vanishes(self) -> Truth {
        let least = match self {
            Value(x) if x.dtype() != F64 => 1e-6,
            _ => 1e-15,
        };
        self.abs().less(Constant(least))
    }

    pub(crate) fn less(self, other: Self) -> Truth {
        match (self, other) {
            (Constant(a), Constant(b)) => Truth::Known(a < b),
            (Value(a), b) => Truth::Value { holds: a.lt(b.tensor(a)), like: a },
            (a, Value(b)) => Truth::Value { holds: a.tensor(b).lt(b), like: b },
        }
    }
}

/// A condition on numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Truth {
    /// Known while tracing.
    Known(bool),
    /// A scalar bool, and a tensor of the dtype of the compared numbers.
    Value {
        /// The condition.
        holds: Tensor,
        /// One of the numbers.
        like: Tensor,
    },
}

impl Truth {
    /// `a` where the condition holds, `b` elsewhere.
    pub(crate) fn select(self, a: Real, b: Real) -> Real {
        match (self, a, b) {
            (Self::Known(holds), ..) => {
                if holds {
                    a
                } else {
                    b
                }
            }
            (_, Constant(x), Constant(y)) if x == y => a,
            (Self::Value { holds, like }, ..) => {
                Value(holds.select(a.tensor(like), b.tensor(like)))
            }
        }
    }

    /// [`Truth::select`] of each number.
    pub(crate) fn select_all<const N: usize>(self, a: [Real; N], b: [Real; N]) -> [Real; N] {
        std::array::from_fn(|i| self.select(a[i], b[i]))
    }
}

/// A sum of constants, without what their rounding leaves of a zero.
fn settled(sum: f64, a: f64, b: f64) -> Real {
    Constant(if sum.abs() < 1e-14 * a.abs().max(b.abs()) { 0.0 } else { sum })
}

impl Add for Real {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        match (self, other) {
            (Constant(a), Constant(b)) => settled(a + b, a, b),
            (Constant(0.0), x) | (x, Constant(0.0)) => x,
            (Value(x), Constant(c)) | (Constant(c), Value(x)) => Value(x + c),
            (Value(a), Value(b)) => Value(a + b),
        }
    }
}

impl Sub for Real {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        match (self, other) {
            (Constant(a), Constant(b)) => settled(a - b, a, b),
            (x, Constant(0.0)) => x,
            (Constant(0.0), x) => -x,
            (Value(x), Constant(c)) => Value(x - c),
            (Constant(c), Value(x)) => Value(x.full_like(c) - x),
            (Value(a), Value(b)) => Value(a - b),
        }
    }
}

impl Mul for Real {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        match (self, other) {
            (Constant(a), Constant(b)) => Constant(a * b),
            (Constant(0.0), _) | (_, Constant(0.0)) => ZERO,
            (Constant(1.0), x) | (x, Constant(1.0)) => x,
            (Constant(-1.0), x) | (x, Constant(-1.0)) => -x,
            (Value(x), Constant(c)) | (Constant(c), Value(x)) => Value(x * c),
            (Value(a), Value(b)) => Value(a * b),
        }
    }
}

impl Div for Real {
    type Output = Self;
    fn div(self, other: Self) -> Self {
        match (self, other) {
            (Constant(a), Constant(b)) => Constant(a / b),
            (Constant(0.0), _) => ZERO,
            (x, Constant(c)) => x * Constant(1.0 / c),
            (a, Value(b)) => Value(a.tensor(b) / b),
        }
    }
}

impl Neg for Real {
    type Output = Self;
    fn neg(self) -> Self {
        self.map(|x| -x, |x| -x)
    }
}

impl Mul<f64> for Real {
    type Output = Self;
    fn mul(self, other: f64) -> Self {
        self * Constant(other)
    }
}

impl AddAssign for Real {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl SubAssign for Real {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

impl std::iter::Sum for Real {
    fn sum<I: Iterator<Item = Self>>(terms: I) -> Self {
        terms.fold(ZERO, Add::add)
    }
}

/// Sine and cosine of an `f32`, to 1.2e-7 for up to 8,192 radians, as arithmetic: XLA's own functions do not vectorize
/// on CPUs, and a step then takes a third longer.
///
/// The nearest multiple of a right angle is subtracted in three parts with products that are exact for these angles
/// (W. J. Cody and W. Waite, Software Manual for the Elementary Functions, 1980); polynomials approximate the rest.
fn sin_cos(x: Tensor) -> (Tensor, Tensor) {
    const PARTS: [f64; 3] = [1.570_312_5, 4.837_512_969_970_703e-4, 7.549_789_951_3e-8];
    const SIN: [f64; 3] = [-1.666_665_46e-1, 8.332_160_9e-3, -1.951_529_6e-4];
    const COS: [f64; 3] = [4.166_664_57e-2, -1.388_731_63e-3, 2.443_315_7e-5];
    let turns = (x * std::f64::consts::FRAC_2_PI).round();
    let rest = PARTS.iter().fold(x, |rest, &part| rest - turns * part);
    let square = rest * rest;
    let series = |[a, b, c]: [f64; 3]| ((square * c + b) * square + a) * square;
    let sin = series(SIN) * rest + rest;
    let cos = series(COS) * square - square * 0.5 + 1.0;
    let quarter = turns.astype(I32);
    let odd = (quarter & 1).eq(1);
    let negative = |quarter: Tensor, x: Tensor| (quarter & 2).eq(2).select(-x, x);
    (negative(quarter, odd.select(cos, sin)), negative(quarter + 1, odd.select(sin, cos)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sine_and_cosine_are_near_those_of_f64() {
        let angles: Vec<f32> = (-60_000..=60_000).map(|i| i as f32 * 0.136_53).collect();
        let given = Array::from_slice([angles.len()], &angles).unwrap();
        let traced = trace((given.ty().clone(),), |(x,)| {
            let (sin, cos) = sin_cos(x);
            let slope = grad(x, |x| sin_cos(x).0.sum());
            (sin, cos, slope)
        });
        let results = traced.unwrap().eval(&[given]).unwrap();
        let functions: [fn(f64) -> f64; 3] = [f64::sin, f64::cos, f64::cos];
        for ((values, function), most) in results.iter().zip(functions).zip([1.2e-7, 1.2e-7, 2e-6])
        {
            let errors = values.to_f64().into_iter().zip(&angles);
            let errors = errors.map(|(value, &x)| (value - function(f64::from(x))).abs());
            let worst = errors.fold(0.0, f64::max);
            assert!(worst < most, "{worst:e}");
        }
    }
}
