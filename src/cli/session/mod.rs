//! A training from its first or next call to its end, shared by `train` and `resume`.

mod calls;
pub(super) mod evaluations;
#[cfg_attr(not(feature = "prometheus"), path = "no_exporter.rs")]
pub(super) mod exporter;
pub(super) mod follow;
pub(super) mod outcome;
pub(super) mod progress;
pub(super) mod ready;
mod recorder;
mod summary;
pub(super) mod totals;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use anyhow::{Context, Result, anyhow, ensure};
use podracer_runtime::{Checkpoint, Found};

use crate::axis::Point;
use crate::cli::console::Console;
use crate::cli::order::Order;
use crate::cli::program::{INTERRUPTED, Program};
use crate::cli::signals;
use crate::cli::together::Facts;
use crate::loading::Overrides;
use crate::parameters::{not_finite, sha256};
use crate::program_name::program_name;
use crate::run_directory::{Counters, MessageKind, Recorded, RunDirectory, RunProgress};
use crate::settings::{OnNan, Settings, TrainSettings};
use crate::training::{CallMetrics, Run};

use evaluations::Episodes;
use exporter::Exporter;
use follow::same_parameters;
use outcome::Outcome;
use progress::Progress;
use ready::{Ready, Serving};
use summary::summary;
use totals::RunTotals;

/// An existing run: its training, and its last undamaged checkpoint.
pub(crate) struct Reopened {
    pub(crate) ready: Ready,
    pub(crate) found: Found,
    pub(crate) progress: RunProgress,
    /// A sentence for the user: devices and versions that differ from the checkpoint's.
    pub(crate) warning: Option<String>,
}

impl Reopened {
    /// Reads the run directory `run` and the checkpoint that `find` picks. Damaged checkpoints are
    /// skipped with a warning.
    pub(crate) fn open(
        run: &Path,
        find: impl Fn(&Settings) -> Result<Found>,
        overrides: &Overrides,
        console: &mut Console<'_>,
        program: Program<'_>,
    ) -> Result<Self> {
        let settings = RunDirectory::settings(run, overrides, program.registry)?;
        let found = find(&settings)?;
        for skipped in &found.skipped {
            console.warn(&format!("{skipped}; the checkpoint before it is taken"));
        }
        let ready = Ready::new(settings, console, program)?;
        let (progress, warning) = ready.goes_on_from(&found, program.registry)?;
        Ok(Reopened { ready, found, progress, warning })
    }

    /// Facts that must be equal in all processes that resume the run.
    pub(crate) fn facts(&self) -> Result<Facts> {
        let checkpoint = ("the checkpoint".to_owned(), self.found.path.display().to_string());
        Ok([follow::facts(&self.ready)?, vec![checkpoint]].concat())
    }
}

/// A training that begins or resumes.
pub(crate) struct Session {
    pub(crate) ready: Ready,
    pub(crate) directory: RunDirectory,
    /// Sums over the calls so far.
    pub(crate) counters: Counters,
    pub(crate) points: Vec<Point>,
    pub(crate) from: Option<Checkpoint<'static>>,
    pub(crate) json: bool,
    /// Start time of the process.
    pub(crate) started: Instant,
    /// True after the user was warned about numbers that are not finite.
    pub(crate) warned_of_nan: bool,
    /// The listener that serves metrics to Prometheus.
    pub(crate) exporter: Option<Exporter>,
    /// Workers elsewhere, for the start of the run.
    pub(crate) serving: Option<Serving>,
}

impl Session {
    /// A training that begins.
    pub(crate) fn beginning(ready: Ready, directory: RunDirectory, started: Instant) -> Self {
        Session {
            ready,
            directory,
            counters: Counters::default(),
            points: Vec::new(),
            from: None,
            json: false,
            started,
            warned_of_nan: false,
            exporter: None,
            serving: None,
        }
    }

    /// Records the message that the run begins or resumes.
    pub(crate) fn tell_beginning(&self, console: &mut Console<'_>) {
        let begins = match &self.from {
            None => "begins".to_owned(),
            Some(checkpoint) => format!("resumes after {} iterations", checkpoint.iterations),
        };
        let Recorded { podracer, host, .. } = &self.ready.recorded;
        console.keep(MessageKind::Run, &format!("{begins} on {host}, podracer {podracer}"));
    }

