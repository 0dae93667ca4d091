//! A run: its threads begin, work and end.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle, ScopedJoinHandle};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded, unbounded};
use podracer_envs::host::{HostEnvironment, panic_message};

use super::actor::{Actor, ActorPrograms};
use super::board::{Activity, Seat, ThreadTimes};
use super::learner::{Learner, UpdateReport, published};
use super::parameters::Parameters;
use super::programs::SebulbaProgram;
use super::{SebulbaError, SebulbaLoop, ThreadFailure};
use crate::anakin::quick;
use crate::{
    Client, CompileOptions, Executable, ExecutableCache, HostArray, OptionValue, ProgramOptions,
    RuntimeError, TransferCounts,
};

/// Which parameters a trajectory is acted with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schedule {
    /// Update `k` learns from trajectories that were acted wholly with the parameters after `k - lag` updates (the first
    /// ones with the initial parameters). With lag 0 learning is on-policy and nothing overlaps; with lag 1 actors act
    /// while the learner learns. The same seed, devices and options give the same parameters, to the bit.
    Deterministic {
        /// How many updates behind.
        lag: usize,
    },
    /// Actors take the latest parameters before each inference, within a trajectory too.
    FreeRunning,
}

/// Where and how a run runs.
#[derive(Clone, Debug)]
pub struct SebulbaOptions {
    /// The actor devices; actor threads are dealt to them in turn.
    pub actors: Vec<usize>,
    /// The learner devices.
    pub learners: Vec<usize>,
    /// Which parameters a trajectory is acted with.
    pub schedule: Schedule,
    /// How many trajectories of each actor thread may wait for the learner.
    pub queue: usize,
    /// For how long nothing may happen at all before the run is given up.
    pub patience: Duration,
    /// Options for XLA, by name.
    pub xla: Vec<(String, OptionValue)>,
    /// Where compiled programs are kept.
    pub cache: ExecutableCache,
}

/// What all threads of a run share.
pub(super) struct Shared {
    /// Those of the actor threads, and then the learner's.
    pub(super) seats: Vec<Seat>,
    pub(super) parameters: Parameters,
    closed: AtomicBool,
    /// The first failure.
    failure: Mutex<Option<SebulbaError>>,
}

impl Shared {
    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    /// Ends all threads: the actors when they look, or wait for parameters; the learner when an actor's queue is gone.
    fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
        self.parameters.close();
    }

    /// Keeps the failure if it is the first.
    fn fail(&self, error: SebulbaError) {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.get_or_insert(error);
    }
}

/// A run of Sebulba, under way: its actor threads act whenever the schedule and their queues let them, and its learner
/// thread learns while [`SebulbaRun::run`] asks for it. Dropping it ends the threads.
pub struct SebulbaRun {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    /// Dropped to end the learner.
    orders: Option<Sender<u64>>,
    reports: Receiver<UpdateReport>,
    patience: Duration,
    names: Vec<String>,
    metrics: Vec<String>,
    actors: Vec<Arc<ActorPrograms>>,
    learn: Arc<Executable>,
    compile_time: Duration,
}

/// What the programs of a run have transferred so far, of all devices together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SebulbaTransfers {
    /// Inference: observations up, actions down.
    pub act: TransferCounts,
    /// Trajectories, from actor to learner devices.
    pub finish: TransferCounts,
    /// Updates: metrics down, parameters to the actor devices.
    pub learn: TransferCounts,
}

