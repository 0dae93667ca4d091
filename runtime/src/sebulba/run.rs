//! A run: its threads begin, work and end.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded, unbounded};
use podracer_envs::host::{HostEnvironment, panic_message};

use super::actor::{Actor, ActorPrograms};
use super::boundary::{Boundaries, Boundary};
use super::compile::{Programs, compile};
use super::error::{SebulbaError, ThreadFailure};
use super::host_replay::ReplaySupply;
use super::learner::{IterationReport, Learner, LearnerCommand};
use super::options::{Schedule, SebulbaOptions};
use super::origin::{Origin, Restored, Snapshot, named};
use super::parameters::{Parameters, Version};
use super::programs::SebulbaLoop;
use super::shared::Shared;
use super::supply::{Supply, TrajectoryQueues};
use super::thread_status::{Activity, ThreadStatus, ThreadTimes};
use crate::warnings;
use crate::{Array, Checkpoint, Client, Executable, TransferCounts};

/// A run of Sebulba, under way: its actor threads act whenever the schedule and their queues let them, and its learner
/// thread learns while [`SebulbaRun::run`] asks for it. Dropping it ends the threads.
pub struct SebulbaRun {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    /// Dropped to end the learner.
    commands: Option<Sender<LearnerCommand>>,
    /// Handles that the last checkpoint borrows, until the learner needs them.
    snapshot: Option<Snapshot>,
    reports: Receiver<IterationReport>,
    patience: Duration,
    programs: SebulbaLoop,
    /// Tells if the schedule is deterministic.
    lagging: bool,
    seed: u64,
    iterations: u64,
    fresh_episodes: usize,
    actors: Vec<Arc<ActorPrograms>>,
    learn: Arc<Executable>,
    compile_time: Duration,
}

/// Transfers of the programs of a run so far, of all devices together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SebulbaTransfers {
    /// Inference: observations up, actions down.
    pub act: TransferCounts,
    /// Trajectories, from actor to learner devices.
    pub finish: TransferCounts,
    /// Iterations: metrics down, parameters to the actor devices.
    pub learn: TransferCounts,
}

impl SebulbaRun {
    /// Compiles the programs and starts the threads, at the beginning or where a checkpoint was taken. There is one batch of
    /// environments for each actor thread.
    ///
    /// # Errors
    /// [`SebulbaError::Options`] for sizes, devices or environments that do not fit the programs; [`SebulbaError::Checkpoint`];
    /// [`SebulbaError::Runtime`].
    pub fn start(
        programs: &SebulbaLoop,
        client: &Client,
        options: &SebulbaOptions,
        environments: Vec<Box<dyn HostEnvironment>>,
        origin: Origin<'_>,
    ) -> Result<Self, SebulbaError> {
        options.check(programs, &environments)?;
        programs.needed(options).check(client)?;
        let shape = programs.shape;
        if let (Some(replay), Some(folder)) = (&programs.replay, &options.replay_folder) {
            let from = match origin {
                Origin::Seed(_) => None,
                Origin::Checkpoint(checkpoint) => Some(checkpoint),
            };
            let shards = (&programs.shard[..], shape.threads, shape.learners);
            replay.check_space(shards, folder, from)?;
        }
        programs.warnings().iter().for_each(warnings::tell);
        let began = Instant::now();
        let fresh = matches!(origin, Origin::Seed(_));
        let Programs { init, learn, actors: actor_programs } =
            compile(programs, client, options, fresh)?;
        let compile_time = began.elapsed();

        let devices = |indices: &[usize]| -> Result<Vec<_>, _> {
            indices.iter().map(|&index| client.device(index)).collect()
        };
        let (actors, learners) = (devices(&options.actors)?, devices(&options.learners)?);
        let nets: Vec<usize> = programs.nets.iter().map(|(leaf, _)| *leaf).collect();
        let restored = match origin {
            Origin::Seed(seed) => Restored::first(programs, init.as_ref(), seed)?,
            Origin::Checkpoint(checkpoint) => {
                Restored::read(programs, options, checkpoint, (&actors, &learners))?
            }
        };
        let Restored { seed, iterations, state, mut versions, boundaries } = restored;
        versions.push(Version::copied(&state[0], &nets, &actors, iterations)?);
        // A thread may act `lag` trajectories more than the learner has taken, and leaves a boundary after the last one too.
        let (kept, kept_boundaries) = match options.schedule {
            Schedule::Deterministic { lag } => (lag + 1, lag + 2),
            Schedule::FreeRunning => (1, 1),
        };
        let fresh = |from: &&Boundary| from.environment.is_none();
        let fresh_episodes = boundaries.iter().flatten().filter(fresh).count();
        let device_of = |thread: usize| thread % actors.len();
        let names = (0..shape.threads)
            .map(|thread| format!("actor thread {thread} ({})", actors[device_of(thread)]))
            .chain(["the learner".to_owned()])
            .chain(programs.replay.iter().map(|_| "the replay".to_owned()));
        let supply: Box<dyn Supply> = match (programs.replay, &options.replay_folder) {
            (Some(replay), Some(folder)) => {
                let learn = (Arc::clone(&learn), programs.state.len());
                let shards = (&programs.shard[..], shape.threads);
                Box::new(ReplaySupply::new(replay, shards, folder, learn, options.queue)?)
            }
            _ => Box::new(TrajectoryQueues::new(shape.threads, options.queue)),
        };
        let shared = Arc::new(Shared::new(
            names.collect(),
            Parameters::new(versions, kept),
            supply,
            Boundaries::new(shape.threads, kept_boundaries),
        ));
        if let Origin::Checkpoint(checkpoint) = origin {
            shared.supply.restore(checkpoint)?;
        }

        let (commands, received) = unbounded();
        let (sent, reports) = unbounded();
        let learner_devices: Arc<[_]> = learners.into();
        let mut run = SebulbaRun {
            shared: Arc::clone(&shared),
            threads: Vec::new(),
            commands: Some(commands),
            snapshot: None,
            reports,
            patience: options.patience,
            programs: programs.clone(),
            lagging: matches!(options.schedule, Schedule::Deterministic { .. }),
            seed,
            iterations,
            fresh_episodes,
            actors: actor_programs.clone(),
            learn: Arc::clone(&learn),
            compile_time,
        };
        // A thread that cannot be started ends those that were: `run` is dropped.
        for (index, (environment, from)) in environments.into_iter().zip(boundaries).enumerate() {
            let device = device_of(index);
            let actor = Actor {
                shared: Arc::clone(&shared),
                programs: Arc::clone(&actor_programs[device]),
                environment,
                index,
                device,
                learners: Arc::clone(&learner_devices),
                keeps_on_host: programs.replay.is_some(),
                shape,
                schedule: options.schedule,
                seed,
                from,
            };
            run.spawn(index, move || actor.run())?;
        }
        let learner = Learner {
            shared: Arc::clone(&shared),
            program: learn,
            state: Arc::new(state),
            placements: programs.state.iter().map(|leaf| leaf.2).collect(),
            metrics: programs.metrics.len(),
            log: programs.learn_log.clone(),
            keeps_arguments: false,
            iterations,
            nets,
            actors,
            shape,
            commands: received,
            reports: sent,
        };
        run.spawn(shape.threads, move || learner.run())?;
        if programs.replay.is_some() {
            let index = shape.threads + 1;
            run.spawn(index, move || shared.supply.work(&shared.statuses[index]))?;
        }
        Ok(run)
    }