    /// Trains to the end, or until `interrupt` is set. Returns the exit code.
    pub(crate) fn run(mut self, console: &mut Console<'_>, interrupt: &AtomicBool) -> Result<u8> {
        signals::leaves(self.directory.way_back());
        console.keep_in(self.directory.folder());
        let settings = &self.ready.settings;
        let plan = settings.plan();
        let total = plan.steps(settings.training_loop.iterations_per_call());
        if let Some(rounding) = settings.rounding() {
            console.say(&rounding);
        }
        let resumed = self.from.as_ref().map(|checkpoint| checkpoint.iterations);
        self.tell_beginning(console);
        let mut progress = Progress::new(console, total);
        // The server for workers elsewhere exists as long as the run.
        let (elsewhere, mut completes) = self.serving.take().map(Serving::parts).unzip();
        // The checkpoint in memory takes memory that the run may need.
        let from = self.from.take();
        let mut run = self.ready.run(self.directory.path(), from.as_ref(), elsewhere)?;
        drop(from);
        let mut episodes = Episodes::compile(&self.ready)?;
        if let (Some(exporter), Some(live)) = (&self.exporter, run.live()) {
            exporter.follow(live)?;
        }
        let _heeding = signals::heed();
        progress.compiled(console, run.compile_seconds());
        if let Some(caveat) = run.caveat() {
            console.warn(&caveat);
        }
        if resumed.is_some() {
            self.check_finite(&*run, "in the checkpoint", console)?;
        }
        if resumed.is_some() && self.counters.calls >= plan.calls {
            console.say("all that was asked for is done; --steps asks for more");
        }
        let points = std::mem::take(&mut self.points);
        let mut totals = RunTotals::new(self.started, self.counters, points);
        let mut warned_of_length = false;
        while totals.counters.calls < plan.calls && !interrupt.load(Ordering::Relaxed) {
            let before = totals.counters.iterations;
            self.ready.tell(Order::Advance)?;
            let call = totals.call(&mut *run, &mut self.directory, interrupt)?;
            if call.iterations == 0 {
                break;
            }
            if let Some(exporter) = &self.exporter {
                exporter.call(&call, &totals);
            }
            let long = calls::long_call(&self.ready.settings, totals.call_seconds);
            if let Some(warning) = long.filter(|_| !warned_of_length) {
                console.warn(&warning);
                warned_of_length = true;
            }
            let at = (before, &mut totals);
            self.after_call(&mut *run, &call, at, &mut episodes, (console, interrupt))?;
            progress.advance(
                console,
                totals.counters.env_steps,
                totals.speed_now,
                totals.counters.mean_return,
                &totals.note,
            );
        }
        progress.finish();
        if totals.counters.calls >= plan.calls
            && let Some(complete) = completes.take()
        {
            complete();
        }
        // After the last call's end nothing is measured any more, so the rest may take its time.
        let times = run.times();
        let json = self.json;
        let outcome = self.conclude(&mut *run, &totals, times, resumed, console)?;
        console.print(&if json {
            serde_json::to_string(&outcome)? + "\n"
        } else {
            summary(&outcome, &totals.points)
        })?;
        Ok(if outcome.interrupted { INTERRUPTED } else { 0 })
    }

