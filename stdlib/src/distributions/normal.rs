//! The normal distribution of one number.

use super::Distribution;
use podracer_dsl::prelude::*;
use std::f64::consts::{PI, SQRT_2};

/// Independent normal numbers, one for each element. Density `exp(-((x - loc) / scale)^2 / 2) / (scale sqrt(2 pi))`.
#[derive(Tree, Clone, Copy)]
pub struct Normal {
    /// `f32[..]`: the mean.
    pub loc: Tensor,
    /// f32 of the same shape: the standard deviation, above 0.
    pub scale: Tensor,
}

impl Normal {
    /// From mean and standard deviation.
    pub fn new(loc: Tensor, scale: Tensor) -> Self {
        Normal { loc, scale }
    }

    /// Standardised: how many deviations above the mean.
    #[track_caller]
    fn standardize(&self, value: Tensor) -> Tensor {
        (value - self.loc) / self.scale
    }

    /// `f32[..]`: the probability of a number up to `value`.
    #[track_caller]
    pub fn cdf(&self, value: Tensor) -> Tensor {
        0.5 * (1.0 + (self.standardize(value) * (1.0 / SQRT_2)).erf())
    }
}

impl Distribution for Normal {
    #[track_caller]
    fn sample(&self, key: Key) -> Tensor {
        self.loc + self.scale * key.normal(self.loc.shape())
    }

    #[track_caller]
    fn log_prob(&self, value: Tensor) -> Tensor {
        -0.5 * self.standardize(value).square() - self.scale.log() - 0.5 * (2.0 * PI).ln()
    }

    #[track_caller]
    fn entropy(&self) -> Tensor {
        self.scale.log() + (0.5 + 0.5 * (2.0 * PI).ln())
    }

    #[track_caller]
    fn mode(&self) -> Tensor {
        self.loc
    }

    #[track_caller]
    fn kl_divergence(&self, other: &Self) -> Tensor {
        let ratio = self.scale / other.scale;
        let distance = (self.loc - other.loc) / other.scale;
        0.5 * (ratio.square() + distance.square() - 1.0) - ratio.log()
    }
}
