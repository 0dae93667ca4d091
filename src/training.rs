//! The traits between the commands and the training loops: [`Training`] with its parts, and [`Run`].
//!
//! An experiment with fixed settings is a [`Training`]; a compiled experiment with its state on the
//! devices is a [`Run`]. The commands know nothing of agents and environments, and implementations
//! of these traits know nothing of files, progress bars and exit codes.

use std::iter::Sum;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use anyhow::Result;
use podracer_compiler::{Array, Func, NotFinite, Watched};
use podracer_dsl::Report;
use podracer_envs::host::{HostEnvironment, HostSpec, Workers};
use podracer_rl::learn::AnyAgent;
use podracer_rl::population::Exploit;
use podracer_runtime::{Checkpoint, Client, Module, OptionValue};

use crate::evaluation::{Evaluation, Play, Played, Watch};
use crate::export::Portable;

/// A stage of a program between the user's source and XLA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The IR, as traced.
    Trace,
    /// The IR as traced, in readable form.
    Readable,
    /// The IR after all passes.
    Simplified,
    /// The StableHLO module that XLA receives.
    StableHlo,
}

/// An experiment with all settings fixed: traced on demand, not yet compiled.
pub trait Training: Programs {
    /// Compiles the loop and puts its state on the devices: the state of a checkpoint, or the
    /// initial state.
    ///
    /// # Errors
    /// The mistakes of the trace, errors of XLA, and a checkpoint that does not fit.
    fn start(&self, start: Start<'_>) -> Result<Box<dyn Run>>;

    /// Checks that several processes can train together, each on its own devices.
    ///
    /// # Errors Returns the reason and a remedy as a sentence.
    fn spans_processes(&self) -> Result<(), String> {
        Err("its loop is trained by one process".to_owned())
    }

    /// Episodes played by the training's agent, apart from its loop.
    ///
    /// # Errors Returns the reason why there are none, and a remedy, as a sentence.
    fn plays(&self) -> Result<&dyn Plays, String>;

    /// Repetition of a run's iterations.
    ///
    /// # Errors Returns the reason why they cannot be repeated, and a remedy, as a sentence.
    fn repeats(&self) -> Result<&dyn Repeats, String>;

    /// The training with many seeds as one program; `None` for a loop with several programs.
    fn populates(&self) -> Option<&dyn Populates> {
        None
    }

    /// The training with workers elsewhere; `None` for a loop without inference for workers.
    fn serves(&self) -> Option<&dyn Serves> {
        None
    }
}

/// The programs of a training.
pub trait Programs {
    /// The text of the training loop for `replicas` devices.
    ///
    /// # Errors
    /// Returns the mistakes of the trace, with the user's lines.
    fn emit(&self, stage: Stage, replicas: usize) -> Result<String>;

    /// The compiled programs of the training loop for `replicas` devices: one for `[anakin]`, several for `[sebulba]`.
    ///
    /// # Errors
    /// As [`Programs::emit`].
    fn modules(&self, replicas: usize) -> Result<Vec<LoopModule>>;

    /// The programs to run elsewhere, each for one device: `init` and the training program, `act`
    /// and `act_greedily`. The latter two take one observation or a batch of `batch` observations.
    ///
    /// # Errors
    /// As [`Programs::emit`].
    fn programs(&self, batch: Option<usize>) -> Result<Vec<Portable>>;

    /// The XLA options for these programs by podracer's rule, before the user's settings (`[xla]`)
    /// change or extend them. `platform` is `cpu`, `cuda` or `tpu`.
    fn xla_options(&self, platform: &str) -> Vec<(String, OptionValue)>;

    /// The number of products in the training loop as one program for one device, and their
    /// multiplications, each counted once; `None` for a loop with several programs.
    ///
    /// # Errors
    /// As [`Programs::emit`].
    fn products(&self) -> Result<Option<(usize, usize)>> {
        Ok(None)
    }
}

/// Episodes played by a training's agent, apart from its loop.
pub trait Plays {
    /// The agent that plays, as the loop trains it.
    fn agent(&self) -> &AnyAgent;

