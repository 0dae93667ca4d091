//! Several runs as one program on all devices, or as one program for each part of them that fits
//! into memory.

use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use anyhow::{Context, Result};
use podracer_runtime::RuntimeError;

use super::{Failed, Several, Together, Trained};
use crate::cli::console::Console;
use crate::cli::session::Session;
use crate::cli::session::evaluations::Episodes;
use crate::cli::session::outcome::Outcome;
use crate::cli::session::progress::Progress;
use crate::cli::session::ready::Ready;
use crate::cli::session::totals::RunTotals;
use crate::cli::signals;
use crate::format::plural;
use crate::program_name::program_name;
use crate::run_directory::{Counters, RunDirectory};
use crate::settings::{Plan, Settings};
use crate::statistics::mean;
use crate::training::{Column, Populates, Run};

/// Trains the runs at these indices, which differ in the settings of the columns, into the folder.
pub(crate) fn train(
    several: &Several<'_>,
    (ready, columns, own, folder): (&Ready, Vec<Column>, Range<usize>, &Path),
    started: Instant,
    (console, interrupt): (&mut Console<'_>, &AtomicBool),
) -> Result<Trained> {
    let settings = &several.runs[own.start].settings;
    if let Some(rounding) = settings.rounding() {
        console.say(&rounding);
    }
    let plan = settings.plan();
    let steps = plan.steps(settings.training_loop.iterations_per_call());
    let mut one = OneProgram {
        episodes: Episodes::compile(ready)?,
        progress: Progress::new(console, steps.saturating_mul(own.len() as u64)),
        several,
        ready,
        populates: ready.training.populates().context("the loop is one program")?,
        columns,
        own,
        folder,
        plan,
        started,
    };
    one.train_all((console, interrupt))
}

/// A run of the population, until it fails.
struct TrainedMember {
    session: Session,
    run: Box<dyn Run>,
    totals: RunTotals,
}

/// Trains runs in parts of at most `most` runs, until `train` reports a stop. A part that does not
/// fit into memory is tried again with half as many runs, as long as each device has more than one.
fn in_parts(
    runs: Range<usize>,
    (most, devices): (usize, usize),
    mut train: impl FnMut(Range<usize>) -> Result<bool>,
) -> Result<()> {
    let (mut first, mut most) = (runs.start, most);
    while first < runs.end {
        let part = first..runs.end.min(first + most);
        first = match train(part.clone()) {
            Err(error) if is_out_of_memory(&error) && part.len() > devices => {
                most = (part.len() / 2).next_multiple_of(devices);
                part.start
            }
            Ok(true) => part.end,
            Ok(false) => return Ok(()),
            Err(error) => return Err(error),
        };
    }
    Ok(())
}

/// True if there was not enough memory.
fn is_out_of_memory(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(RuntimeError::OutOfMemory(_)))
}

/// Runs that are one program, or a program for each part of them.
struct OneProgram<'a> {
    several: &'a Several<'a>,
    ready: &'a Ready,
    populates: &'a dyn Populates,
    columns: Vec<Column>,
    /// The indices of the runs that this process trains.
    own: Range<usize>,
    folder: &'a Path,
    plan: Plan,
    started: Instant,
    episodes: Episodes,
    progress: Progress,
}

/// The outcome of runs that were trained together.
#[derive(Default)]
struct Share {
    compile_seconds: f64,
    seconds: f64,
    env_steps: u64,
    finished: Vec<(usize, Outcome)>,
    failed: Vec<Failed>,
    interrupted: bool,
}

impl Share {
    /// Adds the outcome of a later part.
    fn add(&mut self, next: Share) {
        self.compile_seconds += next.compile_seconds;
        self.seconds += next.seconds;
        self.env_steps += next.env_steps;
        self.finished.extend(next.finished);
        self.failed.extend(next.failed);
        self.interrupted |= next.interrupted;
    }
}

