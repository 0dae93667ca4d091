//! The built-in experiments, and how settings become a training loop.

mod anakin;
mod explain;
mod programs;
mod recent;
mod sebulba;
mod seed;
mod threads;

use anyhow::Result;
use podracer_envs::Environment;
use podracer_stdlib::agents::{Learn, Task};

use crate::anakin::Anakin;
use crate::registry::Registry;
use crate::settings::{ReplayMemory, Settings, UsageError};
use crate::training::Training;

use anakin::AnakinTraining;
use sebulba::SebulbaTraining;
use seed::SeedTraining;

/// The names and texts of the built-in experiments.
macro_rules! texts {
    ($($name:literal),* $(,)?) => { [$(($name, include_str!(concat!($name, ".toml")))),*] };
}

/// Registers the built-in experiments.
pub(crate) fn register(registry: &mut Registry) {
    for (name, text) in texts![
        "cartpole-ppo",
        "cartpole-dqn",
        "cartpole-rainbow",
        "acrobot-dqn",
        "mountain-car-dqn",
        "deep-sea-bootstrapped",
        "minatar-breakout-dqn",
        "minatar-asterix-dqn",
        "minatar-freeway-dqn",
        "minatar-space-invaders-dqn",
        "minatar-seaquest-dqn",
        "cartpole-sebulba-ppo",
        "cartpole-a2c",
        "cartpole-pqn",
        "catch-ppo",
        "catch-online",
        "catch-impala",
        "catch-lstm-impala",
        "breakout-impala",
        "memory-impala",
        "memory-ppo",
        "memory-r2d2",
        "minatar-breakout-r2d2",
        "gridworld-ppo",
        "pendulum-ppo",
        "minatar-breakout-pqn",
        "minatar-breakout-ppo",
        "minatar-asterix-pqn",
        "minatar-asterix-ppo",
        "minatar-freeway-pqn",
        "minatar-freeway-ppo",
        "minatar-space-invaders-pqn",
        "minatar-space-invaders-ppo",
        "minatar-seaquest-pqn",
        "minatar-seaquest-ppo",
        "atari-pong-ppo",
        "atari-breakout-impala",
        "atari-r2d2",
        "atari-pong-dqn",
        "atari-pong-rainbow",
        "atari-pong-r2d2",
        "atari-pong-muzero",
        "halfcheetah-ppo",
        "pendulum-sac",
        "pendulum-td3",
        "halfcheetah-sac",
        "tic-tac-toe-ppo",
        "connect-four-random-ppo",
        "snake-ppo",
        "catch-seed-impala",
        "cartpole-seed-ppo",
        "catch-seed-r2d2",
        "atari-seed-impala",
        "atari-seed-r2d2",
        "catch-muzero",
        "cartpole-muzero",
        "2048-stochastic-muzero",
        "tictactoe-alphazero",
        "connect-four-alphazero",
    ] {
        registry.add_experiment(name, text);
    }
}

/// The training loop that settings describe, in the program `podracer`.
///
/// # Errors
/// [`UsageError`] for an agent that does not fit the environment, and an environment that does not fit the loop; what servers
/// of environments report.
pub fn build(settings: &Settings) -> Result<Box<dyn Training>> {
    Registry::built_in().build(settings)
}

impl Registry {
    /// The training loop that settings describe.
    ///
    /// # Errors
    /// Errors of [`build`].
    pub fn build(&self, settings: &Settings) -> Result<Box<dyn Training>> {
        let (kind, name) = (settings.agent_kind(), settings.environment_name());
        let unknown = |what, name| UsageError::new(format!("there is no {what} `{name}`"));
        let agent = self.agent(kind).ok_or_else(|| unknown("agent", kind))?;
        let environment = self.environment(name).ok_or_else(|| unknown("environment", name))?;
        let iterations = settings.plan().iterations as usize;
        let table = &settings.environment;
        let simplify = settings.program.options();
        if let Some(shape) = settings.host_loop() {
            let batches = environment.batches(table, shape.batch, shape.unroll)?;
            let (observation, action) =
                (batches.spec.observation.clone(), batches.spec.action.clone());
            let model = environment.in_dsl(table).ok();
            let task = Task { observation, action, iterations, model };
            let agent = agent.agent(&settings.agent, &task)?;
            if shape.replay == ReplayMemory::Host && agent.host_replay().is_none() {
                return Err(UsageError::new(format!(
                    "{section}.replay is host, and the agent `{kind}` learns from no replay: a replay on the host is for agents that \
                     have one; `{section}.replay = \"device\"` is for all",
                    section = shape.section
                ))
                .into());
            }
            let frames_per_step = environment.frames_per_step(table);
            let name = &settings.experiment;
            if let Some(shape) = &settings.seed {
                return Ok(Box::new(SeedTraining::new(
                    name,
                    agent,
                    batches,
                    shape,
                    simplify,
                    frames_per_step,
                )));
            }
            let shape = settings.sebulba.clone().unwrap_or_default();
            return Ok(Box::new(SebulbaTraining::new(
                name,
                agent,
                batches,
                &shape,
                simplify,
                frames_per_step,
            )));
        }
        let in_dsl = environment.in_dsl(table)?;
        let (observation, action) = (in_dsl.observation_space(), in_dsl.action_space());
        let model = Some(in_dsl.clone());
        let agent =
            agent.agent(&settings.agent, &Task { observation, action, iterations, model })?;
        let shape = &settings.anakin;
        let anakin = Anakin::new(in_dsl, agent)
            .for_library()
            .named(&settings.experiment)
            .environments(shape.environments)
            .unroll(shape.unroll)
            .iterations_per_call(shape.iterations_per_call);
        let evaluation = environment.evaluation().map(|evaluation| (evaluation, table.clone()));
        Ok(Box::new(AnakinTraining { anakin, simplify, evaluation }))
    }
}

#[cfg(test)]
mod tests;
