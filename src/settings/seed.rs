//! `[seed]`: the shape of a run with central inference. An experiment that has it has neither `[anakin]` nor `[sebulba]`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ReplayMemory;
use super::devices::MOST_DEVICES;
use super::problems::Problems;

/// The loop with central inference: workers step environments and know no model.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(default)]
pub struct SeedSettings {
    /// Devices that infer, by index. Empty: the first quarter of `train.devices`, at least one.
    #[schemars(length(max = MOST_DEVICES), inner(range(max = MOST_DEVICES - 1)))]
    #[schemars(extend("x-resume" = true))]
    pub inference: Vec<usize>,
    /// Devices that learn, by index. Empty: those of `train.devices` that do not infer, as many as the lanes divide over.
    #[schemars(length(max = MOST_DEVICES), inner(range(max = MOST_DEVICES - 1)))]
    #[schemars(extend("x-resume" = true))]
    pub learners: Vec<usize>,
    /// Lanes of each inference device: environments that all of its workers may have together.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub environments: usize,
    /// Workers of each inference device that `podracer train` starts in its own process. They divide the lanes.
    #[schemars(range(min = 1, max = 1_024))]
    #[schemars(extend("x-resume" = true))]
    pub workers: usize,
    /// Steps of each lane in an unroll.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub unroll: usize,
    /// Iterations by which acting may be ahead of learning. 0: a thread that has completed the unrolls of an iteration waits for it.
    #[schemars(range(max = 1_000))]
    pub lag: usize,
    /// Number of waiting environments at which an inference begins; 0 picks it by measured times.
    #[schemars(range(max = 1_000_000))]
    #[schemars(extend("x-resume" = true))]
    pub capacity: usize,
    /// Milliseconds after the first waiting step at which an inference begins anyway; 0 is twice the time of an inference.
    #[schemars(range(min = 0.0))]
    #[schemars(extend("x-resume" = true))]
    pub timeout_ms: f64,
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

impl Default for SeedSettings {
    fn default() -> Self {
        SeedSettings {
            inference: Vec::new(),
            learners: Vec::new(),
            environments: 64,
            workers: 4,
            unroll: 32,
            lag: 1,
            capacity: 0,
            timeout_ms: 0.0,
            replay: ReplayMemory::default(),
            replay_folder: String::new(),
            iterations_per_call: 16,
            patience: 120,
        }
    }
}

impl SeedSettings {
    /// Environments of each worker in the process.
    #[must_use]
    pub fn environments_of_worker(&self) -> usize {
        self.environments / self.workers.max(1)
    }

    pub(super) fn check(&self, problems: &mut Problems) {
        let SeedSettings { environments, workers, capacity, .. } = *self;
        if workers == 0 || !environments.is_multiple_of(workers) {
            problems.add(format!(
                "seed.environments = {environments} does not divide over seed.workers = {workers}: it must be a multiple"
            ));
        }
        if capacity > environments {
            problems.add(format!(
                "seed.capacity is {capacity} and must be at most seed.environments = {environments}: an inference device has no \
                 more lanes"
            ));
        }
    }
}
