//! The worker: steps environments for a learner, and reconnects after the learner was away.
//!
//! Each batch of environments has a thread and a connection of its own: while one batch waits for its actions, another steps.

mod backoff;
mod connect;
mod session;

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use podracer_envs::host::{HostEnvironment, HostError, Latencies};
use tokio::sync::oneshot;
use tokio_rustls::TlsConnector;
use tonic::{Code, Request};

use crate::proto::DescribeRequest;
use crate::{Address, PROTOCOL, RunDescription, Security, SecurityError, tls};
use backoff::Backoff;
use session::{End, Session, Stepper};

/// Messages of a learner that knows no limit yet: a description with bounds for each pixel.
const MOST_DESCRIPTION: usize = 64 << 20;

/// Time that a learner has to describe the run.
const DESCRIBE: Duration = Duration::from_secs(20);

/// The learner of a worker, and the worker's size.
#[derive(Clone, Debug)]
pub struct WorkerOptions {
    /// Addresses of learner hosts. Batches start with different addresses, and switch to the next
    /// address after a failure.
    pub addresses: Vec<Address>,
    /// Security of the connections: how learners and this worker know each other; `None` for Unix sockets.
    pub security: Option<Security>,
    /// Environments over all batches.
    pub environments: usize,
    /// Batches that step by turns, at most one for each environment.
    pub batches: usize,
}

/// Failures that end a worker.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// No way to prove who one is, or a wrong one.
    #[error(transparent)]
    Security(#[from] SecurityError),
    /// Options that do not fit together.
    #[error("{0}")]
    Options(String),
    /// The learner will not have this worker.
    #[error("the learner at {address} refuses this worker: {reason}")]
    Refused {
        /// The learner's address.
        address: Address,
        /// The learner's reason.
        reason: String,
    },
    /// The environments that the learner wants cannot be made here.
    #[error("cannot make the environments of the learner at {address}: {problem}")]
    Environment {
        /// The learner's address.
        address: Address,
        /// The reason why they cannot be made.
        problem: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The environments failed.
    #[error(transparent)]
    Host(#[from] HostError),
    /// A thread that cannot be started.
    #[error("cannot start a thread: {0}")]
    Thread(std::io::Error),
}

/// Counters of a worker, readable while it runs.
#[derive(Debug, Default)]
pub struct WorkerStatus {
    steps: AtomicU64,
    environment_steps: AtomicU64,
    sessions: AtomicU64,
    version: AtomicU64,
    times: Mutex<WorkerTimes>,
}

/// The times of a worker's steps, over all batches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkerTimes {
    /// Times of the environments: from the learner's actions to the step's message.
    pub step: Latencies,
    /// Times of the learner, and of the way to it and back: from the message to the actions.
    pub answer: Latencies,
}

impl WorkerStatus {
    /// Number of received answers, over all batches.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.steps.load(Ordering::Relaxed)
    }

    /// The same, each counted once for each environment.
    #[must_use]
    pub fn environment_steps(&self) -> u64 {
        self.environment_steps.load(Ordering::Relaxed)
    }

    /// Times that a batch was connected to a learner.
    #[must_use]
    pub fn sessions(&self) -> u64 {
        self.sessions.load(Ordering::Relaxed)
    }

    /// Version of the parameters that chose the last actions.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Relaxed)
    }

    /// The times that steps and answers have taken so far.
    #[must_use]
    pub fn times(&self) -> WorkerTimes {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, WorkerTimes> {
        self.times.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stepped(&self, took: Duration) {
        self.lock().step.add(took);
    }

    fn answered(&self, version: u64, environments: usize, took: Duration) {
        self.steps.fetch_add(1, Ordering::Relaxed);
        self.environment_steps.fetch_add(environments as u64, Ordering::Relaxed);
        self.version.store(version, Ordering::Relaxed);
        self.lock().answer.add(took);
    }
}

/// A function that makes a batch of environments by the learner's description.
pub type MakeEnvironment<'a> = dyn Fn(
        &RunDescription,
        usize,
    ) -> Result<Box<dyn HostEnvironment>, Box<dyn std::error::Error + Send + Sync>>
    + Sync
    + 'a;