    /// The work after a call that is recorded: prints of its programs, an evaluation, a check for
    /// numbers that are not finite, a checkpoint. `before` is the number of iterations before it.
    pub(crate) fn after_call(
        &mut self,
        run: &mut dyn Run,
        call: &CallMetrics,
        (before, totals): (u64, &mut RunTotals),
        episodes: &mut Episodes,
        (console, interrupt): (&mut Console<'_>, &AtomicBool),
    ) -> Result<()> {
        self.tell(run, call, before, console)?;
        let to = (&self.ready, &mut self.directory);
        episodes.after_call(before, run, totals, to, interrupt)?;
        let heeded = self.ready.settings.train.on_nan != OnNan::Ignore;
        let not_finite = call.not_finite().filter(|_| heeded && !self.warned_of_nan);
        if let Some((metric, iteration)) = not_finite {
            let symptom = format!("{metric} is not finite in iteration {}", before + iteration);
            if self.check_finite(run, &symptom, console)? {
                console.warn(&format!("{symptom}, and the parameters are finite"));
            }
            self.warned_of_nan = true;
        }
        let TrainSettings { checkpoint_every, store_every, .. } = self.ready.settings.train;
        let due = |every: Option<u64>, since| {
            every.is_some_and(|every| totals.counters.iterations - since >= every)
        };
        let store = due(store_every, self.directory.resumable().unwrap_or(0));
        if store || due(checkpoint_every, self.directory.checkpointed()) {
            self.checkpoint(run, totals.counters, store || store_every.is_none(), console)?;
        }
        Ok(())
    }

    /// Writes the last checkpoint and the result.
    pub(crate) fn conclude(
        mut self,
        run: &mut dyn Run,
        totals: &RunTotals,
        times: Vec<(String, f64)>,
        resumed: Option<u64>,
        console: &mut Console<'_>,
    ) -> Result<Outcome> {
        if self.directory.resumable() != Some(totals.counters.iterations) {
            self.checkpoint(run, totals.counters, true, console)?;
        }
        let plan = self.ready.settings.plan();
        let interrupted = totals.counters.calls < plan.calls;
        let mut evaluation = if interrupted { Vec::new() } else { run.evaluate()? };
        evaluation.extend(totals.counters.evaluations());
        let parameters = run.parameters().context("cannot read the parameters back")?;
        let Session { ready, directory, .. } = self;
        directory.write_parameters(&parameters)?;
        let counters = totals.counters;
        let episodes = counters.mean_return_episodes;
        directory.write_curve(&ready.settings, &totals.points, episodes)?;
        let outcome = Outcome {
            experiment: ready.settings.experiment.clone(),
            platform: ready.recorded.platform.clone(),
            devices: ready.devices.len(),
            processes: ready.settings.train.processes,
            seed: ready.settings.train.seed,
            resumed_from_iteration: resumed,
            env_steps: counters.env_steps,
            iterations: counters.iterations,
            calls: counters.calls,
            episodes: counters.episodes,
            compile_seconds: run.compile_seconds(),
            run_seconds: totals.seconds(),
            total_seconds: counters.seconds,
            first_call_seconds: totals.first.map(|first| first.seconds_since_start),
            env_steps_per_second: totals.steady_speed(),
            mean_return: counters.mean_return,
            mean_return_episodes: counters.mean_return_episodes,
            evaluation: evaluation.into_iter().collect(),
            seconds_of_threads: times.into_iter().collect(),
            environment_restarts: run.restarts(),
            together: Some(run.together()).filter(|&runs| runs > 1),
            params_sha256: sha256(&parameters),
            interrupted,
            run_dir: directory.path().display().to_string(),
        };
        let ends = if interrupted { "is stopped" } else { "is done" };
        console.keep(MessageKind::Run, &format!("{ends} after {} iterations", outcome.iterations));
        directory.write_result(&outcome)?;
        ready.tell(Order::End { done: !interrupted })?;
        if interrupted {
            console.say(&format!(
                "stopped after {} of {} calls; the parameters and the result are in {run}, and `{program} resume {run}` continues",
                counters.calls,
                plan.calls,
                program = program_name(),
                run = outcome.run_dir
            ));
        }
        Ok(outcome)
    }

    /// True if all parameters are finite. Otherwise the run ends, or continues with a warning that
    /// is printed only once; `place` comes first in both messages.
    fn check_finite(
        &mut self,
        run: &dyn Run,
        place: &str,
        console: &mut Console<'_>,
    ) -> Result<bool> {
        let on_nan = self.ready.settings.train.on_nan;
        if on_nan == OnNan::Ignore {
            return Ok(true);
        }
        let Some(problem) = not_finite(&run.parameters()?) else { return Ok(true) };
        let explained = || match self.ready.training.repeats() {
            Ok(_) => format!(
                "`{} explain {}` finds the line that made the first of them; ",
                program_name(),
                self.directory.path().display()
            ),
            Err(_) => String::new(),
        };
        ensure!(
            on_nan == OnNan::Warn,
            "{place}: {problem}, and the run ends ({}); {}with `--set train.on_nan=\"warn\"` the run would continue",
            self.directory.way_back(),
            explained()
        );
        if !self.warned_of_nan {
            console.warn(&format!("{}, {place}: {problem}", self.directory.path().display()));
            self.warned_of_nan = true;
        }
        Ok(false)
    }

    /// Prints the output of a call's programs. A failed check ends the run. If parameters are not
    /// finite, the failed check follows from that, and `train.on_nan` decides.
    fn tell(
        &mut self,
        run: &dyn Run,
        call: &CallMetrics,
        before: u64,
        console: &mut Console<'_>,
    ) -> Result<()> {
        let (failed, printed): (Vec<_>, Vec<_>) =
            call.reports.iter().partition(|report| report.is_check);
        calls::show(&printed, console);
        if failed.is_empty() {
            return Ok(());
        }
        let place = format!("in the {} iterations after {before}", call.iterations);
        if not_finite(&run.parameters()?).is_some() {
            self.check_finite(run, &place, console)?;
            return Ok(());
        }
        let failed: Vec<String> = failed.iter().map(ToString::to_string).collect();
        Err(anyhow!(failed.join("\n")))
            .with_context(|| format!("the run ends {place} ({})", self.directory.way_back()))
    }

    /// Writes a checkpoint, with or without the agent's store.
    fn checkpoint(
        &mut self,
        run: &mut dyn Run,
        counters: Counters,
        store: bool,
        console: &mut Console<'_>,
    ) -> Result<()> {
        self.check_finite(run, &format!("after iteration {}", counters.iterations), console)?;
        let Ready { settings, recorded, .. } = &self.ready;
        let directory = &mut self.directory;
        self.ready.tell(Order::Save { store })?;
        if let Some(world) = self.ready.client.world() {
            same_parameters(world, run)?;
        }
        let store_part = run.store();
        let written = run.checkpoint().and_then(|mut checkpoint| {
            if !store {
                checkpoint.leave_out(store_part);
            }
            directory.write_checkpoint(checkpoint, settings, recorded, counters)
        });
        written.with_context(|| {
            let iterations = counters.iterations;
            format!("no checkpoint after {iterations} iterations; {}", directory.way_back())
        })?;
        signals::leaves(directory.way_back());
        Ok(())
    }
}
