//! `podracer train X --seeds N`: runs with several seeds as one program, and a run directory for each.

use std::num::NonZero;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use anyhow::{Context, Result, anyhow, bail};
use podracer_rl::population::Exploit;
use podracer_runtime::RuntimeError;

use super::arguments::{Apart, TrainArguments};
use super::evaluations::Episodes;
use super::outcomes::{Failed, Outcomes};
use super::progress::Progress;
use super::ready::Ready;
use super::session::{Outcome, Session};
use super::totals::RunTotals;
use super::{Console, FAILURE, INTERRUPTED, Program, one_by_one, program_name, signals};
use crate::format::plural;
use crate::population::{check_exploit, check_shares};
use crate::run_directory::{Counters, RunDirectory, group};
use crate::settings::{Devices, Plan, Settings, UsageError};
use crate::statistics::mean;
use crate::training::{Column, Populates, Run};

/// Most runs of a population: each has a folder.
const MOST: usize = 10_000;

/// A run of the population, until it fails.
struct Member {
    session: Session,
    run: Box<dyn Run>,
    totals: RunTotals,
}

/// Runs that are trained as one program.
pub(super) struct Several<'a> {
    /// The experiment, and what distinguishes the runs: the name of their folder.
    pub(super) name: String,
    /// The runs, which differ in their seeds and in the settings of `keys`.
    pub(super) runs: Vec<Planned>,
    pub(super) keys: Vec<String>,
    pub(super) run_dir: Option<&'a Path>,
    /// The arguments of `train` that all runs share, where each is a process.
    pub(super) common: Vec<String>,
    /// The command's own arguments, for the tasks of an array job.
    pub(super) again: Vec<String>,
    /// Population-based training of the runs, if they are to take over from one another.
    pub(super) exploit: Option<Exploit>,
    /// Most runs of one program.
    pub(super) together: Option<NonZero<usize>>,
    /// Processes of the runs, where they are no program together.
    pub(super) apart: Apart,
    /// True if the user names the devices.
    pub(super) on_devices: bool,
    pub(super) json: bool,
}

impl Several<'_> {
    /// True if the runs are processes even where they could be one program.
    fn apart(&self) -> bool {
        self.apart.launch.is_some() || self.apart.only.is_some()
    }

    /// Refuses runs that are programs of their own, if they are to take over from one another.
    fn alone(&self, why: &str) -> Result<(), UsageError> {
        match self.exploit {
            None => Ok(()),
            Some(_) => Err(UsageError::new(format!(
                "--exploit-every is for runs of one program, and {why}"
            ))),
        }
    }

    /// The settings in which the runs differ, as numbers.
    fn columns(&self) -> Result<Vec<Column>> {
        let column = |(index, key): (usize, &String)| {
            let values = self.runs.iter().map(|run| {
                run.chosen[index].parse().map_err(|_| {
                    UsageError::new(format!(
                        "{key} = {}: only numbers differ between the runs of one program",
                        run.chosen[index]
                    ))
                })
            });
            Ok(Column { key: key.clone(), values: values.collect::<Result<_, UsageError>>()? })
        };
        self.keys.iter().enumerate().map(column).collect()
    }
}

/// A run that is to be trained.
pub(super) struct Planned {
    /// The name of its folder.
    pub(super) folder: String,
    /// The values of the keys, as the user writes them.
    pub(super) chosen: Vec<String>,
    /// All settings that the user gives it, each `KEY=VALUE`.
    pub(super) sets: Vec<String>,
    pub(super) settings: Settings,
}

