//! An Atari game with learning, compared with its parts alone: the environments, inference and
//! iterations. If the processors did nothing else, the run would be as fast as predicted. Time that
//! a virtual machine's host takes from the processors during the run is not part of it.

use std::thread;

use anyhow::{Context, Result, bail};
use clap::Args;
use podracer::settings::{Settings, TrainingLoop};
use podracer_envs::Space;
use podracer_envs::host::server::{ServerOptions, Servers};
use podracer_envs::host::{HostEnvironment, HostSpec, Random, StepMemory};
use podracer_plugins::package_set;
use serde_json::json;

use crate::experiment::{Cost, Experiment, Stopwatch};
use crate::support::{Figures, Table, judged, say, si, time};

/// Lowest share of the predicted speed that is good enough.
const TARGET: f64 = 0.9;

#[derive(Args)]
pub struct AtariOptions {
    /// The experiment, in environments of ale-py.
    #[arg(long, default_value = "atari-pong-ppo")]
    game: String,
    /// A setting of it, such as `sebulba.threads=1`; may be given several times.
    #[arg(long)]
    game_set: Vec<String>,
    /// Seconds of the run with learning, a round.
    #[arg(long, default_value_t = 8.0)]
    game_seconds: f64,
    /// Seconds of each part by itself, between rounds.
    #[arg(long, default_value_t = 2.0)]
    part_seconds: f64,
}

pub fn run(options: &AtariOptions, rounds: usize) -> Result<()> {
    let experiment = Experiment::load(&options.game, 1, &options.game_set)?;
    let settings = &experiment.settings;
    if settings.environment_name() != "atari" {
        bail!("{} is not a game of ale-py", settings.environment_name());
    }
    let frames = settings.environment.get("action_repeat").and_then(toml::Value::as_integer);
    let frames = frames.context("games have action_repeat")? as usize;
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let (acted, learnt) = experiment.steps();
    let mut ratios = Figures::default();
    let mut table = Table::new(&[
        "environment",
        "inference",
        "iteration",
        "processors given",
        "predicted, frames/s",
        "measured",
        "ratio",
    ]);
    let mut games = Games::start(&experiment.settings)?;
    let mut programs = experiment.programs()?;
    // Of a step of one environment, by the processors.
    let mut parts = || -> Result<[f64; 3]> {
        let seconds = options.part_seconds;
        Ok([
            games.play(seconds)?.processor,
            programs.act.time(seconds)?.processor / acted as f64,
            programs.learn.time(seconds)?.processor / learnt as f64,
        ])
    };
    let mut run = experiment.start(0)?;
    run.settle()?;
    // Before each round and after it, since the speed of a virtual machine's processors changes within seconds.
    let mut before = parts()?;
    for _ in 0..rounds {
        let ran = run.train(options.game_seconds)?;
        run.settle()?;
        let after = parts()?;
        let parts: [f64; 3] = std::array::from_fn(|i| (before[i] + after[i]) / 2.0);
        before = after;
        let given = cores as f64 - ran.cost.stolen / ran.cost.wall;
        let predicted = given / parts.iter().sum::<f64>();
        let ratio = ran.speed() / predicted;
        say(&json!({
            "frames_per_second": ran.speed() * frames as f64,
            "predicted": predicted * frames as f64,
            "environment": parts[0],
            "inference": parts[1],
            "iteration": parts[2],
            "processors_given": given,
            "processors": ran.cost.processor / ran.cost.wall,
            "seconds": ran.cost.wall,
            "seconds_of_threads": ran.times,
        }));
        ratios.extend([ratio]);
        let [environment, inference, iteration] = parts.map(time);
        table.row([
            environment,
            inference,
            iteration,
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

/// As many batches at a time as the run has. Random actions are taken in them.
struct Games(Vec<Game>);

struct Game {
    batch: Servers,
    memory: StepMemory,
    random: Random,
}

impl Games {
    fn start(settings: &Settings) -> Result<Self> {
        let TrainingLoop::Sebulba(shape) = &settings.training_loop else {
            bail!("{} is no run of Sebulba", settings.experiment);
        };
        let options = ServerOptions::new(package_set("atari")?.install()?, &settings.environment)?;
        let start = |actor| -> Result<Game> {
            let mut batch = Servers::start(&options, shape.environments)?;
            let mut memory = StepMemory::new(batch.spec());
            batch.reset(0, actor * shape.environments, &mut memory.step())?;
            Ok(Game { batch, memory, random: Random::from_state(0) })
        };
        Ok(Games((0..shape.threads).map(start).collect::<Result<_>>()?))
    }

    /// Cost of a step of one environment.
    fn play(&mut self, seconds: f64) -> Result<Cost> {
        let watch = Stopwatch::start()?;
        let steps = thread::scope(|scope| {
            let threads: Vec<_> = (self.0.iter_mut())
                .map(|game| scope.spawn(|| game.play(&watch, seconds)))
                .collect();
            let joined =
                (threads.into_iter()).map(|thread| thread.join().expect("an actor does not panic"));
            joined.sum::<Result<usize>>()
        })?;
        Ok(watch.read()?.each(steps))
    }
}

impl Game {
    /// Steps its environments for this many seconds, and counts their steps.
    fn play(&mut self, watch: &Stopwatch, seconds: f64) -> Result<usize> {
        let HostSpec { action: Space::Discrete { n, .. }, environments, .. } = *self.batch.spec()
        else {
            bail!("games have discrete actions");
        };
        let mut steps = 0;
        while watch.wall() < seconds {
            let actions =
                (0..environments).flat_map(|_| (self.random.below(n) as i32).to_le_bytes());
            (self.batch).step(&actions.collect::<Vec<u8>>(), &mut self.memory.step())?;
            steps += environments;
        }
        Ok(steps)
    }
}
