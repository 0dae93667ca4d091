//! SEED: central inference for workers that step environments elsewhere and know no model.
//!
//! [`SeedRl`] says what is trained and how. [`SeedRl::start`] makes it a run, whose threads infer and learn. What schedules them
//! knows no agents: it is the runtime's [`SeedRun`]. An agent is the same here, in [`Sebulba`](crate::sebulba::Sebulba) and in
//! [`Anakin`](crate::anakin::Anakin).

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use anyhow::{Context, Result};
use podracer_compiler::simplify::Options as Simplify;
use podracer_dsl::prelude::{Key, Tensor};
use podracer_envs::host::{HostEnvironment, HostSpec, LocalWorkers, StepOutcome, Workers};
use podracer_runtime::{
    Client, ExecutableCache, OptionValue, Origin, SebulbaShape, SeedFunctions, SeedLoop,
    SeedOptions, SeedRun,
};
use podracer_stdlib::agents::{AnyAgent, Learn, Staleness};
use podracer_stdlib::seed::UnrollsFor;

use crate::UsageError;
use crate::builder::{self, setters};
use crate::sebulba::{Functions, ReplayFunctions, check_division};

/// An agent, and the shape of the run in which it infers for workers and learns.
///
/// ```no_run
/// use podracer::envs::host::{HostEnvironment, NativeCartPole, Pool};
/// use podracer::prelude::*;
/// use podracer::runtime::Origin;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // Two workers with 8 environments each are the 16 lanes of the one inference device.
/// let batch = || Box::new(Pool::new(&NativeCartPole::new(500), 8)) as Box<dyn HostEnvironment>;
/// let spec = podracer::envs::host::HostSpec { environments: 16, ..batch().spec().clone() };
/// let agent = Ppo::new(spec.observation.clone(), spec.action.clone());
/// let client = Client::cpu(ClientOptions { cpu_devices: Some(2), ..ClientOptions::default() })?;
/// let workers = podracer::seed::local(vec![vec![batch(), batch()]])?;
/// let mut run = SeedRl::new(agent).inference(&[0]).learners(&[1]).unroll(128).lag(0).start(
///     &client,
///     &spec,
///     Origin::Seed(0),
///     workers,
/// )?;
/// for report in run.run(10)? {
///     println!("{:?}", report.metrics);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct SeedRl<A> {
    agent: A,
    name: String,
    inference: Vec<usize>,
    learners: Vec<usize>,
    unroll: usize,
    lag: usize,
    capacity: Option<usize>,
    timeout: Option<Duration>,
    patience: Duration,
    waits_for_workers: bool,
    xla: Option<Vec<(String, OptionValue)>>,
    cache: Option<ExecutableCache>,
    simplify: Simplify,
    /// True if the replay is on the host.
    on_host: bool,
    replay_folder: Option<PathBuf>,
}

impl<A: Learn<Observation = Tensor>> SeedRl<A> {
    /// A run that infers on device 0 and learns on device 1, with unrolls of 32 steps and acting at most one iteration ahead of
    /// learning.
    pub fn new(agent: A) -> Self {
        SeedRl {
            agent,
            name: "seed".to_owned(),
            inference: vec![0],
            learners: vec![1],
            unroll: 32,
            lag: 1,
            capacity: None,
            timeout: None,
            patience: Duration::from_secs(120),
            waits_for_workers: false,
            xla: None,
            cache: None,
            simplify: Simplify::default(),
            on_host: false,
            replay_folder: None,
        }
    }

    setters! {
        /// The devices that infer, each for an equal part of the lanes.
        inference: &[usize];
        /// The devices that learn; they divide the lanes of an inference device. They may infer, too.
        learners: &[usize];
        /// Steps of an unroll.
        unroll: usize;
        /// Iterations by which acting may be ahead of learning.
        lag: usize;
        /// Number of waiting environments at which an inference begins, in place of the rule's.
        capacity: Option<usize>;
        /// Time after a batch's first step at which an inference begins anyway, in place of the rule's.
        timeout: Option<Duration>;
        /// Time without progress in any thread after which the run is given up.
        patience: Duration;
        /// Waits for workers as long as it takes: they come from elsewhere.
        waits_for_workers: bool;
        /// XLA's options, in place of those of podracer's rule.
        xla: Vec<(String, OptionValue)>;
        /// The groups of simplifications before XLA; none without it.
        simplify: Simplify;
        /// Cache of compiled programs, in place of the user's.
        cache: ExecutableCache;
    }

