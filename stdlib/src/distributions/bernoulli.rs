//! The Bernoulli distribution of binary values.

use super::{Distribution, weighted};
use podracer_dsl::prelude::*;

/// Distribution of independent values 0 or 1, elementwise; 1 has the probability sigmoid(logits).
#[derive(Tree, Clone, Copy)]
pub struct Bernoulli {
    /// Logits of the value 1, `f32[..]`.
    pub logits: Tensor,
}

impl Bernoulli {
    /// The distribution of logits `f32[..]`.
    pub fn new(logits: Tensor) -> Self {
        Bernoulli { logits }
    }

    /// The probabilities of 1, `f32[..]`.
    #[track_caller]
    pub fn probs(&self) -> Tensor {
        self.logits.sigmoid()
    }

    /// The log-probabilities of 0 and of 1, `f32[..]`.
    #[track_caller]
    fn log_probs(&self) -> [Tensor; 2] {
        [(-self.logits).log_sigmoid(), self.logits.log_sigmoid()]
    }

    /// The expectation of a quantity that is `of_0` or `of_1`. A value of probability 0 adds
    /// nothing, even if its quantity is infinite.
    #[track_caller]
    fn expected(&self, [of_0, of_1]: [Tensor; 2]) -> Tensor {
        weighted((-self.logits).sigmoid(), of_0) + weighted(self.probs(), of_1)
    }
}

impl Distribution for Bernoulli {
    /// A draw of 0 or 1, `i32[..]`, equal to distrax's draw.
    #[track_caller]
    fn sample(&self, key: Key) -> Tensor {
        key.bernoulli(self.logits.shape(), self.probs()).astype(I32)
    }

    /// The log-probability `f32[..]` of values: bools, or numbers with 0 as false.
    #[track_caller]
    fn log_prob(&self, value: Tensor) -> Tensor {
        let yes = if value.dtype() == BOOL { value } else { value.ne(0) };
        let [of_0, of_1] = self.log_probs();
        select(yes, of_1, of_0)
    }

    /// The entropy in nats, `f32[..]`.
    #[track_caller]
    fn entropy(&self) -> Tensor {
        -self.expected(self.log_probs())
    }

    /// The more probable value, `i32[..]`; 0 if both are equally probable.
    #[track_caller]
    fn mode(&self) -> Tensor {
        self.logits.gt(0).astype(I32)
    }

    /// KL(self || other) in nats, `f32[..]`.
    #[track_caller]
    fn kl_divergence(&self, other: &Self) -> Tensor {
        let [of_0, of_1] = self.log_probs();
        let [other_0, other_1] = other.log_probs();
        self.expected([of_0 - other_0, of_1 - other_1])
    }
}
