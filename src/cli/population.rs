//! `podracer train X --seeds N`: runs with several seeds as one program, and a run directory for each.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use serde::Serialize;

use super::arguments::TrainArguments;
use super::evaluations::Evaluations;
use super::progress::Progress;
use super::session::{Outcome, Ready, Session};
use super::totals::RunTotals;
use super::{Console, FAILURE, INTERRUPTED, Program, program_name, signals};
use crate::files::write_whole;
use crate::format::{aligned, count, plural};
use crate::population::check_shares;
use crate::run_directory::{Counters, RunDirectory, group};
use crate::settings::{Devices, Settings, UsageError};
use crate::statistics::{Estimate, estimate, interquartile_mean, mean};
use crate::training::{Column, Run};

/// The file of a population's folder with the results of its runs.
const POPULATION: &str = "population.json";

/// Most runs of a population: each has a folder.
const MOST: usize = 10_000;

/// The result of all runs, which `--json` prints.
#[derive(Serialize)]
struct Outcomes {
    experiment: String,
    /// Runs by their settings, the best first.
    settings: Vec<Group>,
    /// The runs that have come to their end or were stopped, in their order.
    runs: Vec<Outcome>,
    failed: Vec<Failed>,
    compile_seconds: f64,
    run_seconds: f64,
    /// Speed of all runs together, without the first call if there is another.
    env_steps_per_second: Option<f64>,
    interrupted: bool,
    run_dir: String,
}

/// Runs that differ in their seeds alone.
#[derive(Serialize)]
struct Group {
    /// The settings in which they differ from others.
    settings: BTreeMap<String, String>,
    /// Runs with a mean return.
    runs: usize,
    /// The mean of the runs' mean returns, with the 95% interval of the bootstrap.
    mean_return: Option<Estimate>,
    /// The mean without a quarter of the runs at either end, alike.
    interquartile_mean_return: Option<Estimate>,
}

/// A run that failed.
#[derive(Serialize)]
struct Failed {
    run: String,
    problem: String,
}

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
    /// The runs, which differ in their seeds and in the settings of `columns`.
    pub(super) runs: Vec<Planned>,
    pub(super) columns: Vec<Column>,
    pub(super) run_dir: Option<&'a Path>,
    /// True if the user names the devices.
    pub(super) on_devices: bool,
    pub(super) json: bool,
}

