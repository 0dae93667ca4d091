//! An agent in an environment as a training loop for the command line.

use std::rc::Rc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use anyhow::{Context, Result};
use podracer_dsl::Tensor;
use podracer_envs::Environment;
use podracer_runtime::{
    Checkpoint, Client, CompileOptions, Device, ExecutableCache, HostArray, OptionValue,
    ProgramOptions, simplify,
};
use podracer_stdlib::agents::Learn;

use super::recent::RecentReturns;
use crate::anakin::{Anakin, CompiledAnakin, TrainingState};
use crate::evaluation::{Play, Played, play};
use crate::export::Portable;
use crate::sebulba::compiled_environments;
use crate::training::{CallMetrics, LoopModule, Run, Stage, Training};

/// What an experiment measures of the trained networks: names and values.
pub type Evaluation<A> =
    Rc<dyn Fn(&Client, &Device<<A as Learn>::State>) -> Result<Vec<(String, f64)>>>;

/// An agent in an environment, and what is measured of it.
pub struct AnakinTraining<E, A: Learn> {
    /// What is trained.
    pub anakin: Anakin<E, A>,
    /// What is measured at the end.
    pub evaluation: Option<Evaluation<A>>,
}

impl<E: Environment<Observation = Tensor>, A: Learn<Observation = Tensor>> Training
    for AnakinTraining<E, A>
{
    fn emit(&self, stage: Stage, replicas: usize) -> Result<String> {
        let traced = self.anakin.clone().devices(replicas).trace()?;
        Ok(match stage {
            Stage::Trace => traced.traced().func().to_string(),
            Stage::Simplified => simplify(traced.traced().func()).to_string(),
            Stage::StableHlo | Stage::Hlo => traced.lower()?.module.key().to_owned(),
        })
    }

    fn modules(&self, replicas: usize) -> Result<Vec<LoopModule>> {
        let traced = self.anakin.clone().devices(replicas).trace()?;
        Ok(vec![LoopModule {
            name: "loop",
            replicas,
            threads: 1,
            waiting_bytes: 0,
            module: traced.lower()?.module,
        }])
    }

    fn programs(&self, batch: Option<usize>) -> Result<Vec<Portable>> {
        self.anakin.programs(batch)
    }

    fn xla_options(&self, platform: &str, replicas: usize) -> Vec<(String, OptionValue)> {
        self.anakin.clone().devices(replicas).xla_options(platform)
    }

    fn start(
        &self,
        client: &Client,
        devices: &[usize],
        seed: u64,
        xla: &[(String, OptionValue)],
        from: Option<&Checkpoint>,
    ) -> Result<Box<dyn Run>> {
        let start = Instant::now();
        let compile = CompileOptions {
            replicas: devices.len(),
            device_assignment: Some(devices.to_vec()),
            xla: xla.to_vec(),
        };
        let options =
            ProgramOptions { compile, cache: ExecutableCache::user(), ..ProgramOptions::default() };
        let anakin = self.anakin.clone().devices(devices.len());
        let anakin = anakin.compile_with(client, &options)?;
        let compile_seconds = start.elapsed().as_secs_f64();
        let state = match from {
            Some(checkpoint) => anakin.restore(checkpoint)?,
            None => anakin.init(seed)?,
        };
        Ok(Box::new(AnakinRun::<E, A> {
            anakin,
            client: client.clone(),
            evaluation: self.evaluation.clone(),
            state: Some(state),
            compile_seconds,
            updates: from.map_or(0, |checkpoint| checkpoint.updates),
            recent: RecentReturns::restored(from)?,
        }))
    }

    fn play(
        &self,
        (client, device): (&Client, usize),
        checkpoint: &Checkpoint,
        order: &Play,
        interrupt: &AtomicBool,
    ) -> Result<Vec<Played>> {
        let (environment, most) = self.anakin.environment();
        let number = order.episodes.clamp(1, most);
        let mut environments =
            compiled_environments(client, device, environment.clone(), number, 1)?;
        let agent = self.anakin.agent();
        play(agent, checkpoint, &mut environments, order, (client, device), interrupt)
    }
}

/// A loop on its devices.
struct AnakinRun<E: Environment, A: Learn<Observation = E::Observation>> {
    anakin: CompiledAnakin<E, A>,
    client: Client,
    evaluation: Option<Evaluation<A>>,
    /// Absent only after a call that failed.
    state: Option<TrainingState<E, A>>,
    compile_seconds: f64,
    updates: u64,
    recent: RecentReturns,
}

impl<E: Environment, A: Learn<Observation = E::Observation>> AnakinRun<E, A> {
    fn state(&self) -> Result<&TrainingState<E, A>> {
        let state = self.state.as_ref();
        state.context("the run ended with an error before")
    }
}

impl<E: Environment, A: Learn<Observation = E::Observation>> Run for AnakinRun<E, A> {
    fn compile_seconds(&self) -> f64 {
        self.compile_seconds
    }

    fn advance(&mut self) -> Result<CallMetrics> {
        let state = self.state.take().context("the run ended with an error before")?;
        let (state, metrics) = self.anakin.run(state)?;
        self.state = Some(state);
        self.updates += self.anakin.iterations_per_call() as u64;
        Ok(CallMetrics {
            env_steps: self.anakin.steps_per_call(),
            updates: self.anakin.iterations_per_call() as u64,
            per_update: metrics.per_update()?,
            recent: self.recent.with(metrics.ended()),
            episodes: metrics.episodes,
            ..CallMetrics::default()
        })
    }

    fn checkpoint(&mut self) -> Result<Checkpoint<'_>> {
        let mut checkpoint = self.anakin.checkpoint(self.state()?, self.updates)?;
        self.recent.save(&mut checkpoint)?;
        Ok(checkpoint)
    }

    fn parameters(&self) -> Result<Vec<(String, HostArray)>> {
        Ok(self.anakin.parameters(self.state()?)?)
    }

    fn evaluate(&mut self) -> Result<Vec<(String, f64)>> {
        match (&self.evaluation, &self.state) {
            (Some(evaluation), Some(state)) => evaluation(&self.client, &state.replicated.agent),
            _ => Ok(Vec::new()),
        }
    }
}
