//! SAC on Pendulum beside the same in JAX, and its matrix products alone.
//!
//! Ours is what `podracer train pendulum-sac` does, as a process of its own like the peer, with the peer's networks: two hidden layers
//! of 256 units, batches of 256, a gradient step for each step of an environment.

use std::time::Instant;

use anyhow::Result;
use podracer_dsl::prelude::*;
use podracer_runtime::{
    Array, Client, CompileOptions, Device, ExecutableCache, Placement, Program, ProgramOptions,
};
use serde_json::json;

use crate::ours::{Ours, Shape, Task};
use crate::support::{Figures, Peer, Table, judged, number, say, si, speeds, time};

/// Least ratio of our speed to the peer's.
const TARGET: f64 = 2.0;
/// Settings of the peer.
const SETTINGS: [&str; 5] = [
    "agent.hidden=[256, 256]",
    "agent.minimum=256",
    "agent.actor_learning_rate=3e-4",
    "agent.critic_learning_rate=3e-4",
    "agent.temperature_learning_rate=3e-4",
];
const BATCH: usize = 256;
const HIDDEN: usize = 256;
/// Inputs of actor and critics, outputs of the actor.
const SIZES: [usize; 3] = [3, 4, 2];
/// Gradient steps of a run of the products alone, and runs of which the best counts.
const STEPS: usize = 100;
const RUNS: usize = 5;

/// Trains both with each of these numbers of environments, and prints the table.
pub fn run(
    client: &Client,
    peer: Option<&Peer>,
    environments: &[usize],
    steps: usize,
    rounds: usize,
) -> Result<()> {
    let ours = Ours::prepare("cpu", &SETTINGS.map(str::to_owned))?;
    let products = products(client)?;
    say(&json!({ "bench": "sac products", "steps_per_second": 1.0 / products }));
    let mut table = Table::new(&[
        "environments",
        "ours best / median",
        "JAX best / median",
        "ratio of bests",
        "of medians",
        "products alone",
        "ours, of these",
        "compile ours / JAX",
    ]);
    for &environments in environments {
        let iterations = (steps / environments).next_multiple_of(4);
        let shape = Shape {
            task: Task::PendulumSac,
            environments,
            devices: 1,
            steps: iterations * environments,
            iterations_per_call: iterations / 4,
        };
        let [mut speed, mut compile, mut peers, mut peer_compile] =
            std::array::from_fn(|_| Figures::default());
        for round in 0..rounds {
            let line = ours.train(shape, false, round as u64)?;
            speed.extend([number(&line, "env_steps_per_second")?]);
            compile.extend([number(&line, "compile_seconds")?]);
            say(&json!({
                "bench": "sac", "environments": environments,
                "steps_per_second": number(&line, "env_steps_per_second")?, "compile_seconds": number(&line, "compile_seconds")?,
            }));
            let Some(peer) = peer else { continue };
            let arguments = [
                format!("--num-envs={environments}"),
                format!("--total-timesteps={}", shape.steps),
                format!("--seed={round}"),
                "--repeats=1".to_owned(),
            ];
            let line = peer.run(shape.task.script(), &arguments)?;
            peers.extend(speeds(&line)?);
            let stages = ["trace_seconds", "lower_seconds", "compile_seconds"];
            peer_compile
                .extend([stages.iter().map(|stage| number(&line, stage)).sum::<Result<f64>>()?]);
        }
        let ratio = speed.greatest() / peers.greatest();
        table.row([
            environments.to_string(),
            format!("{} / {}", si(speed.greatest()), si(speed.median())),
            format!("{} / {}", si(peers.greatest()), si(peers.median())),
            judged(ratio, ratio >= TARGET),
            format!("{:.2}", speed.median() / peers.median()),
            si(1.0 / products),
            format!("{:.0}%", 100.0 * speed.greatest() * products),
            format!("{} / {}", time(compile.least()), time(peer_compile.least())),
        ]);
    }
    table.print("SAC on Pendulum: steps a second, each with a gradient step");
    Ok(())
}

/// Weights of three layers.
type Layers = (Tensor, Tensor, Tensor);
/// Actor, two critics, their two targets.
type Networks = [Layers; 5];

