//! `podracer train X --seeds N`: runs with several seeds as one program, and a run directory for each.

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
use crate::training::Run;

/// The file of a population's folder with the results of its runs.
const POPULATION: &str = "population.json";

/// Most runs of a population: each has a folder.
const MOST: u64 = 10_000;

/// The result of all runs, which `--json` prints.
#[derive(Serialize)]
struct Outcomes {
    experiment: String,
    /// The runs that have come to their end or were stopped, in the order of their seeds.
    runs: Vec<Outcome>,
    /// The runs that failed: their seeds and why.
    failed: Vec<(u64, String)>,
    /// The mean of the runs' mean returns, with the 95% interval of the bootstrap.
    mean_return: Option<Estimate>,
    /// The mean without a quarter of the runs at either end, alike.
    interquartile_mean_return: Option<Estimate>,
    compile_seconds: f64,
    run_seconds: f64,
    /// Speed of all runs together, without the first call if there is another.
    env_steps_per_second: Option<f64>,
    interrupted: bool,
    run_dir: String,
}

/// A run of the population, until it fails.
struct Member {
    session: Session,
    run: Box<dyn Run>,
    totals: RunTotals,
}

/// Trains a run for each of so many seeds, from that of the settings on.
pub(super) fn train(
    args: &TrainArguments,
    number: u64,
    settings: Settings,
    started: Instant,
    (console, interrupt): (&mut Console<'_>, &AtomicBool),
    program: Program<'_>,
) -> Result<u8> {
    if args.metrics.is_some() {
        bail!(UsageError::new("--metrics is for one run, and --seeds trains several"));
    }
    if number > MOST {
        bail!(UsageError::new(format!("--seeds {number}: expected at most {MOST}")));
    }
    // Members share out all devices, and are runs of the settings' own.
    let mut shared = settings.clone();
    if args.experiment.devices.is_none() {
        shared.train.devices = Devices::All;
    }
    let mut ready = Ready::new(shared, console, program)?;
    if args.experiment.devices.is_none() {
        let share = |count: &usize| number.is_multiple_of(*count as u64);
        let most = (1..=ready.devices.len()).rev().find(share).unwrap_or(1);
        ready.devices.truncate(most);
    }
    check_shares(number as usize, ready.devices.len())?;
    let Some(populates) = ready.training.populates() else {
        bail!(UsageError::new(format!(
            "--seeds trains several runs as one program, which a loop with environments on the host ([{}]) is not: train them one after the \
             other, with --seed",
            ready.settings.training_loop.section()
        )));
    };
    let rule = ready.training.xla_options(&ready.recorded.platform, 1);
    let settings = Settings { xla: settings.xla_options(rule).into_iter().collect(), ..settings };
    let seeds: Vec<u64> = (0..number).map(|i| settings.train.seed.wrapping_add(i)).collect();
    let name = format!("{}-{number}seeds", settings.experiment);
    let folder = group(args.run_dir.as_deref(), &name)?;
    let directory = |seed: &u64| {
        let mut ready = Ready { settings: settings.clone(), ..ready.clone() };
        ready.settings.train.seed = *seed;
        let path = folder.join(format!("seed-{seed}"));
        let directory = RunDirectory::create(Some(&path), &ready.settings, &ready.recorded)?;
        Ok(Session::beginning(ready, directory, started))
    };
    let sessions = seeds.iter().map(directory).collect::<Result<Vec<_>>>()?;
    let plan = settings.plan();
    let steps = plan.steps(settings.training_loop.iterations_per_call());
    if let Some(rounding) = settings.rounding() {
        console.say(&rounding);
    }
    let mut progress = Progress::new(console, steps.saturating_mul(number));
    let runs = populates
        .populate(ready.start(&folder, None), &seeds)
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
        let standing = seeds.iter().zip(&mut members).filter(|(_, member)| member.is_some());
        for ((seed, slot), call) in standing.zip(made) {
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
                console.warn(&format!("seed {seed}: {error:#}; the others go on"));
                failed.push((*seed, format!("{error:#}")));
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
    for member in members.into_iter().flatten() {
        let Member { session, mut run, totals } = member;
        runs.push(session.conclude(&mut *run, &totals, Vec::new(), None, console)?);
    }
    let returns: Vec<f64> = runs.iter().filter_map(|run| run.mean_return).collect();
    let interrupted = calls < plan.calls && !runs.is_empty();
    let speeds: Option<Vec<f64>> = runs.iter().map(|run| run.env_steps_per_second).collect();
    let outcomes = Outcomes {
        experiment: ready.settings.experiment.clone(),
        mean_return: estimate(&returns, mean),
        interquartile_mean_return: estimate(&returns, interquartile_mean),
        runs,
        failed,
        compile_seconds,
        run_seconds: times.into_iter().fold(0.0, f64::max),
        env_steps_per_second: speeds.map(|speeds| speeds.iter().sum()),
        interrupted,
        run_dir: folder.display().to_string(),
    };
    let json = serde_json::to_string(&outcomes)? + "\n";
    write_whole(&folder.join(POPULATION), json.as_bytes())?;
    if interrupted {
        console.say(&format!(
            "stopped after {calls} of {} calls; each run goes on by itself, with `{} resume {}/seed-N`",
            plan.calls,
            program_name(),
            folder.display()
        ));
    }
    console.print(&if args.json { json } else { outcomes.table() })?;
    Ok(match (interrupted, outcomes.failed.is_empty()) {
        (true, _) => INTERRUPTED,
        (false, true) => 0,
        (false, false) => FAILURE,
    })
}

impl Outcomes {
    /// The runs, the best first, and their means.
    fn table(&self) -> String {
        let shown =
            |number: Option<f64>| number.map_or_else(|| "-".to_owned(), |n| format!("{n:.2}"));
        let mut ranked: Vec<&Outcome> = self.runs.iter().collect();
        let rank = |run: &Outcome| run.mean_return.unwrap_or(f64::NEG_INFINITY);
        ranked.sort_by(|a, b| rank(b).total_cmp(&rank(a)));
        let row =
            |seed: &str, result: String, rest: &str| vec![seed.to_owned(), result, rest.to_owned()];
        let mut rows = vec![row("seed", "mean return".to_owned(), "run directory")];
        for run in ranked {
            rows.push(row(&run.seed.to_string(), shown(run.mean_return), &run.run_dir));
        }
        for (seed, problem) in &self.failed {
            rows.push(row(&seed.to_string(), "failed".to_owned(), problem));
        }
        let mut text = aligned(&rows);
        let means =
            [("mean", self.mean_return), ("interquartile mean", self.interquartile_mean_return)];
        for (name, estimate) in means {
            if let Some(Estimate { value, low, high }) = estimate {
                text += &format!("{name}: {value:.2} (95%: {low:.2} to {high:.2})\n");
            }
        }
        let env_steps: u64 = self.runs.iter().map(|run| run.env_steps).sum();
        text + &format!(
            "{}, seeds of {}: {} steps in {:.2} s, {} steps/s; compiled in {:.2} s\nrun directories: {}\n",
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
