//! A run: its threads begin, work and end.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use podracer_envs::host::HostEnvironment;

use super::actor::Actor;
use super::check::check;
use crate::learning::boundary::{Boundaries, Boundary};
use crate::learning::compile::{ActorPrograms, Compiler, Programs, compile};
use crate::learning::error::SebulbaError;
use crate::learning::learner::IterationReport;
use crate::learning::learner_run::{LearnerRun, LearnerStart, Motion};
use crate::learning::origin::{Restored, Snapshot, first_thread};
use crate::learning::parameters::{Parameters, Version};
use crate::learning::programs::SebulbaLoop;
use crate::learning::shape::Origin;
use crate::learning::shared::Shared;
use crate::learning::supply::TrajectoryQueues;
use crate::learning::thread_status::{ThreadStatus, ThreadTimes};
use crate::settings::SebulbaSettings;
use crate::{Array, Checkpoint, Executable, TransferCounts};

/// A run of Sebulba in progress. Its actor threads act whenever the schedule and their queues allow
/// it, and its learner thread learns while [`SebulbaRun::run`] asks for it. Dropping it ends the
/// threads.
pub struct SebulbaRun {
    run: LearnerRun,
    /// True if the schedule is deterministic.
    lagging: bool,
    fresh_episodes: usize,
    actors: Vec<Arc<ActorPrograms>>,
}

