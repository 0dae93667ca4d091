//! `podracer train`

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use anyhow::{Context, Result};
use podracer_runtime::{Client, OptionValue};
use serde::Serialize;

use super::progress::Progress;
use super::summary::summary;
use super::{Build, Console, INTERRUPTED, open};
use crate::parameters::sha256;
use crate::run_directory::{Point, Recorded, RunDirectory};
use crate::settings::{Overrides, Settings, load};
use crate::training::Run;

/// What to train, and how to say what came of it.
pub(super) struct Order<'a> {
    pub(super) experiment: &'a str,
    pub(super) overrides: &'a Overrides,
    pub(super) run_dir: Option<&'a Path>,
    pub(super) json: bool,
    pub(super) started: Instant,
}

/// What came of it: `result.json`, and the last line of `--json`.
#[derive(Debug, Serialize)]
pub(super) struct Outcome {
    pub(super) experiment: String,
    pub(super) platform: String,
    pub(super) devices: usize,
    pub(super) seed: u64,
    pub(super) env_steps: u64,
    pub(super) updates: u64,
    pub(super) calls: u64,
    pub(super) episodes: u64,
    pub(super) compile_seconds: f64,
    /// All calls, with what is recorded between them.
    pub(super) run_seconds: f64,
    /// From the start of the process to the end of the first call.
    pub(super) first_call_seconds: Option<f64>,
    /// The steady state: without the first call, where there is another.
    pub(super) env_steps_per_second: Option<f64>,
    /// Over the last (at most 100) completed episodes of the training.
    pub(super) mean_return: Option<f64>,
    pub(super) mean_return_episodes: usize,
    pub(super) evaluation: BTreeMap<String, f64>,
    /// Where the time of each thread went.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) seconds_of_threads: BTreeMap<String, f64>,
    pub(super) params_sha256: String,
    pub(super) interrupted: bool,
    pub(super) run_dir: String,
}

pub(super) fn train(
    order: &Order<'_>,
    console: &mut Console<'_>,
    build: Build<'_>,
    interrupt: &AtomicBool,
) -> Result<u8> {
    let mut settings = load(order.experiment, order.overrides)?;
    let client = open(&settings)?;
    let platform = client.platform().to_owned();
    let mut devices = settings
        .train
        .devices
        .resolve(client.devices().len(), &platform)?;
    if let Some(sebulba) = &mut settings.sebulba {
        if let Some(warning) = sebulba.decide(&devices)? {
            console.say(&format!("warning: {warning}"));
        }
        devices = [&sebulba.actors[..], &sebulba.learners].concat();
        devices.sort_unstable();
        devices.dedup();
    }
    settings.check_division(devices.len())?;
    let training = build(&settings)?;
    let xla = settings.xla_options(training.xla_options(&platform, devices.len()));
    settings.xla = xla
        .iter()
        .map(|(name, value)| (name.clone(), value.into()))
        .collect();
    let recorded = recorded(&client, &devices)?;
    let mut directory = RunDirectory::create(order.run_dir, &settings, &recorded)?;

    let plan = settings.plan();
    let total = plan.calls * plan.steps_per_update * settings.shape().2 as u64;
    let mut progress = Progress::new(console, total);
    let mut run = start(&*training, &client, &devices, &settings, &xla)?;
    progress.compiled(console, run.compile_seconds());
    let mut tally = Tally::new(order.started);
    for _ in 0..plan.calls {
        if interrupt.load(Ordering::Relaxed) {
            break;
        }
        tally.call(&mut *run, &mut directory)?;
        progress.advance(
            console,
            tally.env_steps,
            tally.speed_now,
            tally.mean_return,
            &tally.note,
        );
    }
    progress.finish();
    // Between the last call's end and here nothing is measured any more: the rest may take its time.
    let interrupted = tally.calls < plan.calls;
    let times = run.times();
    let evaluation = if interrupted {
        Vec::new()
    } else {
        run.evaluate()?
    };
    let parameters = run
        .parameters()
        .context("cannot read the parameters back")?;
    directory.write_parameters(&parameters)?;
    directory.write_curve(&settings, &tally.points)?;
    let outcome = Outcome {
        experiment: settings.experiment.clone(),
        platform,
        devices: devices.len(),
        seed: settings.train.seed,
        env_steps: tally.env_steps,
        updates: tally.updates,
        calls: tally.calls,
        episodes: tally.episodes,
        compile_seconds: run.compile_seconds(),
        run_seconds: tally.seconds(),
        first_call_seconds: tally.first.map(|first| first.seconds_since_start),
        env_steps_per_second: tally.steady_speed(),
        mean_return: tally.mean_return,
        mean_return_episodes: tally.mean_return_episodes,
        evaluation: evaluation.into_iter().collect(),
        seconds_of_threads: times.into_iter().collect(),
        params_sha256: sha256(&parameters),
        interrupted,
        run_dir: directory.path().display().to_string(),
    };
    directory.write_result(&outcome)?;
    if interrupted {
        console.say(&format!(
            "stopped after {} of {} calls; the parameters and the result are in {}",
            tally.calls, plan.calls, outcome.run_dir
        ));
    }
    console.print(&if order.json {
        serde_json::to_string(&outcome)? + "\n"
    } else {
        summary(&outcome, &tally.points)
    })?;
    Ok(if interrupted { INTERRUPTED } else { 0 })
}

