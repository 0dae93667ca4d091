//! PQN on Breakout of MinAtar compared with purejaxql's formulation in JAX, with the same settings.
//!
//! Ours is what `podracer train minatar-breakout-pqn` does, as a process of its own like the peer, on one device and on as many as
//! there are cores.

use std::thread;

use anyhow::Result;
use serde_json::json;

use crate::ours::{Ours, Shape, Task};
use crate::support::{Figures, Peer, Table, compile_seconds, number, say, si, speeds, time};

/// Least ratio of our speed to the peer's.
const TARGET: f64 = 2.0;
/// Environments of the experiment and of the peer.
const ENVIRONMENTS: usize = 128;

/// Trains both, and prints the table.
pub fn run(peer: Option<&Peer>, steps: usize, rounds: usize) -> Result<()> {
    let ours = Ours::prepare("cpu", &[])?;
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let shapes = [1, cores.min(2)].map(|devices| {
        Shape::new(Task::MinatarBreakoutPqn, ENVIRONMENTS, devices, Some(steps), true)
    });
    let mut speed = shapes.map(|_| Figures::default());
    let [mut compile, mut peers, mut peer_compile] = std::array::from_fn(|_| Figures::default());
    for round in 0..rounds {
        for (shape, speed) in shapes.iter().zip(&mut speed) {
            let line = ours.train(*shape, false, round as u64)?;
            let per_second = number(&line, "env_steps_per_second")?;
            speed.extend([per_second]);
            compile.extend([number(&line, "compile_seconds")?]);
            say(
                &json!({ "bench": "pqn", "devices": shape.devices, "steps_per_second": per_second }),
            );
        }
        let Some(peer) = peer else { continue };
        let line = peer.train(
            Task::MinatarBreakoutPqn.script(),
            (ENVIRONMENTS, shapes[0].steps),
            round,
            1,
        )?;
        peers.extend(speeds(&line)?);
        peer_compile.extend([compile_seconds(&line)?]);
    }
    let mut table = Table::new(&[
        "devices",
        "ours best / median",
        "JAX best / median",
        "ratio of bests",
        "of medians",
        "compile ours / JAX",
    ]);
    for (shape, speed) in shapes.iter().zip(&speed) {
        let shown = [shape.devices.to_string()];
        let rest = [format!("{} / {}", time(compile.least()), time(peer_compile.least()))];
        table.row(shown.into_iter().chain(speed.beside(&peers, TARGET, si)).chain(rest));
    }
    table.print("PQN on Breakout of MinAtar, 128 environments: environment steps a second");
    Ok(())
}
