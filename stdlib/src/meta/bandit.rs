//! A bandit that chooses agents' learning rates by the rewards of earlier agents with them.

use crate::learn::Axes;
use podracer_dsl::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Settings of the bandit that chooses the learning rates for an agent's life: Oh et al. 2020,
/// "Balancing agent hyperparameters".
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(default)]
pub struct BanditSettings {
    /// Factors of the agents' learning rates; each life has one of them. A single factor leaves no
    /// choice.
    #[schemars(length(min = 1, max = 1_000), inner(range(min = 1e-9)))]
    #[schemars(extend("x-must" = "name 1 to 1000 factors of at least 1e-9"))]
    pub learning_rate_factors: Vec<f64>,
    /// Difference in reward per step that makes a factor e times as likely.
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    pub bandit_temperature: f64,
    /// Bonus in reward per step for a factor with one life so far; after n lives it is divided by
    /// the square root of n.
    #[schemars(range(min = 0.0))]
    pub bandit_bonus: f64,
}

impl Default for BanditSettings {
    fn default() -> Self {
        BanditSettings {
            learning_rate_factors: vec![1.0],
            bandit_temperature: 0.01,
            bandit_bonus: 0.05,
        }
    }
}

/// Statistics of each factor, f32 `[K]`.
#[derive(Tree, Clone, Copy)]
pub struct Arms {
    /// Number of lives with the factor that have ended.
    pub lives: Tensor,
    /// Mean reward per step at the end of these lives.
    pub reward: Tensor,
}

impl BanditSettings {
    /// The factors, f32 `[K]`.
    #[track_caller]
    fn factors(&self) -> Tensor {
        let factors = &self.learning_rate_factors;
        constant_of(&Array::floats(F32, [factors.len()], factors))
    }

    /// The factor of an arm, i32 `[]`. f32 `[]`
    #[track_caller]
    pub fn factor(&self, arm: Tensor) -> Tensor {
        let factors = self.factors();
        (factors * arm.one_hot(factors.len())).sum()
    }

    /// The arms before any life has ended.
    #[track_caller]
    pub fn arms(&self) -> Arms {
        let none = self.factors().zeros_like();
        Arms { lives: none, reward: none }
    }

    /// The arm of a new life, drawn with a probability in proportion to `exp((reward + bonus /
    /// sqrt(lives)) / temperature)`. Arms without a life count as if they had one. i32 `[]`
    #[track_caller]
    pub fn choose(&self, arms: &Arms, key: Key) -> Tensor {
        let bonus = self.bandit_bonus / arms.lives.maximum(1.0).sqrt();
        key.categorical((arms.reward + bonus) / self.bandit_temperature)
    }
}

impl Arms {
    /// The arms after the lives that `ended` (bool `[N]`), on all devices. The lives had these arms
    /// (i32 `[N]`) and rewards per step (f32 `[N]`).
    #[track_caller]
    pub fn after(&self, done: Tensor, arm: Tensor, reward: Tensor, axes: &Axes) -> Arms {
        let here = arm.one_hot(self.lives.len()) * done.astype(F32).expand_dims(-1);
        let of_arm = |x: Tensor| axes.sum((here * x.expand_dims(-1)).sum_axis(0));
        let lives = self.lives + of_arm(reward.ones_like());
        let sum = self.reward * self.lives + of_arm(reward);
        Arms { lives, reward: sum / lives.maximum(1.0) }
    }
}
