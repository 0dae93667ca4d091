//! The registry's entry of an environment, and the entries of the built-in environments.

use anyhow::Result;
use podracer_dsl::tree::AnyTree;
use podracer_envs::boards::{
    Against, ConnectFour, OpponentOfAll, OpponentOfOthello, OpponentOfTicTacToe, Othello, TicTacToe,
};
use podracer_envs::host::server::ServerSettings;
use podracer_envs::host::{
    HostEnvironment, NativeCartPole, NativeEnvironment, PixelBreakout, PixelCatch,
};
use podracer_envs::mujoco::OwnRobot;
use podracer_envs::{
    AnyEnvironment, AnyTasks, DelayedChains, Environment, GridTasks, Tasks, builtin_environments,
};
use podracer_rl::learn::AnyAgent;
use podracer_runtime::{Client, Device};
use toml::{Table, Value};

use super::batches::Batches;
use super::matches::{CONNECT_FOUR, OTHELLO, Opponents, TIC_TAC_TOE};
use super::remote;
use super::served;
use super::shortest_paths::shortest_paths;
use super::{Configuration, Registry, parse};
use crate::play::{self, Pictures};
use crate::schema::Schema;
use crate::settings::UsageError;

/// Registers the built-in environments.
pub(super) fn register(registry: &mut Registry) {
    macro_rules! register {
        ($($environment:ty, $name:literal $package:literal $licence:literal;)*) => {
            $(registry.add_environment(EnvironmentEntry::dsl::<$environment>($name));)*
        };
    }
    builtin_environments!(register);
    registry.add_environment(EnvironmentEntry::dsl::<OwnRobot>("robot"));
    registry.add_environment(EnvironmentEntry::dsl::<Against<ConnectFour, OpponentOfAll>>(
        "connect-four-against",
    ));
    registry.add_environment(EnvironmentEntry::dsl::<Against<Othello, OpponentOfOthello>>(
        "othello-against",
    ));
    registry.add_environment(EnvironmentEntry::dsl::<Against<TicTacToe, OpponentOfTicTacToe>>(
        "tic-tac-toe-against",
    ));
    registry.add_environment(EnvironmentEntry::native::<PixelBreakout>("pixel-breakout"));
    registry.add_environment(EnvironmentEntry::native::<PixelCatch>("pixel-catch"));
    remote::register(registry);
    served::register(registry);

    registry.change_environment("grid-tasks", |entry| entry.tasks = Some(tasks::<GridTasks>));
    registry.change_environment("delayed-chains", |entry| {
        entry.tasks = Some(tasks::<DelayedChains>);
    });
    // Plain Rust is faster on the host than the compiled program.
    registry.change_environment("cartpole", |entry| entry.batches = native::<NativeCartPole>);
    registry.change_environment("othello", |entry| entry.opponents = Some(OTHELLO));
    registry.change_environment("connect-four", |entry| {
        entry.opponents = Some(CONNECT_FOUR);
        entry.evaluation = Some(|_, agent, client, state| {
            CONNECT_FOUR.measure(agent, &state.to_host()?, (client, 0))
        });
    });
    registry.change_environment("tic-tac-toe", |entry| {
        entry.opponents = Some(TIC_TAC_TOE);
        entry.evaluation = Some(|_, agent, client, state| {
            TIC_TAC_TOE.measure(agent, &state.to_host()?, (client, 0))
        });
    });
    registry.change_environment("gridworld", |entry| {
        entry.evaluation = Some(|table, agent, client, state| {
            let grid = parse(table, "environment").map_err(UsageError::new)?;
            shortest_paths(agent, &grid, client, state)
        });
    });
}

/// Function that measures an agent's trained state at the end of a run: names and values.
pub(crate) type Evaluation =
    fn(&Table, &AnyAgent, &Client, &Device<AnyTree>) -> Result<Vec<(String, f64)>>;

/// Function that makes the environment as a part of programs.
type MakeInDsl = fn(&Table) -> Result<AnyEnvironment, String>;

/// Function that makes the environment as a distribution of tasks.
type MakeTasks = fn(&Table) -> Result<AnyTasks, String>;

/// One environment, and the pictures of its states.
type Stage = (Box<dyn HostEnvironment>, Pictures);

/// An environment of the registry. Its functions take the complete table `[environment]`.
#[derive(Clone, Debug)]
pub struct EnvironmentEntry {
    /// Name of the environment: the value of `environment.name`.
    pub name: String,
    /// Schema of the environment's settings.
    pub schema: Schema,
    /// Checks that settings of valid types and ranges fit together.
    pub(crate) check: fn(&Table) -> Result<(), String>,
    pub(super) dsl: Option<MakeInDsl>,
    /// The environment as a distribution of tasks, if it is one.
    pub(super) tasks: Option<MakeTasks>,
    pub(super) batches: fn(&Table, usize, usize) -> Result<Batches>,
    /// Makes one environment with its pictures, unless it is an environment from `batches` with its
    /// observations shown.
    pub(super) stage: Option<fn(&Table) -> Result<Stage>>,
    pub(super) evaluation: Option<Evaluation>,
    /// Opponents of a game of two players.
    pub(crate) opponents: Option<Opponents>,
    /// The defaults that a value of the setting `preset` changes.
    pub(crate) preset: fn(Value) -> Option<Table>,
    /// Settings of the environment's servers, if it has any.
    pub(crate) server: fn(&Table) -> Option<ServerSettings>,
    pub(super) frames_per_step: fn(&Table) -> usize,
}

