//! The built-in experiments: their settings, and how settings become a training loop.

mod anakin;
mod recent;
mod sebulba;
mod servers;
mod shortest_paths;

use std::rc::Rc;

use anyhow::Result;
use podracer_dsl::Tensor;
use podracer_envs::host::{NativeCartPole, PixelBreakout, PixelCatch};
use podracer_envs::{CartPole, Catch, Environment, GridWorld, MemoryChain, Pendulum, Space};
use podracer_stdlib::agents::{
    self, AnyAgent, ImpalaSettings, Learn, OnlineSettings, PpoSettings, Task,
};

use crate::anakin::Anakin;
use crate::settings::{
    AgentSettings, EnvironmentSettings, SebulbaSettings, ServerSettings, Settings, UsageError,
};
use crate::training::Training;

use anakin::{AnakinTraining, Evaluation};
use sebulba::Hosts;
use shortest_paths::shortest_paths;

/// An experiment that comes with the program.
#[derive(Debug)]
pub struct BuiltIn {
    /// What `podracer train` calls it.
    pub name: &'static str,
    /// Its settings, as a file of one's own would have them.
    pub text: &'static str,
}

macro_rules! built_in {
    ($($name:literal),* $(,)?) => {
        [$(BuiltIn { name: $name, text: include_str!(concat!($name, ".toml")) }),*]
    };
}

/// Every built-in experiment.
pub static BUILT_IN: [BuiltIn; 13] = built_in![
    "cartpole-ppo",
    "cartpole-sebulba-ppo",
    "catch-ppo",
    "catch-online",
    "catch-impala",
    "breakout-impala",
    "memory-impala",
    "memory-ppo",
    "gridworld-ppo",
    "pendulum-ppo",
    "atari-pong-ppo",
    "atari-breakout-impala",
    "halfcheetah-ppo",
];

/// What an agent learns in. Its spaces are known before the agent is made.
trait World {
    /// What is observed in it, and what can be done.
    fn spaces(&self) -> (Space, Space);

    /// The training loop of an agent for these spaces.
    fn training<A: Learn<Observation = Tensor>>(
        self,
        settings: &Settings,
        agent: A,
    ) -> Box<dyn Training>;
}

/// An environment of the DSL: a part of Anakin's program, or compiled for Sebulba's host.
struct InDsl<E> {
    environment: E,
    /// The environment again where it is a grid, whose shortest paths the policy is measured by.
    grid: Option<GridWorld>,
}

/// The training loop that `settings` describe.
///
/// # Errors
/// [`crate::settings::UsageError`] where the environment's settings do not make one, or not one in this loop.
pub fn build(settings: &Settings) -> Result<Box<dyn Training>> {
    match (&settings.environment, &settings.sebulba) {
        (EnvironmentSettings::Atari(env), _) => on_servers(settings, "atari", &env.server),
        (EnvironmentSettings::Envpool(env), _) => on_servers(settings, "envpool", &env.server),
        (EnvironmentSettings::Gymnasium(env), _) => {
            on_servers(settings, env.packages.name(), &env.server)
        }
        (EnvironmentSettings::Cartpole(env), Some(shape)) => {
            let native = NativeCartPole::new(env.time_limit);
            with_agent(settings, Hosts::native(native, shape))
        }
        (EnvironmentSettings::Cartpole(env), None) => {
            in_dsl(settings, CartPole { time_limit: env.time_limit, ..CartPole::default() })
        }
        (EnvironmentSettings::Catch(env), _) => {
            in_dsl(settings, Catch { rows: env.rows, columns: env.columns })
        }
        (EnvironmentSettings::Gridworld(env), _) => {
            let grid = GridWorld::new(&env.layout.join("\n"))
                .map_err(|error| UsageError::new(format!("environment.layout: {error}")))?;
            let environment = GridWorld { time_limit: env.time_limit, ..grid };
            let grid = Some(environment.clone());
            with_agent(settings, InDsl { environment, grid })
        }
        (EnvironmentSettings::MemoryChain(env), _) => {
            in_dsl(settings, MemoryChain { length: env.length })
        }
        (EnvironmentSettings::Pendulum(env), _) => {
            in_dsl(settings, Pendulum { time_limit: env.time_limit })
        }
        (EnvironmentSettings::PixelBreakout, _) => {
            let native = PixelBreakout::default();
            with_agent(settings, Hosts::native(native, on_host(settings)?))
        }
        (EnvironmentSettings::PixelCatch, _) => {
            let native = PixelCatch::default();
            with_agent(settings, Hosts::native(native, on_host(settings)?))
        }
    }
}

/// The shape of the loop for an environment that there is on the host only.
fn on_host(settings: &Settings) -> Result<&SebulbaSettings, UsageError> {
    settings.sebulba.as_ref().ok_or_else(|| {
        UsageError::new(format!(
            "environment.name = {} steps on the host, which [anakin] cannot: give the experiment a [sebulba], such as by \
             `--set sebulba.environments=32`",
            settings.environment.name()
        ))
    })
}

/// In environments of a set of Python packages, by what `podracer envs install` calls it.
fn on_servers(
    settings: &Settings,
    packages: &str,
    server: &ServerSettings,
) -> Result<Box<dyn Training>> {
    with_agent(settings, servers::hosts(settings, packages, server)?)
}

fn in_dsl<E: Environment<Observation = Tensor>>(
    settings: &Settings,
    environment: E,
) -> Result<Box<dyn Training>> {
    let grid = None;
    with_agent(settings, InDsl { environment, grid })
}

fn with_agent(settings: &Settings, world: impl World) -> Result<Box<dyn Training>> {
    let (observation, action) = world.spaces();
    let task = Task { observation, action, iterations: settings.plan().updates as usize };
    let agent = match &settings.agent {
        AgentSettings::Ppo(ppo) => made::<PpoSettings>(ppo, &task)?,
        AgentSettings::Online(online) => made::<OnlineSettings>(online, &task)?,
        AgentSettings::Impala(impala) => made::<ImpalaSettings>(impala, &task)?,
    };
    Ok(world.training(settings, agent))
}

fn made<S: agents::AgentSettings>(
    settings: &impl serde::Serialize,
    task: &Task,
) -> Result<AnyAgent> {
    let settings: S = toml::Value::try_from(settings)?.try_into()?;
    Ok(settings.agent(task).map_err(UsageError::new)?)
}

impl<E: Environment<Observation = Tensor>> World for InDsl<E> {
    fn spaces(&self) -> (Space, Space) {
        let environment = &self.environment;
        (environment.observation_space(), environment.action_space())
    }

    fn training<A: Learn<Observation = Tensor>>(
        self,
        settings: &Settings,
        agent: A,
    ) -> Box<dyn Training> {
        if let Some(shape) = &settings.sebulba {
            return Hosts::compiled(self.environment, shape).training(settings, agent);
        }
        let evaluation = self.grid.map(|grid| {
            let agent = agent.clone();
            let walk: Evaluation<A> =
                Rc::new(move |client, state| shortest_paths(&agent, &grid, client, state));
            walk
        });
        let shape = &settings.anakin;
        Box::new(AnakinTraining {
            anakin: Anakin::new(self.environment, agent)
                .named(&settings.experiment)
                .environments(shape.environments)
                .unroll(shape.unroll)
                .iterations_per_call(shape.updates_per_call),
            evaluation,
        })
    }
}

#[cfg(test)]
mod tests;