    /// Keeps the replay of an agent that learns from one on the host, and not on the learner devices.
    #[must_use]
    pub fn replay_on_host(mut self) -> Self {
        self.on_host = true;
        self
    }

    /// The folder whose disk has a replay that is on the host, in place of the system's for temporary files.
    #[must_use]
    pub fn replay_folder(mut self, folder: &Path) -> Self {
        self.replay_folder = Some(folder.to_owned());
        self
    }

    /// The programs' name, for profiles and XLA's messages.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        self.name = builder::module_name(name);
        self
    }

    /// The agent of the loop.
    pub fn agent(&self) -> &A {
        &self.agent
    }

    /// Steps of an unroll.
    #[must_use]
    pub fn steps(&self) -> usize {
        self.unroll
    }

    /// Number of inference devices.
    #[must_use]
    pub fn inference_devices(&self) -> usize {
        self.inference.len()
    }

    /// XLA's options for this run by podracer's rule. `platform` is `cpu`, `cuda` or `tpu`.
    #[must_use]
    pub fn xla_options(&self, platform: &str, lanes: usize) -> Vec<(String, OptionValue)> {
        builder::xla_options(platform, lanes, self.inference != self.learners)
    }

    /// Traces the programs. `lanes` has the number of lanes of each inference device, and their spaces.
    ///
    /// # Errors
    /// [`UsageError`] for a shape that makes no run; the mistakes of the agent, with the user's lines.
    #[track_caller]
    pub fn trace(&self, lanes: &HostSpec) -> Result<SeedLoop> {
        self.check(lanes)?;
        let shape = SebulbaShape {
            threads: self.inference.len(),
            learners: self.learners.len(),
            unroll: self.unroll,
        };
        let largest = self.capacity.unwrap_or(lanes.environments);
        let (name, simplify) = (&self.name, &self.simplify);
        if self.on_host {
            let functions = ReplayFunctions::new(&self.agent, shape, lanes)?;
            return Ok(SeedLoop::trace(name, shape, lanes, largest, &functions, simplify)?);
        }
        let functions = Functions::new(&self.agent, shape, lanes)?;
        Ok(SeedLoop::trace(name, shape, lanes, largest, &functions, simplify)?)
    }

    /// Compiles the programs and starts the threads, for these workers of each inference device.
    ///
    /// # Errors
    /// Errors of [`SeedRl::trace`], of the runtime and of XLA; a checkpoint that does not fit.
    #[track_caller]
    pub fn start(
        &self,
        client: &Client,
        lanes: &HostSpec,
        origin: Origin<'_>,
        workers: Vec<Box<dyn Workers>>,
    ) -> Result<SeedRun> {
        let programs = self.trace(lanes)?;
        let rule = || self.xla_options(client.platform(), lanes.environments);
        let options = SeedOptions {
            inference: self.inference.clone(),
            learners: self.learners.clone(),
            capacity: self.capacity,
            timeout: self.timeout,
            lag: self.lag,
            patience: self.patience,
            waits_for_workers: self.waits_for_workers,
            replay_folder: Some(self.replay_folder.clone().unwrap_or_else(std::env::temp_dir)),
            xla: self.xla.clone().unwrap_or_else(rule),
            cache: self.cache.clone().unwrap_or_else(ExecutableCache::user),
        };
        SeedRun::start(&programs, client, &options, workers, origin)
            .context("cannot start the training")
    }

    fn check(&self, lanes: &HostSpec) -> Result<(), UsageError> {
        builder::at_least_one(&[
            ("unroll", self.unroll),
            ("capacity", self.capacity.unwrap_or(1)),
            ("the number of inference devices", self.inference.len()),
            ("the number of learner devices", self.learners.len()),
            ("the number of lanes", lanes.environments),
        ])?;
        check_division(lanes.environments, self.learners.len())?;
        if let Some(capacity) = self.capacity.filter(|&capacity| capacity > lanes.environments) {
            return Err(UsageError::new(format!(
                "a batch would close at {capacity} environments, and an inference device has {}: lower the capacity",
                lanes.environments
            )));
        }
        if self.agent.staleness() == Staleness::Refused {
            return Err(UsageError::new(
                "this agent learns only from what its present parameters acted, and with central inference the parameters may change within \
                 an unroll: run it in Anakin, or in Sebulba with lag = 0",
            ));
        }
        Ok(())
    }
}

