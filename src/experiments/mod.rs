//! The built-in experiments, and the conversion of settings into a training loop.

mod anakin;
mod central;
mod explain;
mod exploited;
mod meta;
mod one_program;
mod population;
mod programs;
mod recent;
mod sebulba;
mod threads;

#[cfg(feature = "plots")]
pub(crate) use threads::is_activity;

use std::ffi::OsStr;

use anyhow::Result;
use include_dir::{Dir, File, include_dir};
use podracer_envs::{AnyEnvironment, Environment, Space};
use podracer_rl::learn::{AnyAgent, Learn, Task};

use crate::anakin::Anakin;
use crate::central::CentralInference;
use crate::registry::{AgentEntry, Batches, EnvironmentEntry, Registry};
use crate::sebulba::Sebulba;
use crate::settings::{HostLoopSettings, ReplayMemory, Settings, TrainingLoop, UsageError};
use crate::training::Training;

use anakin::AnakinTraining;
use central::CentralTraining;
use sebulba::SebulbaTraining;

/// The files of the built-in experiments, each named after its experiment. Experiments without a
/// recorded training are in `unverified`.
static FILES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/experiments");

/// Registers the built-in experiments in the order of their names, but PPO's experiments first.
/// Similar names are suggested in this order, and PPO is the best start.
pub(crate) fn register(registry: &mut Registry) {
    let is_toml = |file: &&File<'_>| file.path().extension() == Some(OsStr::new("toml"));
    let unverified = FILES.get_dir("unverified").into_iter().flat_map(Dir::files);
    let named = FILES.files().chain(unverified).filter(is_toml).map(|file| {
        let name = file.path().file_stem().and_then(OsStr::to_str).unwrap_or_default();
        (name, file.contents_utf8().unwrap_or_default(), file.path().starts_with("unverified"))
    });
    let mut named = Vec::from_iter(named);
    named.sort_by_key(|&(name, ..)| (!name.ends_with("-ppo"), name));
    for (name, text, unverified) in named {
        registry.add_experiment(name, text, unverified);
    }
}

/// The training loop that settings describe, in the program `podracer`.
///
/// # Errors
/// [`UsageError`] for an agent that does not fit the environment, and an environment that does not
/// fit the loop; errors reported by servers of environments.
pub fn build(settings: &Settings) -> Result<Box<dyn Training>> {
    Registry::built_in().build(settings)
}

impl Registry {
    /// The agents, environments and experiments of `podracer` itself.
    #[must_use]
    pub fn built_in() -> Self {
        let mut registry = Registry::without_experiments();
        register(&mut registry);
        registry
    }

    /// The training loop that settings describe.
    ///
    /// # Errors
    /// Errors of [`build`].
    pub fn build(&self, settings: &Settings) -> Result<Box<dyn Training>> {
        let Settings { environment: table, experiment, .. } = settings;
        let searches =
            self.agents().iter().any(|entry| entry.name == settings.agent_kind() && entry.searches);
        let simplify = settings.program.options(&settings.train.platform, searches);
        Ok(match &settings.training_loop {
            TrainingLoop::Anakin(anakin) => {
                let environment = self.environment_of(settings)?;
                let in_dsl = environment.in_dsl(table)?;
                let spaces = (in_dsl.observation_space(), in_dsl.action_space());
                let (entry, task) = self.task_of(settings, spaces, Some(in_dsl.clone()))?;
                let agent = entry.agent(&settings.agent, &task)?;
                let anakin = Anakin::with(in_dsl, agent, anakin.clone());
                let evaluation = environment.evaluation();
                Box::new(AnakinTraining {
                    anakin: anakin.for_library().named(experiment),
                    simplify,
                    evaluation: evaluation.map(|evaluation| (evaluation, table.clone())),
                    entry: entry.clone(),
                    task,
                    table: settings.agent.clone(),
                })
            }
            TrainingLoop::Sebulba(sebulba) => {
                let (agent, batches, frames_per_step) = self.on_host(settings, &sebulba.host)?;
                let sebulba = Sebulba::with(agent, sebulba.clone());
                let sebulba = sebulba.named(experiment).simplify(simplify);
                Box::new(SebulbaTraining { sebulba, batches, frames_per_step })
            }
            TrainingLoop::Central(central) => {
                let (agent, batches, frames_per_step) = self.on_host(settings, &central.host)?;
                let central = CentralInference::with(agent, central.clone());
                let central = central.named(experiment).simplify(simplify);
                Box::new(CentralTraining { central, batches, frames_per_step })
            }
            TrainingLoop::Meta(meta) => {
                let entry = self.environment_of(settings)?;
                let (environment, tasks) = (entry.in_dsl(table)?, entry.tasks_of(table)?);
                Box::new(meta::training(settings, meta, (environment, tasks))?)
            }
        })
    }

    /// The environment in the settings.
    ///
    /// # Errors
    /// [`UsageError`] for an environment that is not registered.
    pub(crate) fn environment_of(
        &self,
        settings: &Settings,
    ) -> Result<&EnvironmentEntry, UsageError> {
        let name = settings.environment_name();
        let unknown = || UsageError::new(format!("there is no environment `{name}`"));
        self.environment(name).ok_or_else(unknown)
    }

    /// The agent for the spaces of observations and actions, and for the environment itself if it
    /// is written in the DSL.
    fn agent_of(
        &self,
        settings: &Settings,
        (observation, action): (Space, Space),
        model: Option<AnyEnvironment>,
    ) -> Result<AnyAgent, UsageError> {
        let (entry, task) = self.task_of(settings, (observation, action), model)?;
        entry.agent(&settings.agent, &task)
    }

    /// The entry of the agent, and its task.
    fn task_of(
        &self,
        settings: &Settings,
        (observation, action): (Space, Space),
        model: Option<AnyEnvironment>,
    ) -> Result<(&AgentEntry, Task), UsageError> {
        let kind = settings.agent_kind();
        let unknown = || UsageError::new(format!("there is no agent `{kind}`"));
        let iterations = settings.plan().iterations as usize;
        let task = Task { observation, action, iterations, model };
        Ok((self.agent(kind).ok_or_else(unknown)?, task))
    }

    /// The agent, the environments that step together, and the number of frames per step, for a
    /// loop with environments on the host.
    fn on_host(
        &self,
        settings: &Settings,
        host: &HostLoopSettings,
    ) -> Result<(AnyAgent, Batches, usize)> {
        let (table, training_loop) = (&settings.environment, &settings.training_loop);
        let environment = self.environment_of(settings)?;
        let batches = environment.batches(table, training_loop.batch(), host.unroll)?;
        let spaces = (batches.spec.observation.clone(), batches.spec.action.clone());
        let agent = self.agent_of(settings, spaces, environment.in_dsl(table).ok())?;
        if host.replay == ReplayMemory::Host && agent.host_replay().is_none() {
            return Err(UsageError::new(format!(
                "{section}.replay is host, and the agent `{kind}` learns from no replay: a replay on the host is for agents that have \
                 one; `{section}.replay = \"device\"` is for all",
                section = training_loop.section(),
                kind = settings.agent_kind(),
            ))
            .into());
        }
        Ok((agent, batches, environment.frames_per_step(table)))
    }
}

#[cfg(test)]
mod tests;
