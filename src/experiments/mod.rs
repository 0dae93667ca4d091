//! The built-in experiments: their settings, and how settings become a training loop.

mod anakin;
mod recent;
mod sebulba;
mod shortest_paths;

use std::rc::Rc;

use anyhow::Result;
use podracer_dsl::Tensor;
use podracer_envs::{CartPole, Catch, Environment, GridWorld, Pendulum};
use podracer_stdlib::agents::{Agent, OnlineActorCritic, Ppo};
use podracer_stdlib::optim::{Schedule, adam, chain, clip_by_global_norm, flatten};

use crate::anakin::Anakin;
use crate::settings::{AgentSettings, EnvironmentSettings, Settings, UsageError};
use crate::training::Training;

use anakin::{AnakinTraining, Evaluation};
use sebulba::{SebulbaTraining, hosts};
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
pub static BUILT_IN: [BuiltIn; 6] = built_in![
    "cartpole-ppo",
    "cartpole-sebulba-ppo",
    "catch-ppo",
    "catch-online",
    "gridworld-ppo",
    "pendulum-ppo",
];

/// The training loop that `settings` describe.
///
/// # Errors
/// [`crate::settings::UsageError`] where the environment's settings do not make one.
pub fn build(settings: &Settings) -> Result<Box<dyn Training>> {
    match &settings.environment {
        EnvironmentSettings::Cartpole(env) => with_agent(
            settings,
            CartPole {
                limit: env.time_limit,
                ..CartPole::default()
            },
            None,
        ),
        EnvironmentSettings::Catch(env) => with_agent(
            settings,
            Catch {
                rows: env.rows,
                columns: env.columns,
            },
            None,
        ),
        EnvironmentSettings::Gridworld(env) => {
            let grid = GridWorld::new(&env.layout.join("\n"))
                .map_err(|error| UsageError::new(format!("environment.layout: {error}")))?;
            let grid = grid.limit(env.time_limit);
            let walked = grid.clone();
            with_agent(settings, grid, Some(walked))
        }
        EnvironmentSettings::Pendulum(env) => with_agent(
            settings,
            Pendulum {
                limit: env.time_limit,
            },
            None,
        ),
    }
}

/// `grid` is the environment again where it is a grid, whose shortest paths the policy is measured by.
fn with_agent<E: Environment<Observation = Tensor>>(
    settings: &Settings,
    environment: E,
    grid: Option<GridWorld>,
) -> Result<Box<dyn Training>> {
    let (observation, action) = (environment.observation_space(), environment.action_space());
    let cycles = settings.plan().updates as usize;
    // The learning rate by the optimizer's step, of which there are `updates` in each cycle.
    let rate = |rate: f64, anneal: bool, updates: usize| {
        if anneal {
            Schedule::linear(rate, 0.0, cycles.saturating_mul(updates))
        } else {
            Schedule::constant(rate)
        }
    };
    match &settings.agent {
        AgentSettings::Ppo(ppo) => {
            let rate = rate(
                ppo.learning_rate,
                ppo.anneal_learning_rate,
                ppo.epochs * ppo.minibatches,
            );
            let agent = Ppo {
                hidden: ppo.hidden.clone(),
                optimizer: flatten(chain(
                    clip_by_global_norm(ppo.max_gradient_norm),
                    adam(rate).eps(ppo.adam_epsilon),
                )),
                epochs: ppo.epochs,
                minibatches: ppo.minibatches,
                discount: ppo.discount,
                lambda: ppo.lambda,
                clip: ppo.clip,
                entropy_cost: ppo.entropy_cost,
                value_cost: ppo.value_cost,
                exact_shuffle: ppo.exact_shuffle,
                ..Ppo::new(observation, action)
            };
            training(settings, environment, agent, grid)
        }
        AgentSettings::Online(online) => {
            let rate = rate(online.learning_rate, online.anneal_learning_rate, 1);
            let agent = OnlineActorCritic {
                hidden: online.hidden.clone(),
                optimizer: flatten(chain(
                    clip_by_global_norm(online.max_gradient_norm),
                    adam(rate).eps(online.adam_epsilon),
                )),
                discount: online.discount,
                lambda: online.lambda,
                entropy_cost: online.entropy_cost,
                value_cost: online.value_cost,
                ..OnlineActorCritic::new(observation, action)
            };
            training(settings, environment, agent, grid)
        }
    }
}

fn training<E: Environment<Observation = Tensor>, A: Agent<Observation = Tensor>>(
    settings: &Settings,
    environment: E,
    agent: A,
    grid: Option<GridWorld>,
) -> Result<Box<dyn Training>> {
    if let Some(shape) = &settings.sebulba {
        let hosts = hosts(settings, environment, shape);
        return Ok(Box::new(SebulbaTraining::new(
            settings, shape, agent, hosts,
        )));
    }
    let evaluation = grid.map(|grid| {
        let agent = agent.clone();
        let walk: Evaluation<A> =
            Rc::new(move |client, nets| shortest_paths(&agent, &grid, client, nets));
        walk
    });
    let shape = &settings.anakin;
    Ok(Box::new(AnakinTraining {
        anakin: Anakin::new(environment, agent)
            .named(&settings.experiment)
            .environments(shape.environments)
            .unroll(shape.unroll)
            .updates_per_call(shape.updates_per_call),
        evaluation,
    }))
}
