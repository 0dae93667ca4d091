//! SAC on Pendulum compared with the same in JAX, and its matrix products alone.
//!
//! Ours is what `podracer train pendulum-sac` does, as a process of its own like the peer, with the peer's networks: two hidden layers
//! of 256 units, batches of 256, a gradient step for each step of an environment.

use anyhow::Result;
use podracer_dsl::prelude::*;
use serde_json::json;

use super::products::Products;
use crate::ours::{Ours, Shape, Task};
use crate::support::dots::{Layers, backward, forward, product, step};
use crate::support::{Figures, Peer, Table, compile_seconds, number, say, si, speeds, time};

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

/// Trains both with each of these numbers of environments, and prints the table.
pub fn run(peer: Option<&Peer>, environments: &[usize], steps: usize, rounds: usize) -> Result<()> {
    let ours = Ours::prepare("cpu", &SETTINGS.map(str::to_owned))?;
    let products = products()?;
    say(&json!({
        "bench": "sac products",
        "steps_per_second": [products.on_one_thread, products.on_all_threads],
    }));
    let mut table = Table::new(&[
        "environments",
        "ours best / median",
        "JAX best / median",
        "ratio of bests",
        "of medians",
        "products alone, on one thread / on all",
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
            let line = peer.train(shape.task.script(), (environments, shape.steps), round, 1)?;
            peers.extend(speeds(&line)?);
            peer_compile.extend([compile_seconds(&line)?]);
        }
        let shown = [environments.to_string()];
        let rest = [format!("{} / {}", time(compile.least()), time(peer_compile.least()))];
        table.row(
            shown
                .into_iter()
                .chain(speed.beside(&peers, TARGET, si))
                .chain(products.cells(speed.greatest()))
                .chain(rest),
        );
    }
    table.print("SAC on Pendulum: steps a second, each with a gradient step");
    Ok(())
}

/// The products of a gradient step from states `x`, f32 `[B, 3]`, with actor, two critics and their two targets.
fn gradient_step(networks: &[Layers], x: Tensor) -> Vec<Layers> {
    let &[actor, q1, q2, t1, t2] = networks else { unreachable!("there are five networks") };
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
    vec![actor, q1, q2, t1, t2]
}

/// The products of a gradient step alone.
fn products() -> Result<Products> {
    assert_eq!(BATCH, HIDDEN, "the rows of the weight matrix are the batch");
    let [states, seen, actions] = SIZES;
    let begin = |weight: Tensor| {
        let layers = |inputs: usize, outputs: usize| {
            (weight.slice_axis(0, 0..inputs), weight, weight.slice_axis(1, 0..outputs))
        };
        let critic = layers(seen, 1);
        vec![layers(states, actions), critic, critic, critic, critic]
    };
    Products::measure(HIDDEN, 1, begin, |networks, weight| {
        gradient_step(networks, weight.slice_axis(1, 0..states))
    })
}