/// Trains a run for each of so many seeds, from that of the settings on.
pub(super) fn seeds(
    args: &TrainArguments,
    number: usize,
    settings: &Settings,
    started: Instant,
    (console, interrupt): (&mut Console<'_>, &AtomicBool),
    program: Program<'_>,
) -> Result<u8> {
    if args.metrics.is_some() {
        bail!(UsageError::new("--metrics is for one run, and --seeds trains several"));
    }
    #[cfg(feature = "plots")]
    if args.watch.is_some() {
        bail!(UsageError::new(format!(
            "--watch is for one run, and --seeds trains several: `{} watch` shows all runs of their folder",
            program_name()
        )));
    }
    at_most(number)?;
    let run = |settings: Settings| Planned {
        folder: format!("seed-{}", settings.train.seed),
        chosen: Vec::new(),
        sets: args.experiment.set.clone(),
        settings,
    };
    let mut common = args.experiment.common(args.steps);
    for (role, devices) in [("actors", &args.actors), ("learners", &args.learners)] {
        let indices = |devices: &Vec<usize>| {
            devices.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
        };
        common.extend(devices.as_ref().map(|devices| format!("--{role}={}", indices(devices))));
    }
    let several = Several {
        name: format!("{}-{number}seeds", settings.experiment),
        runs: with_seeds(settings, number).map(run).collect(),
        keys: Vec::new(),
        run_dir: args.run_dir.as_deref(),
        again: args.experiment.again("train", &common, (args.seed, number)),
        common,
        exploit: None,
        together: args.together,
        apart: Apart::default(),
        on_devices: args.experiment.devices.is_some(),
        json: args.json,
    };
    train(several, started, (console, interrupt), program)
}

/// Refuses more runs than a population has.
pub(super) fn at_most(number: usize) -> Result<(), UsageError> {
    match number {
        0..=MOST => Ok(()),
        _ => Err(UsageError::new(format!("{number} runs: expected at most {MOST} as one program"))),
    }
}

/// The settings with so many seeds, from theirs on.
pub(super) fn with_seeds(settings: &Settings, number: usize) -> impl Iterator<Item = Settings> {
    (0..number as u64).map(|i| {
        let mut settings = settings.clone();
        settings.train.seed = settings.train.seed.wrapping_add(i);
        settings
    })
}

/// Trains the runs.
pub(super) fn train(
    several: Several<'_>,
    started: Instant,
    (console, interrupt): (&mut Console<'_>, &AtomicBool),
    program: Program<'_>,
) -> Result<u8> {
    let Several { ref name, runs: ref planned, run_dir, on_devices, json, .. } = several;
    let number = planned.len();
    let Some(settings) = planned.first().map(|run| run.settings.clone()) else {
        bail!(UsageError::new("there is no run to train"));
    };
    if let Some(exploit) = &several.exploit {
        check_exploit(exploit, number)?;
        if several.together.is_some_and(|most| most.get() < number) {
            several.alone("--together makes several of them")?;
        }
    }
    if several.apart() {
        several.alone("--processes and --launch make a program of each run")?;
        return one_by_one::train(&several, None, (console, interrupt));
    }
    if run_dir.is_some_and(|folder| one_by_one::has_begun(&several, folder)) {
        let reason =
            anyhow!("the folder has them already, and those that are not done go on by themselves");
        several.alone(&format!("{reason}"))?;
        return one_by_one::train(&several, Some(&reason), (console, interrupt));
    }
    // The runs share out all devices, and each is one of the settings' own.
    let mut shared = settings.clone();
    if !on_devices {
        shared.train.devices = Devices::All;
    }
    let mut ready = Ready::new(shared, console, program)?;
    if several.exploit.is_some() {
        // Those that take over from one another are counted by device.
        let share = |count: &usize| number.is_multiple_of(*count);
        let most = (1..=ready.devices.len()).rev().find(share).unwrap_or(1);
        if !on_devices {
            ready.devices.truncate(most);
        }
        check_shares(number, ready.devices.len())?;
    } else {
        let of_a_device = number.div_ceil(ready.devices.len());
        ready.devices.truncate(number.div_ceil(of_a_device));
    }
    let one_program = match ready.training.populates() {
        Some(populates) => several.columns().and_then(|columns| {
            populates.check(&columns)?;
            Ok((populates, columns))
        }),
        None => Err(anyhow!(
            "a loop with environments on the host ([{}]) is more than one program",
            ready.settings.training_loop.section()
        )),
    };
    let (populates, columns) = match one_program {
        Ok(both) => both,
        Err(reason) => {
            several.alone(&format!("{reason:#}"))?;
            // The devices are for the runs' processes.
            drop(ready);
            return one_by_one::train(&several, Some(&reason), (console, interrupt));
        }
    };
    let folder = group(run_dir, name)?;
    one_by_one::same_as_before(&several, &folder)?;
    if let Some(rounding) = settings.rounding() {
        console.say(&rounding);
    }
    let plan = settings.plan();
    let steps = plan.steps(settings.training_loop.iterations_per_call());
    let mut one = OneProgram {
        episodes: Episodes::compile(&ready)?,
        progress: Progress::new(console, steps.saturating_mul(number as u64)),
        several: &several,
        ready: &ready,
        populates,
        columns,
        folder: &folder,
        plan,
        started,
    };
    let _heeding = signals::heed();
    let devices = ready.devices.len();
    let most = several.together.map_or(number, |most| most.get().next_multiple_of(devices));
    let mut all = Part::default();
    in_parts(number, (most, devices), |part| {
        let ended = one.train(part.clone(), (console, interrupt));
        if let Err(error) = &ended
            && is_out_of_memory(error)
        {
            several.alone(&format!("{} do not fit the memory", plural(part.len(), "run")))?;
            console.warn(&format!("{error:#}; fewer at once are tried"));
        }
        all.add(ended?);
        Ok(!all.interrupted)
    })?;
    one.progress.finish();
    let Part { compile_seconds, seconds, env_steps, ended, failed, interrupted } = all;
    let outcomes = Outcomes {
        compile_seconds,
        run_seconds: seconds,
        env_steps_per_second: (env_steps > 0).then(|| env_steps as f64 / seconds),
        ..Outcomes::of(&several, &folder, (ended, failed), interrupted)
    };
    if interrupted {
        console.say(&format!(
            "stopped before its end; the same command with --run-dir {} goes on, and each run by itself with `{} resume`",
            folder.display(),
            program_name()
        ));
    }
    outcomes.tell(json, console)?;
    Ok(match (interrupted, outcomes.failed.is_empty()) {
        (true, _) => INTERRUPTED,
        (false, true) => 0,
        (false, false) => FAILURE,
    })
}

/// Trains runs in parts of at most so many, until `train` says that it was stopped. A part that does not fit the memory is tried again
/// with half as many runs, as long as each device has more than one.
fn in_parts(
    runs: usize,
    (most, devices): (usize, usize),
    mut train: impl FnMut(Range<usize>) -> Result<bool>,
) -> Result<()> {
    let (mut first, mut most) = (0, most);
    while first < runs {
        let part = first..runs.min(first + most);
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

/// True where there was not enough memory.
fn is_out_of_memory(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(RuntimeError::OutOfMemory(_)))
}

/// Runs that are one program, or a program for each part of them.
struct OneProgram<'a> {
    several: &'a Several<'a>,
    ready: &'a Ready,
    populates: &'a dyn Populates,
    columns: Vec<Column>,
    folder: &'a Path,
    plan: Plan,
    started: Instant,
    episodes: Episodes,
    progress: Progress,
}

/// The outcome of runs that were trained together.
#[derive(Default)]
struct Part<'a> {
    compile_seconds: f64,
    seconds: f64,
    env_steps: u64,
    ended: Vec<(&'a Planned, Outcome)>,
    failed: Vec<Failed>,
    interrupted: bool,
}

impl<'a> Part<'a> {
    /// Adds a part that was trained afterwards.
    fn add(&mut self, next: Part<'a>) {
        self.compile_seconds += next.compile_seconds;
        self.seconds += next.seconds;
        self.env_steps += next.env_steps;
        self.ended.extend(next.ended);
        self.failed.extend(next.failed);
        self.interrupted |= next.interrupted;
    }
}

impl<'a> OneProgram<'a> {
    /// Trains the runs of these positions together.
    fn train(
        &mut self,
        part: Range<usize>,
        (console, interrupt): (&mut Console<'_>, &AtomicBool),
    ) -> Result<Part<'a>> {
        let &mut OneProgram { several, ready, populates, folder, plan, started, .. } = self;
        let before =
            part.start as u64 * plan.steps(ready.settings.training_loop.iterations_per_call());
        let planned = &several.runs[part.clone()];
        let seeds: Vec<u64> = planned.iter().map(|run| run.settings.train.seed).collect();
        let column = |column: &Column| Column {
            key: column.key.clone(),
            values: column.values[part.clone()].to_vec(),
        };
        let columns: Vec<Column> = self.columns.iter().map(column).collect();
        // Before there are folders: where memory does not suffice, fewer are tried.
        let runs = populates
            .populate(ready.start(folder, None), &seeds, &columns, several.exploit.as_ref())
            .with_context(|| format!("cannot start {}", several.name))?;
        let compile_seconds = runs.first().map_or(0.0, |run| run.compile_seconds());
        self.progress.compiled(console, compile_seconds);
        let rule = ready.training.xla_options(&ready.recorded.platform, 1);
        let mut members = Vec::new();
        for (planned, run) in planned.iter().zip(runs) {
            let xla = planned.settings.xla_options(rule.clone()).into_iter().collect();
            let settings = Settings { xla, ..planned.settings.clone() };
            let ready = Ready { settings, ..ready.clone() };
            let path = folder.join(&planned.folder);
            let directory = RunDirectory::create(Some(&path), &ready.settings, &ready.recorded)?;
            let session = Session::beginning(ready, directory, started);
            console.of_run(&path, |console| session.tell_beginning(console));
            let totals = RunTotals::new(started, Counters::default(), Vec::new());
            members.push(Some(Member { session, run, totals }));
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
            let ended = Instant::now();
            calls += 1;
            let standing = planned.iter().zip(&mut members).filter(|(_, member)| member.is_some());
            for ((run_of, slot), call) in standing.zip(made) {
                let Some(member) = slot else { continue };
                let Member { session, run, totals } = member;
                let before = totals.counters.iterations;
                totals.record(&call, (began, ended), &mut session.directory)?;
                let at = (before, &mut *totals);
                let path = session.directory.path().to_owned();
                let stands = console.of_run(&path, |console| {
                    let with = (&mut *console, interrupt);
                    let after = session.after_call(&mut **run, &call, at, &mut self.episodes, with);
                    after.map_err(|error| Failed::new(run_of, &error, console))
                });
                if let Err(failure) = stands {
                    failed.push(failure);
                    *slot = None;
                }
            }
            let standing: Vec<&Member> = members.iter().flatten().collect();
            let returns: Vec<f64> =
                standing.iter().filter_map(|member| member.totals.counters.mean_return).collect();
            let speed: f64 = standing.iter().map(|member| member.totals.speed_now).sum();
            let steps = before + env_steps(&members);
            self.progress.advance(console, steps, speed, mean(&returns), "");
        }
        let seconds = members.iter().flatten().map(|member| member.totals.seconds());
        let (seconds, env_steps) = (seconds.fold(0.0, f64::max), env_steps(&members));
        let mut ended = Vec::new();
        for (planned, member) in planned.iter().zip(members) {
            let Some(Member { session, mut run, totals }) = member else { continue };
            let path = session.directory.path().to_owned();
            let concluded = console.of_run(&path, |console| {
                let outcome = session.conclude(&mut *run, &totals, Vec::new(), None, console);
                outcome.map_err(|error| Failed::new(planned, &error, console))
            });
            match concluded {
                Ok(outcome) => ended.push((planned, outcome)),
                Err(failure) => failed.push(failure),
            }
        }
        let interrupted = calls < plan.calls && interrupt.load(Ordering::Relaxed);
        Ok(Part { compile_seconds, seconds, env_steps, ended, failed, interrupted })
    }
}

/// Environment steps of the runs that stand.
fn env_steps(members: &[Option<Member>]) -> u64 {
    members.iter().flatten().map(|member| member.totals.counters.env_steps).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first run and the number of runs of each part of 11 runs, where so many fit the memory; and whether all were trained.
    fn parts(most: usize, devices: usize, fitting: usize) -> (Vec<(usize, usize)>, bool) {
        let mut tried = Vec::new();
        let done = in_parts(11, (most, devices), |part| {
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
        let wrong = in_parts(11, (2, 1), |_| {
            parts += 1;
            if parts == 2 { Err(anyhow!("another error")) } else { Ok(true) }
        });
        assert_eq!(
            (wrong.map_err(|error| error.to_string()), parts),
            (Err("another error".to_owned()), 2)
        );
        let mut parts = 0;
        let stopped = in_parts(11, (2, 1), |_| {
            parts += 1;
            Ok(parts < 3)
        });
        assert!(stopped.is_ok() && parts == 3);
    }
}
