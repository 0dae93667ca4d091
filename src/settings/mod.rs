//! The settings of an experiment, read from TOML files, `--set` and flags by the schemas of their structs.
//!
//! # Invariants
//! - [`Settings`] are complete and valid: every key has a value of its type and range, and the values fit together.
//! - What [`Settings::to_toml`] writes reads back as the same settings: a run's `config.toml` is an experiment.

mod devices;
mod division;
mod load;
mod merge;
mod problems;
mod program;
mod schema;
#[cfg(test)]
mod sizes;
mod training_loop;
mod trust;
mod values;

use std::collections::BTreeMap;

use podracer_envs::host::server::ServerSettings;
use podracer_runtime::OptionValue;
pub use podracer_runtime::{
    AnakinSettings, CentralSettings, HostLoopSettings, ReplayMemory, Schedule, SebulbaSettings,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

pub use crate::UsageError;
pub use devices::Devices;
pub(crate) use load::parse_sets;
pub use load::{Overrides, load};
pub(crate) use problems::suggestion;
pub use program::{ProgramSettings, SimplifyGroup};
pub use schema::{Key, Kind, Range, Schema};
pub use training_loop::TrainingLoop;

use crate::format::plural;
use crate::registry::Registry;
use problems::Problems;

/// The greatest count of steps or iterations of a run: what a number of JSON, and an `f64`, has without rounding.
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
    /// Table `[anakin]`, `[sebulba]` or `[central]`.
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
    /// Table `[xla]`: options for XLA by name. They add to those of podracer's rule, and win over them.
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
    /// Iterations between two checkpoints, which are written at the end of a call. None: a checkpoint at the end of the run, or
    /// when it is stopped, only.
    #[schemars(range(min = 1, max = MOST_STEPS))]
    #[schemars(extend("x-resume" = true))]
    pub checkpoint_every: Option<u64>,
    /// Iterations between two checkpoints that have the agent's store, such as a replay of gigabytes. Those between have all
    /// else: `eval` and `export` read them, `resume` goes on from the last one with the store. None: all have it.
    #[schemars(range(min = 1, max = MOST_STEPS))]
    #[schemars(extend("x-resume" = true))]
    pub store_every: Option<u64>,
    /// Reaction to parameters that are not finite.
    #[schemars(extend("x-resume" = true))]
    pub on_nan: OnNan,
    /// Checkpoints that are kept: an older one serves where the last is damaged.
    #[schemars(range(min = 1, max = 1_000_000))]
    #[schemars(extend("x-resume" = true))]
    pub checkpoints_kept: usize,
    /// Iterations between two evaluations, which are made at the end of a call. None: there are none. They do not change the training.
    #[schemars(range(min = 1, max = MOST_STEPS))]
    #[schemars(extend("x-resume" = true))]
    pub eval_every: Option<u64>,
    /// Episodes of an evaluation.
    #[schemars(range(min = 1, max = 1_000_000))]
    #[schemars(extend("x-resume" = true))]
    pub eval_episodes: usize,
    /// True if an evaluation draws actions from the policy, as in training; false if it takes the greedy ones.
    #[schemars(extend("x-resume" = true))]
    pub eval_sampled: bool,
}

/// The reaction to parameters that are NaN or infinite. They are looked at where a metric is not finite, and before each
/// checkpoint.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnNan {
    /// The run ends with an error. Its last checkpoint is finite.
    Stop,
    /// The run goes on after a warning.
    Warn,
    /// The run goes on without a word.
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
    /// At most once a second after the first minute, with means over the iterations since the line before.
    #[default]
    Second,
    /// Every iteration, however fast.
    Iteration,
}

