//! The logarithm of the gamma function and its derivatives.
//!
//! StableHLO has none of them; XLA's plugins for CPU, GPU and TPU expand CHLO's ops. They expand
//! the logarithm and its derivative by Lanczos' approximation with seven terms ("A Precision
//! Approximation of the Gamma Function", 1964). They expand the higher derivatives by the
//! Euler-Maclaurin summation of the Hurwitz zeta function.

use super::elementwise::{
    builder_methods, elementwise, float_and_peculiar_samples, float_samples, floats,
};
use super::{Elementwise, Rule, Sample, TypeError};
use crate::ir::{Builder, Slope, Var};
use crate::lower::{Hlo, HloValue, hlo_compare, hlo_op, hlo_select, hlo_simple, hlo_splat};
use crate::op_struct;
use crate::scalar::Scalar;
use crate::types::{DType, TensorType};

elementwise! {
    /// The logarithm of the gamma function's magnitude; infinite at 0 and the negative whole
    /// numbers. XLA's error is at most 1e-6 in f32 and 1e-13 in f64, relative to the greater of 1
    /// and the value.
    Lgamma = "lgamma"(1, floats),
    exact: false,
    scalar: |_, x| Scalar::Float(lgamma(x[0].float())),
    jvp: |b, x, _, t| {
        let slope = b.digamma(x[0]);
        t[0].map(|t| b.mul(t, slope))
    },
    lower: |hlo, x, _| hlo_simple(hlo, "chlo.lgamma", x),
    samples: |op| float_and_peculiar_samples(op, &[&POSITIVE], 1e-6),
}

elementwise! {
    /// The derivative of [`Lgamma`]; NaN at 0, at the negative whole numbers and at -inf. XLA's
    /// error is at most 2e-6 in f32 and 1e-13 in f64, relative to the greater of 1 and the value.
    Digamma = "digamma"(1, floats),
    exact: false,
    scalar: |_, x| Scalar::Float(digamma(x[0].float())),
    jvp: |b, x, _, t| {
        let slope = b.polygamma(1, x[0]);
        t[0].map(|t| b.mul(t, slope))
    },
    // Versions of XLA differ at 0.
    lower: |hlo, x, result| {
        let [zero, nan] = [0.0, f64::NAN].map(|x| hlo_splat(hlo, result, Scalar::Float(x)));
        let at_zero = hlo_compare(hlo, "EQ", x[0], zero);
        let value = hlo_simple(hlo, "chlo.digamma", x);
        hlo_select(hlo, at_zero, nan, value)
    },
    samples: |op| float_and_peculiar_samples(op, &[&POSITIVE], 2e-6),
}

op_struct! {
    /// The derivative of [`Digamma`] of order `order`, `(-1)^(n+1) n! zeta(n + 1, x)`, for positive
    /// numbers. XLA's error is at most 1e-5 in f32, relative to the greater of 1 and the value. The
    /// value at 0 and at negative numbers is unspecified.
    Polygamma = "polygamma" {
        /// The order, at least 1; order 1 is the trigamma function.
        order: usize,
    }
}

impl Polygamma {
    /// Examples for the generic tests.
    pub fn samples() -> Vec<Sample> {
        [1, 2, 3]
            .into_iter()
            .flat_map(|order| float_samples(Polygamma { order }, &[&POSITIVE], 2e-6))
            .collect()
    }
}

impl Elementwise for Polygamma {
    const EXACT: bool = false;
    const HLO: &'static str = "chlo.polygamma";
    const ARITY: usize = 1;

    fn dtype(&self, dtypes: &[DType]) -> Result<DType, TypeError> {
        if self.order == 0 {
            refuse!("order must be positive: 0 is `digamma`");
        }
        floats(dtypes)
    }

    fn scalar(&self, _: DType, x: &[Scalar]) -> Scalar {
        let factorial: f64 = (1..=self.order).map(|k| k as f64).product();
        let sign = if self.order % 2 == 1 { 1.0 } else { -1.0 };
        Scalar::Float(sign * factorial * hurwitz_zeta((self.order + 1) as f64, x[0].float()))
    }

    fn jvp(&self, b: &mut Builder, x: &[Var], _: Var, t: &[Slope]) -> Rule<Slope> {
        let slope = b.polygamma(self.order + 1, x[0]);
        Rule::Some(t[0].map(|t| b.mul(t, slope)))
    }

