//! A program with podracer's command line, for agents, environments and experiments of one's own.

use std::process::ExitCode;

use crate::cli;
use crate::experiments::build;
use crate::registry::{AgentEntry, Configuration, EnvironmentEntry, Registry};

/// A program with the command line of podracer: `train`, `resume`, `eval`, `export`, `emit`, `check`, `tune`, `describe`,
/// `list` and the others.
///
/// The built-in agents and environments are there, too: an experiment names them like one's own.
#[must_use = "a program does nothing before `run`"]
pub struct App {
    registry: Registry,
}

impl Default for App {
    fn default() -> Self {
        App::new()
    }
}

impl App {
    /// A program with the built-in agents and environments, and without experiments.
    pub fn new() -> Self {
        App { registry: Registry::without_experiments() }
    }

    /// The program `podracer`: the built-in agents, environments and experiments.
    pub fn built_in() -> Self {
        App { registry: Registry::built_in() }
    }

    /// Adds an experiment: a TOML file's text, which names it by `experiment = "..."`.
    pub fn experiment(mut self, text: &str) -> Self {
        self.registry.add_named_experiment(text);
        self
    }

    /// Runs the command of the process's arguments. Mistakes of registration, such as two environments of one name or an
    /// experiment of an unknown agent, are reported before anything runs.
    #[must_use]
    pub fn run(self) -> ExitCode {
        let registry = &self.registry;
        cli::main(cli::Program { registry, build: &|settings| build(registry, settings) })
    }
}
