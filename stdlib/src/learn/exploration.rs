//! Epsilon-greedy exploration for agents with action values: settings, schedule, parameters and
//! actions.

use super::steps::of_legal;
use super::{LaneId, Mode};
use crate::Number;
use crate::distributions::{Categorical, Distribution};
use crate::optim::Schedule;
use podracer_dsl::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Settings of epsilon-greedy exploration. Epsilon, the probability of a random action, falls
/// linearly from `epsilon_start` to `epsilon_end` over the first part of the run, and stays at
/// `epsilon_end`.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct Exploration {
    /// Probability of a random action in the first iteration.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub epsilon_start: Number,
    /// Probability of a random action after `epsilon_fraction` of the run.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub epsilon_end: Number,
    /// Share of the run's iterations over which the probability of a random action falls from
    /// `epsilon_start` to `epsilon_end`.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub epsilon_fraction: f64,
}

impl Exploration {
    /// Epsilon as a function of the iteration's number, from 0, in a run of `iterations`
    /// iterations.
    #[must_use]
    pub fn schedule(&self, iterations: usize) -> Schedule {
        let falling = (self.epsilon_fraction * iterations as f64).round() as usize;
        // A schedule of 0 steps would stay at its initial value.
        Schedule::linear(self.epsilon_start, self.epsilon_end, falling.max(1))
    }
}

/// Parameters for acting of an epsilon-greedy agent. Epsilon is a leaf of the learner's state, so
/// that actors on other devices use the epsilon that belongs to their parameters.
#[derive(Tree, Clone)]
pub struct Exploring<Q: Tree> {
    /// The network of the action values.
    pub network: Q,
    /// Probability of a random action. f32 `[]`
    pub epsilon: Tensor,
}

/// The probability of a random action in a lane, which falls over the lanes: `base^(1 + power i /
/// (N - 1))` in the `i`-th of `N` (Horgan et al., "Distributed Prioritized Experience Replay",
/// 2018, section 4). f32 `[]`
#[track_caller]
pub fn epsilon_ladder(lane: LaneId, base: f64, power: f64) -> Tensor {
    let rung = lane.index.astype(F32) / lane.lanes.saturating_sub(1).max(1) as f64;
    pow(scalar(base), 1.0 + power * rung)
}

/// Chooses an action by the actions' values `q` (f32 `[A]`): the action with the greatest value,
/// or, in [`Mode::Explore`] with probability `epsilon` (f32 `[]`), any action. Actions that are not
/// `legal` (bool `[A]`; `None` if all are) are never chosen. i32 `[]`
#[track_caller]
pub fn epsilon_greedy(
    q: Tensor,
    legal: Option<Tensor>,
    epsilon: Tensor,
    mode: Mode,
    key: Key,
) -> Tensor {
    let q = of_legal(q, legal);
    match mode {
        Mode::Greedy => q.argmax(-1),
        Mode::Explore => Categorical::epsilon_greedy(q, epsilon).sample(key),
    }
}
