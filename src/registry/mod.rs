//! The agents, environments and experiments that a program knows, by name.
//!
//! # Invariants
//! - An agent or environment is registered by one line: its name and its struct. The struct defines
//!   keys, types, ranges, defaults and documentation of its settings.
//! - A name is registered once. Mistakes of registration are collected, and reported before a
//!   command runs.

mod agents;
mod batches;
mod environments;
mod gymnasium;
mod matches;
mod remote;
mod served;
mod shortest_paths;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use toml::{Table, Value};

use crate::schema::Schema;
use crate::settings::{
    AnakinSettings, CentralSettings, MetaLoopSettings, MetricsSettings, ProgramSettings,
    SebulbaSettings, TrainSettings,
};

pub use agents::AgentEntry;
pub use batches::Batches;
pub use environments::EnvironmentEntry;
pub(crate) use environments::Evaluation;
pub(crate) use matches::{Match, Score};

/// The agents, environments and experiments of a program.
#[derive(Clone, Debug)]
pub struct Registry {
    /// The tables that depend on neither agent nor environment, by name.
    pub(crate) tables: [(&'static str, Schema); 7],
    agents: Vec<AgentEntry>,
    environments: Vec<EnvironmentEntry>,
    experiments: Vec<Experiment>,
    mistakes: Vec<String>,
}

/// An experiment that comes with the program.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// The name that `podracer train` takes.
    pub name: String,
    /// Settings of the experiment as TOML, like a file's.
    pub text: String,
    /// True for an experiment without a recorded training to its end, with unknown learning
    /// results.
    pub unverified: bool,
}

/// A struct of settings that can be registered.
pub trait Configuration:
    Clone + Default + Serialize + DeserializeOwned + JsonSchema + 'static
{
}

impl<T: Clone + Default + Serialize + DeserializeOwned + JsonSchema + 'static> Configuration for T {}

/// The table `[section]` as the struct of its settings.
///
/// # Errors
/// Returns values that the struct rejects, with the setting's name: `environment.layout: row 1 has
/// 1 cells`.
pub(crate) fn parse<T: DeserializeOwned>(table: &Table, section: &str) -> Result<T, String> {
    let mut table = table.clone();
    // It names the struct, and is not one of its fields.
    Registry::chooser(section).and_then(|chooser| table.remove(chooser));
    serde_path_to_error::deserialize(Value::Table(table)).map_err(|error| {
        let path = error.path().to_string();
        let message = error.inner().message();
        if path == "." {
            format!("{section}: {message}")
        } else {
            format!("{section}.{path}: {message}")
        }
    })
}

impl Registry {
    /// No agents, environments or experiments.
    pub(crate) fn empty() -> Self {
        let mut mistakes = Vec::new();
        let tables = [
            ("train", schema::<TrainSettings>(&mut mistakes)),
            ("anakin", schema::<AnakinSettings>(&mut mistakes)),
            ("sebulba", schema::<SebulbaSettings>(&mut mistakes)),
            ("central", schema::<CentralSettings>(&mut mistakes)),
            ("meta", schema::<MetaLoopSettings>(&mut mistakes)),
            ("program", schema::<ProgramSettings>(&mut mistakes)),
            ("metrics", schema::<MetricsSettings>(&mut mistakes)),
        ];
        let (agents, environments, experiments) = (Vec::new(), Vec::new(), Vec::new());
        Registry { tables, agents, environments, experiments, mistakes }
    }

    /// The built-in agents and environments, and no experiments.
    pub(crate) fn without_experiments() -> Self {
        let mut registry = Registry::empty();
        agents::register(&mut registry);
        environments::register(&mut registry);
        registry
    }

    pub(crate) fn add_agent(&mut self, entry: Result<AgentEntry, String>) {
        match entry {
            Ok(entry) if self.agent(&entry.name).is_some() => self.twice("agent", &entry.name),
            Ok(entry) => self.agents.push(entry),
            Err(mistake) => self.mistakes.push(mistake),
        }
    }

    pub(crate) fn add_environment(&mut self, entry: Result<EnvironmentEntry, String>) {
        match entry {
            Ok(entry) if self.environment(&entry.name).is_some() => {
                self.twice("environment", &entry.name);
            }
            Ok(entry) => self.environments.push(entry),
            Err(mistake) => self.mistakes.push(mistake),
        }
    }

