//! The threads of a run around its learner: the common part of runs with actors and runs with
//! central inference.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded, unbounded};
use podracer_envs::host::panic_message;

use super::error::{SebulbaError, ThreadFailure};
use super::learner::{IterationReport, Learner, LearnerCommand};
use super::origin::{Snapshot, named};
use super::programs::SebulbaLoop;
use super::shape::LearnerState;
use super::shared::Shared;
use super::thread_status::{Activity, ThreadStatus, ThreadTimes};
use super::trajectory::Episode;
use crate::pjrt::Device;
use crate::{Array, Checkpoint, Executable, RuntimeError, World};

/// The threads of a run, including the learner. Dropping it ends the threads.
pub(crate) struct LearnerRun {
    pub(crate) shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    /// Dropped to end the learner.
    commands: Option<Sender<LearnerCommand>>,
    /// Handles that the last checkpoint borrows, until the learner needs them.
    snapshot: Option<Snapshot>,
    reports: Receiver<IterationReport>,
    patience: Duration,
    /// True if stillness was reported, and no thread has made progress since.
    told_of_stillness: bool,
    pub(crate) programs: SebulbaLoop,
    seed: u64,
    /// The processes that learn together; `None` for a single process.
    pub(crate) world: Option<World>,
    pub(crate) iterations: u64,
    pub(crate) learn: Arc<Executable>,
    pub(crate) compile_time: Duration,
}

/// State and settings that the learner thread begins with.
pub(crate) struct LearnerStart {
    pub(crate) learn: Arc<Executable>,
    pub(crate) state: LearnerState,
    /// The devices that get the parameters.
    pub(crate) actors: Vec<Device>,
    pub(crate) seed: u64,
    pub(crate) world: Option<World>,
    pub(crate) iterations: u64,
    pub(crate) patience: Duration,
    pub(crate) compile_time: Duration,
}

impl LearnerRun {
    /// Starts the learner thread, and the replay's thread if the replay is on the host. Other
    /// threads are added by [`LearnerRun::spawn`].
    pub(crate) fn start(
        shared: Arc<Shared>,
        programs: &SebulbaLoop,
        start: LearnerStart,
    ) -> Result<Self, SebulbaError> {
        let (commands, received) = unbounded();
        let (sent, reports) = unbounded();
        let mut run = LearnerRun {
            shared: Arc::clone(&shared),
            threads: Vec::new(),
            commands: Some(commands),
            snapshot: None,
            reports,
            patience: start.patience,
            told_of_stillness: false,
            programs: programs.clone(),
            seed: start.seed,
            world: start.world,
            iterations: start.iterations,
            learn: Arc::clone(&start.learn),
            compile_time: start.compile_time,
        };
        let learner = Learner {
            shared: Arc::clone(&shared),
            program: start.learn,
            state: Arc::new(start.state),
            placements: programs.state.iter().map(|leaf| leaf.2).collect(),
            metrics: programs.metrics.len(),
            log: programs.learn_log.clone(),
            keeps_arguments: false,
            iterations: start.iterations,
            nets: programs.nets.iter().map(|(leaf, _)| *leaf).collect(),
            actors: start.actors,
            shape: programs.shape,
            commands: received,
            reports: sent,
        };
        let threads = programs.shape.threads;
        // If a thread cannot be started, the threads that were started end: `run` is dropped.
        run.spawn(threads, move || learner.run())?;
        if programs.replay.is_some() {
            run.spawn(threads + 1, move || shared.supply.work(&shared.statuses[threads + 1]))?;
        }
        Ok(run)
    }