/// Transfers of a run's programs so far, over all devices.
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
    /// Compiles the programs and starts the threads, from the beginning or from a checkpoint. Each
    /// actor thread has one batch of environments.
    ///
    /// # Errors
    /// [`SebulbaError::Options`] for sizes, devices or environments that do not fit the programs; [`SebulbaError::Checkpoint`];
    /// [`SebulbaError::Runtime`].
    pub fn start(
        programs: &SebulbaLoop,
        compiler: Compiler<'_>,
        settings: &SebulbaSettings,
        environments: Vec<Box<dyn HostEnvironment>>,
        origin: Origin<'_>,
    ) -> Result<Self, SebulbaError> {
        check(programs, settings, &environments)?;
        let (client, host, folder) = (compiler.client, &settings.host, settings.host.folder());
        programs.check_machine(client, host, origin)?;
        let shape = programs.shape;
        let began = Instant::now();
        let fresh = matches!(origin, Origin::Seed(_));
        let Programs { init, learn, actors: actor_programs } =
            compile(programs, compiler, (host.acting(), host.learning()), fresh)?;
        let compile_time = began.elapsed();

        let (actors, learners) = compiler.devices(host)?;
        let world = shape.world(client);
        // A thread may act `lag` trajectories more than the learner has taken, and also leaves a
        // boundary after the last trajectory.
        let (lag, kept_boundaries) = settings.fixed_lag().map_or((0, 1), |lag| (lag, lag + 2));
        let restored = match origin {
            Origin::Seed(seed) => Restored::first(programs, init.as_ref(), seed)?,
            Origin::Checkpoint(checkpoint) => {
                Restored::read(programs, lag, checkpoint, (&actors, &learners), world)?
                    .with_boundaries(programs, checkpoint, world)?
            }
        };
        let Restored { seed, iterations, state, mut versions, boundaries } = restored;
        versions.push(Version::copied(&state[0], &programs.published(), &actors, iterations)?);
        let fresh = |from: &&Boundary| from.environment.is_none();
        let fresh_episodes = boundaries.iter().flatten().filter(fresh).count();
        let device_of = |thread: usize| thread % actors.len();
        let names = (0..shape.threads)
            .map(|thread| format!("actor thread {thread} ({})", actors[device_of(thread)]))
            .chain(programs.learner_threads());
        let queues = || TrajectoryQueues::new(shape.threads, settings.queue);
        let shared = Arc::new(Shared::new(
            names.map(ThreadStatus::new).collect(),
            Parameters::new(versions, lag + 1),
            programs.supply(&learn, &folder, settings.queue, queues)?,
            Boundaries::new(shape.threads, kept_boundaries),
        ));
        if let Origin::Checkpoint(checkpoint) = origin {
            shared.supply.restore(checkpoint)?;
        }
        let learner_devices: Arc<[_]> = learners.into();
        let start = LearnerStart {
            learn,
            state,
            actors: actors.clone(),
            seed,
            world,
            iterations,
            patience: host.patience(),
            compile_time,
        };
        let mut run = LearnerRun::start(Arc::clone(&shared), programs, start)?;
        for (index, (environment, from)) in environments.into_iter().zip(boundaries).enumerate() {
            let device = device_of(index);
            let actor = Actor {
                shared: Arc::clone(&shared),
                programs: Arc::clone(&actor_programs[device]),
                environment,
                index,
                number: first_thread(shape.threads, world) + index,
                device,
                learners: Arc::clone(&learner_devices),
                keeps_on_host: programs.replay.is_some(),
                shape,
                lag: settings.fixed_lag(),
                seed,
                from,
            };
            run.spawn(index, move || actor.run())?;
        }
        let lagging = settings.fixed_lag().is_some();
        Ok(SebulbaRun { run, lagging, fresh_episodes, actors: actor_programs })
    }

    /// Runs `iterations` iterations, and returns a report of each.
    ///
    /// # Errors
    /// [`SebulbaError::Thread`] names the thread that failed. [`SebulbaError::Stalled`] lists what
    /// each thread waits for if no thread makes progress. The run is over then: later calls return
    /// [`SebulbaError::Over`].
    pub fn run(&mut self, iterations: usize) -> Result<Vec<IterationReport>, SebulbaError> {
        self.run.run(iterations, None)
    }

    /// From now on every [`IterationReport`] contains the arguments of `learn`, copied to the host,
    /// for inspecting an iteration that goes wrong.
    ///
    /// # Errors
    /// [`SebulbaError::Over`].
    pub fn keep_arguments(&mut self) -> Result<(), SebulbaError> {
        self.run.keep_arguments()
    }

    /// The parameters after the iterations so far, by their paths.
    ///
    /// # Errors
    /// [`SebulbaError::Runtime`].
    pub fn parameters(&self) -> Result<Vec<(String, Array)>, SebulbaError> {
        self.run.parameters()
    }

    /// Makes a checkpoint of the run after the iterations so far, which [`SebulbaRun::start`]
    /// resumes. With a deterministic schedule and environments that have snapshots, the next
    /// iterations are bit-identical to an uninterrupted run.
    ///
    /// The learner's state stays on its devices. No iteration can be requested until the checkpoint
    /// is written and dropped.
    ///
    /// # Errors
    /// As [`SebulbaRun::run`].
    pub fn checkpoint(&mut self) -> Result<Checkpoint<'_>, SebulbaError> {
        let state = self.run.lend()?;
        let number = self.lagging.then_some(self.run.iterations);
        let shared = Arc::clone(&self.run.shared);
        let mut boundaries = Vec::new();
        while boundaries.len() < self.run.programs.shape.threads {
            // The thread has reached this trajectory, or is about to: its last trajectory was
            // taken.
            match shared.boundaries.get(boundaries.len(), number) {
                Some(boundary) => boundaries.push(boundary),
                None if shared.is_closed() => return Err(self.run.ended()),
                None => {
                    self.run.expect_motion()?;
                    thread::sleep(Duration::from_millis(1));
                }
            }
        }
        self.run.checkpoint(Snapshot { state, versions: shared.parameters.all(), boundaries })
    }

    /// Number of actor threads that began fresh episodes although the run resumed from a
    /// checkpoint: their environments have no snapshots.
    #[must_use]
    pub fn fresh_episodes(&self) -> usize {
        self.fresh_episodes
    }

    /// Number of restarts of environments after a fault, over all threads.
    #[must_use]
    pub fn restarts(&self) -> usize {
        self.run.shared.restarts.iter().map(|one| one.load(Ordering::Relaxed)).sum()
    }

    /// The names of [`IterationReport::metrics`].
    #[must_use]
    pub fn metric_names(&self) -> &[String] {
        &self.run.programs.metrics
    }

    /// The time that each thread has spent in each activity: actor threads first, then the learner, then a replay on the host.
    #[must_use]
    pub fn times(&self) -> Vec<ThreadTimes> {
        self.run.times()
    }

    /// The motion of the run's threads, readable from any thread.
    #[must_use]
    pub fn motion(&self) -> Motion {
        self.run.motion()
    }

    /// Transfers of the programs so far.
    #[must_use]
    pub fn transfers(&self) -> SebulbaTransfers {
        let all = |program_of: fn(&ActorPrograms) -> &Executable| {
            let counts = self.actors.iter().map(|device| program_of(device).transfers().counts());
            counts.fold(TransferCounts::default(), |sum, counts| sum + counts)
        };
        SebulbaTransfers {
            act: all(|programs| &programs.act),
            finish: all(|programs| &programs.finish),
            learn: self.run.learn.transfers().counts(),
        }
    }

    /// Ends the threads, and waits for them. The learnt parameters and counters can still be read.
    ///
    /// # Errors
    /// The failure of a thread since the last [`SebulbaRun::run`].
    pub fn stop(&mut self) -> Result<(), SebulbaError> {
        self.run.stop()
    }

    /// Time from the lowered programs to the executables.
    #[must_use]
    pub fn compile_time(&self) -> Duration {
        self.run.compile_time
    }
}
