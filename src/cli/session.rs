//! The part that `train` and `resume` share: a training from its first or next call to its end.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use anyhow::{Context, Result, anyhow, ensure};
use podracer_runtime::{Checkpoint, Found};
use serde::{Deserialize, Serialize};

use super::evaluations::Episodes;
use super::exporter::Exporter;
use super::progress::Progress;
use super::ready::{Ready, Serving};
use super::summary::summary;
use super::together::{self, Facts, Order};
use super::totals::RunTotals;
use super::{Console, INTERRUPTED, Program, calls, program_name, signals};
use crate::axis::Point;
use crate::loading::Overrides;
use crate::parameters::{not_finite, sha256};
use crate::run_directory::{Counters, MessageKind, Recorded, RunDirectory, RunProgress};
use crate::settings::{OnNan, Settings, TrainSettings};
use crate::training::{CallMetrics, Run};

/// An existing run: its training, and its last checkpoint that is not damaged.
pub(super) struct Reopened {
    pub(super) ready: Ready,
    pub(super) found: Found,
    pub(super) progress: RunProgress,
    /// A sentence for the user: devices and versions that differ from the checkpoint's.
    pub(super) warning: Option<String>,
}

impl Reopened {
    /// Reads the run directory `run` and the checkpoint that `find` picks, and warns of damaged ones, which are passed over.
    pub(super) fn open(
        run: &Path,
        find: impl Fn(&Settings) -> Result<Found>,
        overrides: &Overrides,
        console: &mut Console<'_>,
        program: Program<'_>,
    ) -> Result<Self> {
        let settings = RunDirectory::settings(run, overrides, program.registry)?;
        let found = find(&settings)?;
        for skipped in &found.skipped {
            console.warn(&format!("{skipped}; the one before it is taken"));
        }
        let ready = Ready::new(settings, console, program)?;
        let (progress, warning) = ready.goes_on_from(&found, program.registry)?;
        Ok(Reopened { ready, found, progress, warning })
    }

    /// Facts that all processes which go on with the run must have alike.
    pub(super) fn facts(&self) -> Result<Facts> {
        let checkpoint = ("the checkpoint".to_owned(), self.found.path.display().to_string());
        Ok([together::facts(&self.ready)?, vec![checkpoint]].concat())
    }
}

/// The result of a training: `result.json`, which `--json` prints. Times and speeds are the last process's; all else is the
/// whole training's.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Outcome {
    pub(super) experiment: String,
    pub(super) platform: String,
    pub(super) devices: usize,
    /// Processes that trained together, each on so many devices, where there were several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) processes: Option<usize>,
    /// Runs of the program, which took its seconds together, where there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) together: Option<usize>,
    pub(super) seed: u64,
    /// The iteration from which the last process went on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) resumed_from_iteration: Option<u64>,
    pub(super) env_steps: u64,
    pub(super) iterations: u64,
    pub(super) calls: u64,
    pub(super) episodes: u64,
    pub(super) compile_seconds: f64,
    /// Seconds of all calls, with the recording between them, without evaluations.
    pub(super) run_seconds: f64,
    /// Seconds of the calls of the whole training, in all of its processes.
    pub(super) total_seconds: f64,
    /// Seconds from the start of the process to the end of the first call.
    pub(super) first_call_seconds: Option<f64>,
    /// Speed in environment steps per second, without the first call if there is another.
    pub(super) env_steps_per_second: Option<f64>,
    /// Mean return of the last completed episodes of the training, 100 or more once there are as many.
    pub(super) mean_return: Option<f64>,
    pub(super) mean_return_episodes: u64,
    pub(super) evaluation: BTreeMap<String, f64>,
    /// Seconds of each thread by activity.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) seconds_of_threads: BTreeMap<String, f64>,
    /// Restarts of environments after a fault, in the last process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) environment_restarts: Option<usize>,
    pub(super) params_sha256: String,
    pub(super) interrupted: bool,
    pub(super) run_dir: String,
}

/// A training that begins or goes on.
pub(super) struct Session {
    pub(super) ready: Ready,
    pub(super) directory: RunDirectory,
    /// Sums over the calls so far.
    pub(super) counters: Counters,
    pub(super) points: Vec<Point>,
    pub(super) from: Option<Checkpoint<'static>>,
    pub(super) json: bool,
    /// Time at which the process began.
    pub(super) started: Instant,
    /// True once the user was told of numbers that are not finite.
    pub(super) warned_of_nan: bool,
    /// The listener that gives metrics to Prometheus.
    pub(super) exporter: Option<Exporter>,
    /// Workers elsewhere, with which the run starts.
    pub(super) serving: Option<Serving>,
}

impl Session {
    /// A training that begins.
    pub(super) fn beginning(ready: Ready, directory: RunDirectory, started: Instant) -> Self {
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

    /// Keeps the message that the run begins or goes on.
    pub(super) fn tell_beginning(&self, console: &mut Console<'_>) {
        let begins = match &self.from {
            None => "begins".to_owned(),
            Some(checkpoint) => format!("goes on after {} iterations", checkpoint.iterations),
        };
        let Recorded { podracer, host, .. } = &self.ready.recorded;
        console.keep(MessageKind::Run, &format!("{begins} on {host}, podracer {podracer}"));
    }

    /// Trains to the end, or until `interrupt` is set. Returns the exit code.
    pub(super) fn run(mut self, console: &mut Console<'_>, interrupt: &AtomicBool) -> Result<u8> {
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
        signals::leaves(self.directory.way_back());
        // The server of workers elsewhere is there as long as the run.
        let (elsewhere, mut completes) = self.serving.take().map(Serving::parts).unzip();
        // What it was read from takes memory that the run may need.
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
        // Between the last call's end and here nothing is measured any more: the rest may take its time.
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

    /// The rest after a call that is recorded: the words of its programs, an evaluation, a look for numbers that are not finite, a
    /// checkpoint. `before` are the iterations before it.
    pub(super) fn after_call(
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
    pub(super) fn conclude(
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
                "stopped after {} of {} calls; the parameters and the result are in {run}, and `{program} resume {run}` goes on",
                counters.calls,
                plan.calls,
                program = program_name(),
                run = outcome.run_dir
            ));
        }
        Ok(outcome)
    }

    /// True if all parameters are finite. Otherwise the run ends or goes on with a warning, which says so only once; `place`
    /// comes first in both.
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
            "{place}: {problem}, and the run ends ({}); {}with `--set train.on_nan=\"warn\"` the run would go on",
            self.directory.way_back(),
            explained()
        );
        if !self.warned_of_nan {
            console.warn(&format!("{}, {place}: {problem}", self.directory.path().display()));
            self.warned_of_nan = true;
        }
        Ok(false)
    }

    /// Prints what the programs of a call said. A failed check ends the run; where parameters are not finite it follows from that, and
    /// `train.on_nan` decides.
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
            together::same_parameters(world, run)?;
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
