//! The settings of an experiment: what a TOML file, `--set` and the flags may say, and what all of it means together.
//!
//! # Invariants
//! - Settings in hand are complete and valid: every key has a value, and [`Settings::check`] found nothing.
//! - What [`Settings::to_toml`] writes reads back as the same settings: a run's `config.toml` is an experiment.

mod agents;
mod devices;
mod division;
mod environments;
mod load;
mod merge;
mod problems;
mod sebulba;
mod servers;

use std::collections::BTreeMap;

use podracer_runtime::OptionValue;
use serde::{Deserialize, Serialize};

pub use agents::{AgentSettings, Impala, Networks, Online, Ppo};
pub use devices::Devices;
pub use environments::{CartPole, Catch, EnvironmentSettings, GridWorld, MemoryChain, Pendulum};
pub(crate) use load::parse_sets;
pub use load::{Overrides, load};
pub use problems::UsageError;
pub(crate) use problems::suggestion;
pub use sebulba::SebulbaSettings;
pub use servers::{Atari, AtariProcessing, EnvPool, Gymnasium, ServerSettings};

use problems::Problems;

/// An experiment: all that a run depends on but the machine.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Settings {
    /// Its name, which names run directories too.
    pub experiment: String,
    /// What it is, in a line.
    #[serde(default)]
    pub description: String,
    /// `[train]`
    pub train: TrainSettings,
    /// `[anakin]`; of no meaning beside `[sebulba]`.
    #[serde(default)]
    pub anakin: AnakinSettings,
    /// `[sebulba]`: in place of `[anakin]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sebulba: Option<SebulbaSettings>,
    /// `[agent]`
    pub agent: AgentSettings,
    /// `[environment]`
    pub environment: EnvironmentSettings,
    /// `[xla]`: options for XLA by name, besides and instead of those that podracer's rule gives.
    #[serde(default)]
    pub xla: BTreeMap<String, XlaValue>,
}

/// How long to train, and on what.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct TrainSettings {
    /// Where all randomness comes from.
    pub seed: u64,
    /// Environment steps in all.
    pub steps: u64,
    /// `cpu`, `cuda13` or `tpu`.
    pub platform: String,
    /// Which devices.
    pub devices: Devices,
    /// Updates between two checkpoints, at the end of the call in which they are done; 0 for none but the one at the end,
    /// or when the run is stopped.
    pub checkpoint_every: u64,
    /// How many checkpoints are kept: an older one serves where the last is damaged.
    pub checkpoints_kept: usize,
}

/// The shape of the loop.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct AnakinSettings {
    /// Environments in all, over all devices.
    pub environments: usize,
    /// Steps of each environment per update.
    pub unroll: usize,
    /// Updates per call of the compiled program.
    pub updates_per_call: usize,
}

impl Default for AnakinSettings {
    fn default() -> Self {
        AnakinSettings { environments: 64, unroll: 32, updates_per_call: 16 }
    }
}

/// The value of one of XLA's options.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(untagged)]
#[allow(missing_docs, reason = "the names say it")]
pub enum XlaValue {
    Bool(bool),
    Int(i64),
    Float(f64),
    String(String),
}

/// How often the compiled program is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Environment steps per update.
    pub steps_per_update: u64,
    /// Updates that the steps asked for allow, at least 1: what schedules count to.
    pub updates: u64,
    /// Calls of the compiled program. Where `updates_per_call` does not divide the updates, the last call goes beyond them.
    pub calls: u64,
}

impl Settings {
    /// How the steps asked for become updates and calls.
    #[must_use]
    pub fn plan(&self) -> Plan {
        let (environments, unroll, updates_per_call) = self.shape();
        let steps_per_update = (environments as u64).saturating_mul(unroll as u64).max(1);
        let updates = (self.train.steps / steps_per_update).max(1);
        let calls = updates.div_ceil(updates_per_call.max(1) as u64);
        Plan { steps_per_update, updates, calls }
    }

