//! Gymnasium's MuJoCo tasks under a random policy with automatic resets: `cargo bench --bench physics`.
//!
//! Our built-in environments are compared with MuJoCo's C (`mujoco.rollout`), EnvPool and MJX. All sides take turns in one
//! run, each as a process of its own with its own CPU time and peak memory. The figure to compare is environment steps per
//! CPU-second. A second part compares the physics with a whole training by PPO.
//!
//! Ours is compiled with podracer's default options, as trainings are. Its runs begin at first states. The runs of the peers
//! continue each other, and their first is not measured.

mod ours;
mod report;
mod sides;
#[path = "../envs/stepping.rs"]
#[allow(dead_code, reason = "the bench of environments uses all of it")]
mod stepping;
#[path = "../support/mod.rs"]
mod support;
mod training;

use std::path::PathBuf;

use anyhow::{Result, ensure};
use clap::Parser;
use tempfile::TempDir;

use report::Measured;
use sides::Side;
use support::{Peer, Turns, machine, say};

/// Times the physics of MuJoCo's tasks, compared with MuJoCo, EnvPool and MJX.
#[derive(Parser)]
struct Options {
    /// Names of built-in environments without `mujoco-`.
    #[arg(long, value_delimiter = ',', default_values_t = [
        "half-cheetah", "hopper", "walker2d", "swimmer", "reacher", "inverted-pendulum",
        "inverted-double-pendulum", "ant", "humanoid",
    ].map(str::to_owned))]
    envs: Vec<String>,
    /// Environments in all.
    #[arg(long, value_delimiter = ',', default_values_t = [1024])]
    environments: Vec<usize>,
    /// Devices of ours; with more than one, also one device.
    #[arg(long, default_value_t = 1)]
    devices: usize,
    /// Peers: `rollout`, `envpool`, `mjx`.
    #[arg(long, value_delimiter = ',', default_values_t = ["rollout", "envpool", "mjx"].map(str::to_owned))]
    peers: Vec<String>,
    /// Steps of every environment of ours in a run, in whole blocks of 32.
    #[arg(long, default_value_t = 512)]
    steps: usize,
    /// Steps of every environment of MuJoCo's C and of EnvPool in a run.
    #[arg(long, default_value_t = 16)]
    peer_steps: usize,
    /// Steps of every environment of MJX in a run.
    #[arg(long, default_value_t = 4)]
    mjx_steps: usize,
    /// Environments of MJX, if not as many as of ours.
    #[arg(long)]
    mjx_environments: Option<usize>,
    /// Iterations of MJX's solver, and of its line search.
    #[arg(long, default_value_t = 3)]
    mjx_iterations: usize,
    /// Leave out the training by PPO.
    #[arg(long)]
    brief: bool,
    #[command(flatten)]
    turns: Turns,
    /// This process measures ours, with executables in this folder, and prints one line of JSON.
    #[arg(long, hide = true)]
    executables: Option<PathBuf>,
    /// Seed of the first run.
    #[arg(long, hide = true, default_value_t = 0)]
    seed: u64,
}

fn main() -> Result<()> {
    let options = Options::parse();
    if let Some(executables) = &options.executables {
        return ours::measure(&options, executables);
    }
    ensure!(options.turns.rounds > 0 && options.turns.repeats > 0, "at least one run");
    say(&machine());
    let caches = TempDir::new()?;
    let peer = match options.turns.alone {
        true => None,
        false => Some(Peer::with("cpu", "peer-physics", "benches/peer/requirements-physics.txt")?),
    };
    let mut all = Vec::new();
    for name in &options.envs {
        for &environments in &options.environments {
            let sides = Side::all(&options, peer.as_ref(), caches.path(), (name, environments))?;
            let mut measured = Measured::new(name, environments, &sides);
            for round in 0..options.turns.rounds {
                for (side, figures) in sides.iter().zip(&mut measured.sides) {
                    figures.add(&side.run(round)?)?;
                }
            }
            all.push(measured);
        }
    }
    report::print(&all);
    if !options.brief {
        training::share(&options, &all, caches.path())?;
    }
    Ok(())
}