fn start(
    training: &dyn crate::training::Training,
    client: &Client,
    devices: &[usize],
    settings: &Settings,
    xla: &[(String, OptionValue)],
) -> Result<Box<dyn Run>> {
    let run = training.start(client, devices, settings.train.seed, xla);
    run.with_context(|| format!("cannot start {}", settings.experiment))
}

fn recorded(client: &Client, devices: &[usize]) -> Result<Recorded> {
    let first = client.device(devices.first().copied().unwrap_or(0))?;
    Ok(Recorded {
        podracer: env!("CARGO_PKG_VERSION").to_owned(),
        platform: client.platform().to_owned(),
        platform_version: client.platform_version().to_owned(),
        plugin: client.plugin().fingerprint().to_owned(),
        device_kind: first.kind().to_owned(),
        devices: devices.to_vec(),
    })
}

/// What the calls so far add up to.
struct Tally {
    started: Instant,
    /// When the first call began.
    began: Option<Instant>,
    ended: Option<Instant>,
    first: Option<FirstCall>,
    env_steps: u64,
    updates: u64,
    calls: u64,
    episodes: u64,
    speed_now: f64,
    mean_return: Option<f64>,
    mean_return_episodes: usize,
    note: String,
    points: Vec<Point>,
}

#[derive(Clone, Copy)]
struct FirstCall {
    ended: Instant,
    env_steps: u64,
    seconds_since_start: f64,
}

impl Tally {
    fn new(started: Instant) -> Self {
        Self {
            started,
            began: None,
            ended: None,
            first: None,
            env_steps: 0,
            updates: 0,
            calls: 0,
            episodes: 0,
            speed_now: 0.0,
            mean_return: None,
            mean_return_episodes: 0,
            note: String::new(),
            points: Vec::new(),
        }
    }

    /// Makes one call and records it.
    fn call(&mut self, run: &mut dyn Run, directory: &mut RunDirectory) -> Result<()> {
        let began = Instant::now();
        let call = run
            .advance()
            .with_context(|| format!("the training failed after {} updates", self.updates))?;
        let ended = Instant::now();
        let seconds = (ended - began).as_secs_f64();
        let before = (self.updates, self.env_steps);
        self.env_steps += call.env_steps;
        self.updates += call.updates;
        self.calls += 1;
        self.episodes += call.episodes;
        self.speed_now = call.env_steps as f64 / seconds.max(f64::MIN_POSITIVE);
        self.mean_return = call.mean_return();
        self.mean_return_episodes = call.recent_returns.len();
        self.note.clone_from(&call.note);
        self.points
            .extend(self.mean_return.map(|mean| (self.env_steps, mean)));
        self.began.get_or_insert(began);
        self.ended = Some(ended);
        self.first.get_or_insert(FirstCall {
            ended,
            env_steps: call.env_steps,
            seconds_since_start: (ended - self.started).as_secs_f64(),
        });
        directory.record(&call, before, seconds)
    }

    /// From the beginning of the first call to the end of the last.
    fn seconds(&self) -> f64 {
        let span = self.began.zip(self.ended);
        span.map_or(0.0, |(began, ended)| (ended - began).as_secs_f64())
    }

    /// Steps per second after the first call; of the first, where there is no other.
    fn steady_speed(&self) -> Option<f64> {
        let (first, ended) = (self.first?, self.ended?);
        let (steps, seconds) = if self.calls > 1 {
            (
                self.env_steps - first.env_steps,
                (ended - first.ended).as_secs_f64(),
            )
        } else {
            (self.env_steps, self.seconds())
        };
        (seconds > 0.0).then(|| steps as f64 / seconds)
    }
}
