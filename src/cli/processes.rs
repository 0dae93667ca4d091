//! Processes that a command starts; each runs this program.

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};
use podracer_plugins::{read_regular_text, unblocked};

use super::console::Console;
use super::signals;

/// Greatest number of bytes that a process prints.
pub(super) const LARGEST: u64 = 64 << 20;

/// Starts a process that reads nothing, prints into these files, and ends when this process does.
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

/// Submits a job's file by a command, or prints that command, and prints the file's path.
pub(super) fn submitted(
    path: &Path,
    by: &[&str],
    submit: bool,
    console: &mut Console<'_>,
) -> Result<u8> {
    let command = format!("{} {}", by.join(" "), path.display());
    if submit {
        let mut submitting = Command::new(by[0]);
        submitting.args(&by[1..]).arg(path);
        let submitted = unblocked(|| submitting.spawn()).and_then(|mut child| child.wait());
        let status = submitted
            .with_context(|| format!("cannot run `{}`, which submits the script", by[0]))?;
        ensure!(status.success(), "`{command}` failed: {status}");
    } else {
        console.say(&format!("`{command}` submits it"));
    }
    console.print(&format!("{}\n", path.display()))?;
    Ok(0)
}

/// A word in the shell's quotes.
pub(super) fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// A word as a shell reads it back, in quotes if it needs them.
pub(super) fn word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => quoted(word),
    }
}