impl OneProgram<'_> {
    /// Trains the runs of this process, in parts if they do not fit into memory or if the user
    /// requests parts.
    fn train_all(
        &mut self,
        (console, interrupt): (&mut Console<'_>, &AtomicBool),
    ) -> Result<Trained> {
        let &mut OneProgram { several, ready, folder, .. } = self;
        let _heeding = signals::heed();
        let (own, devices) = (self.own.clone(), ready.devices.len());
        let most = several.together;
        let most = most.map_or(own.len(), |most| most.get().next_multiple_of(devices));
        let mut all = Share::default();
        in_parts(own, (most, devices), |part| {
            let finished = self.train(part.clone(), (console, interrupt));
            if let Err(error) = &finished
                && is_out_of_memory(error)
            {
                several.alone(&format!("{} do not fit the memory", plural(part.len(), "run")))?;
                console.warn(&format!("{error:#}; fewer at once are tried"));
            }
            all.add(finished?);
            Ok(!all.interrupted)
        })?;
        self.progress.finish();
        let Share { compile_seconds, seconds, env_steps, finished, failed, interrupted } = all;
        if interrupted {
            console.say(&format!(
                "stopped before its end; the same command with --run-dir {} continues, and each run by itself with `{} resume`",
                folder.display(),
                program_name()
            ));
        }
        let env_steps_per_second = (env_steps > 0).then(|| env_steps as f64 / seconds);
        let together = Together { compile_seconds, run_seconds: seconds, env_steps_per_second };
        Ok(Trained { finished, failed, together: Some(together), interrupted })
    }

    /// Trains the runs at these indices together.
    fn train(
        &mut self,
        part: Range<usize>,
        (console, interrupt): (&mut Console<'_>, &AtomicBool),
    ) -> Result<Share> {
        let &mut OneProgram { several, ready, populates, folder, plan, started, .. } = self;
        let steps = plan.steps(ready.settings.training_loop.iterations_per_call());
        let before = (part.start - self.own.start) as u64 * steps;
        let planned = &several.runs[part.clone()];
        let seeds: Vec<u64> = planned.iter().map(|run| run.settings.train.seed).collect();
        let column = |column: &Column| Column {
            key: column.key.clone(),
            values: column.values[part.clone()].to_vec(),
        };
        let columns: Vec<Column> = self.columns.iter().map(column).collect();
        // Before any folder is made, because fewer runs are tried if memory does not suffice.
        let runs = populates
            .populate(ready.start(folder, None), &seeds, &columns, several.exploit.as_ref())
            .with_context(|| format!("cannot start {}", several.name))?;
        let compile_seconds = runs.first().map_or(0.0, |run| run.compile_seconds());
        self.progress.compiled(console, compile_seconds);
        let rule = ready.training.xla_options(&ready.recorded.platform);
        let mut members = Vec::new();
        for (planned, run) in planned.iter().zip(runs) {
            let xla = planned.settings.xla_options(rule.clone()).into_iter().collect();
            let settings = Settings { xla, ..planned.settings.clone() };
            let ready = Ready { settings, ..ready.clone() };
            let path = folder.join(&planned.folder);
            let directory = RunDirectory::create(Some(&path), &ready.settings, &ready.recorded)?;
            let session = Session::beginning(ready, directory, started);
            let folder = session.directory.folder().clone();
            console.of_run(&folder, |console| session.tell_beginning(console));
            let totals = RunTotals::new(started, Counters::default(), Vec::new());
            members.push(Some(TrainedMember { session, run, totals }));
        }
        let mut failed = Vec::new();
        let mut calls = 0;
        while calls < plan.calls
            && !interrupt.load(Ordering::Relaxed)
            && members.iter().any(Option::is_some)
        {
            let began = Instant::now();
            let mut made = Vec::new();
            for member in members.iter_mut().flatten() {
                made.push(member.run.advance().with_context(|| {
                    format!("the training failed after {calls} of {} calls", plan.calls)
                })?);
            }
            let finished = Instant::now();
            calls += 1;
            let standing = planned.iter().zip(&mut members).filter(|(_, member)| member.is_some());
            for ((run_of, slot), call) in standing.zip(made) {
                let Some(member) = slot else { continue };
                let TrainedMember { session, run, totals } = member;
                let before = totals.counters.iterations;
                totals.record(&call, (began, finished), &mut session.directory)?;
                let at = (before, &mut *totals);
                let folder = session.directory.folder().clone();
                let stands = console.of_run(&folder, |console| {
                    let with = (&mut *console, interrupt);
                    let after = session.after_call(&mut **run, &call, at, &mut self.episodes, with);
                    after.map_err(|error| Failed::new(run_of, &error, console))
                });
                if let Err(failure) = stands {
                    failed.push(failure);
                    *slot = None;
                }
            }
            let standing: Vec<&TrainedMember> = members.iter().flatten().collect();
            let returns: Vec<f64> =
                standing.iter().filter_map(|member| member.totals.counters.mean_return).collect();
            let speed: f64 = standing.iter().map(|member| member.totals.speed_now).sum();
            let steps = before + env_steps(&members);
            self.progress.advance(console, steps, speed, mean(&returns), "");
        }
        let seconds = members.iter().flatten().map(|member| member.totals.seconds());
        let (seconds, env_steps) = (seconds.fold(0.0, f64::max), env_steps(&members));
        let mut finished = Vec::new();
        for ((position, planned), member) in part.zip(planned).zip(members) {
            let Some(TrainedMember { session, mut run, totals }) = member else { continue };
            let folder = session.directory.folder().clone();
            let concluded = console.of_run(&folder, |console| {
                let outcome = session.conclude(&mut *run, &totals, Vec::new(), None, console);
                outcome.map_err(|error| Failed::new(planned, &error, console))
            });
            match concluded {
                Ok(outcome) => finished.push((position, outcome)),
                Err(failure) => failed.push(failure),
            }
        }
        let interrupted = calls < plan.calls && interrupt.load(Ordering::Relaxed);
        Ok(Share { compile_seconds, seconds, env_steps, finished, failed, interrupted })
    }
}

/// Environment steps of the runs that have not failed.
fn env_steps(members: &[Option<TrainedMember>]) -> u64 {
    members.iter().flatten().map(|member| member.totals.counters.env_steps).sum()
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    /// The first run and the number of runs of each part of 11 runs, if `fitting` runs fit into
    /// memory; and true if all were trained.
    fn parts(most: usize, devices: usize, fitting: usize) -> (Vec<(usize, usize)>, bool) {
        let mut tried = Vec::new();
        let done = in_parts(0..11, (most, devices), |part| {
            tried.push((part.start, part.len()));
            if part.len() > fitting {
                let full = RuntimeError::OutOfMemory("a rollout".to_owned());
                return Err(full).context("cannot compile the population");
            }
            Ok(true)
        });
        (tried, done.is_ok())
    }

    #[test]
    fn runs_that_do_not_fit_the_memory_are_tried_by_half() {
        assert_eq!(parts(11, 1, 11), (vec![(0, 11)], true));
        assert_eq!(parts(4, 1, 11), (vec![(0, 4), (4, 4), (8, 3)], true));
        assert_eq!(parts(11, 1, 5), (vec![(0, 11), (0, 5), (5, 5), (10, 1)], true));
        let on_two = vec![(0, 11), (0, 6), (0, 4), (0, 2), (2, 2), (4, 2), (6, 2), (8, 2), (10, 1)];
        assert_eq!(parts(12, 2, 3), (on_two, true));
        assert_eq!(parts(11, 1, 0), (vec![(0, 11), (0, 5), (0, 2), (0, 1)], false));
        let mut parts = 0;
        let wrong = in_parts(0..11, (2, 1), |_| {
            parts += 1;
            if parts == 2 { Err(anyhow!("another error")) } else { Ok(true) }
        });
        assert_eq!(
            (wrong.map_err(|error| error.to_string()), parts),
            (Err("another error".to_owned()), 2)
        );
        let mut parts = 0;
        let stopped = in_parts(0..11, (2, 1), |_| {
            parts += 1;
            Ok(parts < 3)
        });
        assert!(stopped.is_ok() && parts == 3);
    }
}