    /// Starts a thread with the status of this index.
    pub(crate) fn spawn(
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
            // A thread that ends after a recall leaves the other threads to the run.
            let closes = failure.is_some() || !shared.is_recalled();
            if let Some(failure) = failure {
                shared.fail(SebulbaError::Thread { thread, failure });
            }
            status.begin(Activity::Ended, 0);
            if closes {
                shared.close();
            }
        });
        let spawned = spawned.map_err(|error| {
            SebulbaError::Options(format!("the thread of {name} cannot be started: {error}"))
        })?;
        self.threads.push(spawned);
        Ok(())
    }

    /// Runs `iterations` iterations, and returns a report of each. `interrupt` ends the run early
    /// if it waits for external workers or processes; its state can be read then.
    ///
    /// With several processes, the reports contain every process's episodes, and `interrupt` does
    /// not end the run early, because the others would wait.
    pub(crate) fn run(
        &mut self,
        iterations: usize,
        interrupt: Option<&AtomicBool>,
    ) -> Result<Vec<IterationReport>, SebulbaError> {
        let mut reports = self.run_here(iterations, interrupt.filter(|_| self.world.is_none()))?;
        if let Some(world) = self.world {
            episodes_of_all(world, &mut reports)?;
        }
        Ok(reports)
    }

    fn run_here(
        &mut self,
        iterations: usize,
        interrupt: Option<&AtomicBool>,
    ) -> Result<Vec<IterationReport>, SebulbaError> {
        self.snapshot = None;
        let commands = self.commands.as_ref().ok_or(SebulbaError::Over)?;
        // If the learner has ended, the channel of reports shows it.
        let _ = commands.send(LearnerCommand::Iteration(iterations as u64));
        let mut reports = Vec::with_capacity(iterations);
        while reports.len() < iterations {
            match self.reports.recv_timeout(self.patience.min(LOOK)) {
                Ok(report) => {
                    self.iterations = report.iteration + 1;
                    reports.push(report);
                }
                Err(RecvTimeoutError::Timeout) => {
                    let statuses = &self.shared.statuses;
                    let waits = statuses.iter().any(ThreadStatus::waits_for_others);
                    if waits && interrupt.is_some_and(|flag| flag.load(Ordering::Relaxed)) {
                        self.shared.recall();
                        // The learner may have been in the middle of an iteration: after this its
                        // report is available.
                        drop(self.lend()?);
                        reports.extend(self.reports.try_iter());
                        self.iterations =
                            reports.last().map_or(self.iterations, |last| last.iteration + 1);
                        return Ok(reports);
                    }
                    self.tell_of_stillness();
                    self.expect_motion()?;
                }
                Err(RecvTimeoutError::Disconnected) => return Err(self.end(self.patience)),
            }
        }
        Ok(reports)
    }

    pub(crate) fn keep_arguments(&mut self) -> Result<(), SebulbaError> {
        let commands = self.commands.as_ref().ok_or(SebulbaError::Over)?;
        let _ = commands.send(LearnerCommand::KeepArguments);
        Ok(())
    }

    /// Ends the run if no thread has made progress for too long, unless a thread waits for external
    /// workers or processes.
    pub(crate) fn expect_motion(&mut self) -> Result<(), SebulbaError> {
        let statuses = &self.shared.statuses;
        let doing: Vec<_> = statuses.iter().filter_map(ThreadStatus::doing).collect();
        let latest = doing.iter().map(|(since, _)| *since).max();
        let outside = statuses.iter().any(ThreadStatus::waits_for_others);
        if outside || latest.is_none_or(|latest| latest.elapsed() <= self.patience) {
            return Ok(());
        }
        self.shared.fail(SebulbaError::Stalled {
            after: self.patience,
            doing: doing.into_iter().map(|(_, doing)| doing).collect(),
        });
        Err(self.end(Duration::ZERO))
    }

    /// Prints a message once if no thread has begun anything new for [`STILL`], with the activity
    /// of each thread. Inference threads report external waiting themselves.
    fn tell_of_stillness(&mut self) {
        let statuses = &self.shared.statuses;
        let still = self.motion().still();
        if still < STILL || statuses.iter().any(ThreadStatus::waits_for_others) {
            self.told_of_stillness &= still >= STILL;
            return;
        }
        if !std::mem::replace(&mut self.told_of_stillness, true) {
            let doing: Vec<_> = statuses.iter().filter_map(ThreadStatus::doing).collect();
            let doing: Vec<_> = doing.into_iter().map(|(_, doing)| doing).collect();
            tracing::warn!("nothing has happened for {} s: {}", still.as_secs(), doing.join("; "));
        }
    }

    /// A view of the threads that outlives a call.
    pub(crate) fn motion(&self) -> Motion {
        Motion(Arc::clone(&self.shared))
    }

    /// Ends the threads, waiting for each up to `patience`, and gives the failure.
    pub(crate) fn end(&mut self, patience: Duration) -> SebulbaError {
        self.commands = None;
        self.shared.close();
        // The learner may be about to report, but no thread receives the report.
        let (_, nobody) = bounded(0);
        self.reports = nobody;
        let began = Instant::now();
        for thread in self.threads.drain(..) {
            while !thread.is_finished() && began.elapsed() < patience {
                thread::sleep(Duration::from_millis(1));
            }
            if thread.is_finished() {
                // The thread's panic was caught inside it.
                let _ = thread.join();
            } else {
                let name = thread.thread().name().unwrap_or("a thread").to_owned();
                tracing::warn!("{name} does not end, and is left behind");
            }
        }
        self.shared.take_failure().unwrap_or(SebulbaError::Over)
    }

    /// Ends the threads, and waits for each up to the run's patience.
    pub(crate) fn ended(&mut self) -> SebulbaError {
        self.end(self.patience)
    }

    pub(crate) fn parameters(&self) -> Result<Vec<(String, Array)>, SebulbaError> {
        let last = self.shared.parameters.last().ok_or(SebulbaError::Over)?;
        Ok(named(&self.programs.nets, &last.leaves[0])?)
    }

    /// The learner's state between two iterations.
    pub(crate) fn lend(&mut self) -> Result<Arc<LearnerState>, SebulbaError> {
        let commands = self.commands.as_ref().ok_or(SebulbaError::Over)?;
        let (to, lent) = bounded(1);
        // If the learner has ended, nothing is lent.
        let _ = commands.send(LearnerCommand::Lend(to));
        loop {
            match lent.recv_timeout(self.patience.min(LOOK)) {
                Ok(state) => return Ok(state),
                Err(RecvTimeoutError::Timeout) => self.expect_motion()?,
                Err(RecvTimeoutError::Disconnected) => return Err(self.end(self.patience)),
            }
        }
    }

    /// Makes a checkpoint from a snapshot, which is kept until the next iteration is requested.
    pub(crate) fn checkpoint(
        &mut self,
        snapshot: Snapshot,
    ) -> Result<Checkpoint<'_>, SebulbaError> {
        let snapshot = self.snapshot.insert(snapshot);
        let mut checkpoint =
            snapshot.checkpoint(&self.programs, (self.seed, self.iterations), self.world)?;
        self.shared.supply.save(&mut checkpoint)?;
        Ok(checkpoint)
    }

    pub(crate) fn times(&self) -> Vec<ThreadTimes> {
        self.shared.statuses.iter().map(ThreadStatus::times).collect()
    }

    pub(crate) fn stop(&mut self) -> Result<(), SebulbaError> {
        match self.end(self.patience) {
            SebulbaError::Over => Ok(()),
            failure => Err(failure),
        }
    }
}

