//! Transformed values, for networks that learn a squashed return, or its distribution over bins.

use crate::expect;
use podracer_dsl::fail;
use podracer_dsl::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The squashing of values in R2D2 and MuZero, Pohlen et al., "Observe and Look Further: Achieving
/// Consistent Performance on Atari", 2018, section 3.2, elementwise:
///
/// ```text
/// h(x) = sign(x) (sqrt(|x| + 1) - 1) + eps x
/// ```
///
/// `eps` is 1e-3 in R2D2 and MuZero; then `h(3)` is 1.003. The slope at 0 is 1/2 + eps, where rlax has eps.
#[track_caller]
pub fn signed_hyperbolic(x: Tensor, eps: f64) -> Tensor {
    let _scope = scope("signed_hyperbolic");
    // sqrt(|x| + 1) - 1 without cancellation.
    x / ((x.abs() + 1.0).sqrt() + 1.0) + eps * x
}

/// The inverse of [`signed_hyperbolic`]:
///
/// ```text
/// h^-1(x) = sign(x) (z^2 - 1)        z = (sqrt(1 + 4 eps (eps + 1 + |x|)) - 1) / (2 eps)
/// ```
///
/// `eps` is at least 0. It is computed without cancellation, so that `h^-1(h(x))` is x in f32; the
/// formula as written, which rlax uses, loses four digits. The slope at 0 is 1 / (1/2 + eps), where
/// rlax has 0.
#[track_caller]
pub fn signed_parabolic(x: Tensor, eps: f64) -> Tensor {
    let op = "signed_parabolic";
    let _scope = scope(op);
    if let Some(wrong) = expect::constant_is(op, "eps", eps.into(), "of at least 0", |x| x >= 0.0) {
        return x + wrong;
    }
    // w = z - 1 solves eps w^2 + (1 + 2 eps) w = |x|, and z^2 - 1 is w (w + 2).
    let b = 1.0 + 2.0 * eps;
    let w = 2.0 * x / (b + (b * b + 4.0 * eps * x.abs()).sqrt());
    w * (w.abs() + 2.0)
}

/// The odd function that equals `f` for positive numbers; its slope at 0 is the slope of `f`.
#[track_caller]
fn odd(x: Tensor, f: impl Fn(Tensor) -> Tensor) -> Tensor {
    let negative = x.lt(0);
    let y = f(select(negative, -x, x));
    select(negative, -y, y)
}

/// `sign(x) log(|x| + 1)`, elementwise. The slope at 0 is 1, where rlax has 0.
#[track_caller]
pub fn signed_logp1(x: Tensor) -> Tensor {
    let _scope = scope("signed_logp1");
    odd(x, Tensor::log1p)
}

/// The inverse of [`signed_logp1`], `sign(x) (e^|x| - 1)`, elementwise. The slope at 0 is 1, where
/// rlax has 0.
#[track_caller]
pub fn signed_expm1(x: Tensor) -> Tensor {
    let _scope = scope("signed_expm1");
    odd(x, Tensor::expm1)
}

/// A substitute, with an error recorded, unless bins of values from `min_value` to `max_value` are
/// possible.
#[track_caller]
fn wrong_bins(op: &str, min_value: f64, max_value: f64, num_bins: usize) -> Option<Tensor> {
    if num_bins >= 2 && min_value < max_value {
        return None;
    }
    let message = format!(
        "expected at least 2 bins and min_value below max_value, got {num_bins} bins from {min_value} to {max_value}"
    );
    Some(fail(op, message, &[], TensorType::scalar(F32)))
}

/// Numbers as probabilities of two neighbouring bins, `f32[..]` to `f32[.., num_bins]`. The bins'
/// values are spaced evenly from `min_value` to `max_value`, and the mean of the two is the number.
/// Numbers outside are clamped. Schrittwieser et al., "Mastering Atari, Go, Chess and Shogi by
/// Planning with a Learned Model", 2020, appendix F.
///
/// As in rlax, the lower probability is `(upper - x) / (width + 1e-5)`, so that the mean is off by up to 1e-5.
#[track_caller]
pub fn transform_to_2hot(x: Tensor, min_value: f64, max_value: f64, num_bins: usize) -> Tensor {
    let op = "transform_to_2hot";
    let _scope = scope(op);
    if let Some(wrong) = wrong_bins(op, min_value, max_value, num_bins) {
        return (x + wrong).expand_dims(-1);
    }
    let x = x.clamp(min_value, max_value);
    let (range, last) = (max_value - min_value, (num_bins - 1) as f64);
    let bin = (x - min_value) / range * last;
    let value = |bin: Tensor| bin / last * range + min_value;
    let (lower, upper) = (bin.floor(), bin.ceil());
    let p_lower = (value(upper) - x) / (value(upper) - value(lower) + 1e-5);
    let bins = |bin: Tensor| bin.astype(I32).one_hot(num_bins).astype(x.dtype());
    let hot = |bin: Tensor, p: Tensor| bins(bin) * p.expand_dims(-1);
    hot(lower, p_lower) + hot(upper, 1.0 - p_lower)
}

/// The mean of bins, `f32[.., num_bins]` to `f32[..]`: the inverse of [`transform_to_2hot`], and
/// the expected value under any probabilities `probs`.
#[track_caller]
pub fn transform_from_2hot(
    probs: Tensor,
    min_value: f64,
    max_value: f64,
    num_bins: usize,
) -> Tensor {
    let op = "transform_from_2hot";
    let _scope = scope(op);
    if let Some(wrong) = wrong_bins(op, min_value, max_value, num_bins) {
        return probs.sum_axis(-1) + wrong;
    }
    if probs.shape().last() != Some(&num_bins) {
        let message = format!("expected probabilities of {num_bins} bins, got {}", probs.ty());
        return fail(op, message, &[probs], TensorType::scalar(F32));
    }
    (probs * linspace(min_value, max_value, num_bins).astype(probs.dtype())).sum_axis(-1)
}

/// A transformation of values and its inverse, for value networks that learn transformed returns.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TxPair {
    /// The identity transformation.
    #[default]
    Identity,
    /// [`signed_hyperbolic`] and [`signed_parabolic`] with `eps` 1e-3, as in R2D2.
    SignedHyperbolic,
    /// [`signed_logp1`] and [`signed_expm1`].
    SignedLogp1,
}

impl TxPair {
    /// Transforms a value to the scale that the network learns, elementwise.
    #[track_caller]
    pub fn apply(self, x: Tensor) -> Tensor {
        match self {
            TxPair::Identity => x,
            TxPair::SignedHyperbolic => signed_hyperbolic(x, 1e-3),
            TxPair::SignedLogp1 => signed_logp1(x),
        }
    }

    /// Transforms the network's output back to a value, elementwise.
    #[track_caller]
    pub fn apply_inv(self, x: Tensor) -> Tensor {
        match self {
            TxPair::Identity => x,
            TxPair::SignedHyperbolic => signed_parabolic(x, 1e-3),
            TxPair::SignedLogp1 => signed_expm1(x),
        }
    }
}
