//! The normal distribution squashed into (-1, 1), for bounded actions.

use super::{Distribution, Normal};
use podracer_dsl::prelude::*;

/// Distribution of tanh(z) for normal z, elementwise: Haarnoja et al., "Soft Actor-Critic", 2018,
/// appendix C. It has no entropy in closed form. Estimate the entropy by `-log_prob` of a sample.
#[derive(Tree, Clone, Copy)]
pub struct TanhNormal {
    /// The distribution of z, before tanh.
    pub normal: Normal,
}

/// Logarithm of the slope of tanh at z, log(1 - tanh(z)^2), without cancellation, elementwise.
/// Squashing subtracts it from the log-density of a draw.
#[track_caller]
pub fn tanh_log_det_jacobian(z: Tensor) -> Tensor {
    2.0 * (std::f64::consts::LN_2 - z - (-2.0 * z).softplus())
}

impl TanhNormal {
    /// The distribution of a mean and a standard deviation of z, `f32[..]`.
    pub fn new(loc: Tensor, scale: Tensor) -> Self {
        TanhNormal { normal: Normal::new(loc, scale) }
    }

    /// A draw `f32[..]` in (-1, 1).
    #[track_caller]
    pub fn sample(&self, key: Key) -> Tensor {
        self.normal.sample(key).tanh()
    }

    /// The log-density `f32[..]` of a value in (-1, 1). For values very close to -1 and 1, z is
    /// lost to rounding: use [`TanhNormal::sample_and_log_prob`] for samples.
    #[track_caller]
    pub fn log_prob(&self, value: Tensor) -> Tensor {
        let z = 0.5 * (value.log1p() - (-value).log1p());
        self.log_prob_of(z)
    }

    /// A draw and its log-density, exact up to the edges.
    #[track_caller]
    pub fn sample_and_log_prob(&self, key: Key) -> (Tensor, Tensor) {
        self.draw_of(key.normal(self.normal.loc.shape()))
    }

    /// The draw made from standard normal numbers `f32[..]`, and its log-density, exact up to the
    /// edges.
    #[track_caller]
    pub fn draw_of(&self, noise: Tensor) -> (Tensor, Tensor) {
        let z = self.normal.loc + self.normal.scale * noise;
        (z.tanh(), self.log_prob_of(z))
    }

    /// The squashed mean, which is the median. A greedy policy takes it.
    #[track_caller]
    pub fn mode(&self) -> Tensor {
        self.normal.loc.tanh()
    }

    #[track_caller]
    fn log_prob_of(&self, z: Tensor) -> Tensor {
        self.normal.log_prob(z) - tanh_log_det_jacobian(z)
    }
}
