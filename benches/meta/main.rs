//! Agents that learn by trained rules, compared with A2C, in grid worlds that none of them has
//! seen.
//!
//! `cargo bench --bench meta -- [--rules rule.safetensors,..] [--tasks N] [--updates N] [--rates 0.01,0.1] [--distribution small]`
//!
//! Rules are what `cargo run --release --example lpg` leaves; `-- 0` leaves one that has learned nothing. All sides have the same tasks, lanes and steps, and tables in place of networks. The
//! learning rate of A2C is the best of `--rates` on other tasks.
#![allow(clippy::print_stdout, reason = "a table is what it is asked for")]

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Parser;
use podracer::envs::grid_tasks::{Distribution, GridTask, TaskWorld};
use podracer::envs::{GridTasks, Tasks};
use podracer::learned::read_rule;
use podracer::prelude::*;
use podracer::rl::agents::{A2c, A2cSettings, LearnedAgent};
use podracer::rl::learn::OptimizerSettings;
use podracer::rl::meta::{KeptRule, LpgRule, Rule};
use podracer::rl::net::Networks;
use podracer::rl::optim::{Chain, ClipByGlobalNorm, Sgd};
use podracer::rl::population::{MembersFor, Population};

#[derive(Parser)]
struct Options {
    /// Files of rules.
    #[arg(long, value_delimiter = ',')]
    rules: Vec<PathBuf>,
    /// Distribution of the worlds, such as `small`.
    #[arg(long, default_value = "small", value_parser = distribution)]
    distribution: Distribution,
    /// Worlds, each with an agent.
    #[arg(long, default_value_t = 64)]
    tasks: usize,
    /// Updates of each agent.
    #[arg(long, default_value_t = 300)]
    updates: usize,
    /// Learning rates to try for A2C.
    #[arg(long, value_delimiter = ',', default_value = "0.001,0.003,0.01,0.03,0.1,0.3")]
    rates: Vec<f64>,
    /// Cargo passes this to every bench.
    #[arg(long, hide = true)]
    bench: bool,
}

/// Environments of an agent, steps of an update, and updates of a call.
const LANES: usize = 16;
const STEPS: usize = 20;
const CALL: usize = 50;
/// Seeds of the worlds that learning rates are chosen in, and of those that count: rules have been trained in others.
const OTHERS: u64 = 1 << 21;
const COUNT: u64 = 1 << 20;

fn distribution(name: &str) -> Result<Distribution, toml::de::Error> {
    toml::Value::String(name.to_owned()).try_into()
}

/// The reward by the step of each agent in the last call.
fn rewards<A: Learn<Observation = Tensor>>(
    client: &Client,
    options: &Options,
    seed: u64,
    agent: impl Fn(&TaskWorld) -> A,
) -> Result<Vec<f64>> {
    let tasks = GridTasks { distribution: options.distribution, ..GridTasks::default() };
    let make = |task: GridTask| {
        let world = tasks.world(task);
        let agent = agent(&world);
        AgentLoop::new(world, agent, LANES, STEPS).spread(Axes::none())
    };
    let members = Population::new(make, options.tasks, 1);
    let init = |key: Key| {
        let (of_tasks, of_runs) = key.split();
        let data = vmap(of_tasks.split_n(options.tasks), |key| tasks.draw(key));
        members.init(of_runs.split_n(options.tasks).words(), data)
    };
    let iterate = |state: MembersFor<GridTask, TaskWorld, A>| members.iterate(state);
    let program = AnakinLoop::trace("agents", 1, CALL, init, iterate)?.compile_on(client)?;
    let mut state = program.init(seed)?;
    let mut last = None;
    for _ in 0..options.updates.div_ceil(CALL) {
        let metrics;
        (state, metrics) = program.run(state)?;
        last = Some(metrics);
    }
    let last = last.context("some updates")?;
    let episodes = &last.sharded.sharded;
    let (returns, lengths) =
        (episodes.return_sum.to_vec::<f32>()?, episodes.length_sum.to_vec::<i32>()?);
    let of_task = |task: usize| {
        let calls = (0..CALL).map(|call| call * options.tasks + task);
        let sum =
            |(all, steps), i: usize| (all + f64::from(returns[i]), steps + f64::from(lengths[i]));
        let (all, steps) = calls.fold((0.0, 0.0), sum);
        all / f64::max(steps, 1.0)
    };
    Ok((0..options.tasks).map(of_task).collect())
}

/// The mean, and half of its 95% interval.
fn mean(all: &[f64]) -> (f64, f64) {
    let n = all.len() as f64;
    let mean = all.iter().sum::<f64>() / n;
    let variance = all.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean, 1.96 * (variance / n).sqrt())
}

fn by_rule(
    world: &TaskWorld,
    rule: &KeptRule<LpgRule>,
) -> LearnedAgent<Chain<ClipByGlobalNorm, Sgd>> {
    LearnedAgent::tabular(world.observation_space(), 9, Rule::Kept(rule.clone()))
}

fn a2c(world: &TaskWorld, rate: f64) -> A2c {
    let settings = A2cSettings {
        optimizer: OptimizerSettings { learning_rate: rate.into(), ..OptimizerSettings::default() },
        lambda: 0.95.into(),
        networks: Networks { hidden: Vec::new(), ..Networks::default() },
        ..A2cSettings::default()
    };
    A2c::with(settings, world.observation_space(), world.action_space())
}

fn main() -> Result<()> {
    let options = Options::parse();
    let client = Client::cpu(ClientOptions::default())?;
    println!("| agents | reward by the step | 95% | of A2C's, task by task | 95% |");
    println!("| --- | --- | --- | --- | --- |");
    let mut best = (f64::NEG_INFINITY, 0.0);
    for &rate in &options.rates {
        let (reward, _) = mean(&rewards(&client, &options, OTHERS, |world| a2c(world, rate))?);
        eprintln!("A2C with learning rate {rate}: {reward:.4}");
        best = if reward > best.0 { (reward, rate) } else { best };
    }
    let beside = rewards(&client, &options, COUNT, |world| a2c(world, best.1))?;
    let row = |name: &str, found: &[f64]| {
        let difference: Vec<f64> = found.iter().zip(&beside).map(|(one, a2c)| one - a2c).collect();
        let ((reward, within), (more, surely)) = (mean(found), mean(&difference));
        println!("| {name} | {reward:.4} | {within:.4} | {more:+.4} | {surely:.4} |");
    };
    row(&format!("A2C, learning rate {}", best.1), &beside);
    for path in &options.rules {
        let rule = read_rule(path)?;
        let found = rewards(&client, &options, COUNT, |world| by_rule(world, &rule))?;
        row(&path.display().to_string(), &found);
    }
    Ok(())
}
