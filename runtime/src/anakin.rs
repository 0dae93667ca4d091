//! Anakin: a function from state to state, looped on the device and replicated over devices, as one program.
//!
//! The host only dispatches. One call of [`AnakinProgram::run`] is one execution of one program,
//! which runs `iterations_per_call` iterations on every device, donates the state to itself and
//! returns metrics.

use std::ops::Deref;
use std::panic::resume_unwind;
use std::thread;
use std::time::{Duration, Instant};

use podracer_compiler::simplify::Options as Simplify;
use podracer_dsl::prelude::{
    ArgumentSpec, Key, Log, Path, Placed, Replicas, Spec, Tensor, TraceErrors, Traced, Tree,
    Warning, collect, pmean, scan, tree_map, u32 as u32_spec,
};
use podracer_dsl::{Report, trace_replicated};

use crate::needed::Needed;
use crate::program::{Lowered, Program, ProgramOptions, lower_with, quick};
use crate::tree::{Device, Host, Placement};
use crate::warnings;
use crate::{
    Array, Checkpoint, CheckpointError, Client, CompileOptions, ExecuteError, Processes,
    RuntimeError, Transfers,
};

/// Arguments of the loop's program.
type In<R, S> = (Placed<R, S>,);
/// Results of the loop's program: the state, and the metrics of its iterations.
type Out<R, S, M, E> = (Placed<R, S>, Placed<M, E>, Log);
/// Results of a call: the state on the devices, the metrics on the host.
type LoopCall<R, S, M, E> = (AnakinState<R, S>, LoopMetrics<M, E>);

/// The loop before it is compiled: two traced functions, and no device.
///
/// `R` and `S` are the replicated and the sharded part of the state, and `M` and `E` are the same
/// two parts of an iteration's metrics. `I` is the input that starts a run: the run's key, unless
/// the loop contains more than one run.
pub struct AnakinLoop<R: Tree, S: Tree, M: Tree, E: Tree, I: Tree = Tensor> {
    name: String,
    replicas: usize,
    init: Traced<(I,), Placed<R, S>>,
    run: Traced<In<R, S>, Out<R, S, M, E>>,
}

impl<R: Tree, S: Tree, M: Tree, E: Tree> AnakinLoop<R, S, M, E> {
    /// Traces the loop for a number of replicas.
    ///
    /// `init` makes the state of one replica from the run's key; `iterate` is one iteration of one
    /// replica. Both may use the axis [`Replicas`]. The replicated part of the state must be equal
    /// on all replicas. It is equal if everything that flows into it from the sharded part passes a
    /// collective. Metrics are stacked over the iterations of a call; the replicated metrics are
    /// averaged over the replicas, once a call.
    ///
    /// # Errors
    /// Every mistake in `init` and `iterate`, with the user's lines.
    #[track_caller]
    pub fn trace(
        name: &str,
        replicas: usize,
        iterations_per_call: usize,
        init: impl FnOnce(Key) -> Placed<R, S>,
        iterate: impl FnOnce(Placed<R, S>) -> (Placed<R, S>, Placed<M, E>),
    ) -> Result<Self, TraceErrors> {
        let init = |words| init(Key::from_words(words));
        Self::trace_from(name, replicas, iterations_per_call, u32_spec([2]), init, iterate)
    }
}

impl<R: Tree, S: Tree, M: Tree, E: Tree, I: Tree> AnakinLoop<R, S, M, E, I> {
    /// [`AnakinLoop::trace`] for a loop that starts from any input, which every replica has as a
    /// whole.
    ///
    /// # Errors
    /// As [`AnakinLoop::trace`].
    #[track_caller]
    pub fn trace_from<X: ArgumentSpec<Tree = I>>(
        name: &str,
        replicas: usize,
        iterations_per_call: usize,
        start: X,
        init: impl FnOnce(I) -> Placed<R, S>,
        iterate: impl FnOnce(Placed<R, S>) -> (Placed<R, S>, Placed<M, E>),
    ) -> Result<Self, TraceErrors> {
        let init = trace_replicated(replicas, (start,), |(start,)| init(start))?;
        let state: Spec<Placed<R, S>> = init.results().clone();
        let run = trace_replicated(replicas, (state,), |(state,)| {
            let ((state, metrics), log) =
                collect(|| scan(state, 0..iterations_per_call, |state, _| iterate(state)));
            let Placed { replicated, sharded } = metrics;
            let metrics = Placed { replicated: pmean(replicated, Replicas), sharded };
            // Each replica has its own log, so each leaf gets an axis of replicas.
            (state, metrics, tree_map(&log, |leaf| leaf.expand_dims(0)))
        })?;
        Ok(AnakinLoop {
            name: name.to_owned(),
            replicas,
            init: init.named("init"),
            run: run.named("main"),
        })
    }