/// One batch of a worker.
struct Batch<'a> {
    index: usize,
    /// Index of the learner host that it begins with.
    first_host: usize,
    environments: usize,
    options: &'a WorkerOptions,
    tls: Option<&'a TlsConnector>,
    make: &'a MakeEnvironment<'a>,
    status: &'a Arc<WorkerStatus>,
    stop: &'a AtomicBool,
    /// Set when another batch has failed, or heard that the run is complete.
    over: &'a AtomicBool,
}

/// Works until the run is complete or `stop` is set: connects, makes the environments that the
/// learner describes, and steps them.
///
/// # Errors
/// [`WorkerError`]. A learner that is away, stops, or has no room is not an error: the worker comes again.
pub fn work(
    options: &WorkerOptions,
    make: &MakeEnvironment<'_>,
    status: &Arc<WorkerStatus>,
    stop: &AtomicBool,
) -> Result<(), WorkerError> {
    let (environments, batches) = (options.environments, options.batches);
    if options.addresses.is_empty() {
        return Err(WorkerError::Options("a worker needs the address of a learner".to_owned()));
    }
    if !(1..=environments).contains(&batches) {
        return Err(WorkerError::Options(format!(
            "{environments} environments do not make {batches} batches: each batch has at least one"
        )));
    }
    let mut tls = None;
    for address in &options.addresses {
        if let Some(folder) = tls::folder(address, options.security.as_ref())? {
            tls = Some(tls::connector(folder)?);
        }
    }
    let (over, first_error) = (AtomicBool::new(false), Mutex::new(None));
    let fail = |error| {
        let mut first = first_error.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert(error);
        over.store(true, Ordering::Release);
    };
    // Batches go round the hosts, from one that is drawn: processes of one batch each would all begin with the first.
    let drawn = drawn_host(options.addresses.len());
    thread::scope(|scope| {
        for index in 0..batches {
            let bound = |batch: usize| batch * environments / batches;
            let batch = Batch {
                index,
                first_host: (drawn + index) % options.addresses.len(),
                environments: bound(index + 1) - bound(index),
                options,
                tls: tls.as_ref(),
                make,
                status,
                stop,
                over: &over,
            };
            let fail = &fail;
            let thread = thread::Builder::new().name(format!("worker-{index}"));
            let started = thread.spawn_scoped(scope, move || batch.run().unwrap_or_else(fail));
            if let Err(error) = started {
                fail(WorkerError::Thread(error));
            }
        }
    });
    let first = first_error.into_inner().unwrap_or_else(PoisonError::into_inner);
    first.map_or(Ok(()), Err)
}

/// The index of one of `hosts` hosts, drawn separately by each process.
fn drawn_host(hosts: usize) -> usize {
    RandomState::new().build_hasher().finish() as usize % hosts
}