    fn lower(&self, hlo: &mut dyn Hlo, x: &[HloValue], result: &TensorType) -> HloValue {
        let order = hlo_splat(hlo, result, Scalar::Float(self.order as f64));
        hlo_op(hlo, Self::HLO, &[order, x[0]], Vec::new(), result)
    }
}

builder_methods! {
    lgamma = Lgamma(x);
    digamma = Digamma(x);
}

impl Builder {
    /// Emits [`Polygamma`].
    #[track_caller]
    pub fn polygamma(&mut self, order: usize, x: Var) -> Var {
        self.emit1(Polygamma { order }, &[x])
    }
}

const POSITIVE: [f64; 6] = [0.3, 0.9, 1.5, 3.2, 11.0, 47.5];

/// True at the poles of the function and its derivatives: 0 and the negative whole numbers.
fn is_pole(x: f64) -> bool {
    x <= 0.0 && x == x.floor()
}

fn lgamma(x: f64) -> f64 {
    if x.is_infinite() || is_pole(x) { f64::INFINITY } else { libm::lgamma(x) }
}

/// The asymptotic series from 15 on, after the recurrence `psi(x) = psi(x + 1) - 1/x`; below 0 by
/// reflection.
fn digamma(x: f64) -> f64 {
    if is_pole(x) || x == f64::NEG_INFINITY {
        return f64::NAN;
    }
    if x < 0.0 {
        // The distance from the nearest pole keeps all the digits that the tangent needs.
        let distance = x - x.round();
        let angle = std::f64::consts::PI * distance;
        return digamma(1.0 - x) - std::f64::consts::PI / libm::tan(angle);
    }
    let (mut x, mut sum) = (x, 0.0);
    while x < 15.0 {
        sum -= 1.0 / x;
        x += 1.0;
    }
    let square = 1.0 / (x * x);
    let series = BERNOULLI
        .iter()
        .enumerate()
        .rev()
        .fold(0.0, |tail, (i, &number)| (tail + number / (2 * i + 2) as f64) * square);
    sum + libm::log(x) - 0.5 / x - series
}

/// The Hurwitz zeta function, the sum of `(x + k)^-s` over all `k >= 0`, for positive numbers and
/// `s > 1`: fifteen terms and the Euler-Maclaurin summation of the rest.
fn hurwitz_zeta(s: f64, x: f64) -> f64 {
    if x.is_nan() || x <= 0.0 {
        return f64::NAN;
    }
    if x.is_infinite() {
        return 0.0;
    }
    let terms: f64 = (0..15).map(|k| libm::pow(x + f64::from(k), -s)).sum();
    let x = x + 15.0;
    let power = libm::pow(x, -s);
    // B_2 / 2! s x^(-s-1), and each following factor from the previous factor.
    let mut factor = s * power / x / 2.0;
    let mut rest = power * x / (s - 1.0) + power / 2.0;
    for (i, &number) in BERNOULLI.iter().enumerate() {
        rest += number * factor;
        let k = (2 * i + 1) as f64;
        factor *= (s + k) * (s + k + 1.0) / (x * x) / ((k + 2.0) * (k + 3.0));
    }
    terms + rest
}

/// The Bernoulli numbers of even index from 2 on.
const BERNOULLI: [f64; 8] = [
    1.0 / 6.0,
    -1.0 / 30.0,
    1.0 / 42.0,
    -1.0 / 30.0,
    5.0 / 66.0,
    -691.0 / 2730.0,
    7.0 / 6.0,
    -3617.0 / 510.0,
];

#[cfg(test)]
mod tests {
    use super::{digamma, hurwitz_zeta};
    use std::f64::consts::PI;

    #[track_caller]
    fn close(got: f64, expected: f64) {
        assert!((got - expected).abs() <= 4e-15 * expected.abs(), "{got} against {expected}");
    }

    #[test]
    fn known_values() {
        let euler = 0.577_215_664_901_532_9;
        close(digamma(1.0), -euler);
        close(digamma(0.5), -euler - 2.0 * std::f64::consts::LN_2);
        close(digamma(-1.5), digamma(0.5) + 2.0 + 2.0 / 3.0);
        close(hurwitz_zeta(2.0, 1.0), PI * PI / 6.0);
        close(hurwitz_zeta(2.0, 0.5), PI * PI / 2.0);
        close(hurwitz_zeta(4.0, 1.0), PI.powi(4) / 90.0);
        close(hurwitz_zeta(3.0, 1.0), 1.202_056_903_159_594_2);
    }
}
