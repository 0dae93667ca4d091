//! Processes that a command starts, each a run of this program.

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};
use podracer_plugins::{read_regular_text, unblocked};

use super::signals;

/// Most bytes that a process prints.
pub(super) const LARGEST: u64 = 64 << 20;

/// Starts a process that reads nothing, prints into these files, and ends when this one does.
pub(super) fn start(command: &mut Command, out: File, err: File) -> Result<Child> {
    command.env(signals::ENDS_WITH, std::process::id().to_string());
    command.stdin(Stdio::null()).stdout(out).stderr(err);
    unblocked(|| command.spawn()).context("cannot start a run")
}

/// The last error that a process printed into a file, or its last line.
pub(super) fn last_words(printed: &Path) -> String {
    let said = read_regular_text(printed, LARGEST).unwrap_or_default();
    let error = said.lines().rfind(|line| line.starts_with("error"));
    let last = error.or(said.lines().next_back()).unwrap_or("it ended without a word");
    last.trim_start_matches("error: ").to_owned()
}