    /// The function to the state at the start of a run, traced.
    #[must_use]
    pub fn traced_init(&self) -> &Traced<(I,), Placed<R, S>> {
        &self.init
    }

    /// The traced loop.
    #[must_use]
    pub fn traced(&self) -> &Traced<In<R, S>, Out<R, S, M, E>> {
        &self.run
    }

    /// Warnings of the programs: mistakes that do not stop them, with the user's lines.
    pub fn warnings(&self) -> impl Iterator<Item = &Warning> {
        let warnings = self.init.warnings().iter();
        warnings.chain(self.run.warnings().iter().filter(|one| !self.init.warnings().contains(one)))
    }

    /// The loop as StableHLO.
    ///
    /// # Errors
    /// [`RuntimeError::Lowering`].
    pub fn lower(&self) -> Result<Lowered, RuntimeError> {
        self.lower_with(&Simplify::default())
    }

    /// The loop as StableHLO, with these groups of simplifications.
    ///
    /// # Errors
    /// [`RuntimeError::Lowering`].
    pub fn lower_with(&self, simplify: &Simplify) -> Result<Lowered, RuntimeError> {
        lower_with(&self.name, &self.run, (self.replicas, Processes::ONE), simplify)
    }

    /// Least memory of the loop on `devices` devices: the state, and the results of its largest
    /// loop.
    fn needed(&self, devices: usize) -> Needed {
        let mut needed = Needed::default();
        for (path, ty) in self.init.results().leaves() {
            needed.add(format!("the state's `{path}`"), &ty, devices);
        }
        needed.add_largest_loop(self.run.func(), devices);
        needed
    }

    /// Compiles the loop for the client's first devices, one for each replica, with the default
    /// options and the user's cache. [`AnakinLoop::compile`] takes other options.
    ///
    /// # Errors
    /// As [`AnakinLoop::compile`].
    pub fn compile_on(
        &self,
        client: &Client,
    ) -> Result<AnakinProgram<R, S, M, E, I>, RuntimeError> {
        let compile = CompileOptions { replicas: self.replicas, ..CompileOptions::default() };
        self.compile(client, &ProgramOptions { compile, ..ProgramOptions::default() })
    }

    /// Compiles the loop for the devices that `options` name.
    ///
    /// # Errors
    /// As [`Program::compile`].
    pub fn compile(
        &self,
        client: &Client,
        options: &ProgramOptions,
    ) -> Result<AnakinProgram<R, S, M, E, I>, RuntimeError> {
        let placed = |replicated: usize, sharded: usize| {
            let mut placements = vec![Placement::Replicated; replicated];
            placements.resize(replicated + sharded, Placement::Sharded);
            placements
        };
        let (state, metrics, log) = &**self.run.results();
        let state_placements =
            placed(state.replicated.leaves().len(), state.sharded.leaves().len());
        let metric_placements =
            placed(metrics.replicated.leaves().len(), metrics.sharded.leaves().len());
        let log_placements = placed(0, log.leaves().len());
        let all = [&state_placements[..], &metric_placements, &log_placements].concat();
        let start = Instant::now();
        options.compile.placement(client.devices().len())?;
        self.needed(options.compile.replicas).check(client)?;
        self.warnings().for_each(warnings::tell);
        let passes = &options.simplify;
        let init_name = format!("{}_init", self.name);
        let replicas = (options.compile.members(), options.compile.processes);
        let init = lower_with(&init_name, &self.init, replicas, passes)?;
        let init_options = quick(options, &init, client.platform());
        let run = lower_with(&self.name, &self.run, replicas, passes)?;
        options.compile.agree(client, &[&init.module, &run.module])?;
        // XLA compiles each program mostly on one thread.
        let compile = |lowered: &Lowered, options: &ProgramOptions| {
            options.cache.compile(client, &lowered.module, &options.compile)
        };
        let (init, run) = thread::scope(|scope| {
            let init = scope.spawn(|| compile(&init, &init_options));
            let run = compile(&run, options);
            (init.join().unwrap_or_else(|panic| resume_unwind(panic)), run)
        });
        let (init, run) = (init?, run?);
        let compile_time = start.elapsed();
        Ok(AnakinProgram {
            init: Program::new(
                self.init.results().clone(),
                (state_placements, &options.compile),
                init,
                compile_time,
            ),
            run: Program::new(
                self.run.results().clone(),
                (all, &options.compile),
                run,
                compile_time,
            ),
            log: Spec::clone(log),
            replicas: self.replicas,
        })
    }
}

