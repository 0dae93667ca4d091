//! `podracer train X --seeds N`: runs with several seeds as one program, and a run directory for each.

use std::io;
use std::mem;
use std::num::NonZero;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use anyhow::{Result, anyhow, bail};
use podracer_rl::population::Exploit;
use podracer_runtime::World;

use super::arguments::{Apart, TrainArguments};
use super::named_runs::present_value;
use super::outcomes::Outcomes;
use super::ready::Ready;
use super::{
    Console, FAILURE, INTERRUPTED, Program, one_by_one, one_program, shared_runs, together,
};
use crate::population::{check_exploit, check_shares};
use crate::settings::{Devices, Settings, UsageError};
use crate::training::Column;

/// Most runs of a population: each has a folder.
const MOST: usize = 10_000;

/// Runs that are trained as one program.
pub(super) struct Several<'a> {
    /// The experiment, and what distinguishes the runs: the name of their folder.
    pub(super) name: String,
    /// The runs, which differ in their seeds and in the settings of `keys`.
    pub(super) runs: Vec<Planned>,
    pub(super) keys: Vec<String>,
    pub(super) run_dir: Option<&'a Path>,
    /// The arguments of `train` that all runs share, where each is a process.
    pub(super) common: Vec<String>,
    /// The command's own arguments, for the tasks of an array job.
    pub(super) again: Vec<String>,
    /// Population-based training of the runs, if they are to take over from one another.
    pub(super) exploit: Option<Exploit>,
    /// Most runs of one program.
    pub(super) together: Option<NonZero<usize>>,
    /// Processes of the runs, where they are no program together.
    pub(super) apart: Apart,
    /// True if the user names the devices.
    pub(super) on_devices: bool,
    pub(super) json: bool,
}

impl Several<'_> {
    /// True if the runs are processes even where they could be one program.
    fn apart(&self) -> bool {
        self.apart.launch.is_some() || self.apart.only.is_some()
    }

    /// Refuses runs that are programs of their own, if they are to take over from one another.
    pub(super) fn alone(&self, why: &str) -> Result<(), UsageError> {
        match self.exploit {
            None => Ok(()),
            Some(_) => Err(UsageError::new(format!(
                "--exploit-every is for runs of one program, and {why}"
            ))),
        }
    }

    /// If runs took over from one another, gives each its last settings, followed by its first settings and its seed: each run is then a
    /// row of the results. Its first settings do not describe it, and it is no further seed of its last settings.
    fn settings_at_the_end(&mut self, folder: &Path) {
        if self.exploit.is_none() {
            return;
        }
        for run in &mut self.runs {
            let path = folder.join(&run.folder);
            let first = mem::take(&mut run.chosen);
            let now = |(key, first): (&String, &String)| {
                present_value(&path, key, first).unwrap_or_else(|| first.clone())
            };
            run.chosen = self.keys.iter().zip(&first).map(now).collect();
            run.chosen.extend(first);
            run.chosen.push(run.settings.train.seed.to_string());
        }
        let first = |key: &String| format!("{key} at the beginning");
        let first: Vec<String> = self.keys.iter().map(first).collect();
        self.keys.extend(first);
        self.keys.push("seed".to_owned());
    }

    /// The settings in which the runs differ, as numbers.
    fn columns(&self) -> Result<Vec<Column>> {
        let column = |(index, key): (usize, &String)| {
            let values = self.runs.iter().map(|run| {
                run.chosen[index].parse().map_err(|_| {
                    UsageError::new(format!(
                        "{key} = {}: only numbers differ between the runs of one program",
                        run.chosen[index]
                    ))
                })
            });
            Ok(Column { key: key.clone(), values: values.collect::<Result<_, UsageError>>()? })
        };
        self.keys.iter().enumerate().map(column).collect()
    }
}

/// A run that is to be trained.
pub(super) struct Planned {
    /// The name of its folder.
    pub(super) folder: String,
    /// The values of the keys, as the user writes them.
    pub(super) chosen: Vec<String>,
    /// All settings that the user gives it, each `KEY=VALUE`.
    pub(super) sets: Vec<String>,
    pub(super) settings: Settings,
}