/// Iterations and calls of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Environment steps of an iteration, over all lanes.
    pub steps_per_iteration: u64,
    /// Iterations in the steps that were asked for, at least 1: what schedules count to.
    pub iterations: u64,
    /// Calls of the compiled program. If `iterations_per_call` does not divide the iterations, the last call goes beyond
    /// them.
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

    /// The iterations and calls of the steps that were asked for.
    #[must_use]
    pub fn plan(&self) -> Plan {
        let (lanes, unroll) = (self.training_loop.lanes(), self.training_loop.unroll());
        let steps_per_iteration = (lanes as u64).saturating_mul(unroll as u64).max(1);
        let iterations = (self.train.steps / steps_per_iteration).max(1);
        let calls = iterations.div_ceil(self.training_loop.iterations_per_call().max(1) as u64);
        Plan { steps_per_iteration, iterations, calls }
    }

    /// A sentence for the user where the run trains other than the steps that were asked for, since it consists of whole calls.
    #[must_use]
    pub fn rounding(&self) -> Option<String> {
        let (plan, iterations) = (self.plan(), self.training_loop.iterations_per_call());
        let (asked, trained) = (self.train.steps, plan.steps(iterations));
        let section = self.training_loop.section();
        (trained != asked).then(|| {
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

    /// The settings as TOML, which [`load`] reads back.
    ///
    /// # Errors
    /// Values that TOML cannot write, which [`load`] does not give.
    pub fn to_toml(&self) -> anyhow::Result<String> {
        Ok(toml::to_string(self)?)
    }

    /// Checks that the settings fit together, as far as that is known without the machine. Types and ranges are checked when a
    /// layer is read.
    ///
    /// # Errors
    /// All mistakes.
    fn check(&self, registry: &Registry) -> Result<(), UsageError> {
        let mut problems = Problems::default();
        let environment = registry.environment(self.environment_name());
        let training_loop = &self.training_loop;
        training_loop.check(&mut problems);
        if let Some(host) = training_loop.host()
            && let Some(server) = environment.and_then(|one| (one.server)(&self.environment))
        {
            check_server(&server, training_loop, host.patience, &mut problems);
        }
        let (lanes, unroll) = (training_loop.lanes(), training_loop.unroll());
        let iterations = training_loop.iterations_per_call();
        let in_a_call = lanes.checked_mul(unroll).and_then(|steps| steps.checked_mul(iterations));
        let section = training_loop.section();
        if let Some(steps) =
            lanes.checked_mul(unroll).filter(|&steps| i32::try_from(steps).is_err())
        {
            problems.add(format!(
                "{section}.environments and unroll multiply to {steps} steps in an iteration, which i32 does not count: at most {}",
                i32::MAX
            ));
        }
        if in_a_call.is_none_or(|steps| steps > u32::MAX as usize * 1024) {
            problems.add(format!(
                "{section}.environments, unroll and iterations_per_call multiply to more steps than one call can take"
            ));
        }
        let agent = registry.agent(self.agent_kind());
        let checked = [
            agent.map(|agent| (agent.check)(&self.agent)),
            environment.map(|environment| (environment.check)(&self.environment)),
        ];
        for problem in checked.into_iter().flatten().filter_map(Result::err) {
            problems.add(problem);
        }
        problems.into_result()
    }
}

/// Checks that a run has the patience for a server's restart, and each server an environment.
fn check_server(
    server: &ServerSettings,
    training_loop: &TrainingLoop,
    patience: usize,
    problems: &mut Problems,
) {
    let &ServerSettings { servers, restarts, start_seconds, step_seconds, .. } = server;
    let (section, batch) = (training_loop.section(), training_loop.batch());
    let longest = start_seconds.saturating_mul(2).saturating_add(step_seconds);
    if restarts > 0 && longest >= patience {
        problems.add(format!(
            "{section}.patience is {patience} and must be more than {longest}: a server may take environment.step_seconds = \
             {step_seconds} to be found hanging, and twice environment.start_seconds = {start_seconds} to be there again"
        ));
    }
    if servers > batch {
        let limit = match training_loop {
            TrainingLoop::Central(_) => "central.environments / central.workers",
            _ => "sebulba.environments",
        };
        problems
            .add(format!("environment.servers is {servers} and must be at most {limit} = {batch}"));
    }
}