impl EnvironmentEntry {
    pub(super) fn new<E: Configuration>(
        name: &str,
        batches: fn(&Table, usize, usize) -> Result<Batches>,
    ) -> Result<Self, String> {
        Ok(EnvironmentEntry {
            name: name.to_owned(),
            schema: Schema::of::<E>()
                .map_err(|mistake| format!("environment `{name}`: {mistake}"))?,
            check: |table| parse::<E>(table, "environment").map(|_| ()),
            dsl: None,
            tasks: None,
            batches,
            stage: None,
            evaluation: None,
            opponents: None,
            preset: |_| None,
            server: |_| None,
            frames_per_step: |_| 1,
        })
    }

    /// An environment of the DSL: part of Anakin's program, and compiled for the host in Sebulba.
    pub(crate) fn dsl<E>(name: &str) -> Result<Self, String>
    where
        E: Environment + Configuration,
    {
        let batches = |table: &Table, lanes, unroll| {
            let environment =
                AnyEnvironment::new(parse::<E>(table, "environment").map_err(UsageError::new)?);
            Ok(Batches::compiled(environment, lanes, unroll))
        };
        let entry = EnvironmentEntry::new::<E>(name, batches)?;
        let dsl = |table: &Table| Ok(AnyEnvironment::new(parse::<E>(table, "environment")?));
        let check = |table: &Table| parse::<E>(table, "environment")?.check_settings();
        Ok(EnvironmentEntry { dsl: Some(dsl), check, ..entry })
    }

    /// An environment of the DSL that is a distribution of tasks.
    pub(crate) fn tasks<E: Tasks + Configuration>(name: &str) -> Result<Self, String> {
        Ok(EnvironmentEntry { tasks: Some(tasks::<E>), ..EnvironmentEntry::dsl::<E>(name)? })
    }

    /// An environment in plain Rust, which steps on the host.
    pub(crate) fn native<E: NativeEnvironment + Configuration>(name: &str) -> Result<Self, String> {
        EnvironmentEntry::new::<E>(name, native::<E>)
    }

    /// An environment in servers, which are processes with Python packages.
    pub(super) fn served<E: served::Served>(name: &str) -> Result<Self, String> {
        let entry =
            EnvironmentEntry::new::<E>(name, |table, lanes, _| served::batches::<E>(table, lanes))?;
        Ok(EnvironmentEntry {
            stage: Some(served::stage::<E>),
            server: |table| Some(parse::<E>(table, "environment").ok()?.server().clone()),
            frames_per_step: |table| {
                parse::<E>(table, "environment").map_or(1, |one| one.frames_per_step())
            },
            ..entry
        })
    }

    /// The environment as a part of a program.
    ///
    /// # Errors
    /// [`UsageError`] for an environment that steps only on the host.
    pub(crate) fn in_dsl(&self, table: &Table) -> Result<AnyEnvironment, UsageError> {
        match self.dsl {
            Some(make) => make(table).map_err(UsageError::new),
            None => Err(UsageError::new(format!(
                "environment.name = {} steps on the host, which [anakin] cannot: give the experiment a [sebulba], such as by \
                 `--set sebulba.environments=32`",
                self.name
            ))),
        }
    }

    /// The tasks of an environment that is a distribution of tasks.
    ///
    /// # Errors
    /// [`UsageError`] for settings that the environment rejects.
    pub(crate) fn tasks_of(&self, table: &Table) -> Result<Option<AnyTasks>, UsageError> {
        self.tasks.map(|make| make(table)).transpose().map_err(UsageError::new)
    }

    /// Batches of `lanes` lanes on the host, for rollouts of `unroll` steps.
    ///
    /// # Errors
    /// Errors of the environment.
    pub(crate) fn batches(&self, table: &Table, lanes: usize, unroll: usize) -> Result<Batches> {
        (self.batches)(table, lanes, unroll)
    }

    /// One environment with pictures of its states, on a device by its index.
    ///
    /// # Errors
    /// Errors of the environment, and an environment without pictures.
    pub(crate) fn stage(&self, table: &Table, (client, device): (&Client, usize)) -> Result<Stage> {
        match (self.dsl, self.stage) {
            (Some(make), _) => play::of_dsl(make(table).map_err(UsageError::new)?, client, device),
            (None, Some(stage)) => stage(table),
            (None, None) => play::of_observations(self.batches(table, 1, 1)?.make()?),
        }
    }

    /// The environment's own measure of a trained agent, if it has one.
    pub(crate) fn evaluation(&self) -> Option<Evaluation> {
        self.evaluation
    }

    /// Number of a game's frames per step; 1 for an environment without frames.
    pub(crate) fn frames_per_step(&self, table: &Table) -> usize {
        (self.frames_per_step)(table)
    }
}

/// The tasks of an environment that is a distribution of tasks.
fn tasks<E: Tasks + Configuration>(table: &Table) -> Result<AnyTasks, String> {
    Ok(AnyTasks::new(parse::<E>(table, "environment")?))
}

/// Batches of an environment in plain Rust.
fn native<E: NativeEnvironment + Configuration>(
    table: &Table,
    lanes: usize,
    _: usize,
) -> Result<Batches> {
    let environment = parse::<E>(table, "environment").map_err(UsageError::new)?;
    Ok(Batches::native(environment, lanes))
}
