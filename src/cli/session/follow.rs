//! A process of a training that another process leads: it takes part in each step that the first process orders.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use podracer_runtime::Checkpoint;
use podracer_runtime::pjrt::World;

use super::ready::{Ready, Serving};
use crate::cli::order::Order;
use crate::cli::signals;
use crate::cli::together::{Facts, PATIENCE, binary, flat, name};
use crate::parameters::sha256;
use crate::training::Run;

/// Program, settings and devices of a training.
pub(crate) fn facts(ready: &Ready) -> Result<Facts> {
    let Ready { settings, recorded, devices, .. } = ready;
    let named = [
        ("the program", binary()?),
        ("the plugin", recorded.plugin.clone()),
        ("the number of devices", devices.len().to_string()),
    ];
    let named = named.into_iter().map(|(name, value)| (name.to_owned(), value));
    Ok(named.chain(flat(settings)?).collect())
}

/// The processes of a training that is about to begin, in a process that follows; `None` in the
/// leading process, and in a single process. From now on, all use the settings' patience.
pub(crate) fn following(world: Option<World>, ready: &Ready) -> Option<World> {
    let world = world?;
    let patience = ready.settings.train.patience.unwrap_or(PATIENCE);
    world.be_patient(Duration::from_secs(patience));
    (!world.is_first()).then_some(world)
}

/// Takes part in the training until the first process ends it, and returns the exit code. All
/// processes resume from the checkpoint `from`.
pub(crate) fn follow(
    world: World,
    ready: &Ready,
    from: Option<&Checkpoint<'_>>,
    serving: Option<Serving>,
) -> Result<u8> {
    let who = || name(world, world.rank());
    let (elsewhere, mut completes) = serving.map(Serving::parts).unzip();
    let mut run = ready.run(Path::new(""), from, elsewhere).with_context(who)?;
    let _heeding = signals::heed();
    // The first process decides when an interrupted training ends.
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

/// Checks, before a checkpoint is written, that all processes have the same parameters. Parameters
/// are never sent; they stay in sync only if every process computes the same values.
pub(crate) fn same_parameters(world: World, run: &dyn Run) -> Result<()> {
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
