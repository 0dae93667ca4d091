//! Rewards that are scaled or clipped.

use crate::checked::checked_step;
use crate::environment::{Environment, TimeStep};
use crate::forward;
use podracer_dsl::prelude::*;
use podracer_dsl::{Loc, report_at};

/// The change of each reward by a [`TransformReward`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RewardChange {
    /// Multiplies it.
    Scale(f64),
    /// Clips it to an interval, whose ends may be infinite.
    Clip {
        /// The least reward.
        low: f64,
        /// The greatest reward.
        high: f64,
    },
}

/// Changes each reward; everything else stays as it is. gymnasium's `TransformReward` and `ClipReward`. With
/// [`WithStatistics`](crate::WithStatistics) inside, statistics are of the environment's own rewards.
#[derive(Clone, Debug)]
pub struct TransformReward<E> {
    environment: E,
    change: RewardChange,
    /// The line that made the wrapper.
    made: Loc,
}

impl<E: Environment> TransformReward<E> {
    /// Wraps an environment.
    #[track_caller]
    pub fn new(environment: E, change: RewardChange) -> Self {
        TransformReward { environment, change, made: Loc::caller() }
    }

    /// Why there are no such rewards.
    fn problem(&self) -> Option<String> {
        match self.change {
            RewardChange::Scale(scale) if !scale.is_finite() => {
                Some(format!("expected a finite scale, got {scale}"))
            }
            RewardChange::Clip { low, high } if low.is_nan() || high.is_nan() || low > high => {
                Some(format!("no reward lies between low {low} and high {high}"))
            }
            _ => None,
        }
    }
}

impl<E: Environment> Environment for TransformReward<E> {
    type State = E::State;
    type Observation = E::Observation;

    fn initial_state(&self, key: Key) -> E::State {
        if let Some(problem) = self.problem() {
            report_at(self.made, "transform_reward", problem, &[]);
        }
        self.environment.initial_state(key)
    }

    fn step(
        &self,
        state: E::State,
        action: Tensor,
        key: Key,
    ) -> (E::State, TimeStep<E::Observation>) {
        let (state, timestep) = checked_step(&self.environment, state, action, key);
        let reward = match self.change {
            RewardChange::Scale(scale) => timestep.reward * scale,
            RewardChange::Clip { low, high } => timestep.reward.clamp(low, high),
        };
        (state, TimeStep { reward, ..timestep })
    }

    fn observe(&self, state: E::State) -> E::Observation {
        self.environment.observe(state)
    }

    forward!(environment, |state| state);

    fn next_episode(&self, finished: E::State, key: Key) -> E::State {
        self.environment.next_episode(finished, key)
    }
}
