//! The normal distribution of a vector with independent elements: the Gaussian policy.

use super::{Distribution, Normal};
use podracer_dsl::prelude::*;

/// Distribution of a vector of independent normal numbers along the last axis.
#[derive(Tree, Clone, Copy)]
pub struct MultivariateNormalDiag {
    /// Mean, `f32[.., n]`.
    pub loc: Tensor,
    /// Standard deviations, above 0: f32 of the mean's shape.
    pub scale: Tensor,
}

impl MultivariateNormalDiag {
    /// The distribution of a mean and standard deviations.
    pub fn new(loc: Tensor, scale: Tensor) -> Self {
        MultivariateNormalDiag { loc, scale }
    }

    /// The distribution with a mean and the logarithm of the standard deviations, which broadcasts
    /// to the mean. Policies learn this logarithm.
    #[track_caller]
    pub fn from_log_std(loc: Tensor, log_std: Tensor) -> Self {
        MultivariateNormalDiag { loc, scale: log_std.exp().broadcast_to(loc.shape()) }
    }

    fn elements(&self) -> Normal {
        Normal { loc: self.loc, scale: self.scale }
    }
}

impl Distribution for MultivariateNormalDiag {
    /// A draw, `f32[.., n]`.
    #[track_caller]
    fn sample(&self, key: Key) -> Tensor {
        self.elements().sample(key)
    }

    /// The log-density `f32[..]` of a value `f32[.., n]`.
    #[track_caller]
    fn log_prob(&self, value: Tensor) -> Tensor {
        self.elements().log_prob(value).sum_axis(-1)
    }

    /// The entropy in nats, `f32[..]`.
    #[track_caller]
    fn entropy(&self) -> Tensor {
        self.elements().entropy().sum_axis(-1)
    }

    /// The mean, `f32[.., n]`.
    #[track_caller]
    fn mode(&self) -> Tensor {
        self.loc
    }

    /// KL(self || other) in nats, `f32[..]`.
    #[track_caller]
    fn kl_divergence(&self, other: &Self) -> Tensor {
        self.elements().kl_divergence(&other.elements()).sum_axis(-1)
    }
}
