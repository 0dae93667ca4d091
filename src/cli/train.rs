//! `podracer train`

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use anyhow::Result;

use super::session::{Ready, Session};
use super::{Console, Program};
use crate::run_directory::{Counters, RunDirectory};
use crate::settings::Overrides;

/// The arguments of `train`.
pub(super) struct TrainArgs<'a> {
    pub(super) experiment: &'a str,
    pub(super) overrides: &'a Overrides,
    pub(super) run_dir: Option<&'a Path>,
    pub(super) json: bool,
    pub(super) started: Instant,
}

pub(super) fn train(
    args: &TrainArgs<'_>,
    console: &mut Console<'_>,
    program: Program<'_>,
    interrupt: &AtomicBool,
) -> Result<u8> {
    let settings = program.registry.load(args.experiment, args.overrides)?;
    let ready = Ready::new(settings, console, program)?;
    let directory = RunDirectory::create(args.run_dir, &ready.settings, &ready.recorded)?;
    let session = Session {
        ready,
        directory,
        counters: Counters::default(),
        points: Vec::new(),
        from: None,
        json: args.json,
        started: args.started,
    };
    session.run(console, interrupt)
}