    /// Environments of the training's kind for at most `episodes` episodes at once, on a device by
    /// its index.
    ///
    /// # Errors
    /// Errors of environments and runtime.
    fn environments(
        &self,
        device: (&Client, usize),
        episodes: usize,
    ) -> Result<Box<dyn HostEnvironment>>;

    /// Compiles the programs that play episodes in these environments, which have the training's
    /// spaces, with the networks of a checkpoint, on a device by its index.
    ///
    /// # Errors
    /// The mistakes of the trace, errors of environments and runtime.
    fn evaluator(
        &self,
        environments: Box<dyn HostEnvironment>,
        device: (&Client, usize),
        play: &Play,
    ) -> Result<Box<dyn Evaluator>> {
        Evaluation::boxed(self.agent(), environments, play, device)
    }
}

/// A training with iterations that can be repeated bit-identically.
pub trait Repeats {
    /// Repeats the iterations after a state one by one, finds the first iteration with the symptom,
    /// and evaluates it by the reference semantics from the state before it. `None` if there is no
    /// such iteration, or if `evaluate` returned `None`.
    ///
    /// # Errors
    /// As [`Training::start`].
    fn explain(&self, suspect: &Suspect, evaluate: &mut Evaluate) -> Result<Option<Explanation>>;
}

/// A training that can run many times in one program.
pub trait Populates {
    /// Checks that the runs of one program may differ in these settings.
    ///
    /// # Errors
    /// Returns a setting that is not a number that a program takes as data.
    fn check(&self, columns: &[Column]) -> Result<()>;

    /// Does the same as [`Training::start`] for one run per seed, from the initial state. The runs
    /// advance together: after a call of one, each of the others makes one. The devices divide the
    /// runs, which differ in the settings of `columns`. With `exploit` the worst runs take over
    /// from the best, and these settings change: they are values of each call.
    ///
    /// # Errors As [`Training::start`], and a number of seeds that does not divide over the devices.
    fn populate(
        &self,
        start: Start<'_>,
        seeds: &[u64],
        columns: &[Column],
        exploit: Option<&Exploit>,
    ) -> Result<Vec<Box<dyn Run>>>;
}

/// A setting that differs between the runs of one program.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// The setting, such as `agent.learning_rate`.
    pub key: String,
    /// Its value in each run.
    pub values: Vec<f64>,
}

/// A training that can infer for workers elsewhere.
pub trait Serves {
    /// The lanes of an acting device, with their spaces, and the number of such devices.
    fn lanes(&self) -> (HostSpec, usize);

    /// Does the same as [`Training::start`] with workers elsewhere instead of workers in this
    /// process.
    ///
    /// # Errors
    /// As [`Training::start`].
    fn serve(&self, start: Start<'_>, elsewhere: Elsewhere) -> Result<Box<dyn Run>>;
}

/// The devices and the initial state of a run.
#[derive(Clone, Copy)]
pub struct Start<'a> {
    /// The client of the devices.
    pub client: &'a Client,
    /// Indices of the run's devices in [`Client::devices`], all different.
    pub devices: &'a [usize],
    /// XLA's options, including the user's settings.
    pub xla: &'a [(String, OptionValue)],
    /// The run's seed.
    pub seed: u64,
    /// The run's folder, for data that is larger than memory.
    pub folder: &'a Path,
    /// The state to resume from; `None` for the initial state.
    pub from: Option<&'a Checkpoint<'a>>,
}

/// Workers in other processes.
pub struct Elsewhere {
    /// The workers of each inference device.
    pub workers: Vec<Box<dyn Workers>>,
    /// A reading of their network traffic.
    pub traffic: Box<dyn Fn() -> Traffic>,
}

