//! `podracer train`

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use anyhow::Result;

use super::session::{Ready, Session};
use super::{Build, Console};
use crate::run_directory::{Counters, RunDirectory};
use crate::settings::{Overrides, load};

/// What to train, and how to say what came of it.
pub(super) struct Order<'a> {
    pub(super) experiment: &'a str,
    pub(super) overrides: &'a Overrides,
    pub(super) run_dir: Option<&'a Path>,
    pub(super) json: bool,
    pub(super) started: Instant,
}

pub(super) fn train(
    order: &Order<'_>,
    console: &mut Console<'_>,
    build: Build<'_>,
    interrupt: &AtomicBool,
) -> Result<u8> {
    let settings = load(order.experiment, order.overrides)?;
    let ready = Ready::new(settings, console, build)?;
    let directory = RunDirectory::create(order.run_dir, &ready.settings, &ready.recorded)?;
    let session = Session {
        ready,
        directory,
        counters: Counters::default(),
        points: Vec::new(),
        from: None,
        json: order.json,
        started: order.started,
    };
    session.run(console, interrupt)
}
