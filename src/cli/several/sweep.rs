//! `podracer sweep`: runs with several values of some settings and several seeds, as one program if
//! possible.

use std::num::NonZero;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::Args;
use podracer_rl::population::Exploit;

use super::axes::{Axis, combinations, several};
use super::population::{at_most, train, with_seeds};
use super::{Apart, Planned, Several};
use crate::cli::arguments::ExperimentArguments;
use crate::cli::console::Console;
use crate::cli::numbers::{at_least_one, number, steps};
use crate::cli::program::Program;
use crate::cli::together;
use crate::loading::Overrides;
use crate::settings::UsageError;

#[derive(Args, Debug)]
pub(crate) struct SweepArguments {
    #[command(flatten)]
    pub(crate) experiment: ExperimentArguments,
    /// The first seed of each combination
    #[arg(long, allow_negative_numbers = true, value_parser = number())]
    pub(crate) seed: Option<u64>,
    /// Seeds of each combination
    #[arg(long, value_name = "N", default_value = "1", allow_negative_numbers = true, value_parser = at_least_one("seed"))]
    pub(crate) seeds: NonZero<usize>,
    /// Environment steps of each run: 300000, 300k, 2.5M or 1e6
    #[arg(long, allow_negative_numbers = true, value_parser = steps)]
    pub(crate) steps: Option<u64>,
    /// Greatest number of runs in one program; more are trained part by part [default: all, and
    /// half as many if they do not fit into memory]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = at_least_one("run"))]
    pub(crate) together: Option<NonZero<usize>>,
    /// Population-based training: every this many iterations the worst fifth of the runs take over
    /// the agent of a run from the best fifth, with its settings times 0.8 or 1.2
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = at_least_one("iteration"))]
    pub(crate) exploit_every: Option<NonZero<usize>>,
    /// The folder of all run directories [default: the next free runs/<EXPERIMENT>-sweep-<n>]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) run_dir: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) apart: Apart,
    /// Print the results as one JSON object, the last line of standard output
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn sweep(
    args: &SweepArguments,
    started: Instant,
    (console, interrupt): (&mut Console<'_>, &AtomicBool),
    program: Program<'_>,
) -> Result<u8> {
    let world = together::join(console)?;
    let several = together::agree(world, planned(args, program), |_| Ok(Vec::new()))?;
    train(several, started, (console, interrupt), program)
}

/// The runs of a sweep.
fn planned<'a>(args: &'a SweepArguments, program: Program<'_>) -> Result<Several<'a>> {
    let experiment = &args.experiment;
    let (mut axes, mut set): (Vec<Axis>, Vec<String>) = Default::default();
    for text in &experiment.set {
        let values = match text.split_once('=') {
            Some((_, values)) => several(values).with_context(|| format!("--set {text}"))?,
            None => None,
        };
        match (values, text.split_once('=')) {
            (Some(values), Some((key, _))) => axes.push((key.trim().to_owned(), values)),
            _ => set.push(text.clone()),
        }
    }
    if axes.is_empty() {
        bail!(UsageError::new(
            "a sweep needs a setting with several values: `--set agent.learning_rate=1e-4,1e-3`, or `--set agent.learning_rate=log:1e-4..1e-2:8`; \
             `podracer train --seeds N` trains several seeds of one setting"
        ));
    }
    let seeds = args.seeds.get();
    let number = axes.iter().map(|(_, values)| values.len()).try_fold(seeds, usize::checked_mul);
    at_most(number.unwrap_or(usize::MAX))?;
    let mut runs = Vec::new();
    for chosen in combinations(&axes) {
        let overrides = Overrides {
            set: [&set[..], &chosen].concat(),
            seed: args.seed,
            steps: args.steps,
            ..experiment.overrides()
        };
        let settings = program.registry.load(&experiment.experiment, &overrides)?;
        let values = chosen.iter().filter_map(|set| set.split_once('='));
        let values: Vec<String> = values.map(|(_, value)| value.to_owned()).collect();
        runs.extend(with_seeds(&settings, seeds).map(|settings| {
            let of_seed = format!("seed={}", settings.train.seed);
            let folder = chosen.iter().cloned().chain([of_seed]).collect::<Vec<_>>().join(",");
            Planned { folder, chosen: values.clone(), sets: overrides.set.clone(), settings }
        }));
    }
    let common = experiment.common(args.steps);
    let name = runs.first().map_or("sweep", |run| &run.settings.experiment);
    let exploit_every = args.exploit_every.map(|every| format!("--exploit-every={every}"));
    let mut again = experiment.again("sweep", &common, (args.seed, seeds));
    again.extend(exploit_every);
    Ok(Several {
        name: format!("{name}-sweep"),
        keys: axes.into_iter().map(|(key, _)| key).collect(),
        run_dir: args.run_dir.as_deref(),
        again,
        common,
        exploit: args.exploit_every.map(|every| Exploit::every(every.get())),
        together: args.together,
        apart: args.apart.clone(),
        on_devices: experiment.devices.is_some(),
        json: args.json,
        runs,
    })
}
