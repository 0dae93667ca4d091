//! A run: its threads begin, work and end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::{Duration, Instant};

use crossbeam_channel::bounded;
use podracer_envs::host::Workers;

use super::check::check;
use super::compile::DevicePrograms;
use super::inference::Inference;
use super::measure::{CentralMeasures, Measured};
use super::prefetch::Prefetch;
use super::programs::CentralLoop;
use crate::learning::boundary::Boundaries;
use crate::learning::compile::{Compiler, Programs, compile};
use crate::learning::learner_run::{LearnerRun, LearnerStart, Motion};
use crate::learning::origin::{Restored, Snapshot, first_thread};
use crate::learning::parameters::{Parameters, Version};
use crate::learning::shared::Shared;
use crate::learning::supply::TrajectoryQueues;
use crate::learning::thread_status::ThreadStatus;
use crate::learning::{IterationReport, Origin, SebulbaError, ThreadTimes};
use crate::settings::CentralSettings;
use crate::{Array, Checkpoint, RuntimeError};

/// A run with central inference in progress. Its inference threads answer workers after their
/// steps, and its learner thread learns while [`CentralRun::run`] asks for it. Dropping it ends the
/// threads.
pub struct CentralRun {
    run: LearnerRun,
    measured: Arc<Measured>,
    /// True if the run resumed from a checkpoint.
    resumed: bool,
}

impl CentralRun {
    /// Compiles the programs and starts the threads, from the beginning or from a checkpoint. Each
    /// inference device has one `Workers`.
    ///
    /// # Errors
    /// [`SebulbaError::Options`] for devices, sizes or workers that do not fit the programs;
    /// [`SebulbaError::Checkpoint`]; [`SebulbaError::Runtime`].
    pub fn start(
        programs: &CentralLoop,
        compiler: Compiler<'_>,
        settings: &CentralSettings,
        workers: Vec<Box<dyn Workers>>,
        origin: Origin<'_>,
    ) -> Result<Self, SebulbaError> {
        check(programs, settings, &workers)?;
        let (client, host, folder) = (compiler.client, &settings.host, settings.host.folder());
        let learning = &programs.learning;
        learning.check_machine(client, host, origin)?;
        let began = Instant::now();
        let fresh = matches!(origin, Origin::Seed(_));
        let Programs { init, learn, .. } =
            compile(learning, compiler, (&[], host.learning()), fresh)?;
        let on_devices = host
            .acting()
            .iter()
            .map(|&device| Ok(Arc::new(DevicePrograms::compile(programs, compiler, device)?)));
        let on_devices = on_devices.collect::<Result<Vec<_>, RuntimeError>>()?;
        let compile_time = began.elapsed();

        let (inference, learners) = compiler.devices(host)?;
        let world = learning.shape.world(client);
        let Restored { seed, iterations, state, .. } = match origin {
            Origin::Seed(seed) => Restored::first(learning, init.as_ref(), seed)?,
            Origin::Checkpoint(checkpoint) => {
                Restored::read(learning, 0, checkpoint, (&inference, &learners), world)?
            }
        };
        let version = Version::copied(&state[0], &learning.published(), &inference, iterations)?;
        let (threads, keeps_rows) = (inference.len(), programs.keeps_rows());
        // A thread is ahead of the learner by at most `room` complete batches of unrolls.
        let room = host.lag + 2;
        let queues = || match keeps_rows {
            true => TrajectoryQueues::new(threads, room),
            false => TrajectoryQueues::in_order(threads, threads * room),
        };
        let names = workers.iter().enumerate().map(|(thread, workers)| {
            let status = format!("inference thread {thread} ({})", inference[thread]);
            let status = ThreadStatus::new(status);
            if workers.are_elsewhere() { status.open_ended() } else { status }
        });
        let elsewhere = workers.iter().any(|workers| workers.are_elsewhere());
        let learner_threads = learning.learner_threads().map(|name| {
            let status = ThreadStatus::new(name);
            if world.is_some() && elsewhere { status.open_ended() } else { status }
        });
        let last = ThreadStatus::new("the prefetch thread".to_owned());
        let statuses: Vec<_> = names.chain(learner_threads).chain([last]).collect();
        let prefetch = statuses.len() - 1;
        let shared = Arc::new(Shared::new(
            statuses,
            Parameters::new([version], 1),
            learning.supply(&learn, &folder, room, queues)?,
            Boundaries::new(0, 0),
        ));
        if let Origin::Checkpoint(checkpoint) = origin {
            shared.supply.restore(checkpoint)?;
        }
        let start = LearnerStart {
            learn,
            state,
            actors: inference,
            seed,
            world,
            iterations,
            patience: host.patience(),
            compile_time,
        };
        let mut run = LearnerRun::start(Arc::clone(&shared), learning, start)?;
        let (to_prefetch, complete) = bounded(threads * room);
        let measured = Arc::new(Measured::new(threads));
        let of_all = Arc::new(AtomicU64::new(0));
        for (index, workers) in workers.into_iter().enumerate() {
            let inference = Inference {
                shared: Arc::clone(&shared),
                programs: Arc::clone(&on_devices[index]),
                workers,
                index,
                number: first_thread(threads, world) + index,
                threads,
                spec: learning.environments.clone(),
                unroll: learning.shape.unroll,
                seed,
                iterations,
                capacity: settings.capacity,
                timeout: settings.timeout(),
                lag: host.lag as u64,
                keeps_rows,
                complete: if keeps_rows { Arc::default() } else { Arc::clone(&of_all) },
                to_prefetch: to_prefetch.clone(),
                measured: Arc::clone(&measured),
            };
            run.spawn(index, move || inference.run())?;
        }
        let prefetch = Prefetch {
            shared,
            index: prefetch,
            programs: on_devices,
            learners,
            keeps_on_host: learning.replay.is_some(),
            complete,
        };
        run.spawn(prefetch.index, move || prefetch.run())?;
        Ok(CentralRun { run, measured, resumed: !fresh })
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

    /// [`CentralRun::run`], which returns fewer iterations if `interrupt` is set while the run
    /// waits for workers from elsewhere. The run is over then; its checkpoint and its parameters
    /// are still available.
    ///
    /// # Errors
    /// As [`CentralRun::run`].
    pub fn run_until(
        &mut self,
        iterations: usize,
        interrupt: &AtomicBool,
    ) -> Result<Vec<IterationReport>, SebulbaError> {
        self.run.run(iterations, Some(interrupt))
    }

    /// The counts since the run began.
    #[must_use]
    pub fn measures(&self) -> CentralMeasures {
        self.measured.read()
    }

    /// A reading of [`CentralRun::measures`] for other threads, also during a call.
    pub fn meter(&self) -> impl Fn() -> CentralMeasures + Send + Sync + 'static {
        let measured = Arc::clone(&self.measured);
        move || measured.read()
    }

