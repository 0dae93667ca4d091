//! Populations: PPO on CartPole with many seeds in one program, compared with the same runs one
//! after the other.
//!
//! `cargo bench --bench population -- [--seeds N] [--environments N] [--steps S] [--rounds N] [--devices 1,2] [--members 1,16,64] [--alone]`
//!
//! All sides have compiled before they are timed, and alternate, PureJaxRL's `vmap` over seeds among them. Compiling is timed apart, without a
//! cache, by the number of members.

#[path = "../support/mod.rs"]
mod support;

use std::time::Instant;

use anyhow::Result;
use clap::Parser;
use podracer::anakin::Anakin;
use podracer::population::Population;
use podracer::prelude::*;
use podracer_runtime::{CompileOptions, ExecutableCache, ProgramOptions};
use support::{Figures, Peer, Table, si, speeds, time};

#[derive(Parser)]
struct Options {
    /// Seeds that are trained.
    #[arg(long, default_value_t = 16)]
    seeds: u64,
    /// Environments of each.
    #[arg(long, default_value_t = 4)]
    environments: usize,
    /// Environment steps of each.
    #[arg(long, default_value_t = 100_000)]
    steps: usize,
    /// Times that each side is timed.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Devices of the population; a run by itself has one.
    #[arg(long, value_delimiter = ',', default_value = "1,2")]
    devices: Vec<usize>,
    /// Numbers of members to time compiling for.
    #[arg(long, value_delimiter = ',', default_value = "1,16,64")]
    members: Vec<u64>,
    /// Leave the peer out.
    #[arg(long)]
    alone: bool,
    /// Cargo passes this to every bench.
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> Result<()> {
    let options = Options::parse();
    let environment = podracer::envs::CartPole::default();
    let agent = Ppo::new(environment.observation_space(), environment.action_space());
    let anakin = Anakin::new(environment, agent)
        .environments(options.environments)
        .unroll(128)
        .iterations_per_call(16);
    let most = options.devices.iter().copied().max().unwrap_or(1);
    let client =
        Client::cpu(ClientOptions { cpu_devices: Some(most), ..ClientOptions::default() })?;
    let uncached =
        ProgramOptions { cache: ExecutableCache::disabled(), ..ProgramOptions::default() };
    let xla = anakin.xla_options("cpu");
    let of_one = ProgramOptions {
        compile: CompileOptions { xla, ..CompileOptions::default() },
        ..uncached.clone()
    };
    let mut table = Table::new(&["members", "compiling"]);
    let began = Instant::now();
    let alone = anakin.compile_with(&client, &of_one)?;
    table.row(["a run by itself".to_owned(), time(began.elapsed().as_secs_f64())]);
    for &members in &options.members {
        let population = Population::new(0..members, (), |()| anakin.clone());
        let began = Instant::now();
        population.compile_with(&client, &uncached)?;
        table.row([members.to_string(), time(began.elapsed().as_secs_f64())]);
    }
    table.print("Compiling");

    let calls = options.steps.div_ceil(alone.steps_per_call() as usize);
    let steps_of_each = calls as u64 * alone.steps_per_call();
    let steps = (steps_of_each * options.seeds) as f64;
    let peer = (!options.alone).then(|| Peer::prepare("cpu")).transpose()?;
    let mut populations = Vec::new();
    for &devices in &options.devices {
        let population = Population::new(0..options.seeds, (), |()| anakin.clone());
        let program = population.devices(devices).compile_with(&client, &uncached)?;
        populations.push((devices, program, Figures::default()));
    }
    let (mut one_by_one, mut of_peer) = (Figures::default(), Figures::default());
    for round in 0..options.rounds {
        eprintln!("round {} of {}", round + 1, options.rounds);
        let began = Instant::now();
        for seed in 0..options.seeds {
            let mut state = alone.init(seed)?;
            for _ in 0..calls {
                (state, _) = alone.run(state)?;
            }
        }
        one_by_one.extend([steps / began.elapsed().as_secs_f64()]);
        for (_, program, figures) in &mut populations {
            let began = Instant::now();
            let mut state = program.init()?;
            for _ in 0..calls {
                (state, _) = program.run(state)?;
            }
            figures.extend([steps / began.elapsed().as_secs_f64()]);
        }
        if let Some(peer) = &peer {
            let arguments = [
                format!("--seeds={}", options.seeds),
                format!("--num-envs={}", options.environments),
                format!("--total-timesteps={steps_of_each}"),
                "--repeats=1".to_owned(),
            ];
            of_peer.extend(speeds(&peer.run("ppo_cartpole.py", &arguments)?)?);
        }
    }
    let title = format!(
        "{} seeds of {} environments, {} steps each",
        options.seeds,
        options.environments,
        si(steps_of_each as f64)
    );
    let mut table = Table::new(&[
        "",
        "steps/s in all, best",
        "median",
        "of one after the other",
        "of PureJaxRL's vmap",
    ]);
    let mut row = |what: String, figures: &Figures| {
        let ratio = |other: &Figures| format!("{:.2}", figures.median() / other.median());
        let speeds = [si(figures.greatest()), si(figures.median())];
        let [best, median] = speeds;
        table.row([what, best, median, ratio(&one_by_one), ratio(&of_peer)]);
    };
    row("one after the other".to_owned(), &one_by_one);
    for (devices, _, figures) in &populations {
        row(format!("one program on {devices} device(s)"), figures);
    }
    row("PureJaxRL's vmap".to_owned(), &of_peer);
    table.print(&title);
    Ok(())
}
