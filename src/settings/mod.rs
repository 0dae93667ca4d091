//! The settings of an experiment. [`crate::loading`] reads them from files, `--set` and flags.
//!
//! # Invariants
//! - [`Settings`] are complete and valid: every key has a value of its type and range, and the
//!   values fit together.
//! - [`Settings::to_toml`] writes settings that read back as equal: a run's `config.toml` is an
//!   experiment.

mod devices;
mod meta;
mod problems;
mod program;
mod training_loop;

use std::collections::BTreeMap;

use podracer_runtime::OptionValue;
pub use podracer_runtime::{
    AnakinSettings, CentralSettings, HostLoopSettings, ReplayMemory, Schedule, SebulbaSettings,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

pub use crate::UsageError;
pub use devices::Devices;
pub use meta::MetaLoopSettings;
pub(crate) use problems::{Problems, suggestion};
pub use program::{ProgramSettings, SimplifyGroup};
pub use training_loop::TrainingLoop;
pub(crate) use training_loop::decide;

use crate::format::plural;

/// The greatest number of steps or iterations of a run that a JSON number, or an `f64`, represents
/// without rounding.
const MOST_STEPS: u64 = 1 << 53;

/// An experiment: everything that a run depends on, except the machine.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Settings {
    /// Name of the experiment, and in the names of its run directories.
    pub experiment: String,
    /// A description in one line.
    #[serde(default)]
    pub description: String,
    /// Table `[train]`.
    pub train: TrainSettings,
    /// Table `[anakin]`, `[sebulba]`, `[central]` or `[meta]`.
    #[serde(flatten)]
    pub training_loop: TrainingLoop,
    /// Table `[agent]`, complete: the agent's name as `kind`, and its settings.
    pub agent: Table,
    /// Table `[environment]`, complete: the environment's name as `name`, and its settings.
    pub environment: Table,
    /// Table `[program]`.
    #[serde(default)]
    pub program: ProgramSettings,
    /// Table `[metrics]`.
    #[serde(default)]
    pub metrics: MetricsSettings,
    /// Table `[xla]`: options for XLA by name. They extend and override the options by podracer's
    /// rule.
    #[serde(default)]
    pub xla: BTreeMap<String, OptionValue>,
}

/// Length of a run, its devices, and its checkpoints.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(default)]
pub struct TrainSettings {
    /// Seed of all randomness.
    #[schemars(range(max = i64::MAX))]
    pub seed: u64,
    /// Environment steps of the whole run.
    #[schemars(range(min = 1, max = MOST_STEPS))]
    #[schemars(extend("x-resume" = true))]
    pub steps: u64,
    /// XLA's platform.
    #[schemars(extend("enum" = podracer_plugins::PLUGINS.each_ref().map(|plugin| plugin.name)))]
    pub platform: String,
    /// Devices of the run.
    #[schemars(extend("x-resume" = true))]
    pub devices: Devices,
    /// Number of iterations between two checkpoints, which are written at the end of a call. None:
    /// only one checkpoint, at the end of the run or when it is stopped.
    #[schemars(range(min = 1, max = MOST_STEPS))]
    #[schemars(extend("x-resume" = true))]
    pub checkpoint_every: Option<u64>,
    /// Number of iterations between two checkpoints that have the agent's store, such as a replay
    /// of gigabytes. The checkpoints in between have everything else: `eval` and `export` read
    /// them, and `resume` starts from the last checkpoint with the store. None: all have it.
    #[schemars(range(min = 1, max = MOST_STEPS))]
    #[schemars(extend("x-resume" = true))]
    pub store_every: Option<u64>,
    /// Reaction to parameters that are not finite.
    #[schemars(extend("x-resume" = true))]
    pub on_nan: OnNan,
    /// Number of checkpoints that are kept: an older checkpoint is used if the last is damaged.
    #[schemars(range(min = 1, max = 1_000_000))]
    #[schemars(extend("x-resume" = true))]
    pub checkpoints_kept: usize,
    /// Number of iterations between two evaluations, which take place at the end of a call. None:
    /// no evaluations. They do not change the training.
    #[schemars(range(min = 1, max = MOST_STEPS))]
    #[schemars(extend("x-resume" = true))]
    pub eval_every: Option<u64>,
    /// Number of episodes per evaluation.
    #[schemars(range(min = 1, max = 1_000_000))]
    #[schemars(extend("x-resume" = true))]
    pub eval_episodes: usize,
    /// True if an evaluation draws actions from the policy, as in training; false if it takes the
    /// greedy actions.
    #[schemars(extend("x-resume" = true))]
    pub eval_sampled: bool,
    /// Number of iterations between two recorded episodes, which are recorded at the end of a call:
    /// a GIF of each is in the run directory's `episodes/`. None: no recordings. They do not change
    /// the training.
    #[schemars(range(min = 1, max = MOST_STEPS))]
    #[schemars(extend("x-resume" = true))]
    pub record_every: Option<u64>,
    /// Number of processes that train together, each on its own devices; the launcher must start
    /// this many. None: as many as the launcher starts, or a single process.
    #[schemars(range(min = 1, max = 1_000_000))]
    #[schemars(extend("x-resume" = true))]
    pub processes: Option<usize>,
    /// Greatest number of seconds that another process of the training may be silent. After that
    /// all processes end, with a message that names the silent process. None: 60.
    #[schemars(range(min = 1, max = 1_000_000))]
    #[schemars(extend("x-resume" = true))]
    pub patience: Option<u64>,
}