/// A run for each of so many seeds, from that of the settings on.
pub(super) fn seeds<'a>(
    args: &'a TrainArguments,
    number: usize,
    settings: &Settings,
) -> Result<Several<'a>> {
    if args.metrics.is_some() {
        bail!(UsageError::new("--metrics is for one run, and --seeds trains several"));
    }
    #[cfg(feature = "plots")]
    if args.watch.is_some() {
        bail!(UsageError::new(format!(
            "--watch is for one run, and --seeds trains several: `{} watch` shows all runs of their folder",
            super::program_name()
        )));
    }
    at_most(number)?;
    let run = |settings: Settings| Planned {
        folder: format!("seed-{}", settings.train.seed),
        chosen: Vec::new(),
        sets: args.experiment.set.clone(),
        settings,
    };
    let mut common = args.experiment.common(args.steps);
    for (role, devices) in [("actors", &args.actors), ("learners", &args.learners)] {
        let indices = |devices: &Vec<usize>| {
            devices.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
        };
        common.extend(devices.as_ref().map(|devices| format!("--{role}={}", indices(devices))));
    }
    Ok(Several {
        name: format!("{}-{number}seeds", settings.experiment),
        runs: with_seeds(settings, number).map(run).collect(),
        keys: Vec::new(),
        run_dir: args.run_dir.as_deref(),
        again: args.experiment.again("train", &common, (args.seed, number)),
        common,
        exploit: None,
        together: args.together,
        apart: Apart::default(),
        on_devices: args.experiment.devices.is_some(),
        json: args.json,
    })
}

/// Refuses more runs than a population has.
pub(super) fn at_most(number: usize) -> Result<(), UsageError> {
    match number {
        0..=MOST => Ok(()),
        _ => Err(UsageError::new(format!("{number} runs: expected at most {MOST} as one program"))),
    }
}

/// The settings with so many seeds, from theirs on.
pub(super) fn with_seeds(settings: &Settings, number: usize) -> impl Iterator<Item = Settings> {
    (0..number as u64).map(|i| {
        let mut settings = settings.clone();
        settings.train.seed = settings.train.seed.wrapping_add(i);
        settings
    })
}

/// Trains the runs: those that are this process's, where a launcher started several.
pub(super) fn train(
    mut several: Several<'_>,
    started: Instant,
    (console, interrupt): (&mut Console<'_>, &AtomicBool),
    program: Program<'_>,
) -> Result<u8> {
    let world = World::joined();
    if world.is_none_or(World::is_first) {
        return train_own(&mut several, world, started, (console, interrupt), program);
    }
    // The first process tells of all.
    let (mut out, mut err) = (io::sink(), io::sink());
    let console = &mut Console::new(&mut out, &mut err, false);
    train_own(&mut several, world, started, (console, interrupt), program)
}

/// The way in which the runs are trained.
enum Way {
    /// Each is a program, since they cannot be one, or the user wants them so.
    Apart(Option<anyhow::Error>),
    /// They are one program on the devices that are ready, and differ in these settings.
    Together(Box<Ready>, Vec<Column>),
}

impl Way {
    /// The way for the runs at these positions. Nothing is written before it is known.
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
            let reason = anyhow!(
                "the folder has them already, and those that are not done go on by themselves"
            );
            several.alone(&format!("{reason}"))?;
            return Ok(Way::Apart(Some(reason)));
        }
        // The runs share out all devices, and each is one of the settings' own.
        let mut shared = runs[0].settings.clone();
        if !several.on_devices {
            shared.train.devices = Devices::All;
        }
        let mut ready = Ready::by_itself(shared, console, program)?;
        if several.exploit.is_some() {
            // Those that take over from one another are counted by device.
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
                // The devices, which are dropped here, are for the runs' processes.
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
    let (way, own) = together::agree(world, way, |_| together::facts_of_runs(&several.runs))?;
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
