//! The categorical distribution.

use super::{Distribution, weighted};
use crate::losses::is_index;
use podracer_dsl::prelude::*;

/// Distribution of one of `A` values, with probabilities softmax(logits). A value with the logit
/// -inf is never drawn.
#[derive(Tree, Clone, Copy)]
pub struct Categorical {
    /// Logits of the values, `f32[.., A]`.
    pub logits: Tensor,
}

impl Categorical {
    /// The distribution of logits `f32[.., A]`, which need not be normalised.
    pub fn new(logits: Tensor) -> Self {
        Categorical { logits }
    }

    /// The probabilities, `f32[.., A]`, which sum to 1.
    #[track_caller]
    pub fn probs(&self) -> Tensor {
        self.logits.softmax(-1)
    }

    /// The logarithms of [`Categorical::probs`], `f32[.., A]`.
    #[track_caller]
    pub fn log_probs(&self) -> Tensor {
        self.logits.log_softmax(-1)
    }
}

impl Distribution for Categorical {
    /// A draw `i32[..]` by the Gumbel-max trick, equal to the draw of `jax.random.categorical`.
    #[track_caller]
    fn sample(&self, key: Key) -> Tensor {
        key.categorical(self.logits)
    }

    /// The log-probability `f32[..]` of values `i32[..]`; -inf for a value that is not one of the `A`.
    #[track_caller]
    fn log_prob(&self, value: Tensor) -> Tensor {
        let log_probs = self.log_probs();
        let chosen = iota(I32, log_probs.shape(), -1).eq(value.expand_dims(-1));
        // A select, not a product with a one-hot vector: 0 * -inf would be NaN.
        let log_prob = select(chosen, log_probs, 0.0).sum_axis(-1);
        select(is_index(value, log_probs), log_prob, f64::NEG_INFINITY)
    }

    /// The entropy in nats, `f32[..]`.
    #[track_caller]
    fn entropy(&self) -> Tensor {
        let log_probs = self.log_probs();
        -weighted(log_probs.exp(), log_probs).sum_axis(-1)
    }

    /// The most probable value `i32[..]`; the first, if several are equally probable.
    #[track_caller]
    fn mode(&self) -> Tensor {
        self.logits.argmax(-1)
    }

    /// KL(self || other) in nats, `f32[..]`; inf if a value is possible under `self` but not under
    /// `other`.
    #[track_caller]
    fn kl_divergence(&self, other: &Self) -> Tensor {
        let log_probs = self.log_probs();
        weighted(log_probs.exp(), log_probs - other.log_probs()).sum_axis(-1)
    }
}
