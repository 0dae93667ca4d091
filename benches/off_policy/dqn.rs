//! DQN on CartPole compared with PureJaxRL's: `podracer train cartpole-dqn` as a process, and the
//! peer's whole training.
//!
//! Both take a gradient step of 128 transitions for each step of 10 environments. The peer takes it after each such step. Ours
//! does so too in one row; in the other, as in the experiment, it acts for eight steps and then takes eight gradient steps.

use anyhow::Result;
use podracer_dsl::prelude::*;
use serde_json::json;

use super::products::Products;
use crate::ours::{Ours, Shape, Task};
use crate::support::dots::{forward, step};
use crate::support::{Figures, Peer, Table, compile_seconds, number, say, si, speeds, time};

/// Least ratio of our speed to the peer's.
const TARGET: f64 = 3.0;
/// Environment steps of a run, as the peer's experiment has.
const STEPS: usize = 500_000;
const ENVIRONMENTS: usize = 10;
/// Transitions of a gradient step, and the network's sizes.
const BATCH: usize = 128;
const SIZES: [usize; 4] = [4, 120, 84, 2];

/// Our runs of one shape.
struct Row {
    steps_before_learning: usize,
    devices: usize,
    ours: Ours,
    speed: Figures,
    compile: Figures,
    returns: Figures,
}

impl Row {
    fn prepare(unroll: usize, devices: usize, set: &[String]) -> Result<Row> {
        let shape = [format!("anakin.unroll={unroll}")];
        Ok(Row {
            steps_before_learning: unroll,
            devices,
            ours: Ours::prepare("cpu", &[&shape[..], set].concat())?,
            speed: Figures::default(),
            compile: Figures::default(),
            returns: Figures::default(),
        })
    }

    fn train(&mut self, seed: u64) -> Result<()> {
        let shape = Shape {
            task: Task::CartpoleDqn,
            environments: ENVIRONMENTS,
            devices: self.devices,
            steps: STEPS,
            iterations_per_call: 1000 / self.steps_before_learning,
        };
        let line = self.ours.train(shape, false, seed)?;
        self.speed.extend([number(&line, "env_steps_per_second")?]);
        self.compile.extend([number(&line, "compile_seconds")?]);
        self.returns.extend([number(&line, "mean_return")?]);
        say(&json!({
            "bench": "dqn", "steps_before_learning": self.steps_before_learning, "devices": self.devices,
            "env_steps": STEPS, "env_steps_per_second": line["env_steps_per_second"],
            "compile_seconds": line["compile_seconds"], "mean_return": line["mean_return"],
        }));
        Ok(())
    }
}

/// Trains both in turns, and prints the table. `set` are settings for ours.
pub fn run(peer: Option<&Peer>, set: &[String], rounds: usize) -> Result<()> {
    let mut rows = Vec::new();
    for (unroll, devices) in [(1, 1), (8, 1), (8, 2)] {
        rows.push(Row::prepare(unroll, devices, set)?);
    }
    let products = products()?;
    say(&json!({
        "bench": "dqn products",
        "steps_per_second": [products.on_one_thread, products.on_all_threads],
    }));
    let [mut speed, mut compile, mut returns] = std::array::from_fn(|_| Figures::default());
    for round in 0..rounds {
        for row in &mut rows {
            row.train(round as u64)?;
        }
        let Some(peer) = peer else { continue };
        let line = peer.train(Task::CartpoleDqn.script(), (ENVIRONMENTS, STEPS), round, 2)?;
        speed.extend(speeds(&line)?);
        compile.extend([compile_seconds(&line)?]);
        returns.extend([number(&line, "mean_return")?]);
    }
    let mut table = Table::new(&[
        "steps before as many gradient steps",
        "devices",
        "ours, steps/s, best / median",
        "PureJaxRL best / median",
        "ratio of bests",
        "of medians",
        "products alone, on one thread / on all",
        "ours, of these",
        "compile ours / PureJaxRL",
        "last returns ours / PureJaxRL",
    ]);
    for row in &rows {
        let shown = [row.steps_before_learning.to_string(), row.devices.to_string()];
        let rest = [
            format!("{} / {}", time(row.compile.least()), time(compile.least())),
            format!("{:.0} / {:.0}", row.returns.median(), returns.median()),
        ];
        table.row(
            shown
                .into_iter()
                .chain(row.speed.beside(&speed, TARGET, si))
                .chain(products.cells(row.speed.greatest()))
                .chain(rest),
        );
    }
    table.print("DQN on CartPole, 10 environments, a gradient step of 128 for each of their steps");
    Ok(())
}

/// The products of acting and of a gradient step alone.
fn products() -> Result<Products> {
    let [inputs, first, second, actions] = SIZES;
    let begin = |weight: Tensor| {
        let of =
            |rows: usize, columns: usize| weight.slice_axis(0, 0..rows).slice_axis(1, 0..columns);
        let network = (of(inputs, first), of(first, second), of(second, actions));
        vec![network, network]
    };
    Products::measure(BATCH, ENVIRONMENTS, begin, |networks, weight| {
        let &[online, target] = networks else { unreachable!("there are two networks") };
        let x = weight.slice_axis(1, 0..inputs);
        let acted = forward(x.slice_axis(0, 0..ENVIRONMENTS), online).2.sum();
        let goal = forward(x, target).2 + 1e-12 * acted;
        vec![step(x, online, |q| q - goal), target]
    })
}
