//! Sebulba: an agent that acts and learns on different devices, in environments on the host.
//!
//! [`Sebulba`] describes a training. [`Sebulba::start`] starts a run, with threads that act and
//! learn. The runtime's [`SebulbaRun`] schedules them and knows no agents. The same agents train
//! here and in [`Anakin`](crate::anakin::Anakin).

use anyhow::{Context, Result};
use podracer_dsl::prelude::Tensor;
use podracer_envs::host::{HostEnvironment, HostSpec};
use podracer_envs::{Environment, check_environment};
use podracer_rl::host_loop::HostLoop;
use podracer_rl::learn::{Learn, Staleness};
use podracer_runtime::{
    Checkpoint, Client, CompiledEnvironments, Origin, ReplayMemory, SebulbaLoop, SebulbaRun,
    SebulbaSettings,
};

use crate::UsageError;
use crate::builder;
pub use crate::builder::HostTraining;
use crate::functions::Functions;

/// The part of a checkpoint with the agent's store, for [`Checkpoint::leave_out`].
pub const STORE: &str = "state.sharded";

/// An agent, and the shape of its run.
///
/// ```no_run
/// use podracer::envs::host::{NativeCartPole, Pool};
/// use podracer::prelude::*;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let batch = || Pool::new(&NativeCartPole::new(500), 16);
/// let spec = podracer::envs::host::HostEnvironment::spec(&batch()).clone();
/// let agent = Ppo::new(spec.observation.clone(), spec.action.clone());
/// let client = Client::cpu(ClientOptions { cpu_devices: Some(2), ..ClientOptions::default() })?;
/// let mut run = Sebulba::new(agent)
///     .actors(vec![0])
///     .learners(vec![1])
///     .unroll(128)
///     .start(&client, &spec, 0, |_thread| Ok(Box::new(batch())))?;
/// for report in run.run(10)? {
///     println!("{:?}", report.metrics);
/// }
/// # Ok(())
/// # }
/// ```
pub type Sebulba<A> = HostTraining<A, SebulbaSettings>;

impl<A: Learn<Observation = Tensor>> Sebulba<A> {
    /// Traces the programs, for threads with these environments each.
    ///
    /// # Errors
    /// [`UsageError`] for a shape that makes no run; the mistakes of the agent, with the user's
    /// lines.
    #[track_caller]
    pub fn trace(&self, environments: &HostSpec) -> Result<SebulbaLoop> {
        self.check(environments)?;
        let shape = self.shape(self.settings.actor_threads());
        let (name, simplify) = self.tracing("sebulba");
        if self.settings.host.replay == ReplayMemory::Host {
            let functions = Functions::with_host_replay(&self.agent, shape, environments)?;
            return Ok(SebulbaLoop::trace(name, shape, environments, &functions, simplify)?);
        }
        let functions = Functions::new(&self.agent, shape, environments)?;
        Ok(SebulbaLoop::trace(name, shape, environments, &functions, simplify)?)
    }

    /// Compiles the programs and starts the threads, each with the batch of environments from
    /// `make` for its number.
    ///
    /// # Errors
    /// Errors of [`Sebulba::trace`], of `make`, of the runtime and of XLA.
    #[track_caller]
    pub fn start(
        &self,
        client: &Client,
        environments: &HostSpec,
        seed: u64,
        make: impl FnMut(usize) -> Result<Box<dyn HostEnvironment>>,
    ) -> Result<SebulbaRun> {
        self.begin(client, environments, Origin::Seed(seed), make)
    }

    /// Resumes from the state of [`SebulbaRun::checkpoint`]; the rest is as in [`Sebulba::start`].
    /// With equally many devices, the same agent, sizes and schedule, the run continues as the
    /// uninterrupted run would. It is bit-identical if the schedule is deterministic and the
    /// environments can be restored.
    ///
    /// ```no_run
    /// use podracer::envs::host::{HostEnvironment, NativeCartPole, Pool};
    /// use podracer::prelude::*;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let batch = || Pool::new(&NativeCartPole::new(500), 16);
    /// # let spec = batch().spec().clone();
    /// # let sebulba = Sebulba::new(Ppo::new(spec.observation.clone(), spec.action.clone()));
    /// let client = Client::cpu(ClientOptions { cpu_devices: Some(2), ..ClientOptions::default() })?;
    /// let checkpoints = Checkpoints::new("cartpole-checkpoints", 2);
    /// let mut run = match checkpoints.latest() {
    ///     Ok(found) => sebulba.resume(&client, &spec, &found.checkpoint, |_| Ok(Box::new(batch())))?,
    ///     Err(CheckpointError::None { .. }) => sebulba.start(&client, &spec, 0, |_| Ok(Box::new(batch())))?,
    ///     Err(error) => return Err(error.into()),
    /// };
    /// for _ in 0..10 {
    ///     run.run(100)?;
    ///     checkpoints.save(&run.checkpoint()?)?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Errors of [`Sebulba::start`], and a checkpoint that does not fit.
    #[track_caller]
    pub fn resume(
        &self,
        client: &Client,
        environments: &HostSpec,
        checkpoint: &Checkpoint,
        make: impl FnMut(usize) -> Result<Box<dyn HostEnvironment>>,
    ) -> Result<SebulbaRun> {
        self.begin(client, environments, Origin::Checkpoint(checkpoint), make)
    }

    /// [`Sebulba::start`] or [`Sebulba::resume`].
    ///
    /// # Errors
    /// Errors of [`Sebulba::start`] and of [`Sebulba::resume`].
    #[track_caller]
    pub fn begin(
        &self,
        client: &Client,
        environments: &HostSpec,
        origin: Origin<'_>,
        make: impl FnMut(usize) -> Result<Box<dyn HostEnvironment>>,
    ) -> Result<SebulbaRun> {
        let programs = self.clone().in_world_of(client).trace(environments)?;
        let batches = (0..self.settings.actor_threads())
            .map(make)
            .collect::<Result<Vec<_>>>()
            .context("cannot make the environments")?;
        self.compiling(client, |compiler| {
            SebulbaRun::start(&programs, compiler, &self.settings, batches, origin)
                .context("cannot start the training")
        })
    }

    fn check(&self, environments: &HostSpec) -> Result<(), UsageError> {
        builder::at_least_one(&[
            ("threads", self.settings.threads),
            ("queue", self.settings.queue),
        ])?;
        self.check_lanes(environments.environments)?;
        let on_policy = self.settings.fixed_lag() == Some(0);
        if self.agent.staleness() == Staleness::Refused && !on_policy {
            return Err(UsageError::new("this agent is on-policy: it needs lag = 0"));
        }
        Ok(())
    }
}

/// A batch of environments of the DSL on a CPU device of `client`, for rollouts of `unroll` steps.
///
/// # Errors
/// The mistakes of the environment, with the user's lines; errors of the runtime.
#[track_caller]
pub fn compiled_environments<E: Environment<Observation = Tensor>>(
    client: &Client,
    device: usize,
    environment: E,
    environments: usize,
    unroll: usize,
) -> Result<CompiledEnvironments> {
    check_environment(&environment)?;
    let batch = HostLoop::new(environment, environments, unroll);
    Ok(CompiledEnvironments::compile(
        client,
        &builder::on_device(device),
        batch.spec(),
        |key, first| batch.begin(key, first),
        |lanes, action| batch.step(lanes, action),
    )?)
}
