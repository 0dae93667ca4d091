//! [`App`]: podracer's command line with a user's own agents, environments and experiments.

use std::process::ExitCode;

use podracer_envs::host::NativeEnvironment;
use podracer_envs::{Environment, Tasks};
use podracer_rl::learn::AgentSettings;

use crate::cli;
use crate::registry::{AgentEntry, Configuration, EnvironmentEntry, Registry};

/// A program with the command line of podracer: `train`, `resume`, `eval`, `export`, `emit`, `check`, `tune`, `describe`,
/// `list` and the others.
///
/// The built-in agents and environments are included: an experiment names them like the user's own.
/// `examples/own_app` is such a program, as a crate.
///
/// ```no_run
/// use podracer::envs::Catch;
///
/// # #[allow(clippy::needless_doctest_main)]
/// fn main() -> std::process::ExitCode {
///     podracer::App::new()
///         .environment::<Catch>("my-catch")
///         .experiment(
///             "experiment = 'my-catch-ppo'
///              agent.kind = 'ppo'
///              environment.name = 'my-catch'",
///         )
///         .run()
/// }
/// ```
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

    /// Adds an environment of the DSL. Experiments choose it by `[environment] name`. The other
    /// keys of that table are the struct's fields, with the defaults from its `Default`. Trees of
    /// several leaves as observations are flattened:
    /// [`flatten_observation`](Environment::flatten_observation).
    ///
    /// A struct without defaults is a compile error:
    /// ```compile_fail,E0277
    /// # use podracer::prelude::*;
    /// # use podracer::rl::learn::{AgentSettings, AnyAgent, Task};
    /// #[derive(Clone, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    /// struct Reinforce { learning_rate: f64 }
    ///
    /// impl AgentSettings for Reinforce {
    ///     fn agent(&self, _: &Task) -> Result<AnyAgent, String> { Err("not here".to_owned()) }
    /// }
    /// podracer::App::new().agent::<Reinforce>("reinforce");
    /// ```
    pub fn environment<E>(mut self, name: &str) -> Self
    where
        E: Environment + Configuration,
    {
        self.registry.add_environment(EnvironmentEntry::dsl::<E>(name));
        self
    }

    /// Adds an environment of the DSL that is a distribution of tasks, like [`App::environment`].
    /// With `[meta]` each life of an agent has its own task; the other loops train in the
    /// environment itself.
    pub fn tasks<E: Tasks + Configuration>(mut self, name: &str) -> Self {
        self.registry.add_environment(EnvironmentEntry::tasks::<E>(name));
        self
    }

    /// Adds an environment in plain Rust, for experiments with `[sebulba]`. Its fields are
    /// settings, as in [`App::environment`].
    pub fn native_environment<E: NativeEnvironment + Configuration>(mut self, name: &str) -> Self {
        self.registry.add_environment(EnvironmentEntry::native::<E>(name));
        self
    }

    /// Adds an agent. Experiments choose it by `[agent] kind`. The other keys of that table are the
    /// struct's fields, with the defaults from its `Default`.
    pub fn agent<A: AgentSettings>(mut self, name: &str) -> Self {
        self.registry.add_agent(AgentEntry::new::<A>(name));
        self
    }

    /// Adds an experiment: a TOML file's text, which names it by `experiment = "..."`.
    pub fn experiment(mut self, text: &str) -> Self {
        self.registry.add_named_experiment(text);
        self
    }

    /// Runs the command in the process's arguments. Mistakes of registration, such as two
    /// environments with the same name or an experiment with an unknown agent, are reported before
    /// anything runs.
    #[must_use]
    pub fn run(self) -> ExitCode {
        let registry = &self.registry;
        cli::main(cli::Program { registry, build: &|settings| registry.build(settings) })
    }
}
