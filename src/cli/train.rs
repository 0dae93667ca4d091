//! `podracer train`: trains an agent, and writes a run directory.

use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use anyhow::{Result, bail};
use clap::Args;
use podracer_runtime::World;

use super::arguments::ExperimentArguments;
use super::console::Console;
#[cfg(feature = "plots")]
use super::inspect::watch::{HERE, Page};
use super::numbers::{at_least_one, number, steps};
use super::program::Program;
use super::resume::{self, ResumeArguments};
use super::session::exporter::Exporter;
use super::session::ready::Ready;
use super::session::{Session, follow};
use super::several::population;
use super::several::{Apart, Planned, Several};
use super::together;
use crate::loading::Overrides;
#[cfg(feature = "plots")]
use crate::program_name::program_name;
use crate::run_directory::RunDirectory;
use crate::settings::{Settings, UsageError};

#[derive(Args, Debug)]
pub(super) struct TrainArguments {
    #[command(flatten)]
    pub(super) experiment: ExperimentArguments,
    /// Seed of all randomness
    #[arg(long, allow_negative_numbers = true, value_parser = number())]
    pub(super) seed: Option<u64>,
    /// Train this many runs as one program, with consecutive seeds from --seed on, and one run
    /// directory each
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = at_least_one("seed"))]
    pub(super) seeds: Option<NonZero<usize>>,
    /// Greatest number of runs in one program, with --seeds; more are trained part by part
    /// [default: all, and half as many if they do not fit into memory]
    #[arg(long, value_name = "N", requires = "seeds", allow_negative_numbers = true, value_parser = at_least_one("run"))]
    pub(super) together: Option<NonZero<usize>>,
    /// Environment steps in total: 300000, 300k, 2.5M or 1e6
    #[arg(long, allow_negative_numbers = true, value_parser = steps)]
    pub(super) steps: Option<u64>,
    /// With [sebulba] or [central]: the devices that act (`0`, `0,1`) [default: a quarter of the devices]
    #[arg(long, value_name = "DEVICES", value_delimiter = ',')]
    pub(super) actors: Option<Vec<usize>>,
    /// With [sebulba] or [central]: the devices that learn (`1,2,3`) [default: as many of the others as the environments divide over]
    #[arg(long, value_name = "DEVICES", value_delimiter = ',')]
    pub(super) learners: Option<Vec<usize>>,
    /// The run directory [default: the next free runs/<EXPERIMENT>-<seed>-<n>]
    #[arg(long, value_name = "FOLDER")]
    pub(super) run_dir: Option<PathBuf>,
    /// Resume the run in --run-dir with its settings if it has a checkpoint, and start it
    /// otherwise: for jobs that are restarted
    #[arg(long, requires = "run_dir", conflicts_with = "seeds")]
    pub(super) resume: bool,
    /// Serve the metrics to Prometheus at this address
    #[arg(long, value_name = "HOST:PORT")]
    pub(super) metrics: Option<String>,
    /// Show the run in a page, at this address or at http://127.0.0.1:7280
    #[cfg(feature = "plots")]
    #[arg(long, value_name = "HOST:PORT", num_args = 0..=1, default_missing_value = HERE)]
    pub(super) watch: Option<String>,
    /// Print the result as one JSON object, the last line of standard output
    #[arg(long)]
    pub(super) json: bool,
}

impl TrainArguments {
    /// The arguments of `resume`, if `--resume` is given and the run in the run directory has
    /// begun.
    pub(super) fn goes_on(&self) -> Option<ResumeArguments> {
        let run = self.run_dir.as_deref().filter(|_| self.resume)?;
        RunDirectory::has_begun(run).then(|| self.going_on(run))
    }

    /// The arguments of `resume` for a resumed run.
    pub(super) fn going_on(&self, run: &Path) -> ResumeArguments {
        ResumeArguments {
            run: run.to_owned(),
            steps: self.steps,
            devices: self.experiment.devices.clone(),
            actors: self.actors.clone(),
            learners: self.learners.clone(),
            trust: self.experiment.trust,
            metrics: self.metrics.clone(),
            json: self.json,
        }
    }
}

pub(super) fn train(
    args: &TrainArguments,
    started: Instant,
    console: &mut Console<'_>,
    program: Program<'_>,
    interrupt: &AtomicBool,
) -> Result<u8> {
    if let Some(args) = args.goes_on() {
        return resume::resume(&args, started, console, program, interrupt);
    }
    let world = together::join(console)?;
    if let Some(seeds) = args.seeds {
        let several =
            settings(args, program).and_then(|settings| of_seeds(args, seeds.get(), &settings));
        let several = together::agree(world, several, |_| Ok(Vec::new()))?;
        return population::train(several, started, (console, interrupt), program);
    }
    let ready = together::agree(world, ready(args, console, program), follow::facts)?;
    if let Some(world) = follow::following(world, &ready) {
        return follow::follow(world, &ready, None, None);
    }
    begin(args, ready, started, console)?.run(console, interrupt)
}

/// The settings of a training that begins.
pub(super) fn settings(args: &TrainArguments, program: Program<'_>) -> Result<Settings> {
    let overrides = Overrides {
        seed: args.seed,
        steps: args.steps,
        actors: args.actors.clone(),
        learners: args.learners.clone(),
        ..args.experiment.overrides()
    };
    program.registry.load(&args.experiment.experiment, &overrides)
}

/// A training that is about to begin, in as many processes as its settings request, if they request
/// any.
pub(super) fn ready(
    args: &TrainArguments,
    console: &mut Console<'_>,
    program: Program<'_>,
) -> Result<Ready> {
    let settings = settings(args, program)?;
    let started = World::joined().map_or(1, World::size);
    let asked = settings.train.processes.unwrap_or(started);
    if asked != started {
        return Err(UsageError::new(format!(
            "train.processes = {asked}, and the launcher started {started}: start as many (`mpirun -n {asked}`)"
        ))
        .into());
    }
    Ready::new(settings, console, program)
}

/// A training that begins.
pub(super) fn begin(
    args: &TrainArguments,
    ready: Ready,
    started: Instant,
    console: &mut Console<'_>,
) -> Result<Session> {
    #[cfg(feature = "plots")]
    let page = args.watch.as_deref().map(Page::at).transpose()?;
    let run = args.run_dir.as_deref();
    if let Some(run) = run.filter(|_| args.resume) {
        RunDirectory::give_way(run)?;
    }
    let directory = RunDirectory::create(run, &ready.settings, &ready.recorded)?;
    #[cfg(feature = "plots")]
    if let Some(page) = page {
        page.follow(directory.path(), console)?;
    }
    Ok(Session {
        json: args.json,
        exporter: Exporter::of(args.metrics.as_deref(), console)?,
        ..Session::beginning(ready, directory, started)
    })
}

/// Runs with `number` seeds, from the seed of the settings on.
fn of_seeds<'a>(
    args: &'a TrainArguments,
    number: usize,
    settings: &Settings,
) -> Result<Several<'a>> {
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
    population::at_most(number)?;
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
    Ok(Several {
        name: format!("{}-{number}seeds", settings.experiment),
        runs: population::with_seeds(settings, number).map(run).collect(),
        keys: Vec::new(),
        run_dir: args.run_dir.as_deref(),
        again: args.experiment.again("train", &common, (args.seed, number)),
        common,
        exploit: None,
        together: args.together,
        apart: Apart::default(),
        on_devices: args.experiment.devices.is_some(),
        json: args.json,
    })
}