/// The product of `x` and `y`, summed over these axes of theirs.
fn product(x: Tensor, of_x: usize, y: Tensor, of_y: usize) -> Tensor {
    dot_general(x, y, (&[of_x], &[of_y]), (&[], &[]))
}

/// The results of the three layers, f32 `[B, outputs]` each.
fn forward(x: Tensor, (first, second, third): Layers) -> (Tensor, Tensor, Tensor) {
    let h1 = product(x, 1, first, 0);
    let h2 = product(h1, 1, second, 0);
    (h1, h2, product(h2, 1, third, 0))
}

/// The gradients by what the layers give, of a slope of the last.
fn backward(slope: Tensor, (_, second, third): Layers) -> (Tensor, Tensor) {
    let d2 = product(slope, 1, third, 1);
    (product(d2, 1, second, 1), d2)
}

/// Layers after a step so small that it changes nothing but the dependencies.
fn step(x: Tensor, layers: Layers, slope: impl FnOnce(Tensor) -> Tensor) -> Layers {
    let (h1, h2, out) = forward(x, layers);
    let slope = slope(out);
    let (d1, d2) = backward(slope, layers);
    let (first, second, third) = layers;
    let moved = |weight: Tensor, gradient: Tensor| weight - 1e-12 * gradient;
    (
        moved(first, product(x, 0, d1, 0)),
        moved(second, product(h1, 0, d2, 0)),
        moved(third, product(h2, 0, slope, 0)),
    )
}

/// The products of a gradient step from states `x`, f32 `[B, 3]`.
fn gradient_step(networks: Networks, x: Tensor) -> Networks {
    let [actor, q1, q2, t1, t2] = networks;
    let with = |action: Tensor| concatenate(&[x, action.slice_axis(1, 0..1)], 1);
    let (.., next) = forward(x, actor);
    let seen = with(next);
    let target = forward(seen, t1).2 + forward(seen, t2).2;
    let [q1, q2] = [q1, q2].map(|critic| step(seen, critic, |q| q - target));
    let actor = step(x, actor, |action| {
        let seen = with(action);
        let slopes = [q1, q2].map(|critic| {
            let (.., q) = forward(seen, critic);
            product(backward(q, critic).0, 1, critic.0, 1).slice_axis(1, 2..4)
        });
        slopes[0] + slopes[1]
    });
    [actor, q1, q2, t1, t2]
}

/// Seconds of the matrix products of a gradient step on one device.
fn products(client: &Client) -> Result<f64> {
    let program = |weight: Tensor| {
        let [states, seen, actions] = SIZES;
        let layers = |inputs: usize, outputs: usize| {
            (weight.slice_axis(0, 0..inputs), weight, weight.slice_axis(1, 0..outputs))
        };
        let critic = layers(seen, 1);
        let networks = [layers(states, actions), critic, critic, critic, critic];
        let x = weight.slice_axis(1, 0..states);
        let after = fori_loop(0..STEPS, networks.to_vec(), |_, networks| {
            let networks = networks.try_into().unwrap_or([critic; 5]);
            gradient_step(networks, x).to_vec()
        });
        after.iter().map(|layers| layers.1.sum()).sum::<Tensor>()
    };
    assert_eq!(BATCH, HIDDEN, "the rows of the weight matrix are the batch");
    let traced = trace((f32([HIDDEN, HIDDEN]),), |(weight,)| program(weight).reshape([1]))?;
    let options = ProgramOptions {
        compile: CompileOptions::default(),
        cache: ExecutableCache::disabled(),
        ..ProgramOptions::default()
    };
    let program: Program<(Tensor,), Tensor> =
        Program::compile(client, "products", &traced, vec![Placement::Sharded], &options)?;
    // A reflection: orthogonal, so that no chain of products grows or vanishes, and without zeros.
    let element = |i: usize| f32::from(u8::from(i / HIDDEN == i % HIDDEN)) - 2.0 / HIDDEN as f32;
    let weight: Vec<f32> = (0..HIDDEN * HIDDEN).map(element).collect();
    let weight: Device<Tensor> = program.upload(Array::from_slice([HIDDEN, HIDDEN], &weight)?)?;
    let mut best = f64::INFINITY;
    for _ in 0..=RUNS {
        let start = Instant::now();
        program.run((&weight,))?.to_host()?;
        best = best.min(start.elapsed().as_secs_f64());
    }
    Ok(best / STEPS as f64)
}