/// The compiled loop.
pub struct AnakinProgram<R: Tree, S: Tree, M: Tree, E: Tree, I: Tree = Tensor> {
    init: Program<(I,), Placed<R, S>>,
    run: Program<In<R, S>, Out<R, S, M, E>>,
    log: Spec<Log>,
    replicas: usize,
}

/// The name of the metric at this path of an agent's metrics: `metric` if it is the only metric and
/// has no path.
pub fn metric_name(path: &Path) -> String {
    path.or("metric")
}

/// The metrics of a call on the host, and the reports of its program.
#[derive(Clone, Debug)]
pub struct LoopMetrics<M: Tree, E: Tree> {
    metrics: Host<Placed<M, E>>,
    /// Failed checks ([`check`](podracer_dsl::check)) and prints ([`debug_print`](podracer_dsl::debug_print)), in the order of
    /// their lines. Places begin with the device, if there are several, and the iteration of the call.
    pub reports: Vec<Report>,
}

impl<M: Tree, E: Tree> Deref for LoopMetrics<M, E> {
    type Target = Host<Placed<M, E>>;

    fn deref(&self) -> &Self::Target {
        &self.metrics
    }
}

/// The state of a loop on its devices.
pub type AnakinState<R, S> = Device<Placed<R, S>>;

/// The error of a call that was not launched, with the call's state, unless XLA itself failed
/// half-way.
pub type RunError = ExecuteError;

impl<R: Tree, S: Tree, M: Tree, E: Tree> AnakinProgram<R, S, M, E> {
    /// The first state of a run: equal for equal seeds, devices and options.
    ///
    /// # Errors
    /// [`RuntimeError::Xla`].
    pub fn init(&self, seed: u64) -> Result<AnakinState<R, S>, RuntimeError> {
        self.begin(Array::key(seed))
    }
}

impl<R: Tree, S: Tree, M: Tree, E: Tree, I: Tree> AnakinProgram<R, S, M, E, I> {
    /// The first state of a run that starts from `start`. It waits until the state exists, so that
    /// its time is not part of the first call.
    ///
    /// # Errors
    /// [`RuntimeError::Xla`].
    pub fn begin(&self, start: impl Into<Host<I>>) -> Result<AnakinState<R, S>, RuntimeError> {
        let start = self.init.upload(start)?;
        let state = self.init.run((start,))?;
        let mut there = Ok(());
        state.visit(|_, leaf| {
            for buffer in leaf.buffers() {
                if let Err(error) = buffer.ready().and_then(|event| event.wait()) {
                    there = Err(error);
                }
            }
        });
        there.map(|()| state)
    }

    /// Restores the state with the arrays from [`Device::named_arrays`], from the part of a
    /// checkpoint. The following iterations are bit-identical to an uninterrupted run, given the
    /// same kind and number of devices and the same options.
    ///
    /// # Errors
    /// [`CheckpointError::Misfit`], [`CheckpointError::Runtime`].
    pub fn restore(
        &self,
        checkpoint: &Checkpoint<'_>,
        part: &str,
    ) -> Result<AnakinState<R, S>, CheckpointError> {
        self.init.restore(checkpoint, part)
    }

    /// Runs the iterations of one call: one dispatch on all devices. Waits for the metrics. A
    /// failed [`check`](podracer_dsl::check) is not an error: [`LoopMetrics::reports`] contains it.
    ///
    /// # Errors
    /// [`RuntimeError`] through [`ExecuteError`], which returns the state if nothing was launched.
    pub fn run(&self, state: AnakinState<R, S>) -> Result<LoopCall<R, S, M, E>, RunError> {
        let (state, metrics, log) = self.run.run((state,))?.split();
        let read = || {
            let mut reports = Log::read(&self.log, &log.to_host()?.into_leaves());
            if self.replicas == 1 {
                for report in &mut reports {
                    report.at.remove(0);
                }
            }
            Ok(LoopMetrics { metrics: metrics.to_host()?, reports })
        };
        let metrics =
            read().map_err(|error| ExecuteError { error: Box::new(error), donated: Vec::new() })?;
        Ok((state, metrics))
    }

    /// Transfers between host and devices by the loop: only the metrics.
    #[must_use]
    pub fn transfers(&self) -> &Transfers {
        self.run.transfers()
    }

    /// The loop's program.
    #[must_use]
    pub fn program(&self) -> &Program<In<R, S>, Out<R, S, M, E>> {
        &self.run
    }

    /// Time from the traced functions to both executables, which are compiled concurrently.
    #[must_use]
    pub fn compile_time(&self) -> Duration {
        self.run.compile_time()
    }
}
