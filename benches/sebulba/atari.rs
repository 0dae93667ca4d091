//! An Atari game with learning, beside what its parts take by themselves: the environments, inference and updates. If the
//! processors did nothing but these, the run would be as fast as is predicted. What a virtual machine's host kept of the
//! processors during the run is none of theirs.

use std::thread;

use anyhow::{Context, Result};
use clap::Args;
use podracer::settings::{EnvironmentSettings, Settings};
use podracer_envs::Space;
use podracer_envs::host::server::{ServerOptions, Servers};
use podracer_envs::host::{HostEnvironment, Random, StepMemory};
use podracer_plugins::package_set;
use serde_json::json;

use crate::experiment::{Cost, Experiment, Stopwatch};
use crate::support::{Figures, Table, judged, say, si, time};

/// What the speed must be, of the predicted one.
const TARGET: f64 = 0.9;

#[derive(Args)]
pub struct AtariOptions {
    /// Which experiment, one in environments of ale-py.
    #[arg(long, default_value = "atari-pong-ppo")]
    game: String,
    /// A setting of it, such as `sebulba.threads=1`; may be given several times.
    #[arg(long)]
    game_set: Vec<String>,
    /// Seconds of the run with learning.
    #[arg(long, default_value_t = 20.0)]
    game_seconds: f64,
    /// Seconds of each part by itself.
    #[arg(long, default_value_t = 4.0)]
    part_seconds: f64,
}

pub fn run(options: &AtariOptions, rounds: usize) -> Result<()> {
    let experiment = Experiment::load(&options.game, 1, &options.game_set)?;
    let frames = match &experiment.settings.environment {
        EnvironmentSettings::Atari(game) => game.processing.action_repeat,
        other => anyhow::bail!("{} is not a game of ale-py", other.name()),
    };
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let (acted, learnt) = experiment.steps();
    let mut ratios = Figures::default();
    let mut table = Table::new(&[
        "environment",
        "inference",
        "update",
        "processors given",
        "predicted, frames/s",
        "measured",
        "ratio",
    ]);
    // Of an environment step, by the processors.
    let parts = || -> Result<[f64; 3]> {
        let environment = play(&experiment.settings, options.part_seconds)?;
        let alone = experiment.alone(options.part_seconds)?;
        Ok([
            environment.processor,
            alone.act.processor / acted as f64,
            alone.learn.processor / learnt as f64,
        ])
    };
    for round in 0..rounds {
        // Before the run and after it, since the machine may be another one after it.
        let before = parts()?;
        let ran = experiment.run(round as u64, options.game_seconds)?;
        let after = parts()?;
        let parts: [f64; 3] = std::array::from_fn(|i| (before[i] + after[i]) / 2.0);
        let given = cores as f64 - ran.cost.stolen / ran.cost.wall;
        let predicted = given / parts.iter().sum::<f64>();
        let ratio = ran.speed() / predicted;
        say(&json!({
            "frames_per_second": ran.speed() * frames as f64,
            "predicted": predicted * frames as f64,
            "environment": parts[0],
            "inference": parts[1],
            "update": parts[2],
            "processors_given": given,
            "processors": ran.cost.processor / ran.cost.wall,
            "seconds": ran.cost.wall,
            "seconds_of_threads": ran.times,
        }));
        ratios.extend([ratio]);
        let [environment, inference, update] = parts.map(time);
        table.row([
            environment,
            inference,
            update,
            format!("{given:.2}"),
            si(predicted * frames as f64),
            si(ran.speed() * frames as f64),
            format!("{ratio:.2}"),
        ]);
    }
    let mut verdict = vec![String::new(); 7];
    verdict[0] = "median".to_owned();
    verdict[6] = judged(ratios.median(), ratios.median() >= TARGET);
    table.row(verdict);
    table.print("An Atari game; the parts by themselves, of a step of one environment");
    Ok(())
}

/// Random actions in as many batches at a time as the run has; what a step of one environment takes.
fn play(settings: &Settings, seconds: f64) -> Result<Cost> {
    let shape = settings.sebulba.clone().context("a run of Sebulba")?;
    let options = ServerOptions::new(package_set("atari")?.install()?, &settings.environment)?;
    let start = |_| Servers::start(&options, shape.environments);
    let batches = (0..shape.threads)
        .map(start)
        .collect::<Result<Vec<_>, _>>()?;
    let mut actors = Vec::new();
    for (actor, mut batch) in batches.into_iter().enumerate() {
        let mut memory = StepMemory::new(batch.spec());
        batch.reset(0, actor * shape.environments, &mut memory.step())?;
        actors.push((batch, memory));
    }
    let watch = Stopwatch::start()?;
    let act = |(mut batch, mut memory): (Servers, StepMemory)| -> Result<(usize, Servers)> {
        let Space::Discrete { n } = batch.spec().action else {
            anyhow::bail!("games have discrete actions");
        };
        let (mut random, mut steps) = (Random::from_state(0), 0);
        while watch.wall() < seconds {
            let actions =
                (0..shape.environments).flat_map(|_| (random.below(n) as i32).to_le_bytes());
            batch.step(&actions.collect::<Vec<u8>>(), &mut memory.step())?;
            steps += shape.environments;
        }
        Ok((steps, batch))
    };
    let acted = thread::scope(|scope| {
        let threads: Vec<_> = (actors.into_iter())
            .map(|actor| scope.spawn(|| act(actor)))
            .collect();
        let joined = threads
            .into_iter()
            .map(|thread| thread.join().expect("an actor does not panic"));
        joined.collect::<Result<Vec<_>>>()
    })?;
    // The servers are still there, so that what they took is counted.
    let steps = acted.iter().map(|(steps, _)| steps).sum();
    Ok(watch.read()?.each(steps))
}
