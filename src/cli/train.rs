//! `podracer train`: trains an agent, and leaves a run directory behind.

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use anyhow::Result;

use super::arguments::TrainArguments;
use super::exporter::Exporter;
use super::ready::Ready;
use super::session::Session;
#[cfg(feature = "plots")]
use super::watch::Page;
use super::{Console, Program, population};
use crate::loading::Overrides;
use crate::run_directory::RunDirectory;
use crate::settings::Settings;

pub(super) fn train(
    args: &TrainArguments,
    started: Instant,
    console: &mut Console<'_>,
    program: Program<'_>,
    interrupt: &AtomicBool,
) -> Result<u8> {
    let settings = settings(args, program)?;
    if let Some(seeds) = args.seeds {
        return population::seeds(
            args,
            seeds.get(),
            &settings,
            started,
            (console, interrupt),
            program,
        );
    }
    begin(args, settings, started, console, program)?.run(console, interrupt)
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

/// A training that begins.
pub(super) fn begin(
    args: &TrainArguments,
    settings: Settings,
    started: Instant,
    console: &mut Console<'_>,
    program: Program<'_>,
) -> Result<Session> {
    let ready = Ready::new(settings, console, program)?;
    #[cfg(feature = "plots")]
    let page = args.watch.as_deref().map(Page::at).transpose()?;
    let run = args.run_dir.as_deref();
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
