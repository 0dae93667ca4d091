//! Distributions of actions, with the values of distrax.
//!
//! Parameters may have leading axes. For a distribution over vectors, the last axis is the
//! vector's; log-probabilities and entropies do not have it. Everything is elementwise or a
//! reduction over the last axis, so a batch needs no gather.

mod bernoulli;
mod categorical;
mod exploration;
mod mixture;
mod multi_categorical;
mod multivariate_normal;
mod normal;
mod tanh_normal;

pub use bernoulli::Bernoulli;
pub use categorical::Categorical;
pub use mixture::MixtureSameFamily;
pub use multi_categorical::MultiCategorical;
pub use multivariate_normal::MultivariateNormalDiag;
pub use normal::Normal;
pub use tanh_normal::{TanhNormal, tanh_log_det_jacobian};

use podracer_dsl::prelude::*;

/// A distribution over actions.
pub trait Distribution {
    /// Draws one value.
    fn sample(&self, key: Key) -> Tensor;

    /// The logarithm of the probability, or density, of a value.
    fn log_prob(&self, value: Tensor) -> Tensor;

    /// The entropy in nats.
    fn entropy(&self) -> Tensor;

    /// The most probable value.
    fn mode(&self) -> Tensor;

    /// The Kullback-Leibler divergence KL(self || other) in nats.
    fn kl_divergence(&self, other: &Self) -> Tensor;

    /// A draw and its log-probability.
    fn sample_and_log_prob(&self, key: Key) -> (Tensor, Tensor) {
        let value = self.sample(key);
        (value, self.log_prob(value))
    }
}

/// The product `p * x`. It is 0 if p is 0, even if x is infinite, and then no gradient flows.
#[track_caller]
pub(crate) fn weighted(p: Tensor, x: Tensor) -> Tensor {
    let possible = p.gt(0);
    select(possible, p * select(possible, x, 0.0), 0.0)
}
