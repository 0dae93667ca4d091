//! Training of several runs, with a run directory for each.

use std::io;
use std::ops::Range;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use anyhow::{Result, anyhow, bail};
use podracer_runtime::World;

use super::outcomes::Outcomes;
use super::{Planned, Several};
use super::{one_by_one, one_program, shared_runs};
use crate::cli::console::Console;
use crate::cli::program::{FAILURE, INTERRUPTED, Program};
use crate::cli::session::ready::Ready;
use crate::cli::together;
use crate::population::{check_exploit, check_shares};
use crate::settings::{Devices, Settings, UsageError};
use crate::training::Column;

/// Greatest number of runs in a population: each has a folder.
const MOST: usize = 10_000;

/// Rejects more runs than a population may have.
pub(crate) fn at_most(number: usize) -> Result<(), UsageError> {
    match number {
        0..=MOST => Ok(()),
        _ => Err(UsageError::new(format!("{number} runs: expected at most {MOST} as one program"))),
    }
}

/// The settings with `number` seeds, from their own seed on.
pub(crate) fn with_seeds(settings: &Settings, number: usize) -> impl Iterator<Item = Settings> {
    (0..number as u64).map(|i| {
        let mut settings = settings.clone();
        settings.train.seed = settings.train.seed.wrapping_add(i);
        settings
    })
}

/// Trains the runs, or this process's share of them if a launcher started several processes.
pub(crate) fn train(
    mut several: Several<'_>,
    started: Instant,
    (console, interrupt): (&mut Console<'_>, &AtomicBool),
    program: Program<'_>,
) -> Result<u8> {
    let world = World::joined();
    if world.is_none_or(World::is_first) {
        return train_own(&mut several, world, started, (console, interrupt), program);
    }
    // The first process reports for all.
    let (mut out, mut err) = (io::sink(), io::sink());
    let console = &mut Console::new(&mut out, &mut err, false);
    train_own(&mut several, world, started, (console, interrupt), program)
}

/// The way in which the runs are trained.
enum Way {
    /// Each run is a program, because they cannot be one, or because the user requests it.
    Apart(Option<anyhow::Error>),
    /// They are one program on the devices that are ready, and differ in these settings.
    Together(Box<Ready>, Vec<Column>),
}

impl Way {
    /// The way of training for the runs at these indices. Nothing is written before it is known.
    fn of(
        several: &Several<'_>,
        own: Range<usize>,
        console: &mut Console<'_>,
        program: Program<'_>,
    ) -> Result<Self> {
        let number = own.len();
        if several.apart() {
            several.alone("--processes and --launch make a program of each run")?;
            return Ok(Way::Apart(None));
        }
        let runs = &several.runs[own];
        if several.run_dir.is_some_and(|folder| one_by_one::has_begun(runs, folder)) {
            let reason =
                anyhow!("the folder has them already, and unfinished runs resume one by one");
            several.alone(&format!("{reason}"))?;
            return Ok(Way::Apart(Some(reason)));
        }
        // The runs divide all devices, and each run uses one device of the settings.
        let mut shared = runs[0].settings.clone();
        if !several.on_devices {
            shared.train.devices = Devices::All;
        }
        let mut ready = Ready::by_itself(shared, console, program)?;
        if several.exploit.is_some() {
            // Runs that take over agents from each other are counted per device.
            let share = |count: &usize| number.is_multiple_of(*count);
            let most = (1..=ready.devices.len()).rev().find(share).unwrap_or(1);
            if !several.on_devices {
                ready.devices.truncate(most);
            }
            check_shares(number, ready.devices.len())?;
        } else {
            let of_a_device = number.div_ceil(ready.devices.len());
            ready.devices.truncate(number.div_ceil(of_a_device));
        }
        let one_program = match ready.training.populates() {
            Some(populates) => {
                several.columns().and_then(|columns| populates.check(&columns).map(|()| columns))
            }
            None => Err(anyhow!(
                "a loop with environments on the host ([{}]) is more than one program",
                ready.settings.training_loop.section()
            )),
        };
        match one_program {
            Ok(columns) => Ok(Way::Together(Box::new(ready), columns)),
            Err(reason) => {
                several.alone(&format!("{reason:#}"))?;
                // The devices are dropped here, because the runs' processes need them.
                Ok(Way::Apart(Some(reason)))
            }
        }
    }
}

fn train_own(
    several: &mut Several<'_>,
    world: Option<World>,
    started: Instant,
    (console, interrupt): (&mut Console<'_>, &AtomicBool),
    program: Program<'_>,
) -> Result<u8> {
    if several.runs.is_empty() {
        bail!(UsageError::new("there is no run to train"));
    }
    if let Some(exploit) = &several.exploit {
        let number = several.runs.len();
        check_exploit(exploit, number)?;
        if several.together.is_some_and(|most| most.get() < number) {
            several.alone("--together makes several of them")?;
        }
    }
    let own = shared_runs::own(several, world);
    let way = own
        .map_err(Into::into)
        .and_then(|own| Ok((Way::of(several, own.clone(), console, program)?, own)));
    let (way, own) = together::agree(world, way, |_| facts_of_runs(&several.runs))?;
    let folder = shared_runs::folder(several, world)?;
    let tells = world.is_none_or(World::is_first);
    if tells {
        one_by_one::same_as_before(several, &folder)?;
    }
    if several.apart.launch.is_some() {
        return one_by_one::write_script(several, &folder, console);
    }
    let trained = match way {
        Way::Apart(reason) => {
            one_by_one::train(several, (own, &folder), reason.as_ref(), (console, interrupt))?
        }
        Way::Together(ready, columns) => {
            let of = (&*ready, columns, own, &*folder);
            one_program::train(several, of, started, (console, interrupt))?
        }
    };
    let trained = trained.of_all(world)?;
    let code = match (trained.interrupted, trained.failed.is_empty()) {
        (true, _) => INTERRUPTED,
        (false, true) => 0,
        (false, false) => FAILURE,
    };
    if tells {
        several.settings_at_the_end(&folder);
        Outcomes::of(several, &folder, trained).tell(several.json, console)?;
    }
    Ok(code)
}

/// Program, names and settings of runs, which must be equal in all processes.
fn facts_of_runs(runs: &[Planned]) -> Result<together::Facts> {
    let names: Vec<&str> = runs.iter().map(|run| run.folder.as_str()).collect();
    let mut facts = vec![
        ("the program".to_owned(), together::binary()?),
        ("the runs".to_owned(), names.join(" ")),
    ];
    for run in runs {
        let settings = together::flat(&run.settings)?.into_iter();
        facts.extend(settings.map(|(key, value)| (format!("{key} of {}", run.folder), value)));
    }
    Ok(facts)
}