    /// Changes the entry of an environment that was added before.
    fn change_environment(&mut self, name: &str, change: impl FnOnce(&mut EnvironmentEntry)) {
        match self.environments.iter_mut().find(|entry| entry.name == name) {
            Some(entry) => change(entry),
            None => self.mistakes.push(format!("there is no environment `{name}` to change")),
        }
    }

    pub(crate) fn add_experiment(&mut self, name: &str, text: &str, unverified: bool) {
        if self.experiment(name).is_some() {
            return self.twice("experiment", name);
        }
        let (name, text) = (name.to_owned(), text.to_owned());
        self.experiments.push(Experiment { name, text, unverified });
    }

    /// Adds an experiment with a text that names it by `experiment = "..."`.
    pub(crate) fn add_named_experiment(&mut self, text: &str) {
        let first = text.lines().next().unwrap_or_default();
        match toml::from_str::<Table>(text) {
            Ok(table) => match table.get("experiment").and_then(Value::as_str) {
                Some(name) => self.add_experiment(name, text, false),
                None => self.mistakes.push(format!(
                    "the experiment that begins `{first}` has no name: begin it with `experiment = \"...\"`"
                )),
            },
            Err(error) => self.mistakes.push(format!("the experiment that begins `{first}`: {error}")),
        }
    }

    fn twice(&mut self, what: &str, name: &str) {
        self.mistakes
            .push(format!("there are two {what}s of the name `{name}`: give one another name"));
    }

    /// Mistakes of registration.
    pub(crate) fn mistakes(&self) -> &[String] {
        &self.mistakes
    }

    /// The agent with this name.
    #[must_use]
    pub fn agent(&self, name: &str) -> Option<&AgentEntry> {
        self.agents.iter().find(|one| one.name == name)
    }

    /// The environment with this name.
    #[must_use]
    pub fn environment(&self, name: &str) -> Option<&EnvironmentEntry> {
        self.environments.iter().find(|one| one.name == name)
    }

    /// The names of the environments that have fixed opponents.
    pub(crate) fn with_opponents(&self) -> Vec<&str> {
        let with = self.environments.iter().filter(|entry| entry.opponents.is_some());
        with.map(|entry| entry.name.as_str()).collect()
    }

    /// The experiment with this name.
    #[must_use]
    pub fn experiment(&self, name: &str) -> Option<&Experiment> {
        self.experiments.iter().find(|one| one.name == name)
    }

    /// All agents, in the order of registration.
    #[must_use]
    pub fn agents(&self) -> &[AgentEntry] {
        &self.agents
    }

    /// All environments.
    #[must_use]
    pub fn environments(&self) -> &[EnvironmentEntry] {
        &self.environments
    }

    /// All experiments.
    #[must_use]
    pub fn experiments(&self) -> &[Experiment] {
        &self.experiments
    }

    /// The key with a value that names the struct of a table: `kind` in `[agent]`, `name` in
    /// `[environment]`.
    pub(crate) fn chooser(section: &str) -> Option<&'static str> {
        match section {
            "agent" => Some("kind"),
            "environment" => Some("name"),
            _ => None,
        }
    }

    /// The names that the chooser of a table may have.
    pub(crate) fn names(&self, section: &str) -> Vec<&str> {
        match section {
            "agent" => self.agents.iter().map(|one| one.name.as_str()).collect(),
            _ => self.environments.iter().map(|one| one.name.as_str()).collect(),
        }
    }

    /// The schema of a table of an experiment; `chosen` names the agent or environment.
    pub(crate) fn schema(&self, section: &str, chosen: Option<&str>) -> Option<&Schema> {
        match section {
            "agent" => Some(&self.agent(chosen?)?.schema),
            "environment" => Some(&self.environment(chosen?)?.schema),
            _ => self.tables.iter().find(|(name, _)| *name == section).map(|(_, schema)| schema),
        }
    }

    /// True if a resumed run may change the setting with this dotted key, such as `train.steps`.
    pub(crate) fn may_change_on_resume(&self, key: &str) -> bool {
        match key.split_once('.') {
            Some((section, name)) => {
                let key = self.schema(section, None).and_then(|schema| schema.key(name));
                key.is_some_and(|key| key.resume)
            }
            None => key == "description",
        }
    }
}

/// The schema of settings that every experiment has.
fn schema<T: Configuration>(mistakes: &mut Vec<String>) -> Schema {
    Schema::of::<T>().unwrap_or_else(|mistake| {
        mistakes.push(mistake);
        Schema { doc: String::new(), keys: Vec::new(), defaults: Table::new() }
    })
}

#[cfg(test)]
mod tests;
