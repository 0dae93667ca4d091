//! The settings of a replay, and the windows that an agent learns from.

use super::RolloutShape;
use crate::Number;
use crate::replay::{Priorities, Replay};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The settings of a replay.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(default)]
pub struct ReplaySettings {
    /// Steps that the replay keeps, over all devices.
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub capacity: usize,
    /// Steps that the replay must have before learning begins, over all devices.
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub minimum: usize,
    /// Windows of steps in the batch of a gradient step, over all devices.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub batch: usize,
    /// Steps learnt from for each step acted: how often a step is replayed on average, if the replay keeps it long enough.
    #[schemars(extend("exclusiveMinimum" = 0.0), range(max = 1e6))]
    pub replay_ratio: f64,
    /// If true, windows are drawn by the errors that they had when they were last learnt from; else all alike.
    pub prioritized: bool,
    /// The power of priorities to which draws are in proportion.
    #[schemars(range(min = 0.0))]
    pub priority_exponent: Number,
    /// The power of the weights that make up for drawing by priority; 1 makes up for all of it, 0 for nothing.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub importance_exponent: Number,
    /// If true, the power of these weights rises in a straight line to 1 at the end of the run.
    pub anneal_importance: bool,
}

/// A million steps, all drawn alike, and a quarter of a step learnt from for each of 32 in a batch: the replay of Mnih et al. 2015.
/// The exponents are those of Schaul et al. 2016 for the proportional variant.
impl Default for ReplaySettings {
    fn default() -> Self {
        ReplaySettings {
            capacity: 1_000_000,
            minimum: 50_000,
            batch: 32,
            replay_ratio: 8.0,
            prioritized: false,
            priority_exponent: 0.6.into(),
            importance_exponent: 0.4.into(),
            anneal_importance: true,
        }
    }
}

impl ReplaySettings {
    /// Checks that the settings fit together, and that windows of `window` steps can be drawn.
    ///
    /// # Errors
    /// Settings that do not fit each other, as a sentence that names them.
    pub fn check(&self, window: usize) -> Result<(), String> {
        let &ReplaySettings { capacity, minimum, batch, .. } = self;
        if minimum > capacity {
            return Err(format!(
                "agent.minimum = {minimum} steps never come together in a replay of agent.capacity = {capacity}: learning would never begin"
            ));
        }
        if minimum < batch {
            return Err(format!(
                "agent.batch = {batch} windows are drawn from agent.minimum = {minimum} steps: expected a minimum of at least the batch"
            ));
        }
        if capacity < window {
            return Err(format!(
                "windows have {window} steps, and agent.capacity = {capacity}: expected a capacity of at least one window"
            ));
        }
        Ok(())
    }

    /// Checks that each lane's share of the replay has room for a window, with the rollouts of `devices` devices, each of the shape
    /// `rollout`.
    ///
    /// # Errors
    /// Too many lanes for the capacity, as a sentence that names the settings.
    pub fn check_rollout(
        &self,
        window: Window,
        rollout: RolloutShape,
        devices: usize,
    ) -> Result<(), String> {
        let (capacity, lanes) = (self.capacity, rollout.lanes * devices);
        match self.store(window, devices).ring_steps(rollout) {
            Some(steps) if steps < window.length => Err(format!(
                "agent.capacity = {capacity} keeps {steps} steps of each of {lanes} environments, and the agent learns from windows of {} \
                 steps: raise agent.capacity to {} or more, or lower the number of environments",
                window.length,
                window.length.saturating_mul(lanes)
            )),
            _ => Ok(()),
        }
    }

    /// The store of each of `devices` devices.
    pub(super) fn store(&self, Window { length, period, .. }: Window, devices: usize) -> Replay {
        let &ReplaySettings { capacity, prioritized, priority_exponent, .. } = self;
        let priorities = prioritized.then_some(Priorities { exponent: priority_exponent });
        Replay { capacity: capacity.div_ceil(devices), length, period, priorities }
    }
}

/// The windows that an agent learns from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Steps of a window.
    pub length: usize,
    /// Steps between the starts of two windows of a lane; see [`Replay::period`].
    pub period: usize,
    /// Steps of a window that are learnt from, by which the replay ratio counts.
    pub learnt: usize,
}