/// The reaction to parameters that are NaN or infinite. Parameters are checked if a metric is not
/// finite, and before each checkpoint.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnNan {
    /// The run ends with an error. Its last checkpoint is finite.
    Stop,
    /// The run continues after a warning.
    Warn,
    /// The run continues silently.
    Ignore,
}

impl Default for TrainSettings {
    fn default() -> Self {
        TrainSettings {
            seed: 0,
            steps: 1_000_000,
            platform: "cpu".to_owned(),
            devices: Devices::Count(1),
            checkpoint_every: Some(1_000),
            store_every: None,
            on_nan: OnNan::Stop,
            checkpoints_kept: 2,
            eval_every: None,
            eval_episodes: 100,
            eval_sampled: false,
            processes: None,
            patience: None,
            record_every: None,
        }
    }
}

/// The metrics that a run records.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(default)]
pub struct MetricsSettings {
    /// Interval between the lines of `metrics.jsonl` and of TensorBoard's file.
    #[schemars(extend("x-resume" = true))]
    pub every: MetricsEvery,
}

/// The interval between two recorded lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum MetricsEvery {
    /// At most once per second after the first minute, with means over the iterations since the
    /// previous line.
    #[default]
    Second,
    /// Every iteration, at any speed.
    Iteration,
}

/// Iterations and calls of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Environment steps of an iteration, over all lanes.
    pub steps_per_iteration: u64,
    /// Number of iterations in the requested steps, at least 1, over which schedules extend.
    pub iterations: u64,
    /// Number of calls of the compiled program. If `iterations_per_call` does not divide the
    /// iterations, the last call exceeds them.
    pub calls: u64,
}

impl Plan {
    /// Environment steps of all calls.
    #[must_use]
    pub fn steps(&self, iterations_per_call: usize) -> u64 {
        let iterations = self.calls.saturating_mul(iterations_per_call as u64);
        iterations.saturating_mul(self.steps_per_iteration)
    }
}

impl Settings {
    /// The name of the agent: `agent.kind`.
    #[must_use]
    pub fn agent_kind(&self) -> &str {
        self.agent.get("kind").and_then(Value::as_str).unwrap_or_default()
    }

    /// The name of the environment: `environment.name`.
    #[must_use]
    pub fn environment_name(&self) -> &str {
        self.environment.get("name").and_then(Value::as_str).unwrap_or_default()
    }

    /// The number of processes that train together.
    #[must_use]
    pub fn processes(&self) -> usize {
        self.train.processes.unwrap_or(1)
    }

    /// The iterations and calls for the requested steps.
    #[must_use]
    pub fn plan(&self) -> Plan {
        let (lanes, unroll) = (self.training_loop.lanes(), self.training_loop.unroll());
        // Environments on the host belong to each process; those in a single program are divided
        // over the processes.
        let host = self.training_loop.host().map_or(1, |_| self.processes());
        let steps = (lanes as u64).saturating_mul(unroll as u64).saturating_mul(host as u64);
        let steps_per_iteration = steps.saturating_mul(self.training_loop.rollouts() as u64).max(1);
        let iterations = (self.train.steps / steps_per_iteration).max(1);
        let calls = iterations.div_ceil(self.training_loop.iterations_per_call().max(1) as u64);
        Plan { steps_per_iteration, iterations, calls }
    }

    /// A sentence for the user if the run trains at least one percent fewer or more steps than
    /// `train.steps`, because it consists of whole calls.
    #[must_use]
    pub fn rounding(&self) -> Option<String> {
        let (plan, iterations) = (self.plan(), self.training_loop.iterations_per_call());
        let (asked, trained) = (self.train.steps, plan.steps(iterations));
        let section = self.training_loop.section();
        let difference = trained.abs_diff(asked) as f64;
        (difference >= 0.01 * asked as f64 && difference > 0.0).then(|| {
            format!(
                "{trained} steps will be trained where train.steps = {asked}: a run is whole calls of the compiled program, here {} of \
                 {}, each of {} steps ({section}.iterations_per_call = {iterations})",
                plural(plan.calls as usize, "call"),
                plural(iterations, "iteration"),
                plan.steps_per_iteration
            )
        })
    }

    /// XLA's options by podracer's rule, changed and extended by `[xla]`.
    #[must_use]
    pub fn xla_options(&self, rule: Vec<(String, OptionValue)>) -> Vec<(String, OptionValue)> {
        let mut options: BTreeMap<String, OptionValue> = rule.into_iter().collect();
        options.extend(self.xla.clone());
        options.into_iter().collect()
    }

    /// The settings as TOML, which `loading::load` reads back.
    ///
    /// # Errors
    /// Returns values that TOML cannot write, which `loading::load` never returns.
    pub fn to_toml(&self) -> anyhow::Result<String> {
        Ok(toml::to_string(self)?)
    }
}
