//! One of several.

use super::Distribution;
use podracer_dsl::prelude::*;

/// One of `A` values, with probabilities softmax(logits). A logit of -inf is a value that never comes.
#[derive(Tree, Clone, Copy)]
pub struct Categorical {
    /// `f32[.., A]`.
    pub logits: Tensor,
}

impl Categorical {
    /// From logits, `f32[.., A]`, which need not be normalised.
    pub fn new(logits: Tensor) -> Self {
        Categorical { logits }
    }

    /// `f32[.., A]`, which sum to 1.
    #[track_caller]
    pub fn probs(&self) -> Tensor {
        self.logits.softmax(-1)
    }

    /// `f32[.., A]`: the logarithms of [`Categorical::probs`].
    #[track_caller]
    pub fn log_probs(&self) -> Tensor {
        self.logits.log_softmax(-1)
    }
}

/// `p * x`, and 0 where p is 0 whatever x is; nor does a gradient flow there.
#[track_caller]
fn weighted(p: Tensor, x: Tensor) -> Tensor {
    let possible = p.gt(0);
    select(possible, p * select(possible, x, 0.0), 0.0)
}

impl Distribution for Categorical {
    /// `i32[..]`, by the Gumbel-max trick: the numbers of `jax.random.categorical`.
    #[track_caller]
    fn sample(&self, key: Key) -> Tensor {
        key.categorical(self.logits)
    }

    /// `f32[..]` of values `i32[..]`.
    #[track_caller]
    fn log_prob(&self, value: Tensor) -> Tensor {
        let log_probs = self.log_probs();
        let chosen = iota(I32, log_probs.shape(), -1).eq(value.expand_dims(-1));
        // A select, not a product with a one-hot vector: 0 * -inf would be NaN.
        select(chosen, log_probs, 0.0).sum_axis(-1)
    }

    /// `f32[..]`.
    #[track_caller]
    fn entropy(&self) -> Tensor {
        let log_probs = self.log_probs();
        -weighted(log_probs.exp(), log_probs).sum_axis(-1)
    }

    /// `i32[..]`, the first of several.
    #[track_caller]
    fn mode(&self) -> Tensor {
        self.logits.argmax(-1)
    }

    /// `f32[..]`; inf if `other` never gives what `self` may give.
    #[track_caller]
    fn kl_divergence(&self, other: &Self) -> Tensor {
        let log_probs = self.log_probs();
        weighted(log_probs.exp(), log_probs - other.log_probs()).sum_axis(-1)
    }
}
