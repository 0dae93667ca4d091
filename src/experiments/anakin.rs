//! An agent in an environment as a training loop for the command line.

use std::time::Instant;

use anyhow::{Context, Result};
use podracer_compiler::simplify::Options as Simplify;
use podracer_envs::AnyEnvironment;
use podracer_envs::host::HostEnvironment;
use podracer_rl::learn::{AnyAgent, Task};
use podracer_runtime::{Array, Checkpoint, Client, OptionValue};
use toml::Table;

use super::exploited::Exploited;
use super::recent::RecentReturns;
use super::{explain, one_program};
use crate::anakin::{self, Anakin, CompiledAnakin, TrainingState};
use crate::builder;
use crate::export::Portable;
use crate::registry::{AgentEntry, Evaluation as EnvironmentEvaluation};
use crate::sebulba::compiled_environments;
use crate::training::{
    CallMetrics, Evaluate, Explanation, LoopModule, Plays, Populates, Programs, Repeats, Run,
    Stage, Start, Suspect, Training,
};

/// An agent in an environment, with the measurements at the end of training.
pub(super) struct AnakinTraining {
    pub(super) anakin: Anakin<AnyEnvironment, AnyAgent>,
    /// The groups of simplifications before XLA.
    pub(super) simplify: Simplify,
    /// The environment's measure of a trained agent, and the environment's settings.
    pub(super) evaluation: Option<(EnvironmentEvaluation, Table)>,
    /// The agent's entry in the registry, and the task and settings that it is made from.
    pub(super) entry: AgentEntry,
    pub(super) task: Task,
    pub(super) table: Table,
}

impl Programs for AnakinTraining {
    fn emit(&self, stage: Stage, replicas: usize) -> Result<String> {
        let traced = self.anakin.clone().devices(replicas).trace()?;
        one_program::text(&traced, stage, &self.simplify)
    }

    fn modules(&self, replicas: usize) -> Result<Vec<LoopModule>> {
        let traced = self.anakin.clone().devices(replicas).trace()?;
        Ok(vec![one_program::module(&traced, replicas, &self.simplify)?])
    }

    fn programs(&self, batch: Option<usize>) -> Result<Vec<Portable>> {
        self.anakin.programs(batch)
    }

    fn xla_options(&self, platform: &str) -> Vec<(String, OptionValue)> {
        builder::xla_options(platform, &self.simplify)
    }

    fn products(&self) -> Result<Option<(usize, usize)>> {
        Ok(Some(self.anakin.clone().devices(1).trace()?.traced().func().library_work()))
    }
}

impl AnakinTraining {
    /// The loop with the run's present settings in place of its initial settings.
    fn with(&self, exploited: &Exploited) -> Result<Anakin<AnyEnvironment, AnyAgent>> {
        let anakin = self.anakin.clone();
        Ok(match exploited.agent(&self.table) {
            Some(table) => anakin.with_agent(self.entry.agent(&table, &self.task)?),
            None => anakin,
        })
    }
}

impl Training for AnakinTraining {
    fn start(&self, start: Start<'_>) -> Result<Box<dyn Run>> {
        let Start { client, seed, from, .. } = start;
        let began = Instant::now();
        let options = one_program::options(&start, &self.simplify);
        let exploited = Exploited::restored(from)?;
        let anakin = self.with(&exploited)?;
        let anakin = anakin.devices(options.compile.members()).compile_with(client, &options)?;
        let compile_seconds = began.elapsed().as_secs_f64();
        let state = match from {
            Some(checkpoint) => anakin.restore(checkpoint)?,
            None => anakin.init(seed)?,
        };
        Ok(Box::new(AnakinRun {
            anakin,
            agent: self.anakin.agent().clone(),
            client: client.clone(),
            evaluation: self.evaluation.clone(),
            state: Some(state),
            compile_seconds,
            iterations: from.map_or(0, |checkpoint| checkpoint.iterations),
            recent: RecentReturns::restored(from)?,
            exploited,
        }))
    }

    fn spans_processes(&self) -> Result<(), String> {
        Ok(())
    }

    fn plays(&self) -> Result<&dyn Plays, String> {
        Ok(self)
    }

    fn repeats(&self) -> Result<&dyn Repeats, String> {
        Ok(self)
    }

    fn populates(&self) -> Option<&dyn Populates> {
        Some(self)
    }
}

impl Repeats for AnakinTraining {
    fn explain(&self, suspect: &Suspect, evaluate: &mut Evaluate) -> Result<Option<Explanation>> {
        let anakin = self.with(&Exploited::restored(suspect.start.from)?)?;
        explain::anakin(&anakin, &self.simplify, suspect, evaluate)
    }
}

impl Plays for AnakinTraining {
    fn agent(&self) -> &AnyAgent {
        self.anakin.agent()
    }

    fn environments(
        &self,
        (client, device): (&Client, usize),
        episodes: usize,
    ) -> Result<Box<dyn HostEnvironment>> {
        let (environment, most) = self.anakin.environment();
        let number = episodes.clamp(1, most);
        Ok(Box::new(compiled_environments(client, device, environment.clone(), number, 1)?))
    }
}

/// A loop on its devices.
struct AnakinRun {
    anakin: CompiledAnakin<AnyEnvironment, AnyAgent>,
    agent: AnyAgent,
    client: Client,
    evaluation: Option<(EnvironmentEvaluation, Table)>,
    /// Absent only after a call that failed.
    state: Option<TrainingState<AnyEnvironment, AnyAgent>>,
    compile_seconds: f64,
    iterations: u64,
    recent: RecentReturns,
    exploited: Exploited,
}

impl AnakinRun {
    fn state(&self) -> Result<&TrainingState<AnyEnvironment, AnyAgent>> {
        self.state.as_ref().context("the run ended with an error before")
    }
}

impl Run for AnakinRun {
    fn compile_seconds(&self) -> f64 {
        self.compile_seconds
    }

    fn advance(&mut self) -> Result<CallMetrics> {
        let state = self.state.take().context("the run ended with an error before")?;
        let (state, metrics) = self.anakin.run(state)?;
        self.state = Some(state);
        self.iterations += self.anakin.iterations_per_call() as u64;
        let iterations = self.anakin.iterations_per_call() as u64;
        self.recent.call(metrics, (self.anakin.steps_per_call(), iterations))
    }

    fn checkpoint(&mut self) -> Result<Checkpoint<'_>> {
        let mut checkpoint = self.anakin.checkpoint(self.state()?, self.iterations)?;
        self.recent.save(&mut checkpoint)?;
        self.exploited.save(&mut checkpoint);
        Ok(checkpoint)
    }

    fn store(&self) -> &'static str {
        anakin::STORE
    }

    fn parameters(&self) -> Result<Vec<(String, Array)>> {
        self.anakin.parameters(self.state()?)
    }

    fn evaluate(&mut self) -> Result<Vec<(String, f64)>> {
        match (&self.evaluation, &self.state) {
            (Some((evaluation, table)), Some(state)) => {
                evaluation(table, &self.agent, &self.client, &state.replicated.agent)
            }
            _ => Ok(Vec::new()),
        }
    }
}
