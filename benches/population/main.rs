//! Populations: PPO on CartPole with many seeds in one program, beside the same runs one after the other.
//!
//! `cargo bench --bench population -- [--seeds N] [--environments N] [--steps S] [--rounds N] [--devices N] [--members 1,16,64]`
//!
//! Both sides have compiled before they are timed, and alternate. Compiling is timed apart, without a cache, by the number of members.
#![allow(clippy::print_stdout, reason = "tables are what it is asked for")]

use std::time::Instant;

use anyhow::Result;
use clap::Parser;
use podracer::anakin::Anakin;
use podracer::population::Population;
use podracer::prelude::*;
use podracer_runtime::{CompileOptions, ExecutableCache, ProgramOptions};

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
    let uncached = |anakin: &Anakin<_, _>, replicas| ProgramOptions {
        compile: CompileOptions {
            replicas,
            xla: Anakin::xla_options(anakin, "cpu"),
            ..CompileOptions::default()
        },
        cache: ExecutableCache::disabled(),
        ..ProgramOptions::default()
    };

    println!("| members | compiling, s |\n|---|---|");
    let began = Instant::now();
    let alone = anakin.compile_with(&client, &uncached(&anakin, 1))?;
    println!("| a run by itself | {:.2} |", began.elapsed().as_secs_f64());
    for &members in &options.members {
        let population = Population::new(0..members, (), |()| anakin.clone());
        let began = Instant::now();
        population.compile_with(
            &client,
            &ProgramOptions { cache: ExecutableCache::disabled(), ..ProgramOptions::default() },
        )?;
        println!("| {members} | {:.2} |", began.elapsed().as_secs_f64());
    }

    let calls = options.steps.div_ceil(alone.steps_per_call() as usize);
    let steps = (calls as u64 * alone.steps_per_call() * options.seeds) as f64;
    println!(
        "\n{} seeds of {} environments, {calls} calls each",
        options.seeds, options.environments
    );
    println!("| | steps/s in all, best | median | times one after the other |\n|---|---|---|---|");
    let mut populations = Vec::new();
    for &devices in &options.devices {
        let population =
            Population::new(0..options.seeds, (), |()| anakin.clone()).devices(devices);
        let cache = ExecutableCache::disabled();
        let program = population
            .compile_with(&client, &ProgramOptions { cache, ..ProgramOptions::default() })?;
        populations.push((devices, program, Vec::new()));
    }
    let mut one_by_one = Vec::new();
    for _ in 0..options.rounds {
        let began = Instant::now();
        for seed in 0..options.seeds {
            let mut state = alone.init(seed)?;
            for _ in 0..calls {
                (state, _) = alone.run(state)?;
            }
        }
        one_by_one.push(steps / began.elapsed().as_secs_f64());
        for (_, program, speeds) in &mut populations {
            let began = Instant::now();
            let mut state = program.init()?;
            for _ in 0..calls {
                (state, _) = program.run(state)?;
            }
            speeds.push(steps / began.elapsed().as_secs_f64());
        }
    }
    let (best, median) = summary(&mut one_by_one);
    println!("| one after the other | {best:.0} | {median:.0} | 1 |");
    for (devices, _, speeds) in &mut populations {
        let (best_of_it, of_it) = summary(speeds);
        println!(
            "| one program on {devices} device(s) | {best_of_it:.0} | {of_it:.0} | {:.2} |",
            of_it / median
        );
    }
    Ok(())
}

/// The best of some speeds, and their median.
fn summary(speeds: &mut [f64]) -> (f64, f64) {
    speeds.sort_by(f64::total_cmp);
    (speeds[speeds.len() - 1], speeds[speeds.len() / 2])
}