    /// The motion of the run's threads, readable from any thread.
    #[must_use]
    pub fn motion(&self) -> Motion {
        self.run.motion()
    }

    /// The parameters after the iterations so far, by their paths.
    ///
    /// # Errors
    /// [`SebulbaError::Runtime`].
    pub fn parameters(&self) -> Result<Vec<(String, Array)>, SebulbaError> {
        self.run.parameters()
    }

    /// Makes a checkpoint of the learning after the iterations so far, for [`CentralRun::start`] to
    /// resume. It does not contain lanes, episodes and unfinished unrolls: workers begin new
    /// episodes.
    ///
    /// The learner's state stays on its devices. No iteration can be requested until the checkpoint
    /// is written and dropped.
    ///
    /// # Errors
    /// As [`CentralRun::run`].
    pub fn checkpoint(&mut self) -> Result<Checkpoint<'_>, SebulbaError> {
        let state = self.run.lend()?;
        let versions = self.run.shared.parameters.all();
        self.run.checkpoint(Snapshot { state, versions, boundaries: Vec::new() })
    }

    /// True if the run resumed from a checkpoint, with new episodes.
    #[must_use]
    pub fn resumed(&self) -> bool {
        self.resumed
    }

    /// The names of [`IterationReport::metrics`].
    #[must_use]
    pub fn metric_names(&self) -> &[String] {
        &self.run.programs.metrics
    }

    /// The time that each thread has spent in each activity: inference threads first, then the learner, a replay on the host, and
    /// the prefetch thread.
    #[must_use]
    pub fn times(&self) -> Vec<ThreadTimes> {
        self.run.times()
    }

    /// Ends the threads, and waits for them. The learnt parameters and counters can still be read.
    ///
    /// # Errors
    /// The failure of a thread since the last [`CentralRun::run`].
    pub fn stop(&mut self) -> Result<(), SebulbaError> {
        self.run.stop()
    }

    /// Time from the lowered programs to the executables.
    #[must_use]
    pub fn compile_time(&self) -> Duration {
        self.run.compile_time
    }
}
