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
    /// Number of steps that the replay keeps, over all devices.
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub capacity: usize,
    /// Number of steps that the replay must hold before learning begins, over all devices.
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub minimum: usize,
    /// Number of windows in the batch of a gradient step, over all devices.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub batch: usize,
    /// Steps learnt from for each step acted: the average number of times that a step is replayed,
    /// if the replay keeps it long enough.
    #[schemars(extend("exclusiveMinimum" = 0.0), range(max = 1e6))]
    pub replay_ratio: f64,
    /// If true, windows are drawn by the errors when they were last learnt from; otherwise
    /// uniformly.
    pub prioritized: bool,
    /// Exponent of the priorities; draws are in proportion to the result.
    #[schemars(range(min = 0.0))]
    pub priority_exponent: Number,
    /// Exponent of the importance weights, which correct for drawing by priority; 1 corrects fully,
    /// 0 not at all.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub importance_exponent: Number,
    /// If true, the exponent of these weights rises linearly to 1 at the end of the run.
    pub anneal_importance: bool,
}

/// The replay of Mnih et al. 2015: a million steps, drawn uniformly, in batches of 32, with a
/// quarter of a gradient step per acted step. The exponents are those in Schaul et al. 2016 for the
/// proportional variant.
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
    /// Returns a sentence that names the settings that do not fit each other.
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

    /// Checks that each lane's share of the replay has room for a window, if each of `devices`
    /// devices has rollouts of the shape `rollout`.
    ///
    /// # Errors
    /// Returns a sentence that names the settings if there are too many lanes for the capacity.
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
    /// Number of steps of a window.
    pub length: usize,
    /// Steps between the starts of two windows of a lane; see [`Replay::period`].
    pub period: usize,
    /// Number of steps of a window that are learnt from; the replay ratio counts these steps.
    pub learnt: usize,
}
