//! `podracer sweep`: runs with several values of some settings and several seeds, as one program where they can be.

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use podracer_rl::population::Exploit;

use super::arguments::SweepArguments;
use super::axes::{Axis, combinations, several};
use super::population::{Planned, Several, at_most, train, with_seeds};
use super::{Console, Program, together};
use crate::loading::Overrides;
use crate::settings::UsageError;

pub(super) fn sweep(
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
