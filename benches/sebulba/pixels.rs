//! V-trace on 84 by 84 pixels, compared with Cleanba's schedule in JAX on the same network: the
//! cost of a step outside the devices' programs.
//!
//! The peer steps Catch in NumPy, in its own process. Ours steps it natively, and once more the peer's very class, which an
//! environment server has. What both compute is compared step by step before anything is timed.
//!
//! All figures are processor time: the whole run's, including environments, minus the time of the
//! programs on its devices. Two cores run all threads of either side, so that a second spent
//! outside the programs is taken from them. Unlike wall time, processor time does not depend on the
//! order of the threads.

use anyhow::{Context, Result, ensure};
use clap::Args;
use podracer_envs::host::server::{ServerOptions, Servers};
use podracer_envs::host::{HostEnvironment, PixelCatch, Pool, Random, StepMemory};
use podracer_plugins::package_set;
use serde_json::{Value, json};

use crate::experiment::{Experiment, Stopwatch};
use crate::support::{Figures, Peer, Table, judged, number, root, say, si};

/// Greatest processor time of a step outside of the programs that is good enough, as a multiple of the peer's.
const TARGET: f64 = 0.5;
/// The peer's environments, as Gymnasium calls them.
const ID: &str = "pixel_catch:PixelCatch-v0";

#[derive(Args)]
pub struct PixelOptions {
    /// Environments of each of two actor threads.
    #[arg(long, value_delimiter = ',', default_values_t = [16, 64])]
    pixel_environments: Vec<usize>,
    /// Channels of the network's first layer; the other layers have multiples of it. The experiment
    /// has 16. The cost of a step outside the programs does not depend on them, and is easier to
    /// separate from small programs.
    #[arg(long, value_delimiter = ',', default_values_t = [16, 2])]
    pixel_channels: Vec<usize>,
    /// Seconds of a run of ours.
    #[arg(long, default_value_t = 5.0)]
    pixel_seconds: f64,
    /// Environment steps of a run of the peer's.
    #[arg(long, default_value_t = 100_000)]
    pixel_steps: usize,
}

#[derive(Clone, Copy)]
struct Shape {
    /// Environments of each actor thread.
    environments: usize,
    /// Channels of the network's first layer.
    channels: usize,
}

/// Figures of all rounds, of a step: by the clock, and by the processors in the programs, outside of them, and of these in
/// the environments where nothing else runs.
#[derive(Default)]
struct Measured {
    speed: Figures,
    programs: Figures,
    outside: Figures,
    environment: Figures,
}

impl Measured {
    fn add(&mut self, who: &str, shape: Shape, speed: f64, programs: f64, whole: f64) {
        say(&json!({
            "who": who,
            "environments": shape.environments,
            "channels": shape.channels,
            "steps_per_second": speed,
            "programs": programs,
            "whole": whole,
        }));
        self.speed.extend([speed]);
        self.programs.extend([programs]);
        self.outside.extend([whole - programs]);
    }
}

pub fn run(options: &PixelOptions, rounds: usize) -> Result<()> {
    let peer = Peer::prepare("cpu")?;
    compare_steps()?;
    let mut table = Table::new(&[
        "environments of a thread",
        "channels",
        "who",
        "steps/s",
        "programs, us a step",
        "outside, us a step",
        "environments by themselves",
        "of the peer's",
    ]);
    let shapes = (options.pixel_environments.iter()).flat_map(|&environments| {
        (options.pixel_channels.iter()).map(move |&channels| Shape { environments, channels })
    });
    for shape in shapes {
        let environments = shape.environments;
        let [mut native, mut served, mut theirs] = [(); 3].map(|()| Measured::default());
        for round in 0..rounds {
            ours(&mut native, "native", &[], shape, round, options)?;
            let sets = [
                "environment.name=gymnasium".to_owned(),
                format!("environment.id={ID}"),
                "environment.vectorization=native".to_owned(),
                "environment.bootstrap_time_limit=false".to_owned(),
            ];
            ours(&mut served, "served", &sets, shape, round, options)?;
            let arguments = [
                format!("--num-envs={environments}"),
                format!("--channels={}", shape.channels),
                format!("--total-timesteps={}", options.pixel_steps),
                format!("--seed={round}"),
                "--alone-seconds=2".to_owned(),
            ];
            let line = peer.run("sebulba_catch.py", &arguments)?;
            peers(&mut theirs, &line, shape)?;
            let pool = Pool::new(&PixelCatch::default(), environments);
            native.environment.extend([play(pool)?]);
            served.environment.extend([play(serve(environments)?)?]);
        }
        for (who, one) in [
            ("ours, native", &native),
            ("ours, the peer's environments", &served),
            ("the peer", &theirs),
        ] {
            let (outside, of_peer) = (one.outside.median(), theirs.outside.median());
            let ratio = outside / of_peer;
            table.row([
                environments.to_string(),
                shape.channels.to_string(),
                who.to_owned(),
                si(one.speed.median()),
                format!("{:.1}", 1e6 * one.programs.median()),
                format!("{:.1}", 1e6 * outside),
                format!("{:.1}", 1e6 * one.environment.median()),
                match who {
                    "the peer" => String::new(),
                    // The programs' own time is not that exact.
                    _ if outside.min(of_peer) <= 0.0 => "cannot be told".to_owned(),
                    _ => judged(ratio, ratio <= TARGET),
                },
            ]);
        }
    }
    table.print("V-trace on pixel Catch, one actor and one learner device; processors' time");
    Ok(())
}