/// The motion of a run's threads, readable from any thread, even during a call.
#[derive(Clone)]
pub struct Motion(Arc<Shared>);

impl Motion {
    /// The time since a thread last began anything new.
    #[must_use]
    pub fn still(&self) -> Duration {
        let doing = self.0.statuses.iter().filter_map(ThreadStatus::doing);
        doing.map(|(since, _)| since.elapsed()).min().unwrap_or_default()
    }
}

/// Time without motion after which a run prints a message.
const STILL: Duration = Duration::from_secs(10);
/// Interval between a caller's checks if the threads still move.
const LOOK: Duration = Duration::from_secs(1);

impl Drop for LearnerRun {
    fn drop(&mut self) {
        self.end(self.patience);
    }
}

/// Gives each report the episodes from all processes, in the order of the processes.
fn episodes_of_all(world: World, reports: &mut [IterationReport]) -> Result<(), RuntimeError> {
    const NUMBERS: usize = 1 + Episode::WORDS;
    let own = reports.iter().enumerate().flat_map(|(report, one)| {
        one.episodes.iter().flat_map(move |one| [report as u32].into_iter().chain(one.words()))
    });
    let own: Vec<u8> = own.flat_map(u32::to_le_bytes).collect();
    reports.iter_mut().for_each(|report| report.episodes.clear());
    for bytes in world.gather(&own)? {
        let (words, _) = bytes.as_chunks();
        let words: Vec<u32> = words.iter().map(|word| u32::from_le_bytes(*word)).collect();
        for &[report, ref words @ ..] in words.as_chunks::<NUMBERS>().0 {
            reports[report as usize].episodes.push(Episode::from_words(*words));
        }
    }
    Ok(())
}