/// Workers that are threads of this process: for each inference device, the batches of environments of its workers.
///
/// # Errors
/// A thread that cannot be started.
pub fn local(environments: Vec<Vec<Box<dyn HostEnvironment>>>) -> Result<Vec<Box<dyn Workers>>> {
    local_counted(environments, &Arc::default())
}

/// [`local`], with a count of the environments' restarts.
pub(crate) fn local_counted(
    environments: Vec<Vec<Box<dyn HostEnvironment>>>,
    restarts: &Arc<AtomicUsize>,
) -> Result<Vec<Box<dyn Workers>>> {
    let mut first = 0;
    let of_device = environments.into_iter().map(|batches| {
        let workers = LocalWorkers::new(batches, first, restarts)?;
        first += workers.len() as u64;
        Ok(Box::new(workers) as Box<dyn Workers>)
    });
    of_device.collect()
}

impl<A: Learn<Observation = Tensor>> SeedFunctions for Functions<A> {
    type Unrolls = UnrollsFor<A>;

    fn act_in(
        &self,
        params: &A::Params,
        actor: Self::Actor,
        outcome: StepOutcome,
        lanes: Tensor,
    ) -> (Tensor, Self::Actor) {
        self.0.act(params, actor, outcome, Some(lanes))
    }
    fn unrolls(&self) -> UnrollsFor<A> {
        self.0.unrolls()
    }
    fn take_out(
        &self,
        unrolls: UnrollsFor<A>,
        actor: &Self::Actor,
        outcome: StepOutcome,
        lanes: Tensor,
        rows: Tensor,
    ) -> UnrollsFor<A> {
        self.0.take_out(actor, outcome, lanes, rows, unrolls)
    }
    fn shards(&self, unrolls: UnrollsFor<A>) -> Vec<Self::Shard> {
        self.0.shards(unrolls)
    }
    fn restart(&self, actor: Self::Actor, key: Key, first: Tensor, lanes: Tensor) -> Self::Actor {
        self.0.restart(key, first, actor, lanes)
    }
}

impl SeedFunctions for ReplayFunctions {
    type Unrolls = UnrollsFor<AnyAgent>;

    fn act_in(
        &self,
        params: &Self::Params,
        actor: Self::Actor,
        outcome: StepOutcome,
        lanes: Tensor,
    ) -> (Tensor, Self::Actor) {
        self.acting.act_in(params, actor, outcome, lanes)
    }
    fn unrolls(&self) -> Self::Unrolls {
        self.acting.unrolls()
    }
    fn take_out(
        &self,
        unrolls: Self::Unrolls,
        actor: &Self::Actor,
        outcome: StepOutcome,
        lanes: Tensor,
        rows: Tensor,
    ) -> Self::Unrolls {
        self.acting.take_out(unrolls, actor, outcome, lanes, rows)
    }
    fn shards(&self, unrolls: Self::Unrolls) -> Vec<Self::Shard> {
        self.learning.kept(self.acting.shards(unrolls))
    }
    fn restart(&self, actor: Self::Actor, key: Key, first: Tensor, lanes: Tensor) -> Self::Actor {
        self.acting.restart(actor, key, first, lanes)
    }
}
