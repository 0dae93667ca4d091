//! The traits between the commands and the training loops: [`Training`] with its parts, and [`Run`].
//!
//! An experiment whose settings are fixed is a [`Training`]; one that is compiled and has its state on the devices is a [`Run`].
//! The commands know nothing of agents and environments, and implementations of these traits know nothing of files, progress bars
//! and exit codes.

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

/// A stage of a program's way from the user's source to XLA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The IR, as traced.
    Trace,
    /// The IR, as traced, for people.
    Readable,
    /// The IR after all passes.
    Simplified,
    /// The StableHLO module that XLA is given.
    StableHlo,
}

/// An experiment with all settings fixed: traced on demand, not yet compiled.
pub trait Training: Programs {
    /// Compiles the loop and puts its state on the devices: that of a checkpoint, or the initial one.
    ///
    /// # Errors
    /// The mistakes of the trace, errors of XLA, and a checkpoint that does not fit.
    fn start(&self, start: Start<'_>) -> Result<Box<dyn Run>>;

    /// Several processes can train together, each on its own devices.
    ///
    /// # Errors
    /// Why they cannot, and what to do, as a sentence.
    fn spans_processes(&self) -> Result<(), String> {
        Err("its loop is trained by one process".to_owned())
    }

    /// Episodes played by the training's agent, beside its loop.
    ///
    /// # Errors
    /// Why there are none, and what to do, as a sentence.
    fn plays(&self) -> Result<&dyn Plays, String>;

    /// The iterations of a run once more.
    ///
    /// # Errors
    /// Why they cannot be made again, and what to do, as a sentence.
    fn repeats(&self) -> Result<&dyn Repeats, String>;

    /// The training with many seeds as one program; `None` for a loop that is more than one.
    fn populates(&self) -> Option<&dyn Populates> {
        None
    }

    /// The training with workers elsewhere; `None` for a loop that infers for nobody.
    fn serves(&self) -> Option<&dyn Serves> {
        None
    }
}

/// The programs of a training.
pub trait Programs {
    /// The text of the training loop for `replicas` devices.
    ///
    /// # Errors
    /// The mistakes of the trace, with the user's lines.
    fn emit(&self, stage: Stage, replicas: usize) -> Result<String>;

    /// The compiled programs of the training loop for `replicas` devices: one for `[anakin]`, several for `[sebulba]`.
    ///
    /// # Errors
    /// As [`Programs::emit`].
    fn modules(&self, replicas: usize) -> Result<Vec<LoopModule>>;

    /// The programs to run elsewhere, each for one device: `init` and what trains, `act` and `act_greedily`, which take one
    /// observation or a batch of so many.
    ///
    /// # Errors
    /// As [`Programs::emit`].
    fn programs(&self, batch: Option<usize>) -> Result<Vec<Portable>>;

    /// The XLA options for these programs by podracer's rule, before the user's settings (`[xla]`) change or extend them. `platform`
    /// is `cpu`, `cuda` or `tpu`.
    fn xla_options(&self, platform: &str) -> Vec<(String, OptionValue)>;

    /// The number of products in the training loop as one program for one device, and the multiplications of all of them, each counted
    /// once; `None` for a loop of several programs.
    ///
    /// # Errors
    /// As [`Programs::emit`].
    fn products(&self) -> Result<Option<(usize, usize)>> {
        Ok(None)
    }
}

/// Episodes played by a training's agent, beside its loop.
pub trait Plays {
    /// The agent that plays, as the loop trains it.
    fn agent(&self) -> &AnyAgent;

    /// Environments of the training's kind for so many episodes at once, at most, on a device by its index.
    ///
    /// # Errors
    /// Errors of environments and runtime.
    fn environments(
        &self,
        device: (&Client, usize),
        episodes: usize,
    ) -> Result<Box<dyn HostEnvironment>>;

    /// Compiles what plays episodes in these environments, which have the training's spaces, with the networks of a checkpoint, on a
    /// device by its index.
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

/// A training whose iterations can be made again, to the bit.
pub trait Repeats {
    /// Makes the iterations after a state one by one, finds the first that makes the symptom, and evaluates it by the reference
    /// semantics from the state before it. `None` if there is no such iteration, or `evaluate` gave nothing.
    ///
    /// # Errors
    /// As [`Training::start`].
    fn explain(&self, suspect: &Suspect, evaluate: &mut Evaluate) -> Result<Option<Explanation>>;
}

/// A training of which many runs can be one program.
pub trait Populates {
    /// Checks that runs of one program may differ in these settings.
    ///
    /// # Errors
    /// A setting that is no number which a program takes as data.
    fn check(&self, columns: &[Column]) -> Result<()>;

