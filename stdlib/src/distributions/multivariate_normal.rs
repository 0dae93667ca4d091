//! The normal distribution of a vector with independent elements: the Gaussian policy.

use super::{Distribution, Normal};
use podracer_dsl::prelude::*;

/// A vector of independent normal numbers along the last axis.
#[derive(Tree, Clone, Copy)]
pub struct MultivariateNormalDiag {
    /// `f32[.., n]`: the mean.
    pub loc: Tensor,
    /// f32 of the same shape: the standard deviations, above 0.
    pub scale: Tensor,
}

impl MultivariateNormalDiag {
    /// From mean and standard deviations.
    pub fn new(loc: Tensor, scale: Tensor) -> Self {
        MultivariateNormalDiag { loc, scale }
    }

    /// From the mean and the logarithm of the standard deviations, which broadcasts to the mean: what a policy learns.
    #[track_caller]
    pub fn from_log_std(loc: Tensor, log_std: Tensor) -> Self {
        MultivariateNormalDiag { loc, scale: log_std.exp().broadcast_to(loc.shape()) }
    }

    fn elements(&self) -> Normal {
        Normal { loc: self.loc, scale: self.scale }
    }
}

impl Distribution for MultivariateNormalDiag {
    /// `f32[.., n]`.
    #[track_caller]
    fn sample(&self, key: Key) -> Tensor {
        self.elements().sample(key)
    }

    /// `f32[..]` of `f32[.., n]`.
    #[track_caller]
    fn log_prob(&self, value: Tensor) -> Tensor {
        self.elements().log_prob(value).sum_axis(-1)
    }

    /// `f32[..]`.
    #[track_caller]
    fn entropy(&self) -> Tensor {
        self.elements().entropy().sum_axis(-1)
    }

    /// `f32[.., n]`.
    #[track_caller]
    fn mode(&self) -> Tensor {
        self.loc
    }

    /// `f32[..]`.
    #[track_caller]
    fn kl_divergence(&self, other: &Self) -> Tensor {
        self.elements().kl_divergence(&other.elements()).sum_axis(-1)
    }
}