    fn spawn(
        &mut self,
        index: usize,
        body: impl FnOnce() -> Result<(), ThreadFailure> + Send + 'static,
    ) -> Result<(), SebulbaError> {
        let shared = Arc::clone(&self.shared);
        let name = self.shared.statuses[index].name().to_owned();
        let thread = thread::Builder::new().name(name.clone());
        let spawned = thread.spawn(move || {
            let failure = match catch_unwind(AssertUnwindSafe(body)) {
                Ok(Ok(())) => None,
                Ok(Err(failure)) => Some(failure),
                Err(panic) => Some(ThreadFailure::Panicked(panic_message(&*panic))),
            };
            let status = &shared.statuses[index];
            let thread = status.name().to_owned();
            if let Some(failure) = failure {
                shared.fail(SebulbaError::Thread { thread, failure });
            }
            status.begin(Activity::Ended, 0);
            shared.close();
        });
        let spawned = spawned.map_err(|error| {
            SebulbaError::Options(format!("the thread of {name} cannot be started: {error}"))
        })?;
        self.threads.push(spawned);
        Ok(())
    }

    /// Does so many iterations, and gives what came of each.
    ///
    /// # Errors
    /// [`SebulbaError::Thread`] names the thread that failed, [`SebulbaError::Stalled`] who waits for whom where nothing
    /// happens any more. The run is over then: later calls give [`SebulbaError::Over`].
    pub fn run(&mut self, iterations: usize) -> Result<Vec<IterationReport>, SebulbaError> {
        self.snapshot = None;
        let commands = self.commands.as_ref().ok_or(SebulbaError::Over)?;
        // Where the learner has ended, the reports say so.
        let _ = commands.send(LearnerCommand::Iteration(iterations as u64));
        let mut reports = Vec::with_capacity(iterations);
        while reports.len() < iterations {
            match self.reports.recv_timeout(self.patience.min(LOOK)) {
                Ok(report) => {
                    self.iterations = report.iteration + 1;
                    reports.push(report);
                }
                Err(RecvTimeoutError::Timeout) => self.expect_motion()?,
                Err(RecvTimeoutError::Disconnected) => return Err(self.end(self.patience)),
            }
        }
        Ok(reports)
    }

    /// From now on every [`IterationReport`] has the arguments of `learn`, copied to the host: to look at an iteration that goes
    /// wrong.
    ///
    /// # Errors
    /// [`SebulbaError::Over`].
    pub fn keep_arguments(&mut self) -> Result<(), SebulbaError> {
        let commands = self.commands.as_ref().ok_or(SebulbaError::Over)?;
        let _ = commands.send(LearnerCommand::KeepArguments);
        Ok(())
    }

