//! The normal distribution of one number.

use super::Distribution;
use podracer_dsl::prelude::*;
use std::f64::consts::{PI, SQRT_2};

/// Distribution of independent normal numbers, elementwise. The density is `exp(-((x - loc) /
/// scale)^2 / 2) / (scale sqrt(2 pi))`.
#[derive(Tree, Clone, Copy)]
pub struct Normal {
    /// Mean, `f32[..]`.
    pub loc: Tensor,
    /// Standard deviation, above 0: f32 of the mean's shape.
    pub scale: Tensor,
}

impl Normal {
    /// The distribution of a mean and a standard deviation.
    pub fn new(loc: Tensor, scale: Tensor) -> Self {
        Normal { loc, scale }
    }

    /// Distance of a value from the mean, in standard deviations.
    #[track_caller]
    fn standardize(&self, value: Tensor) -> Tensor {
        (value - self.loc) / self.scale
    }

    /// The probability of numbers up to `value`, `f32[..]`.
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
