//! The result of a training.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The result of a training: `result.json`, which `--json` prints. Times and speeds belong to the
/// last process; the other values belong to the whole training.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Outcome {
    pub(crate) experiment: String,
    pub(crate) platform: String,
    pub(crate) devices: usize,
    /// Number of processes that trained together, each on `devices` devices, if there were several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) processes: Option<usize>,
    /// Number of runs in the program, which share its seconds, if there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) together: Option<usize>,
    pub(crate) seed: u64,
    /// The iteration that the last process resumed from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) resumed_from_iteration: Option<u64>,
    pub(crate) env_steps: u64,
    pub(crate) iterations: u64,
    pub(crate) calls: u64,
    pub(crate) episodes: u64,
    pub(crate) compile_seconds: f64,
    /// Seconds in calls, including the recording between them, without evaluations.
    pub(crate) run_seconds: f64,
    /// Seconds of the calls of the whole training, over all its processes.
    pub(crate) total_seconds: f64,
    /// Seconds from the start of the process to the end of the first call.
    pub(crate) first_call_seconds: Option<f64>,
    /// Speed in environment steps per second, without the first call if there are others.
    pub(crate) env_steps_per_second: Option<f64>,
    /// Mean return of the last completed episodes of the training, at least 100 of them if there
    /// are as many.
    pub(crate) mean_return: Option<f64>,
    pub(crate) mean_return_episodes: u64,
    pub(crate) evaluation: BTreeMap<String, f64>,
    /// Seconds of each thread by activity.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) seconds_of_threads: BTreeMap<String, f64>,
    /// Restarts of environments after a fault, in the last process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) environment_restarts: Option<usize>,
    pub(crate) params_sha256: String,
    pub(crate) interrupted: bool,
    pub(crate) run_dir: String,
}