/// A run that is to be trained.
pub(super) struct Planned {
    /// The name of its folder.
    pub(super) folder: String,
    /// The values of the columns, as the user writes them.
    pub(super) chosen: Vec<String>,
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
    at_most(number)?;
    let run = |settings: Settings| Planned {
        folder: format!("seed-{}", settings.train.seed),
        chosen: Vec::new(),
        settings,
    };
    let several = Several {
        name: format!("{}-{number}seeds", settings.experiment),
        runs: with_seeds(settings, number).map(run).collect(),
        columns: Vec::new(),
        run_dir: args.run_dir.as_deref(),
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
    let Several { name, runs: planned, columns, run_dir, on_devices, json } = several;
    let number = planned.len();
    let Some(settings) = planned.first().map(|run| run.settings.clone()) else {
        bail!(UsageError::new("there is no run to train"));
    };
    // The runs share out all devices, and each is one of the settings' own.
    let mut shared = settings.clone();
    if !on_devices {
        shared.train.devices = Devices::All;
    }
    let mut ready = Ready::new(shared, console, program)?;
    if !on_devices {
        let share = |count: &usize| number.is_multiple_of(*count);
        let most = (1..=ready.devices.len()).rev().find(share).unwrap_or(1);
        ready.devices.truncate(most);
    }
    check_shares(number, ready.devices.len())?;
    let Some(populates) = ready.training.populates() else {
        bail!(UsageError::new(format!(
            "several runs are one program, which a loop with environments on the host ([{}]) is not: train them one after the other",
            ready.settings.training_loop.section()
        )));
    };
    populates.check(&columns)?;
    let rule = ready.training.xla_options(&ready.recorded.platform, 1);
    let seeds: Vec<u64> = planned.iter().map(|run| run.settings.train.seed).collect();
    let folder = group(run_dir, &name)?;
    let directory = |run: &Planned| {
        let xla = run.settings.xla_options(rule.clone()).into_iter().collect();
        let ready = Ready { settings: Settings { xla, ..run.settings.clone() }, ..ready.clone() };
        let path = folder.join(&run.folder);
        let directory = RunDirectory::create(Some(&path), &ready.settings, &ready.recorded)?;
        Ok(Session::beginning(ready, directory, started))
    };
    let sessions = planned.iter().map(directory).collect::<Result<Vec<_>>>()?;
    let plan = settings.plan();
    let steps = plan.steps(settings.training_loop.iterations_per_call());
    if let Some(rounding) = settings.rounding() {
        console.say(&rounding);
    }
    let mut progress = Progress::new(console, steps.saturating_mul(number as u64));
    let runs = populates
        .populate(ready.start(&folder, None), &seeds, &columns)
        .with_context(|| format!("cannot start {name}"))?;
    let compile_seconds = runs.first().map_or(0.0, |run| run.compile_seconds());
    let mut evaluations = Evaluations::compile(&ready)?;
    let _heeding = signals::heed();
    progress.compiled(console, compile_seconds);
    let totals = || RunTotals::new(started, Counters::default(), Vec::new());
    let mut members: Vec<Option<Member>> = sessions
        .into_iter()
        .zip(runs)
        .map(|(session, run)| Some(Member { session, run, totals: totals() }))
        .collect();
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
            let after = session.after_call(
                &mut **run,
                &call,
                at,
                evaluations.as_mut(),
                (console, interrupt),
            );
            if let Err(error) = after {
                failed.push(Failed::new(run_of, &error, console));
                *slot = None;
            }
        }
        let standing: Vec<&Member> = members.iter().flatten().collect();
        let returns: Vec<f64> =
            standing.iter().filter_map(|member| member.totals.counters.mean_return).collect();
        let env_steps: u64 = standing.iter().map(|member| member.totals.counters.env_steps).sum();
        let speed: f64 = standing.iter().map(|member| member.totals.speed_now).sum();
        progress.advance(console, env_steps, speed, mean(&returns), "");
    }
    progress.finish();
    let times: Vec<f64> = members.iter().flatten().map(|member| member.totals.seconds()).collect();
    let mut runs = Vec::new();
    let mut groups: Vec<(&[String], Vec<f64>)> = Vec::new();
    for (planned, member) in planned.iter().zip(members) {
        let Some(Member { session, mut run, totals }) = member else { continue };
        let outcome = match session.conclude(&mut *run, &totals, Vec::new(), None, console) {
            Ok(outcome) => outcome,
            Err(error) => {
                failed.push(Failed::new(planned, &error, console));
                continue;
            }
        };
        let returns = match groups.iter_mut().find(|(chosen, _)| *chosen == planned.chosen) {
            Some((_, returns)) => returns,
            None => {
                groups.push((&planned.chosen, Vec::new()));
                let last = groups.len() - 1;
                &mut groups[last].1
            }
        };
        returns.extend(outcome.mean_return);
        runs.push(outcome);
    }
    let group = |(chosen, returns): (&[String], Vec<f64>)| Group {
        settings: columns.iter().map(|column| column.key.clone()).zip(chosen.to_vec()).collect(),
        runs: returns.len(),
        mean_return: estimate(&returns, mean),
        interquartile_mean_return: estimate(&returns, interquartile_mean),
    };
    let mut groups: Vec<Group> = groups.into_iter().map(group).collect();
    groups.sort_by(|a, b| b.rank().total_cmp(&a.rank()));
    let interrupted = calls < plan.calls && interrupt.load(Ordering::Relaxed);
    let speeds: Option<Vec<f64>> = runs.iter().map(|run| run.env_steps_per_second).collect();
    let outcomes = Outcomes {
        experiment: ready.settings.experiment.clone(),
        settings: groups,
        runs,
        failed,
        compile_seconds,
        run_seconds: times.into_iter().fold(0.0, f64::max),
        env_steps_per_second: speeds.map(|speeds| speeds.iter().sum()),
        interrupted,
        run_dir: folder.display().to_string(),
    };
    let line = serde_json::to_string(&outcomes)? + "\n";
    write_whole(&folder.join(POPULATION), line.as_bytes())?;
    if interrupted {
        console.say(&format!(
            "stopped after {calls} of {} calls; each run goes on by itself, with `{} resume {}/RUN`",
            plan.calls,
            program_name(),
            folder.display()
        ));
    }
    console.print(&if json { line } else { outcomes.table() })?;
    Ok(match (interrupted, outcomes.failed.is_empty()) {
        (true, _) => INTERRUPTED,
        (false, true) => 0,
        (false, false) => FAILURE,
    })
}

