//! The processes of one training: how they meet, agree and end. The first process trains as in a
//! single process: it decides, writes the run directory and shows progress. The other processes
//! follow its orders: an [`Order`](super::order::Order) before each joint step.

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

/// Greatest number of seconds that another process may be silent, unless the settings change it or
/// before they are known. Also the time limit for all processes to meet.
pub(super) const PATIENCE: u64 = 60;

/// Joins the processes that a launcher started together with this process; `None` if there are
/// none, or if `PODRACER_MPI=none` makes each process a separate training.
pub(super) fn join(console: &mut Console<'_>) -> Result<Option<World>> {
    let alone = std::env::var_os("PODRACER_MPI").is_some_and(|named| named == "none");
    let Some(launched) = launched().filter(|_| !alone) else { return Ok(None) };
    let (met, meeting) = mpsc::channel::<()>();
    // MPI itself would wait forever for a missing process.
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

/// Prints an error, from any thread. A closed standard error is ignored.
fn say(problem: &str) {
    let _ = writeln!(io::stderr(), "error: {}", problem.trim_end_matches("; "));
}

/// Facts by name that must be equal in all processes of a training.
pub(super) type Facts = Vec<(String, String)>;

/// Lets all processes continue together, each with its prepared value: only if all of them
/// succeeded, with equal `facts`. Otherwise the first process reports the error, whichever process
/// it occurred in.
pub(super) fn agree<T>(
    world: Option<World>,
    made: Result<T>,
    facts: impl FnOnce(&T) -> Result<Facts>,
) -> Result<T> {
    let Some(world) = world else { return made };
    if made.as_ref().is_err_and(|error| error.is::<NotBegun>()) {
        // All processes already know, from another call.
        return made;
    }
    let made = made.and_then(|made| Ok((facts(&made)?, made)));
    let tells = world.is_first();
    let problem = made.as_ref().err().map(|error| format!("{error:#}")).unwrap_or_default();
    let mistake = made.as_ref().is_err_and(|error| error.is::<UsageError>());
    let all = world.gather(&[&[u8::from(mistake)], problem.as_bytes()].concat())?;
    for (rank, report) in all.iter().enumerate() {
        let (mistake, problem) = report.split_first().unwrap_or((&0, &[]));
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

/// The name of a process in messages.
pub(super) fn name(world: World, rank: usize) -> String {
    format!("process {rank} ({})", world.members()[rank])
}

/// Ends the session of [`join`]: together with the others if the training has ended in all
/// processes; if it failed only in this process, it ends the others too.
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
