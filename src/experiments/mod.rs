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
use podracer_stdlib::agents::{Agent, Impala, Normalized, OnlineActorCritic, Ppo};
use podracer_stdlib::optim::{
    Flatten, Optimizer, Schedule, adam, chain, clip_by_global_norm, flatten, rmsprop,
};
use podracer_stdlib::returns::{PgAdvantage, Vtrace};

use crate::anakin::Anakin;
use crate::registry::Registry;
use crate::settings::{
    self, SebulbaSettings, ServerSettings, Settings, UsageError,
};
use crate::training::Training;

use anakin::{AnakinTraining, Evaluation};
use sebulba::Hosts;
use shortest_paths::shortest_paths;

/// The names and texts of the built-in experiments.
macro_rules! texts {
    ($($name:literal),* $(,)?) => { [$(($name, include_str!(concat!($name, ".toml")))),*] };
}

/// Registers the built-in experiments.
pub(crate) fn register(registry: &mut Registry) {
    for (name, text) in texts![
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
    ] {
        registry.add_experiment(name, text);
    }
}

/// What an agent learns in. Its spaces are known before the agent is made.
trait World {
    /// What is observed in it, and what can be done.
    fn spaces(&self) -> (Space, Space);

    /// The training loop of an agent for these spaces.
    fn training<A: Agent<Observation = Tensor>>(
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
pub fn build(_registry: &Registry, settings: &Settings) -> Result<Box<dyn Training>> {
    let table = &settings.environment;
    match settings.environment_name() {
        "atari" => on_servers(settings, "atari", &part::<settings::Atari>(table)?.server),
        "envpool" => on_servers(settings, "envpool", &part::<settings::EnvPool>(table)?.server),
        "gymnasium" => {
            let environment: settings::Gymnasium = part(table)?;
            on_servers(settings, &environment.packages, &environment.server)
        }
        "cartpole" => {
            let limit = part::<settings::CartPole>(table)?.time_limit;
            match &settings.sebulba {
                Some(shape) => {
                    with_agent(settings, Hosts::native(NativeCartPole::new(limit), shape))
                }
                None => in_dsl(settings, CartPole { limit, ..CartPole::default() }),
            }
        }
        "catch" => {
            let settings::Catch { rows, columns } = part(table)?;
            in_dsl(settings, Catch { rows, columns })
        }
        "gridworld" => {
            let environment: settings::GridWorld = part(table)?;
            let grid = GridWorld::new(&environment.layout.0.join("\n"))
                .map_err(|error| UsageError::new(format!("environment.layout: {error}")))?;
            let environment = grid.limit(environment.time_limit);
            let grid = Some(environment.clone());
            with_agent(settings, InDsl { environment, grid })
        }
        "memory-chain" => {
            in_dsl(settings, MemoryChain { length: part::<settings::MemoryChain>(table)?.length })
        }
        "pendulum" => {
            in_dsl(settings, Pendulum { limit: part::<settings::Pendulum>(table)?.time_limit })
        }
        "pixel-breakout" => {
            with_agent(settings, Hosts::native(PixelBreakout::default(), on_host(settings)?))
        }
        _ => with_agent(settings, Hosts::native(PixelCatch::default(), on_host(settings)?)),
    }
}

fn part<T: serde::de::DeserializeOwned>(table: &toml::Table) -> Result<T> {
    Ok(table.clone().try_into()?)
}

/// The shape of the loop for an environment that there is on the host only.
fn on_host(settings: &Settings) -> Result<&SebulbaSettings, UsageError> {
    settings.sebulba.as_ref().ok_or_else(|| {
        UsageError::new(format!(
            "environment.name = {} steps on the host, which [anakin] cannot: give the experiment a [sebulba], such as by \
             `--set sebulba.environments=32`",
            settings.environment_name()
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
    let networks: settings::Networks = part(&settings.agent)?;
    let networks = &networks;
    let (torso, hidden) = (networks.torso(), networks.hidden.clone());
    torso
        .check(&observation)
        .map_err(|error| UsageError::new(format!("agent.torso = {}: {error}", networks.torso)))?;
    let cycles = settings.plan().iterations as usize;
    // The learning rate by the optimizer's step, of which there are `updates` in each cycle.
    let rate = |rate: f64, anneal: bool, updates: usize| {
        if anneal {
            Schedule::linear(rate, 0.0, cycles.saturating_mul(updates))
        } else {
            Schedule::constant(rate)
        }
    };
    match settings.agent_kind() {
        "ppo" => {
            let ppo: settings::Ppo = part(&settings.agent)?;
            let rate =
                rate(ppo.learning_rate, ppo.anneal_learning_rate, ppo.epochs * ppo.minibatches);
            let agent = Ppo {
                torso,
                hidden,
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
                lstm: (ppo.lstm > 0).then_some(ppo.lstm),
                exact_shuffle: ppo.exact_shuffle,
                ..Ppo::new(observation.clone(), action)
            };
            if !(ppo.normalize_observations || ppo.normalize_rewards) {
                return Ok(world.training(settings, agent));
            }
            let agent = Normalized {
                observations: ppo.normalize_observations,
                rewards: ppo.normalize_rewards.then_some(ppo.discount),
                ..Normalized::new(agent, observation, ppo.discount)
            };
            Ok(world.training(settings, agent))
        }
        "online" => {
            let online: settings::Online = part(&settings.agent)?;
            let rate = rate(online.learning_rate, online.anneal_learning_rate, 1);
            let agent = OnlineActorCritic {
                torso,
                hidden,
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
            Ok(world.training(settings, agent))
        }
        _ => {
            let impala: settings::Impala = part(&settings.agent)?;
            let impala = &impala;
            let rate = rate(impala.learning_rate, impala.anneal_learning_rate, 1);
            let norm = clip_by_global_norm(impala.max_gradient_norm);
            match impala.optimizer.as_str() {
                "adam" => {
                    let optimizer = adam(rate).eps(impala.epsilon);
                    let agent = vtrace_agent(impala, observation, action, chain(norm, optimizer));
                    Ok(world.training(settings, agent))
                }
                _ => {
                    let optimizer = rmsprop(rate).decay(impala.rmsprop_decay);
                    let optimizer = chain(norm, optimizer.eps(impala.epsilon));
                    let agent = vtrace_agent(impala, observation, action, optimizer);
                    Ok(world.training(settings, agent))
                }
            }
        }
    }
}

fn vtrace_agent<O: Optimizer>(
    impala: &settings::Impala,
    observation: Space,
    action: Space,
    optimizer: O,
) -> Impala<Flatten<O>> {
    Impala {
        observation,
        action,
        torso: impala.networks.torso(),
        lstm: (impala.lstm > 0).then_some(impala.lstm),
        hidden: impala.networks.hidden.clone(),
        optimizer: flatten(optimizer),
        discount: impala.discount,
        vtrace: Vtrace {
            lambda: impala.lambda,
            clip_rho: impala.clip_rho,
            clip_c: impala.clip_c,
            clip_pg_rho: impala.clip_pg_rho,
            advantage: match impala.advantage.as_str() {
                "rlax" => PgAdvantage::Rlax,
                _ => PgAdvantage::Impala,
            },
        },
        entropy_cost: impala.entropy_cost,
        value_cost: impala.value_cost,
        clip_rewards: impala.reward_clipping == "abs_one",
    }
}

impl<E: Environment<Observation = Tensor>> World for InDsl<E> {
    fn spaces(&self) -> (Space, Space) {
        let environment = &self.environment;
        (environment.observation_space(), environment.action_space())
    }

    fn training<A: Agent<Observation = Tensor>>(
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
                Rc::new(move |client, nets| shortest_paths(&agent, &grid, client, nets));
            walk
        });
        let shape = &settings.anakin;
        Box::new(AnakinTraining {
            anakin: Anakin::new(self.environment, agent)
                .named(&settings.experiment)
                .environments(shape.environments)
                .unroll(shape.unroll)
                .updates_per_call(shape.iterations_per_call),
            evaluation,
        })
    }
}

#[cfg(test)]
mod tests;