    /// [`Training::start`] of a run for each seed, from the initial state. They advance together: after a call of one, each of the
    /// others makes one. The devices share out the runs, which differ in the settings of `columns`. With `exploit` the worst take over
    /// from the best, and these settings change: they are values of each call.
    ///
    /// # Errors
    /// As [`Training::start`], and a number of seeds that does not divide over the devices.
    fn populate(
        &self,
        start: Start<'_>,
        seeds: &[u64],
        columns: &[Column],
        exploit: Option<&Exploit>,
    ) -> Result<Vec<Box<dyn Run>>>;
}

/// A setting in which runs of one program differ.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// The setting, such as `agent.learning_rate`.
    pub key: String,
    /// Its value in each run.
    pub values: Vec<f64>,
}

/// A training that can infer for workers elsewhere.
pub trait Serves {
    /// The lanes of a device that acts, with their spaces, and the number of such devices.
    fn lanes(&self) -> (HostSpec, usize);

    /// [`Training::start`] with workers elsewhere in place of those in this process.
    ///
    /// # Errors
    /// As [`Training::start`].
    fn serve(&self, start: Start<'_>, elsewhere: Elsewhere) -> Result<Box<dyn Run>>;
}

/// The devices that a run begins on, and the state that it begins with.
#[derive(Clone, Copy)]
pub struct Start<'a> {
    /// The client of the devices.
    pub client: &'a Client,
    /// Indices of the run's devices in [`Client::devices`], all different.
    pub devices: &'a [usize],
    /// XLA's options, the user's settings included.
    pub xla: &'a [(String, OptionValue)],
    /// The run's seed.
    pub seed: u64,
    /// The run's folder, for data that is larger than memory.
    pub folder: &'a Path,
    /// The state to go on from; `None` for the initial one.
    pub from: Option<&'a Checkpoint<'a>>,
}

/// Workers in other processes.
pub struct Elsewhere {
    /// The workers of each inference device.
    pub workers: Vec<Box<dyn Workers>>,
    /// A reading of what crosses the network for them.
    pub traffic: Box<dyn Fn() -> Traffic>,
}

/// Where to look for numbers that are not finite: the iterations after a state.
pub struct Suspect<'a> {
    /// The state before, and the devices, one of which serves.
    pub start: Start<'a>,
    /// The symptom to explain.
    pub symptom: &'a Symptom,
    /// Number of iterations, at most, in which it is looked for.
    pub iterations: u64,
}

/// Kind of number that is not finite in a training that went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Symptom {
    /// A metric of the agent, or a parameter.
    Training,
    /// A leaf of the state, by its name in checkpoints.
    State(String),
}

/// Evaluates a function by the reference semantics; `None` if the user does not want to wait. The number is that of the
/// iteration, from 1.
pub type Evaluate<'a> = dyn FnMut(u64, &Func, &[Array]) -> Option<Watched> + 'a;

/// The first iteration that made a number which is not finite, and where it came from.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// Number of the iteration, from 1.
    pub iteration: u64,
    /// The name of what is not finite after it: a metric, parameters, or a leaf of the state.
    pub symptom: String,
    /// Where it came from.
    pub cause: Cause,
}

/// Where a number that is not finite came from.
#[derive(Clone, Debug, PartialEq)]
pub enum Cause {
    /// An equation of the iteration made it.
    Equation(NotFinite),
    /// The state before the iteration had it, in the leaf of this name in checkpoints.
    State(String),
    /// The trajectories that were learnt from had it, in the leaf of this path.
    Trajectory(String),
    /// The reference semantics give finite numbers.
    Device,
}

/// Plays the same episodes with the networks of any checkpoint of a training.
pub trait Evaluator {
    /// Plays until `interrupt` is set; what has ended by then is given. Nothing of the training changes.
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
    /// Devices that one execution runs on.
    pub replicas: usize,
    /// Threads that run the program on the same device, each with memory of its own.
    pub threads: usize,
    /// Most bytes on each of its devices that wait for the program: rollouts in the queue.
    pub waiting_bytes: usize,
    /// StableHLO and the types of its arguments and results.
    pub module: Module,
}

