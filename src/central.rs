//! Central inference, as in SEED RL, for workers that step environments elsewhere and know no model.
//!
//! [`CentralInference`] describes a training. [`CentralInference::start`] starts a run, with
//! threads that infer and learn. The runtime's [`CentralRun`] schedules them and knows no agents.
//! The same agents train here, in [`Sebulba`](crate::sebulba::Sebulba) and in
//! [`Anakin`](crate::anakin::Anakin).

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use anyhow::{Context, Result};
use podracer_dsl::prelude::Tensor;
use podracer_envs::host::{HostEnvironment, HostSpec, LocalWorkers, Workers};
use podracer_rl::learn::{Learn, Staleness};
use podracer_runtime::{CentralLoop, CentralRun, CentralSettings, Client, Origin, ReplayMemory};

use crate::UsageError;
use crate::builder;
pub use crate::builder::HostTraining;
use crate::functions::Functions;

/// An agent, and the shape of the run that infers for workers and learns.
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
/// let workers = podracer::central::local(vec![vec![batch(), batch()]])?;
/// let mut run = CentralInference::new(agent).actors(vec![0]).learners(vec![1]).unroll(128).lag(0).start(
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
pub type CentralInference<A> = HostTraining<A, CentralSettings>;

impl<A: Learn<Observation = Tensor>> CentralInference<A> {
    /// Traces the programs. `lanes` has the number of lanes per inference device, and their spaces.
    ///
    /// # Errors
    /// [`UsageError`] for a shape that makes no run; the mistakes of the agent, with the user's
    /// lines.
    #[track_caller]
    pub fn trace(&self, lanes: &HostSpec) -> Result<CentralLoop> {
        self.check(lanes)?;
        let host = &self.settings.host;
        let shape = self.shape(host.acting().len());
        let largest = self.settings.capacity.unwrap_or(lanes.environments);
        let (name, simplify) = self.tracing("central");
        if host.replay == ReplayMemory::Host {
            let functions = Functions::with_host_replay(&self.agent, shape, lanes)?;
            return Ok(CentralLoop::trace(name, shape, lanes, largest, &functions, simplify)?);
        }
        let functions = Functions::new(&self.agent, shape, lanes)?;
        Ok(CentralLoop::trace(name, shape, lanes, largest, &functions, simplify)?)
    }

    /// Compiles the programs and starts the threads, for these workers of each inference device.
    ///
    /// # Errors
    /// Errors of [`CentralInference::trace`], of the runtime and of XLA; a checkpoint that does not fit.
    #[track_caller]
    pub fn start(
        &self,
        client: &Client,
        lanes: &HostSpec,
        origin: Origin<'_>,
        workers: Vec<Box<dyn Workers>>,
    ) -> Result<CentralRun> {
        let programs = self.clone().in_world_of(client).trace(lanes)?;
        self.compiling(client, |compiler| {
            CentralRun::start(&programs, compiler, &self.settings, workers, origin)
                .context("cannot start the training")
        })
    }

    fn check(&self, lanes: &HostSpec) -> Result<(), UsageError> {
        let capacity = self.settings.capacity.unwrap_or(1);
        builder::at_least_one(&[("capacity", capacity)])?;
        self.check_lanes(lanes.environments)?;
        if capacity > lanes.environments {
            return Err(UsageError::new(format!(
                "a batch would close at {capacity} environments, and an inference device has {}: lower the capacity",
                lanes.environments
            )));
        }
        if self.agent.staleness() == Staleness::Refused {
            return Err(UsageError::new(
                "this agent is on-policy, and with central inference the parameters may change within \
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
