//! Trains an update rule on grid worlds, LPG of Oh et al. 2020, then agents by it in worlds that it
//! has not seen: `cargo run --release --example lpg -- [UPDATES [SEED]]`. It writes
//! `lpg-rule.safetensors`. Other agents learn by this rule: `podracer train catch-ppo --set
//! agent.kind=learned --set agent.rule=lpg-rule.safetensors`.
#![allow(clippy::print_stdout)]

use std::path::Path;
use std::time::Instant;

use podracer::envs::grid_tasks::{Distribution, GridTask, TaskWorld};
use podracer::envs::{GridTasks, Tasks};
use podracer::learned::{read_rule, save_rule};
use podracer::prelude::*;
use podracer::rl::agents::LearnedAgent;
use podracer::rl::meta::{LpgRule, LpgShape, MetaSettings, MetaTraining, Rule};
use podracer::rl::optim::{
    Chain, ClipByGlobalNorm, Optimizer, Sgd, adam, chain, clip_by_global_norm, sgd,
};

const TASKS: GridTasks =
    GridTasks { distribution: Distribution::Small, task_seed: 0, diagonal: true };
const AGENTS: usize = 64;
const LANES: usize = 16;
const STEPS: usize = 20;
/// Updates of the rule in a call.
const CALL: usize = 10;
const FILE: &str = "lpg-rule.safetensors";

type Descent = Chain<ClipByGlobalNorm, Sgd>;
/// The reward by the step of each call, and the arrays of the state.
type Trained = (Vec<f64>, Vec<(String, Array)>);

/// An agent with tables of its policy and its predictions, in the world of a task.
fn agent(task: GridTask, rule: LpgRule, _: Number) -> AgentLoop<TaskWorld, LearnedAgent<Descent>> {
    let world = TASKS.world(task);
    let agent = LearnedAgent::tabular(world.observation_space(), 9, rule.into());
    AgentLoop::new(world, agent, LANES, STEPS).spread(Axes::none())
}

/// Trains a rule, or agents alone by a rule that stays.
fn train<R: Optimizer>(
    client: &Client,
    optimizer: R,
    rule: Option<Rule<LpgRule>>,
    (updates, seed): (usize, u64),
) -> Result<Trained, Box<dyn std::error::Error>> {
    let settings = MetaSettings {
        rule: LpgShape { predictions: 8, units: 64, ..LpgShape::default() },
        // Agents that learn by a rule that stays do not die.
        lifetime: if rule.is_some() { [1 << 20; 2] } else { [50, 250] },
        ..MetaSettings::default()
    };
    let draw = |key: Key| TASKS.draw(key);
    let training = MetaTraining::new(draw, agent, optimizer, (AGENTS, 1), settings);
    let init = |key: Key| match &rule {
        None => training.init(key),
        Some(rule) => training.init_with(rule.tensors(), key),
    };
    let program = AnakinLoop::trace("lpg", 1, CALL, init, |state| training.iterate(state))?;
    let program = program.compile_on(client)?;
    let mut state = program.init(seed)?;
    let mut rewards = Vec::new();
    let began = Instant::now();
    for call in 0..updates.div_ceil(CALL) {
        let metrics;
        (state, metrics) = program.run(state)?;
        let mean = |all: Vec<f32>| f64::from(all.iter().sum::<f32>()) / all.len() as f64;
        rewards.push(mean(metrics.replicated.reward.to_vec()?));
        let steps = (call + 1) * CALL * AGENTS * LANES * STEPS * 6;
        println!(
            "{:>5} updates: reward {:.4} a step, entropy {:.3}, {:.2}M steps/s",
            (call + 1) * CALL,
            rewards[call],
            mean(metrics.replicated.entropy.to_vec()?),
            steps as f64 / began.elapsed().as_secs_f64() / 1e6
        );
    }
    Ok((rewards, state.named_arrays()?))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1).map(|one| one.parse::<usize>());
    let updates = arguments.next().transpose()?.unwrap_or(1000);
    let seed = arguments.next().transpose()?.unwrap_or(0) as u64;
    let client = Client::cpu(ClientOptions::default())?;
    let optimizer = chain(clip_by_global_norm(0.5), adam(1e-3));
    let (_, state) = train(&client, optimizer, None, (updates, seed))?;
    save_rule(&state, Path::new(FILE))?;
    println!("agents in other worlds, by the rule of {FILE}:");
    let (learned, _) = train(
        &client,
        sgd(0.0),
        Some(Rule::Kept(read_rule(Path::new(FILE))?)),
        (50, seed + (1 << 20)),
    )?;
    let last = learned.last().copied().unwrap_or_default();
    println!("their reward after 300 updates: {last:.4} a step");
    Ok(())
}
