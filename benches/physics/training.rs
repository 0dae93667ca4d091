//! The share of the physics in a training: an iteration of PPO, compared with its environment steps alone.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use anyhow::Result;
use serde_json::json;

use crate::Options;
use crate::report::Measured;
use crate::support::{self, Figures, Table, number, say, time};

/// Task and experiment.
const TASK: &str = "half-cheetah";
const EXPERIMENT: &str = "mujoco-half-cheetah-ppo";
/// Steps of a rollout, the experiment's.
const UNROLL: usize = 32;
/// Iterations of a call, the experiment's.
const ITERATIONS: usize = 8;
/// Calls that are timed in a round, after the first.
const CALLS: usize = 3;
/// Greatest share.
const TARGET: f64 = 0.3;

/// Trains on one device, and prints the share for every measured number of environments.
pub fn share(options: &Options, all: &[Measured], caches: &Path) -> Result<()> {
    // The plugins are installed already; only the compiled programs are to be missing.
    let cache = caches.join("training");
    fs::create_dir_all(cache.join("podracer"))?;
    symlink(podracer_plugins::cache_folder()?.join("plugins"), cache.join("podracer/plugins"))?;
    let mut table = Table::new(&[
        "environments",
        "iteration, best / median",
        "its environment steps alone, best / median",
        "share of bests",
        "of medians",
    ]);
    let mut trained = false;
    for measured in all.iter().filter(|measured| measured.name == TASK) {
        let Some(ours) = measured.ours() else { continue };
        let steps = (measured.environments * UNROLL) as f64;
        let mut iterations = Figures::default();
        for round in 0..options.turns.rounds {
            let speed = train(&cache, measured.environments, round)?;
            iterations.extend([steps / speed]);
        }
        let mut alone = Figures::default();
        alone.extend(ours.speed.all().iter().map(|speed| steps / speed));
        let both =
            |figures: &Figures| format!("{} / {}", time(figures.least()), time(figures.median()));
        let share = alone.least() / iterations.least();
        table.row([
            measured.environments.to_string(),
            both(&iterations),
            both(&alone),
            support::judged(share, share <= TARGET),
            format!("{:.2}", alone.median() / iterations.median()),
        ]);
        trained = true;
    }
    if trained {
        table.print("Share of physics in PPO on half-cheetah, one device, seconds of an iteration");
    }
    Ok(())
}

/// Environment steps per second of a training.
fn train(cache: &Path, environments: usize, seed: usize) -> Result<f64> {
    let run = cache.join("run");
    let mut command = Command::new(support::program()?);
    command.env("XDG_CACHE_HOME", cache).args(["train", EXPERIMENT, "--json"]);
    command.arg(format!("--seed={seed}")).arg("--run-dir").arg(&run);
    let steps_per_call = environments * UNROLL * ITERATIONS;
    for set in [
        format!("anakin.environments={environments}"),
        format!("anakin.unroll={UNROLL}"),
        format!("anakin.iterations_per_call={ITERATIONS}"),
        "train.devices=1".to_owned(),
        // The first call is not timed.
        format!("train.steps={}", steps_per_call * (CALLS + 1)),
    ] {
        command.args(["--set", &set]);
    }
    let line = support::run(&mut command)?;
    fs::remove_dir_all(&run)?;
    let speed = number(&line, "env_steps_per_second")?;
    let of = |name: &str| line.get(name).cloned();
    say(&json!({
        "bench": "physics", "training": EXPERIMENT, "num_envs": environments, "env_steps": of("env_steps"),
        "run_seconds": of("run_seconds"), "steps_per_second": speed, "compile_seconds": of("compile_seconds"),
        "iteration_seconds": (environments * UNROLL) as f64 / speed,
    }));
    Ok(speed)
}