impl Failed {
    /// A run that ended with an error, which the user is told.
    fn new(run: &Planned, error: &anyhow::Error, console: &mut Console<'_>) -> Self {
        let (run, problem) = (run.folder.clone(), format!("{error:#}"));
        console.warn(&format!("{run}: {problem}; the others go on"));
        Failed { run, problem }
    }
}

impl Group {
    fn rank(&self) -> f64 {
        self.mean_return.map_or(f64::NEG_INFINITY, |estimate| estimate.value)
    }
}

impl Outcomes {
    /// The runs by their settings, or by their seeds where nothing else differs, the best first, and their means.
    fn table(&self) -> String {
        let shown = |estimate: &Option<Estimate>| match estimate {
            Some(Estimate { value, low, high }) => format!("{value:.2} ({low:.2} to {high:.2})"),
            None => "-".to_owned(),
        };
        let mut rows = Vec::new();
        let mut means = String::new();
        match &self.settings[..] {
            [] => {}
            [all] => {
                let mut ranked: Vec<&Outcome> = self.runs.iter().collect();
                let rank = |run: &Outcome| run.mean_return.unwrap_or(f64::NEG_INFINITY);
                ranked.sort_by(|a, b| rank(b).total_cmp(&rank(a)));
                rows.push(["seed", "mean return", "run directory"].map(str::to_owned).to_vec());
                let mean = |run: &Outcome| {
                    run.mean_return.map_or_else(|| "-".to_owned(), |mean| format!("{mean:.2}"))
                };
                let row =
                    |run: &&Outcome| vec![run.seed.to_string(), mean(run), run.run_dir.clone()];
                rows.extend(ranked.iter().map(row));
                means = format!(
                    "mean (95% interval): {}\ninterquartile mean: {}\n",
                    shown(&all.mean_return),
                    shown(&all.interquartile_mean_return)
                );
            }
            [first, ..] => {
                let names = first.settings.keys().cloned();
                let results = ["runs", "mean return (95%)", "interquartile mean (95%)"];
                rows.push(names.chain(results.map(str::to_owned)).collect());
                rows.extend(self.settings.iter().map(|group| {
                    let results = [
                        group.runs.to_string(),
                        shown(&group.mean_return),
                        shown(&group.interquartile_mean_return),
                    ];
                    group.settings.values().cloned().chain(results).collect()
                }));
            }
        }
        let mut text = aligned(&rows) + &means;
        for Failed { run, problem } in &self.failed {
            text += &format!("failed: {run}: {problem}\n");
        }
        let env_steps: u64 = self.runs.iter().map(|run| run.env_steps).sum();
        text + &format!(
            "{} of {}: {} steps in {:.2} s, {} steps/s; compiled in {:.2} s\nrun directories: {}\n",
            plural(self.runs.len(), "run"),
            self.experiment,
            count(env_steps as f64),
            self.run_seconds,
            self.env_steps_per_second.map_or_else(|| "-".to_owned(), count),
            self.compile_seconds,
            self.run_dir,
        )
    }
}
