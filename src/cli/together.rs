//! One training in several processes. The first of them is the training as it always is: it decides, writes the run directory and
//! shows progress. The others do what it tells them to: an [`Order`] before each step in which all take part.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use podracer_runtime::Checkpoint;
use podracer_runtime::pjrt::{World, exit, launched};

use super::population::Planned;
use super::ready::{Ready, Serving};
use super::{Console, program_name, signals};
use crate::parameters::sha256;
use crate::run_directory::settings_by_key;
use crate::settings::{Settings, UsageError};
use crate::training::Run;

/// Seconds for which another process may be silent, where the settings do not say, or are not known yet; and for which all may take to
/// meet.
const PATIENCE: u64 = 60;

/// The step in which all processes take part next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// A call of the compiled loop.
    Advance,
    /// A checkpoint, with or without the agent's store.
    Save { store: bool },
    /// The end of the training: all is done, or it was interrupted.
    End { done: bool },
}

impl Order {
    const ALL: [Order; 5] = [
        Order::Advance,
        Order::Save { store: false },
        Order::Save { store: true },
        Order::End { done: false },
        Order::End { done: true },
    ];

    /// Tells all other processes.
    pub(super) fn tell(self, world: Option<World>) -> Result<()> {
        if let Some(world) = world {
            let code = Order::ALL.iter().position(|&one| one == self).unwrap_or_default();
            world.hear_first(&[code as u8])?;
        }
        Ok(())
    }

    /// Waits for the first process's word.
    fn hear(world: World) -> Result<Self> {
        let code = world.hear_first(&[])?.first().copied();
        let order = code.and_then(|code| Order::ALL.get(usize::from(code)));
        order.copied().context("the first process gives an order that is not known")
    }
}

/// The error of a training that did not begin in one of the processes. The first one has told it.
#[derive(Debug, thiserror::Error)]
#[error("{problem}")]
pub(super) struct NotBegun {
    problem: String,
    /// True in the process that tells it.
    pub(super) tells: bool,
    /// True if the user made a mistake.
    pub(super) mistake: bool,
}

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

/// Program, settings and devices of a training.
pub(super) fn facts(ready: &Ready) -> Result<Facts> {
    let Ready { settings, recorded, devices, .. } = ready;
    let named = [
        ("the program", binary()?),
        ("the plugin", recorded.plugin.clone()),
        ("the number of devices", devices.len().to_string()),
    ];
    let named = named.into_iter().map(|(name, value)| (name.to_owned(), value));
    Ok(named.chain(flat(settings)?).collect())
}

/// Program, names and settings of runs that the processes share.
pub(super) fn facts_of_runs(runs: &[Planned]) -> Result<Facts> {
    let names: Vec<&str> = runs.iter().map(|run| run.folder.as_str()).collect();
    let mut facts =
        vec![("the program".to_owned(), binary()?), ("the runs".to_owned(), names.join(" "))];
    for run in runs {
        let settings = flat(&run.settings)?.into_iter();
        facts.extend(settings.map(|(key, value)| (format!("{key} of {}", run.folder), value)));
    }
    Ok(facts)
}

/// The settings by dotted key.
fn flat(settings: &Settings) -> Result<BTreeMap<String, String>> {
    Ok(settings_by_key(&settings.to_toml()?.parse()?))
}

/// A process as messages name it.
fn name(world: World, rank: usize) -> String {
    format!("process {rank} ({})", world.members()[rank])
}

/// The processes of a training that is about to begin, in one that follows; `None` in the one that leads, and in one by itself. All are
/// as patient from now on as the settings say.
pub(super) fn following(world: Option<World>, ready: &Ready) -> Option<World> {
    let world = world?;
    let patience = ready.settings.train.patience.unwrap_or(PATIENCE);
    world.be_patient(Duration::from_secs(patience));
    (!world.is_first()).then_some(world)
}

/// Takes part in the training until the first process says that it is over, and gives the exit code. `from` is the checkpoint that all
/// go on from.
pub(super) fn follow(
    world: World,
    ready: &Ready,
    from: Option<&Checkpoint<'_>>,
    serving: Option<Serving>,
) -> Result<u8> {
    let who = || name(world, world.rank());
    let (elsewhere, mut completes) = serving.map(Serving::parts).unzip();
    let mut run = ready.run(Path::new(""), from, elsewhere).with_context(who)?;
    let _heeding = signals::heed();
    // The first process decides when a training that was interrupted ends.
    let never = AtomicBool::new(false);
    loop {
        match Order::hear(world).with_context(who)? {
            Order::Advance => drop(run.advance_until(&never).with_context(who)?),
            Order::Save { store } => give(&mut *run, world, store).with_context(who)?,
            Order::End { done } => {
                if done && let Some(complete) = completes.take() {
                    complete();
                }
                return Ok(0);
            }
        }
    }
}

fn give(run: &mut dyn Run, world: World, store: bool) -> Result<()> {
    same_parameters(world, run)?;
    let part = run.store();
    let mut checkpoint = run.checkpoint()?;
    if !store {
        checkpoint.leave_out(part);
    }
    Ok(checkpoint.give()?)
}

/// Checks that all processes have the same parameters, before a checkpoint is written: they are never sent, and stay the same only as long
/// as each process computes what the others do.
pub(super) fn same_parameters(world: World, run: &dyn Run) -> Result<()> {
    let all = world.gather(sha256(&run.parameters()?).as_bytes())?;
    match all.iter().position(|other| *other != all[0]) {
        None => Ok(()),
        Some(rank) => bail!(
            "{} has other parameters than process 0, though all learn from the same sums: a machine, its memory or the link to it changed a \
             value since the checkpoint before",
            name(world, rank)
        ),
    }
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
fn binary() -> Result<String> {
    let path = std::env::current_exe().context("cannot find this program's file")?;
    let hash = podracer_plugins::sha256(&path)?;
    Ok(format!("{} {}, {}", program_name(), env!("CARGO_PKG_VERSION"), &hash[..16]))
}