/// A training with its state on the devices.
pub trait Run {
    /// Seconds from the beginning of the trace to the loaded executable, which may come from the cache.
    fn compile_seconds(&self) -> f64;

    /// Runs of the same program, which take its seconds together: 1, or the members of a population.
    fn together(&self) -> usize {
        1
    }

    /// Makes one call of the compiled loop, and waits for it. The first call does what every call does: compiling and
    /// initialising are over when [`Training::start`] returns.
    ///
    /// # Errors
    /// Errors of the runtime. The run is over then.
    fn advance(&mut self) -> Result<CallMetrics>;

    /// [`Run::advance`], which may do fewer iterations, or none, where `interrupt` is set while the run waits for what only somebody
    /// outside can do.
    ///
    /// # Errors
    /// As [`Run::advance`].
    fn advance_until(&mut self, interrupt: &AtomicBool) -> Result<CallMetrics> {
        let _ = interrupt;
        self.advance()
    }

    /// The state after the calls so far: all that the next iterations depend on. The caller adds `about`.
    ///
    /// # Errors
    /// Errors of the runtime.
    fn checkpoint(&mut self) -> Result<Checkpoint<'_>>;

    /// The part of a checkpoint with the agent's store: what the names of its arrays begin with.
    fn store(&self) -> &'static str;

    /// Part of the state that was lost since the checkpoint that the run was restored from, as a sentence for the user; `None`
    /// if nothing was.
    fn caveat(&self) -> Option<String> {
        None
    }

    /// The parameters, once (not once per device), by key path (`policy.layers[0].weight`).
    ///
    /// # Errors
    /// Errors of the runtime.
    fn parameters(&self) -> Result<Vec<(String, Array)>>;

    /// A reading of the run's state for other threads, also while a call is under way: names of metrics, and values. `None` for a loop
    /// that is one program.
    fn live(&self) -> Option<Live> {
        None
    }

    /// Seconds so far, by thread and activity; empty for a loop that is one program.
    fn times(&self) -> Vec<(String, f64)> {
        Vec::new()
    }

    /// Restarts of environments after a fault; `None` where environments are a part of the program.
    fn restarts(&self) -> Option<usize> {
        None
    }

    /// Measures what the experiment's own test of success asks for, after the last call (a greedy policy's return, say): names and
    /// values, which end up in the result under `evaluation`. Nothing by default.
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
    /// Workers and connections that were refused or sent nonsense.
    pub refused: u64,
    /// Connections that are open now.
    pub connections: u64,
}

/// Report of one call of the training loop.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CallMetrics {
    /// Environment steps in this call, over all environments and devices.
    pub env_steps: u64,
    /// Iterations of this call.
    pub iterations: u64,
    /// Named series with one value per iteration of this call (`loss`, `entropy`).
    pub per_iteration: Vec<(String, Vec<f32>)>,
    /// The last episodes: those of the latest iterations that have 100 between them.
    pub recent: Ended,
    /// Episodes completed in this call.
    pub episodes: u64,
    /// Named values of the whole call, such as the share of each thread's time by activity.
    pub per_call: Vec<(String, f64)>,
    /// Named counts of what happened in the call, such as restarts of environments.
    pub counts: Vec<(String, u64)>,
    /// Failed checks and prints of environment and agent.
    pub reports: Vec<Report>,
    /// The call's use of time, in a few words for the progress bar.
    pub note: String,
}

impl CallMetrics {
    /// The first value of the agent's metrics that is NaN or infinite: the metric's name, and the number of the iteration in
    /// this call, from 1. Returns and lengths of episodes are NaN where no episode ended.
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
pub struct Ended {
    /// Number of episodes.
    pub episodes: u64,
    /// Sum of their returns.
    pub return_sum: f64,
}

impl Ended {
    /// The mean of their returns, where there are any.
    #[must_use]
    pub fn mean_return(&self) -> Option<f64> {
        (self.episodes > 0).then(|| self.return_sum / self.episodes as f64)
    }
}

impl Sum for Ended {
    fn sum<I: Iterator<Item = Ended>>(parts: I) -> Ended {
        parts.fold(Ended::default(), |sum, one| Ended {
            episodes: sum.episodes + one.episodes,
            return_sum: sum.return_sum + one.return_sum,
        })
    }
}