    /// Environments in all, steps of each per update, updates per call.
    #[must_use]
    pub fn shape(&self) -> (usize, usize, usize) {
        match &self.sebulba {
            Some(sebulba) => (sebulba.all_environments(), sebulba.unroll, sebulba.updates_per_call),
            None => (self.anakin.environments, self.anakin.unroll, self.anakin.updates_per_call),
        }
    }

    /// `rule`, changed and extended by `[xla]`.
    #[must_use]
    pub fn xla_options(&self, rule: Vec<(String, OptionValue)>) -> Vec<(String, OptionValue)> {
        let mut options: BTreeMap<String, OptionValue> = rule.into_iter().collect();
        options.extend(self.xla.iter().map(|(name, value)| (name.clone(), value.into())));
        options.into_iter().collect()
    }

    /// As TOML, which [`load`] reads back.
    ///
    /// # Errors
    /// None that these types can cause.
    pub fn to_toml(&self) -> anyhow::Result<String> {
        if self.sebulba.is_none() {
            return Ok(toml::to_string(self)?);
        }
        let mut table = toml::Table::try_from(self)?;
        table.remove("anakin");
        Ok(toml::to_string(&table)?)
    }

    /// That every value is one the loop can be built with, as far as that is known without the machine.
    ///
    /// # Errors
    /// All that is wrong.
    pub fn check(&self) -> Result<(), UsageError> {
        let mut problems = Problems::default();
        if self.train.steps == 0 {
            problems.add("train.steps must be at least 1 and is 0");
        }
        let platforms = podracer_plugins::PLUGINS.each_ref().map(|plugin| plugin.name);
        problems.one_of("train.platform", &self.train.platform, &platforms);
        problems.at_least_one("train.checkpoints_kept", self.train.checkpoints_kept);
        match &self.train.devices {
            Devices::Count(0) => problems.add("train.devices must be at least 1 and is 0"),
            Devices::List(list) if list.is_empty() => {
                problems.add("train.devices must name at least one device");
            }
            _ => {}
        }
        let AnakinSettings { environments, unroll, updates_per_call } = self.anakin;
        problems.at_least_one("anakin.environments", environments);
        problems.at_least_one("anakin.unroll", unroll);
        problems.at_least_one("anakin.updates_per_call", updates_per_call);
        if let Some(sebulba) = &self.sebulba {
            sebulba.check(&mut problems);
            if let Some(server) = self.environment.server() {
                servers::check_with(server, sebulba.environments, sebulba.patience, &mut problems);
            }
        }
        let (environments, unroll, updates_per_call) = self.shape();
        let in_a_call =
            environments.checked_mul(unroll).and_then(|steps| steps.checked_mul(updates_per_call));
        let section = if self.sebulba.is_some() { "sebulba" } else { "anakin" };
        if in_a_call.is_none_or(|steps| steps > u32::MAX as usize * 1024) {
            problems.add(format!(
                "{section}.environments, unroll and updates_per_call multiply to more steps than one call can take"
            ));
        }
        self.agent.check(&mut problems);
        self.environment.check(&mut problems);
        problems.into_result()
    }
}

impl From<&XlaValue> for OptionValue {
    fn from(value: &XlaValue) -> Self {
        match value {
            XlaValue::Bool(value) => Self::Bool(*value),
            XlaValue::Int(value) => Self::Int(*value),
            XlaValue::Float(value) => Self::Float(*value),
            XlaValue::String(value) => Self::String(value.clone()),
        }
    }
}

impl From<&OptionValue> for XlaValue {
    fn from(value: &OptionValue) -> Self {
        match value {
            OptionValue::Bool(value) => Self::Bool(*value),
            OptionValue::Int(value) => Self::Int(*value),
            OptionValue::Float(value) => Self::Float(*value),
            OptionValue::String(value) => Self::String(value.clone()),
        }
    }
}