/// The iterations to search for numbers that are not finite, after a state.
pub struct Suspect<'a> {
    /// The state before them, and the devices; one device suffices.
    pub start: Start<'a>,
    /// The symptom to explain.
    pub symptom: &'a Symptom,
    /// Greatest number of iterations to search.
    pub iterations: u64,
}

/// Kind of number that is not finite in a failed training.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Symptom {
    /// A metric of the agent, or a parameter.
    Training,
    /// A leaf of the state, by its name in checkpoints.
    State(String),
}

/// Evaluates a function by the reference semantics; `None` if the user does not want to wait. The
/// number is the iteration's, from 1.
pub type Evaluate<'a> = dyn FnMut(u64, &Func, &[Array]) -> Option<Watched> + 'a;

/// The first iteration that produced a number that is not finite, and its cause.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// Number of the iteration, from 1.
    pub iteration: u64,
    /// The name of the non-finite value after it: a metric, parameters, or a leaf of the state.
    pub symptom: String,
    /// The origin of the number.
    pub cause: Cause,
}

/// Origins of a number that is not finite.
#[derive(Clone, Debug, PartialEq)]
pub enum Cause {
    /// An equation of the iteration produced it.
    Equation(NotFinite),
    /// The state before the iteration contained it, in the leaf with this name in checkpoints.
    State(String),
    /// The trajectories of the iteration contained it, in the leaf with this path.
    Trajectory(String),
    /// The reference semantics give finite numbers.
    Device,
}

/// Plays the same episodes with the networks of any checkpoint of a training.
pub trait Evaluator {
    /// Plays until `interrupt` is set, and returns the episodes that have ended. The training does
    /// not change.
    ///
    /// # Errors
    /// A checkpoint that does not fit, errors of environments, runtime and `watch`.
    fn play(
        &mut self,
        checkpoint: &Checkpoint,
        interrupt: &AtomicBool,
        watch: Watch<'_>,
    ) -> Result<Vec<Played>>;
}

/// The training loop, or one of its programs, as a module.
#[derive(Clone, Debug)]
pub struct LoopModule {
    /// The program's role: `loop`, `act`, `finish` or `learn`.
    pub name: &'static str,
    /// Number of devices of one execution.
    pub replicas: usize,
    /// Number of threads that run the program on the same device, each with its own memory.
    pub threads: usize,
    /// Greatest number of bytes per device that wait for the program: rollouts in the queue.
    pub waiting_bytes: usize,
    /// StableHLO and the types of its arguments and results.
    pub module: Module,
}

/// A training with its state on the devices.
pub trait Run {
    /// Seconds from the beginning of the trace to the loaded executable, which may come from the cache.
    fn compile_seconds(&self) -> f64;

    /// Number of runs in the same program, which share its seconds: 1, or the members of a
    /// population.
    fn together(&self) -> usize {
        1
    }

    /// Makes one call of the compiled loop, and waits for it. The first call does no extra work:
    /// compilation and initialisation are done when [`Training::start`] returns.
    ///
    /// # Errors
    /// Errors of the runtime, after which the run is over.
    fn advance(&mut self) -> Result<CallMetrics>;

    /// Does the same as [`Run::advance`], but may do fewer iterations, or none, if `interrupt` is
    /// set while the run waits for an external event.
    ///
    /// # Errors
    /// As [`Run::advance`].
    fn advance_until(&mut self, interrupt: &AtomicBool) -> Result<CallMetrics> {
        let _ = interrupt;
        self.advance()
    }

    /// The state after the calls so far: everything that the next iterations depend on. The caller
    /// adds `about`.
    ///
    /// # Errors
    /// Errors of the runtime.
    fn checkpoint(&mut self) -> Result<Checkpoint<'_>>;

    /// The part of a checkpoint with the agent's store: the prefix of its arrays' names.
    fn store(&self) -> &'static str;

    /// Part of the state that was lost since the restored checkpoint, as a sentence for the user;
    /// `None` if nothing was lost.
    fn caveat(&self) -> Option<String> {
        None
    }

