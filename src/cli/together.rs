//! The processes of one training: how they meet, agree and end. The first process is the training as it always is: it decides, writes the
//! run directory and shows progress. The others do what it tells them to: an [`Order`](super::order::Order) before each step in which all
//! take part.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use podracer_runtime::pjrt::{World, exit, launched};

use super::console::Console;
use super::order::NotBegun;
use super::signals;
use crate::program_name::program_name;
use crate::run_directory::settings_by_key;
use crate::settings::{Settings, UsageError};

/// Seconds for which another process may be silent, where the settings do not say, or are not known yet; and for which all may take to
/// meet.
pub(super) const PATIENCE: u64 = 60;

/// Joins the processes that a launcher started together with this one; `None` if there are none, or `PODRACER_MPI=none` says that each
/// is a training by itself.
pub(super) fn join(console: &mut Console<'_>) -> Result<Option<World>> {
    let alone = std::env::var_os("PODRACER_MPI").is_some_and(|named| named == "none");
    let Some(launched) = launched().filter(|_| !alone) else { return Ok(None) };
    let (met, meeting) = mpsc::channel::<()>();
    // MPI itself waits for ever for a process that does not come.
    thread::spawn(move || {
        if meeting.recv_timeout(Duration::from_secs(PATIENCE)) == Err(RecvTimeoutError::Timeout) {
            say(&format!("the {} processes did not meet within {PATIENCE} s", launched.size));
            exit(1);
        }
    });
    let world = World::join(launched)?;
    drop(met);
    console.follows = !world.is_first();
    world.watch(Duration::from_secs(PATIENCE), move |problem| match world.rank() {
        0 => say(&format!("{problem}; {}", signals::left())),
        rank => say(&format!("{}: {problem}", name(world, rank))),
    })?;
    Ok(Some(world))
}

/// Prints an error, from any thread. Nobody is there to tell where standard error is closed.
fn say(problem: &str) {
    let _ = writeln!(io::stderr(), "error: {}", problem.trim_end_matches("; "));
}

/// Facts that the processes of a training must have alike, by name.
pub(super) type Facts = Vec<(String, String)>;

/// Lets all processes go on together, each with what it has made ready: only if all of them could, and what they have made has the same
/// `facts`. Otherwise the first one tells the error, whoever has it.
pub(super) fn agree<T>(
    world: Option<World>,
    made: Result<T>,
    facts: impl FnOnce(&T) -> Result<Facts>,
) -> Result<T> {
    let Some(world) = world else { return made };
    if made.as_ref().is_err_and(|error| error.is::<NotBegun>()) {
        // All know, by another call.
        return made;
    }
    let made = made.and_then(|made| Ok((facts(&made)?, made)));
    let tells = world.is_first();
    let problem = made.as_ref().err().map(|error| format!("{error:#}")).unwrap_or_default();
    let mistake = made.as_ref().is_err_and(|error| error.is::<UsageError>());
    let all = world.gather(&[&[u8::from(mistake)], problem.as_bytes()].concat())?;
    for (rank, told) in all.iter().enumerate() {
        let (mistake, problem) = told.split_first().unwrap_or((&0, &[]));
        if !problem.is_empty() {
            let problem = String::from_utf8_lossy(problem);
            let problem = match rank {
                0 => problem.into_owned(),
                _ => format!("{}: {problem}", name(world, rank)),
            };
            return Err(NotBegun { problem, tells, mistake: *mistake == 1 }.into());
        }
    }
    let (facts, made) = made?;
    if let Err(error) = world.agree(&facts) {
        let problem =
            format!("{error}; PODRACER_MPI=none in each makes them trainings of their own");
        return Err(NotBegun { problem, tells, mistake: true }.into());
    }
    Ok(made)
}

/// The settings by dotted key.
pub(super) fn flat(settings: &Settings) -> Result<BTreeMap<String, String>> {
    Ok(settings_by_key(&settings.to_toml()?.parse()?))
}

/// A process as messages name it.
pub(super) fn name(world: World, rank: usize) -> String {
    format!("process {rank} ({})", world.members()[rank])
}

/// Ends what [`join`] began: with all others where the training has ended in all processes, and all others with it where it failed
/// in this one.
pub(super) fn end(world: World, code: u8, all: bool, console: &mut Console<'_>) -> u8 {
    if all {
        match world.leave() {
            Ok(()) => return code,
            Err(error) => console.say(&format!("error: {}: {error}", name(world, world.rank()))),
        }
    }
    world.abort(code.max(1))
}

/// The version of this program, and a hash of its file.
pub(super) fn binary() -> Result<String> {
    let path = std::env::current_exe().context("cannot find this program's file")?;
    let hash = podracer_plugins::sha256(&path)?;
    Ok(format!("{} {}, {}", program_name(), env!("CARGO_PKG_VERSION"), &hash[..16]))
}