impl Batch<'_> {
    fn name(&self) -> String {
        format!(
            "podracer {}, process {}, batch {}",
            env!("CARGO_PKG_VERSION"),
            std::process::id(),
            self.index
        )
    }

    fn stops(&self) -> bool {
        self.stop.load(Ordering::Acquire) || self.over.load(Ordering::Acquire)
    }

    /// Waits until this batch has to stop.
    async fn stopped(&self) {
        let mut tick = tokio::time::interval(Duration::from_millis(50));
        while !self.stops() {
            tick.tick().await;
        }
    }

    fn run(&self) -> Result<(), WorkerError> {
        // All of a batch happens in one thread: an answer wakes the thread that steps.
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(WorkerError::Thread)?;
        let (mut backoff, mut made, mut stepper) = (Backoff::new(), None, None);
        let addresses = self.options.addresses.iter().cycle().skip(self.first_host);
        for address in addresses {
            if self.stops() {
                return Ok(());
            }
            let (steps, answered) = (self.status.steps(), connect::Answered::default());
            let attempt = self.attempt(address, &answered, &mut made, &mut stepper);
            let end = runtime.block_on(attempt)?;
            if self.status.steps() > steps {
                backoff.reset();
            }
            match end {
                End::Complete => {
                    tracing::info!("{}: the run at {address} is complete", self.name());
                    // A batch that is just coming back would look for a learner that is gone.
                    if self.options.addresses.len() == 1 {
                        self.over.store(true, Ordering::Release);
                    }
                    return Ok(());
                }
                End::Stopped => return Ok(()),
                End::Failed(error) => return Err(error.into()),
                End::Broken(status) => {
                    if let Some(mistake) = answered.mistake(address) {
                        return Err(mistake.into());
                    }
                    let (reason, of_certificates) = connect::explain(&status);
                    let refused = matches!(
                        status.code(),
                        Code::FailedPrecondition | Code::InvalidArgument | Code::Unimplemented
                    );
                    if refused || of_certificates {
                        return Err(WorkerError::Refused { address: address.clone(), reason });
                    }
                    let pause = backoff.pause();
                    tracing::warn!(
                        "{}: {address}: {reason}; next attempt in {:.1} s",
                        self.name(),
                        pause.as_secs_f64()
                    );
                    let wait = async { tokio::time::timeout(pause, self.stopped()).await };
                    if runtime.block_on(wait).is_ok() {
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }

    /// Connects once, and works until that ends.
    async fn attempt(
        &self,
        address: &Address,
        answered: &connect::Answered,
        made: &mut Option<RunDescription>,
        stepper: &mut Option<Stepper>,
    ) -> Result<End, WorkerError> {
        let tls = self.tls.filter(|_| matches!(address, Address::Tcp(_)));
        let connect = || async {
            let connected = connect::connect(address, tls, MOST_DESCRIPTION, answered).await;
            connected.map_err(|error| tonic::Status::from_error(Box::new(error)))
        };
        let mut client = match connect().await {
            Ok(client) => client,
            Err(status) => return Ok(End::Broken(status)),
        };
        let mut request = Request::new(DescribeRequest { protocol: PROTOCOL });
        request.set_timeout(DESCRIBE);
        let run = match client.describe(request).await {
            Ok(run) => run.into_inner(),
            Err(status) => return Ok(End::Broken(status)),
        };
        let protocol = run.protocol.min(PROTOCOL);
        let refused = |reason| WorkerError::Refused { address: address.clone(), reason };
        let run = RunDescription::from_wire(run).map_err(refused)?;
        let same =
            |made: &RunDescription| *made == RunDescription { id: made.id.clone(), ..run.clone() };
        if stepper.is_none() || !made.as_ref().is_some_and(same) {
            // Making them may take longer than a learner waits for a `Hello`.
            drop(client);
            *stepper = None;
            tracing::info!("{}: run {} at {address}: {}", self.name(), run.id, run.environment);
            let environment = (self.make)(&run, self.environments);
            let environment = environment.map_err(|problem| WorkerError::Environment {
                address: address.clone(),
                problem,
            })?;
            *stepper = Some(Stepper::new(environment));
            client = match connect().await {
                Ok(client) => client,
                Err(status) => return Ok(End::Broken(status)),
            };
        }
        self.status.sessions.fetch_add(1, Ordering::Relaxed);
        let (stop, stopped) = oneshot::channel();
        let session = Session {
            name: self.name(),
            run: run.id.clone(),
            protocol,
            status: Arc::clone(self.status),
            stopped,
        };
        *made = Some(run);
        let environments = stepper.take().expect("they are made, or were");
        let mut ends = tokio::spawn(session.run(client, environments));
        let ended = tokio::select! {
            ended = &mut ends => ended,
            () = self.stopped() => {
                let _ = stop.send(());
                ends.await
            }
        };
        let (end, environments) = ended.map_err(HostError::failed)?;
        *stepper = environments;
        Ok(end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The batch of each process that had one began with the first host.
    #[test]
    fn workers_of_one_batch_each_are_spread_over_the_hosts() {
        let mut begun = [0; 3];
        (0..300).for_each(|_| begun[drawn_host(3)] += 1);
        assert!(begun.iter().all(|&workers| workers > 50), "{begun:?}");
    }
}