    /// The parameters, once instead of once per device, by key path (`policy.layers[0].weight`).
    ///
    /// # Errors
    /// Errors of the runtime.
    fn parameters(&self) -> Result<Vec<(String, Array)>>;

    /// A reading of the run's state for other threads, also during a call: names of metrics, and
    /// values. `None` for a single-program loop.
    fn live(&self) -> Option<Live> {
        None
    }

    /// Seconds so far, by thread and activity; empty for a single-program loop.
    fn times(&self) -> Vec<(String, f64)> {
        Vec::new()
    }

    /// Number of restarts of environments after a fault; `None` if environments are part of the
    /// program.
    fn restarts(&self) -> Option<usize> {
        None
    }

    /// Measures the experiment's own success after the last call, such as a greedy policy's return:
    /// names and values, which are in the result under `evaluation`. Empty by default.
    ///
    /// # Errors
    /// Errors of the runtime.
    fn evaluate(&mut self) -> Result<Vec<(String, f64)>> {
        Ok(Vec::new())
    }
}

/// A reading of a run's state: names of metrics, and values.
pub type Live = Box<dyn Fn() -> Vec<(&'static str, f64)> + Send>;

/// Network traffic with workers elsewhere since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Bytes received.
    pub received: u64,
    /// Bytes sent to workers.
    pub sent: u64,
    /// Number of workers and connections that were rejected or sent invalid messages.
    pub refused: u64,
    /// Number of open connections.
    pub connections: u64,
}

/// Report of one call of the training loop.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CallMetrics {
    /// Number of environment steps in this call, over all environments and devices.
    pub env_steps: u64,
    /// Number of iterations of this call.
    pub iterations: u64,
    /// Named series with one value per iteration of this call (`loss`, `entropy`).
    pub per_iteration: Vec<(String, Vec<f32>)>,
    /// The last episodes: those in the latest iterations that together have 100.
    pub recent: FinishedEpisodes,
    /// Number of episodes completed in this call.
    pub episodes: u64,
    /// Named values of the whole call, such as the share of each thread's time by activity.
    pub per_call: Vec<(String, f64)>,
    /// Named counts of events in the call, such as restarts of environments.
    pub counts: Vec<(String, u64)>,
    /// Failed checks and prints of environment and agent.
    pub reports: Vec<Report>,
    /// The call's use of time, in short, for the progress bar.
    pub note: String,
}

impl CallMetrics {
    /// The first value of the agent's metrics that is NaN or infinite: the metric's name, and the
    /// number of the iteration in this call, from 1. Returns and lengths of episodes are NaN if no
    /// episode ended.
    #[must_use]
    pub fn not_finite(&self) -> Option<(&str, u64)> {
        let agent = self.per_iteration.iter().filter(|(name, _)| !name.starts_with("episode_"));
        let wrong = agent.filter_map(|(name, values)| {
            let index = values.iter().position(|value| !value.is_finite())?;
            Some((name.as_str(), index as u64 + 1))
        });
        wrong.min_by_key(|(_, iteration)| *iteration)
    }
}

/// Sums over episodes that ended.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FinishedEpisodes {
    /// Number of episodes.
    pub episodes: u64,
    /// Sum of their returns.
    pub return_sum: f64,
}

impl FinishedEpisodes {
    /// The mean of their returns, if there are any episodes.
    #[must_use]
    pub fn mean_return(&self) -> Option<f64> {
        (self.episodes > 0).then(|| self.return_sum / self.episodes as f64)
    }
}

impl Sum for FinishedEpisodes {
    fn sum<I: Iterator<Item = FinishedEpisodes>>(parts: I) -> FinishedEpisodes {
        parts.fold(FinishedEpisodes::default(), |sum, one| FinishedEpisodes {
            episodes: sum.episodes + one.episodes,
            return_sum: sum.return_sum + one.return_sum,
        })
    }
}