    /// Ends the run where no thread has begun anything new for too long.
    fn expect_motion(&mut self) -> Result<(), SebulbaError> {
        let doing: Vec<_> = self.shared.statuses.iter().filter_map(ThreadStatus::doing).collect();
        let latest = doing.iter().map(|(since, _)| *since).max();
        if latest.is_none_or(|latest| latest.elapsed() <= self.patience) {
            return Ok(());
        }
        self.shared.fail(SebulbaError::Stalled {
            after: self.patience,
            doing: doing.into_iter().map(|(_, doing)| doing).collect(),
        });
        Err(self.end(Duration::ZERO))
    }

    /// Ends the threads, waiting for each up to `patience`, and gives the failure.
    fn end(&mut self, patience: Duration) -> SebulbaError {
        self.commands = None;
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
        self.shared.take_failure().unwrap_or(SebulbaError::Over)
    }

    /// The parameters after the iterations so far, by their paths.
    ///
    /// # Errors
    /// [`SebulbaError::Runtime`].
    pub fn parameters(&self) -> Result<Vec<(String, Array)>, SebulbaError> {
        let last = self.shared.parameters.last().ok_or(SebulbaError::Over)?;
        Ok(named(&self.programs.nets, &last.leaves[0])?)
    }

    /// Makes a checkpoint of the run after the iterations so far, from which [`SebulbaRun::start`] goes on. With a deterministic
    /// schedule and environments that have snapshots, the next iterations are the same as without the stop, to the bit.
    ///
    /// The learner's state stays on its devices, and no iteration can be asked for until the checkpoint is written and dropped.
    ///
    /// # Errors
    /// As [`SebulbaRun::run`].
    pub fn checkpoint(&mut self) -> Result<Checkpoint<'_>, SebulbaError> {
        let snapshot = self.take_snapshot()?;
        let snapshot = self.snapshot.insert(snapshot);
        let mut checkpoint = snapshot.checkpoint(&self.programs, (self.seed, self.iterations))?;
        self.shared.supply.save(&mut checkpoint)?;
        Ok(checkpoint)
    }

    fn take_snapshot(&mut self) -> Result<Snapshot, SebulbaError> {
        let commands = self.commands.as_ref().ok_or(SebulbaError::Over)?;
        let (to, lent) = bounded(1);
        // Where the learner has ended, nothing is lent.
        let _ = commands.send(LearnerCommand::Lend(to));
        let state = loop {
            match lent.recv_timeout(self.patience.min(LOOK)) {
                Ok(state) => break state,
                Err(RecvTimeoutError::Timeout) => self.expect_motion()?,
                Err(RecvTimeoutError::Disconnected) => return Err(self.end(self.patience)),
            }
        };
        let number = self.lagging.then_some(self.iterations);
        let mut boundaries = Vec::new();
        while boundaries.len() < self.programs.shape.threads {
            // The thread has been there, or is about to: its last trajectory was taken.
            match self.shared.boundaries.get(boundaries.len(), number) {
                Some(boundary) => boundaries.push(boundary),
                None if self.shared.is_closed() => return Err(self.end(self.patience)),
                None => {
                    self.expect_motion()?;
                    thread::sleep(Duration::from_millis(1));
                }
            }
        }
        Ok(Snapshot { state, versions: self.shared.parameters.all(), boundaries })
    }

    /// Number of actor threads that began fresh episodes although the run goes on from a checkpoint: their environments have
    /// no snapshots.
    #[must_use]
    pub fn fresh_episodes(&self) -> usize {
        self.fresh_episodes
    }

    /// Number of times that environments were started again after a fault, in all threads.
    #[must_use]
    pub fn restarts(&self) -> usize {
        self.shared.restarts.iter().map(|one| one.load(Ordering::Relaxed)).sum()
    }

    /// The names of [`IterationReport::metrics`].
    #[must_use]
    pub fn metric_names(&self) -> &[String] {
        &self.programs.metrics
    }

    /// The time that each thread has spent in each activity: actor threads first, then the learner, then a replay on the host.
    #[must_use]
    pub fn times(&self) -> Vec<ThreadTimes> {
        self.shared.statuses.iter().map(ThreadStatus::times).collect()
    }

    /// Transfers of the programs so far.
    #[must_use]
    pub fn transfers(&self) -> SebulbaTransfers {
        let all = |of: fn(&ActorPrograms) -> &Executable| {
            let counts = self.actors.iter().map(|device| of(device).transfers().counts());
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

    /// Time from the lowered programs to the executables.
    #[must_use]
    pub fn compile_time(&self) -> Duration {
        self.compile_time
    }
}

/// Interval at which a caller looks whether the threads still move.
const LOOK: Duration = Duration::from_secs(1);

impl Drop for SebulbaRun {
    fn drop(&mut self) {
        self.end(self.patience);
    }
}