fn ours(
    measured: &mut Measured,
    who: &str,
    sets: &[String],
    shape: Shape,
    round: usize,
    options: &PixelOptions,
) -> Result<()> {
    let Shape { environments, channels } = shape;
    let size = [
        format!("sebulba.environments={environments}"),
        format!("agent.convs=[[{channels}, 7, 7], [{}, 2, 2]]", 2 * channels),
        format!("agent.features={}", 8 * channels),
    ];
    let experiment = Experiment::load("catch-impala", 1, &[sets, &size].concat())?;
    let (acted, learnt) = experiment.steps();
    let unroll = experiment.settings.training_loop.unroll();
    let mut alone = experiment.programs()?;
    let programs = alone.act.time(2.0)?.processor / acted as f64
        + alone.finish.time(2.0)?.processor / (acted * unroll) as f64
        + alone.learn.time(2.0)?.processor / learnt as f64;
    let ran = experiment.start(round as u64)?.train(options.pixel_seconds)?;
    measured.add(who, shape, ran.speed(), programs, ran.cost.processor / ran.steps as f64);
    Ok(())
}

fn peers(measured: &mut Measured, line: &Value, shape: Shape) -> Result<()> {
    let steps = number(line, "env_steps")?;
    let (threads, unroll) = (number(line, "threads")?, number(line, "unroll")?);
    let acted = shape.environments as f64;
    let programs =
        [("act", acted), ("finish", acted * unroll), ("learn", acted * unroll * threads)];
    let alone = |name: &str, steps: f64| {
        let processor = line["alone"][name][1].as_f64();
        Ok(processor.with_context(|| format!("no `alone.{name}` in {line}"))? / steps)
    };
    let each = programs.iter().map(|&(name, steps)| alone(name, steps));
    measured.environment.extend([alone("environment", acted)?]);
    measured.add(
        "peer",
        shape,
        number(line, "steps_per_second")?,
        each.sum::<Result<f64>>()?,
        number(line, "processor_seconds")? / steps,
    );
    Ok(())
}

/// Seconds that a step of one environment of a batch takes.
fn play(mut batch: impl HostEnvironment) -> Result<f64> {
    const SECONDS: f64 = 1.0;
    let environments = batch.spec().environments;
    let mut memory = StepMemory::new(batch.spec());
    batch.reset(0, 0, &mut memory.step())?;
    let actions = vec![0; 4 * environments];
    let (watch, mut steps) = (Stopwatch::start()?, 0);
    while watch.wall() < SECONDS {
        batch.step(&actions, &mut memory.step())?;
        steps += environments;
    }
    Ok(watch.read()?.processor / steps as f64)
}

/// The peer's environments, in a server.
fn serve(environments: usize) -> Result<Servers> {
    let configuration = json!({
        "name": "gymnasium", "id": ID, "kwargs": {}, "vectorization": "native", "autoreset": "same-step",
        "bootstrap_time_limit": false,
    });
    let python = package_set("gymnasium")?.install()?;
    let options = ServerOptions::new(python, &configuration)?;
    Ok(Servers::start(&options.modules(root().join("benches/peer")), environments)?)
}

/// Plays episodes in both, with balls in the same columns and the same actions.
fn compare_steps() -> Result<()> {
    const ENVIRONMENTS: usize = 8;
    const STEPS: usize = 11;
    let mut theirs = serve(ENVIRONMENTS)?;
    let mut ours = Pool::new(&PixelCatch::default(), ENVIRONMENTS);
    ensure!(ours.spec() == theirs.spec(), "other spaces: {:?}", theirs.spec());
    let (mut shown, mut seen) = (StepMemory::new(ours.spec()), StepMemory::new(ours.spec()));
    let mut random = Random::from_state(0);
    theirs.reset(0, 0, &mut seen.step())?;
    for episode in 0..20 {
        let images = seen.observation().chunks_exact(84 * 84);
        // The ball is in the first row, and the paddle under the middle.
        let begun = images.flat_map(|image| {
            let ball = image.iter().position(|&pixel| pixel > 0).unwrap_or_default() / 7;
            [[0; 8].as_slice(), &[0, ball as u8, 6]].concat()
        });
        ours.restore(&begun.collect::<Vec<u8>>())?;
        for step in 1..=STEPS {
            let actions = (0..ENVIRONMENTS).flat_map(|_| (random.below(3) as i32).to_le_bytes());
            let actions: Vec<u8> = actions.collect();
            ours.step(&actions, &mut shown.step())?;
            theirs.step(&actions, &mut seen.step())?;
            let ends =
                |memory: &StepMemory| (0..ENVIRONMENTS).map(|i| memory.done(i)).collect::<Vec<_>>();
            let same = shown.reward() == seen.reward() && ends(&shown) == ends(&seen);
            // The next episodes' balls are elsewhere.
            let same = same && (step == STEPS || shown.observation() == seen.observation());
            ensure!(same, "step {step} of episode {episode} differs from the peer's");
        }
    }
    Ok(())
}