impl SebulbaRun {
    /// Compiles the programs and starts the threads. There is one batch of environments for each actor thread.
    ///
    /// # Errors
    /// [`SebulbaError::Options`] for sizes, devices or environments that do not fit the programs; [`SebulbaError::Runtime`].
    pub fn start(
        programs: &SebulbaLoop,
        client: &Client,
        options: &SebulbaOptions,
        environments: Vec<Box<dyn HostEnvironment>>,
        seed: u64,
    ) -> Result<Self, SebulbaError> {
        check(programs, options, &environments)?;
        let began = Instant::now();
        let shape = programs.shape;
        let compiler = Compiler { client, options };
        // XLA compiles each program on one thread for the most part.
        let (init, learn, actor_programs) = thread::scope(|scope| {
            let compile = |program, devices, once| {
                scope.spawn(move || compiler.compile(program, devices, once))
            };
            let init = compile(&programs.init, &options.learners, true);
            let learn = compile(&programs.learn, &options.learners, false);
            let actors = options.actors.chunks(1).map(|device| {
                let start = compile(&programs.start, device, true);
                let act = compile(&programs.act, device, false);
                let finish = compile(&programs.finish, device, false);
                Ok(Arc::new(ActorPrograms {
                    start: joined(start)?,
                    act: joined(act)?,
                    finish: joined(finish)?,
                    nets: programs.nets.len(),
                }))
            });
            let actors = actors.collect::<Result<Vec<_>, RuntimeError>>()?;
            Ok::<_, RuntimeError>((joined(init)?, Arc::new(joined(learn)?), actors))
        })?;
        let compile_time = began.elapsed();

        let devices = |indices: &[usize]| {
            let devices = indices.iter().map(|&index| client.device(index));
            devices.collect::<Result<Vec<_>, _>>()
        };
        let (actors, learners) = (devices(&options.actors)?, devices(&options.learners)?);
        let key = HostArray::from_slice([2], &[(seed >> 32) as u32, seed as u32])?;
        let keys =
            (0..shape.learners).map(|replica| Ok(vec![init.upload(replica, 0, &key)?.into()]));
        let keys = keys.collect::<Result<Vec<_>, RuntimeError>>()?;
        let state = init.execute(keys).map_err(RuntimeError::from)?;
        let nets: Vec<usize> = programs.nets.iter().map(|(leaf, _)| *leaf).collect();
        let first = published(&state[0], &nets, &actors, 0)?;
        let kept = match options.schedule {
            Schedule::Deterministic { lag } => lag + 1,
            Schedule::FreeRunning => 1,
        };
        let device_of = |thread: usize| thread % actors.len();
        let mut seats: Vec<Seat> = (0..shape.threads)
            .map(|thread| {
                let device = &actors[device_of(thread)];
                Seat::new(format!("actor thread {thread} ({device})"))
            })
            .collect();
        seats.push(Seat::new("the learner".to_owned()));
        let shared = Arc::new(Shared {
            seats,
            parameters: Parameters::new(first, kept),
            closed: AtomicBool::new(false),
            failure: Mutex::new(None),
        });

        let (orders, taken) = unbounded();
        let (sent, reports) = unbounded();
        let learner_devices: Arc<[_]> = learners.into();
        let mut run = SebulbaRun {
            shared: Arc::clone(&shared),
            threads: Vec::new(),
            orders: Some(orders),
            reports,
            patience: options.patience,
            names: programs.nets.iter().map(|(_, name)| name.clone()).collect(),
            metrics: programs.metrics.clone(),
            actors: actor_programs.clone(),
            learn: Arc::clone(&learn),
            compile_time,
        };
        let mut queues = Vec::new();
        // A thread that cannot be started ends those that were: `run` is dropped.
        for (index, environment) in environments.into_iter().enumerate() {
            let (queue, received) = bounded(options.queue);
            queues.push(received);
            let device = device_of(index);
            let actor = Actor {
                shared: Arc::clone(&shared),
                programs: Arc::clone(&actor_programs[device]),
                environment,
                index,
                device,
                learners: Arc::clone(&learner_devices),
                shape,
                schedule: options.schedule,
                seed,
                queue,
            };
            run.spawn(index, move || actor.run())?;
        }
        let learner = Learner {
            shared: Arc::clone(&shared),
            program: learn,
            state,
            state_leaves: programs.state_leaves,
            nets,
            actors,
            shape,
            queues,
            orders: taken,
            reports: sent,
        };
        run.spawn(shape.threads, move || learner.run())?;
        Ok(run)
    }

