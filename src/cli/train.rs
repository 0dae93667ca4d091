//! `podracer train`: trains an agent, and leaves a run directory behind.

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use anyhow::Result;
use podracer_runtime::World;

use super::arguments::TrainArguments;
use super::exporter::Exporter;
use super::ready::Ready;
use super::session::Session;
#[cfg(feature = "plots")]
use super::watch::Page;
use super::{Console, Program, population, resume, together};
use crate::loading::Overrides;
use crate::run_directory::RunDirectory;
use crate::settings::{Settings, UsageError};

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
        let several = settings(args, program)
            .and_then(|settings| population::seeds(args, seeds.get(), &settings));
        let several = together::agree(world, several, |_| Ok(Vec::new()))?;
        return population::train(several, started, (console, interrupt), program);
    }
    let ready = together::agree(world, ready(args, console, program), together::facts)?;
    if let Some(world) = together::following(world, &ready) {
        return together::follow(world, &ready, None, None);
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

/// A training that is about to begin, in as many processes as its settings say, if they do.
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
