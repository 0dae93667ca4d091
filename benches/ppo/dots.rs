//! The matrix products of PPO alone: the remaining time of an iteration if everything else cost
//! nothing.
//!
//! The products of one iteration (rollout, values of the final observations, forward and backward passes of every minibatch) in the
//! shapes that training has, on as many devices, in the order of their dependencies. Weights move a little with every backward
//! pass, so that no product can be hoisted or shared.

use anyhow::Result;
use podracer_dsl::prelude::*;
use podracer_runtime::Client;
use serde_json::json;

use super::ours::{Shape, UNROLL};
use crate::support::dots::{forward, product, seconds, step};
use crate::support::{Table, say, si};

const OBSERVATION: usize = 4;
const HIDDEN: usize = 64;
const OUTPUTS: [usize; 2] = [2, 1];
const EPOCHS: usize = 4;
const MINIBATCHES: usize = 4;
/// Chained products in one call of a product measured by itself.
const CHAIN: usize = 64;
/// Candidate numbers of parts for the products of a minibatch; the fastest number counts. Smaller
/// parts stay in a core's cache.
const CHUNKS: [usize; 5] = [1, 2, 4, 8, 16];

/// Upper bound of the speed, from the plugin's matrix products alone.
pub struct Limit {
    environments: usize,
    /// Rows of a minibatch on one device.
    rows: usize,
    /// GFLOP/s on one device, all devices at work: a hidden layer's forward pass, gradient by its input, gradient by its weights.
    hidden: [f64; 3],
    /// The same of all of an iteration's products.
    iteration: f64,
    /// Number of parts of a minibatch for that bound.
    chunks: usize,
    /// Environment steps a second on all devices, if there were only the products.
    pub steps_per_second: f64,
}

/// Measures the products of training in this shape.
pub fn limit(client: &Client, shape: Shape) -> Result<Limit> {
    let environments = shape.environments / shape.devices;
    let rows = environments * UNROLL / MINIBATCHES;
    let (mut least, mut best) = (f64::INFINITY, 1);
    for chunks in CHUNKS {
        let seconds =
            seconds(client, shape.devices, HIDDEN, |weight| update(weight, environments, chunks))?;
        if seconds < least {
            (least, best) = (seconds, chunks);
        }
    }
    let steps = environments * UNROLL;
    let of_hidden = 2.0 * (rows * HIDDEN * HIDDEN * CHAIN) as f64;
    let chain = |of: fn(Tensor, Tensor) -> Tensor| {
        seconds(client, shape.devices, HIDDEN, |weight| {
            let rows = weight.sum() + zeros(F32, [rows, HIDDEN]);
            scan(rows, 0..CHAIN, |x, _| (of(x, weight), ())).0.sum()
        })
    };
    let onward = chain(|x, weight| product(x, 1, weight, 0))?;
    let by_input = chain(|x, weight| product(x, 1, weight, 1))?;
    // A forward pass computes the input of the next gradient; its time is subtracted.
    let both = seconds(client, shape.devices, HIDDEN, |weight| {
        let x = weight.sum() + zeros(F32, [rows, HIDDEN]);
        scan(weight, 0..CHAIN, |weight, _| (product(x, 0, product(x, 1, weight, 0), 0) * 1e-3, ()))
            .0
            .sum()
    })?;
    let hidden = [onward, by_input, both - onward].map(|seconds| of_hidden / seconds / 1e9);
    let limit = Limit {
        environments: shape.environments,
        rows,
        hidden,
        iteration: flops(environments) / least / 1e9,
        chunks: best,
        steps_per_second: (steps * shape.devices) as f64 / least,
    };
    say(&json!({
        "bench": "ppo dots", "environments": limit.environments, "devices": shape.devices, "rows": rows, "forward_gflops": hidden[0],
        "by_input_gflops": hidden[1], "by_weight_gflops": hidden[2], "update_gflops": limit.iteration, "chunks": limit.chunks, "steps_per_second": limit.steps_per_second,
    }));
    Ok(limit)
}

/// Prints the limits next to the speeds of training.
pub fn print(speeds: &[f64], limits: &[Limit]) {
    let mut table = Table::new(&[
        "environments",
        "rows of a minibatch and device",
        "forward",
        "dX",
        "dW",
        "an iteration's dots",
        "in parts of a minibatch",
        "limit, steps a second",
        "ours, of the limit",
    ]);
    for (limit, speed) in limits.iter().zip(speeds) {
        let gflops = |value: f64| format!("{value:.0}");
        let hidden = limit.hidden.map(gflops);
        let row =
            [limit.environments.to_string(), limit.rows.to_string()].into_iter().chain(hidden);
        let share = format!("{:.0}%", 100.0 * speed / limit.steps_per_second);
        let parts = limit.chunks.to_string();
        table.row(row.chain([gflops(limit.iteration), parts, si(limit.steps_per_second), share]));
    }
    table.print("The dots alone, GFLOP/s on each device");
}

/// Floating-point operations of an iteration's products on one device.
fn flops(environments: usize) -> f64 {
    let pass = |outputs: usize| OBSERVATION * HIDDEN + HIDDEN * HIDDEN + HIDDEN * outputs;
    let steps = environments * UNROLL;
    let both: usize = OUTPUTS.iter().map(|&outputs| pass(outputs)).sum();
    // Nothing needs the gradient by the observation.
    let backward: usize =
        OUTPUTS.iter().map(|&outputs| 2 * pass(outputs) - OBSERVATION * HIDDEN).sum();
    2.0 * (steps * (both + pass(OUTPUTS[1]) + EPOCHS * (both + backward))) as f64
}

/// The products of one iteration on one device, with each minibatch in `parts` parts.
fn update(weight: Tensor, environments: usize, chunks: usize) -> Tensor {
    let tower = |outputs: usize| {
        (weight.slice_axis(0, 0..OBSERVATION), weight, weight.slice_axis(1, 0..outputs))
    };
    let towers = (tower(OUTPUTS[0]), tower(OUTPUTS[1]));
    let start =
        weight.slice_axis(1, 0..OBSERVATION).mean_axis(0) + zeros(F32, [environments, OBSERVATION]);
    let (_, observations) = scan(start, 0..UNROLL, |x, _| {
        let ((_, _, logits), (_, _, value)) = (forward(x, towers.0), forward(x, towers.1));
        let next = x + 1e-6 * (logits.sum_axis(1) + value.sum_axis(1)).expand_dims(1);
        (next, x)
    });
    let steps = environments * UNROLL;
    let batch = observations.reshape([steps, OBSERVATION]);
    let (_, _, values) = forward(batch, towers.1);
    let parts = MINIBATCHES * chunks;
    let minibatches = batch.reshape([parts, steps / parts, OBSERVATION]);
    // Along the gradient of half the squared output.
    let learn = |x: Tensor, tower| step(x, tower, |out| out);
    let (towers, ()) = scan(towers, 0..EPOCHS, |towers, _| {
        let (towers, ()) = scan(towers, minibatches, |(policy, value), x| {
            ((learn(x, policy), learn(x, value)), ())
        });
        (towers, ())
    });
    let all = [towers.0.0, towers.0.1, towers.0.2, towers.1.0, towers.1.1, towers.1.2];
    all.iter().fold(values.sum(), |sum, weights| sum + weights.sum())
}