    fn spawn(
        &mut self,
        seat: usize,
        body: impl FnOnce() -> Result<(), ThreadFailure> + Send + 'static,
    ) -> Result<(), SebulbaError> {
        let shared = Arc::clone(&self.shared);
        let name = self.shared.seats[seat].name().to_owned();
        let thread = thread::Builder::new().name(name.clone());
        let spawned = thread.spawn(move || {
            let ended = catch_unwind(AssertUnwindSafe(body));
            let failure = match ended {
                Ok(Ok(())) => None,
                Ok(Err(failure)) => Some(failure),
                Err(panic) => Some(ThreadFailure::Panicked(panic_message(&*panic))),
            };
            let thread = shared.seats[seat].name().to_owned();
            if let Some(failure) = failure {
                shared.fail(SebulbaError::Thread { thread, failure });
            }
            shared.seats[seat].begin(Activity::Ended, 0);
            shared.close();
        });
        let spawned = spawned.map_err(|error| {
            SebulbaError::Options(format!("the thread of {name} cannot be started: {error}"))
        })?;
        self.threads.push(spawned);
        Ok(())
    }

    /// Does so many updates, and gives what came of each.
    ///
    /// # Errors
    /// [`SebulbaError::Thread`] names the thread that failed, [`SebulbaError::Stalled`] who waits for whom where nothing
    /// happens any more. The run is over then: later calls give [`SebulbaError::Over`].
    pub fn run(&mut self, updates: usize) -> Result<Vec<UpdateReport>, SebulbaError> {
        let orders = self.orders.as_ref().ok_or(SebulbaError::Over)?;
        // Where the learner has ended, the reports say so.
        let _ = orders.send(updates as u64);
        let mut reports = Vec::with_capacity(updates);
        while reports.len() < updates {
            match self.reports.recv_timeout(self.patience.min(LOOK)) {
                Ok(report) => reports.push(report),
                Err(RecvTimeoutError::Timeout) => {
                    if let Some(stalled) = self.stalled() {
                        self.shared.fail(stalled);
                        return Err(self.end(Duration::ZERO));
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return Err(self.end(self.patience)),
            }
        }
        Ok(reports)
    }

    /// Whether no thread has begun anything new for too long.
    fn stalled(&self) -> Option<SebulbaError> {
        let doing: Vec<_> = self.shared.seats.iter().filter_map(Seat::doing).collect();
        let latest = doing.iter().map(|(since, _)| *since).max()?;
        (latest.elapsed() > self.patience).then(|| SebulbaError::Stalled {
            after: self.patience,
            doing: doing.into_iter().map(|(_, doing)| doing).collect(),
        })
    }

    /// Ends the threads, waiting for each up to `patience`, and gives the failure.
    fn end(&mut self, patience: Duration) -> SebulbaError {
        self.orders = None;
        self.shared.close();
        // The learner may be about to report; nobody is there to take it.
        let (_, nobody) = bounded(0);
        self.reports = nobody;
        let began = Instant::now();
        for thread in self.threads.drain(..) {
            while !thread.is_finished() && began.elapsed() < patience {
                thread::sleep(Duration::from_millis(1));
            }
            if thread.is_finished() {
                // Its panic was caught inside.
                let _ = thread.join();
            } else {
                let name = thread.thread().name().unwrap_or("a thread").to_owned();
                tracing::warn!("{name} does not end, and is left behind");
            }
        }
        let mut failure = self
            .shared
            .failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        failure.take().unwrap_or(SebulbaError::Over)
    }

    /// The parameters after the updates so far, by their paths.
    ///
    /// # Errors
    /// [`SebulbaError::Runtime`].
    pub fn parameters(&self) -> Result<Vec<(String, HostArray)>, SebulbaError> {
        let last = self.shared.parameters.last().ok_or(SebulbaError::Over)?;
        let leaves = self.names.iter().zip(&last.leaves[0]);
        let named = leaves.map(|(name, leaf)| Ok((name.clone(), leaf.to_host()?)));
        named.collect()
    }

    /// The names of [`UpdateReport::metrics`].
    #[must_use]
    pub fn metric_names(&self) -> &[String] {
        &self.metrics
    }

    /// Where the time of each thread went: those of the actor threads, and then the learner's.
    #[must_use]
    pub fn times(&self) -> Vec<ThreadTimes> {
        self.shared.seats.iter().map(Seat::times).collect()
    }

    /// What the programs have transferred so far.
    #[must_use]
    pub fn transfers(&self) -> SebulbaTransfers {
        let all = |of: fn(&ActorPrograms) -> &Executable| {
            let counts = self
                .actors
                .iter()
                .map(|device| of(device).transfers().counts());
            counts.fold(TransferCounts::default(), |sum, counts| sum + counts)
        };
        SebulbaTransfers {
            act: all(|programs| &programs.act),
            finish: all(|programs| &programs.finish),
            learn: self.learn.transfers().counts(),
        }
    }

    /// Ends the threads, and waits for them. What was learnt and counted can still be read.
    ///
    /// # Errors
    /// The failure of a thread since the last [`SebulbaRun::run`].
    pub fn stop(&mut self) -> Result<(), SebulbaError> {
        match self.end(self.patience) {
            SebulbaError::Over => Ok(()),
            failure => Err(failure),
        }
    }

    /// From the lowered programs to the executables.
    #[must_use]
    pub fn compile_time(&self) -> Duration {
        self.compile_time
    }
}

/// How often a caller looks whether the threads still move.
const LOOK: Duration = Duration::from_secs(1);

impl Drop for SebulbaRun {
    fn drop(&mut self) {
        self.end(self.patience);
    }
}

/// What does not fit.
fn check(
    programs: &SebulbaLoop,
    options: &SebulbaOptions,
    environments: &[Box<dyn HostEnvironment>],
) -> Result<(), SebulbaError> {
    let shape = programs.shape;
    let wrong = |problem: String| Err(SebulbaError::Options(problem));
    if options.actors.is_empty() {
        return wrong("a run needs at least one actor device".to_owned());
    }
    if options.learners.len() != shape.learners {
        return wrong(format!(
            "the programs are for {} learner device(s) and {} are named",
            shape.learners,
            options.learners.len()
        ));
    }
    if environments.len() != shape.threads {
        return wrong(format!(
            "the programs are for {} actor thread(s) and there are {} batches of environments",
            shape.threads,
            environments.len()
        ));
    }
    if options.queue == 0 {
        return wrong("a queue needs room for at least one trajectory".to_owned());
    }
    let expected = &programs.environments;
    match environments.iter().position(|one| one.spec() != expected) {
        Some(thread) => wrong(format!(
            "the environments of actor thread {thread} are {:?} and the programs are for {expected:?}",
            environments[thread].spec()
        )),
        None => Ok(()),
    }
}

fn joined(
    thread: ScopedJoinHandle<'_, Result<Executable, RuntimeError>>,
) -> Result<Executable, RuntimeError> {
    thread.join().unwrap_or_else(|panic| resume_unwind(panic))
}

#[derive(Clone, Copy)]
struct Compiler<'a> {
    client: &'a Client,
    options: &'a SebulbaOptions,
}

impl Compiler<'_> {
    fn compile(
        &self,
        program: &SebulbaProgram,
        devices: &[usize],
        once: bool,
    ) -> Result<Executable, RuntimeError> {
        let options = ProgramOptions {
            compile: CompileOptions {
                replicas: devices.len(),
                device_assignment: Some(devices.to_vec()),
                xla: self.options.xla.clone(),
            },
            cache: self.options.cache.clone(),
            ..ProgramOptions::default()
        };
        let options = if once {
            quick(&options, self.client.platform())
        } else {
            options
        };
        let module = &program.lowered.module;
        let (executable, _) = options
            .cache
            .compile(self.client, module, &options.compile)?;
        Ok(executable)
    }
}
