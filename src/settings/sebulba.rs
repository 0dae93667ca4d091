//! `[sebulba]`: the shape of a run whose actors and learners are on different devices. An experiment that has it has no
//! `[anakin]`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::devices::MOST_DEVICES;

/// The loop whose actors and learners are on different devices, with environments on the host.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(default)]
pub struct SebulbaSettings {
    /// Devices that act, by index. Empty: the first quarter of `train.devices`, at least one.
    #[schemars(length(max = MOST_DEVICES), inner(range(max = MOST_DEVICES - 1)))]
    #[schemars(extend("x-resume" = true))]
    pub actors: Vec<usize>,
    /// Devices that learn, by index. Empty: those of `train.devices` that do not act, as many as the lanes divide over.
    #[schemars(length(max = MOST_DEVICES), inner(range(max = MOST_DEVICES - 1)))]
    #[schemars(extend("x-resume" = true))]
    pub learners: Vec<usize>,
    /// Actor threads on each actor device.
    #[schemars(range(min = 1, max = 1_024))]
    pub threads: usize,
    /// Lanes of each actor thread.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub environments: usize,
    /// Steps of each lane in an iteration.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub unroll: usize,
    /// The rule by which actors take new parameters.
    pub schedule: Schedule,
    /// Iterations by which the parameters of the deterministic schedule are behind.
    #[schemars(range(max = 1_000))]
    pub lag: usize,
    /// Rollouts of each actor thread that may wait for the learner.
    #[schemars(range(min = 1, max = 1_000))]
    pub queue: usize,
    /// The memory that has the replay of an agent that learns from one.
    pub replay: ReplayMemory,
    /// The folder whose disk has a replay on the host. Empty: the run directory.
    #[schemars(extend("x-resume" = true))]
    pub replay_folder: String,
    /// Iterations between two reports.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub iterations_per_call: usize,
    /// Seconds without progress in any thread after which the run is given up.
    #[schemars(range(min = 1, max = i32::MAX))]
    pub patience: usize,
}

/// Rules by which actors take new parameters.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Schedule {
    /// Every rollout is acted with the parameters of a fixed number of iterations before: runs repeat to the bit.
    #[default]
    Deterministic,
    /// Every rollout is acted with the newest parameters.
    FreeRunning,
}

/// Memories that a replay may be in.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReplayMemory {
    /// The learner devices' memory: each has the steps of its own lanes.
    #[default]
    Device,
    /// The disk of the host, and as much of its memory as is free. The learner devices have the priorities; an iteration learns from
    /// windows that were drawn two iterations before.
    Host,
}

impl Default for SebulbaSettings {
    fn default() -> Self {
        SebulbaSettings {
            actors: Vec::new(),
            learners: Vec::new(),
            threads: 2,
            environments: 32,
            unroll: 32,
            schedule: Schedule::default(),
            lag: 1,
            queue: 2,
            replay: ReplayMemory::default(),
            replay_folder: String::new(),
            iterations_per_call: 16,
            patience: 120,
        }
    }
}
