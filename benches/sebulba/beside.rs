//! PPO on Gymnasium's CartPole (its SyncVectorEnv), with the same threads, batches, network and iteration as the peer's. Ours steps
//! them in a process of their own; the peer in its actor threads.

use std::process::Command;

use anyhow::Result;
use clap::Args;
use podracer_plugins::package_set;
use tempfile::TempDir;

use crate::support::{Figures, Peer, Table, judged, number, run as run_to_end, say, si, speeds};

/// What the speed must be, in the peer's.
const TARGET: f64 = 1.5;

#[derive(Args)]
pub struct BesideOptions {
    /// Environments of each of two actor threads.
    #[arg(long, value_delimiter = ',', default_values_t = [8, 64])]
    environments: Vec<usize>,
    /// Environment steps of a run.
    #[arg(long, default_value_t = 500_000)]
    steps: usize,
}

pub fn run(options: &BesideOptions, rounds: usize) -> Result<()> {
    let peer = Peer::prepare()?;
    package_set("gymnasium")?.install()?;
    let verdict = |ratio: f64| judged(ratio, ratio >= TARGET);
    let mut table = Table::new(&[
        "environments of a thread",
        "ours, steps/s",
        "Cleanba's schedule in JAX, steps/s",
        "ratio of the best",
        "of the medians",
    ]);
    for &environments in &options.environments {
        let (mut ours, mut theirs) = (Figures::default(), Figures::default());
        for seed in 0..rounds {
            let line = train(environments, options.steps, seed)?;
            ours.extend([number(&line, "env_steps_per_second")?]);
            let arguments = [
                format!("--num-envs={environments}"),
                format!("--total-timesteps={}", options.steps),
                format!("--seed={seed}"),
            ];
            theirs.extend(speeds(&peer.run("sebulba_cartpole.py", &arguments)?)?);
        }
        table.row([
            environments.to_string(),
            si(ours.greatest()),
            si(theirs.greatest()),
            verdict(ours.greatest() / theirs.greatest()),
            verdict(ours.median() / theirs.median()),
        ]);
    }
    table.print("PPO on Gymnasium's CartPole, one actor and one learner device");
    Ok(())
}

fn train(environments: usize, steps: usize, seed: usize) -> Result<serde_json::Value> {
    let folder = TempDir::new()?;
    let mut command = Command::new(env!("CARGO_BIN_EXE_podracer"));
    command.args(["train", "cartpole-sebulba-ppo", "--json"]);
    command.arg(format!("--seed={seed}")).arg(format!("--steps={steps}"));
    command.arg("--run-dir").arg(folder.path().join("run"));
    for set in [
        "environment.name=gymnasium".to_owned(),
        "environment.id=CartPole-v1".to_owned(),
        format!("sebulba.environments={environments}"),
    ] {
        command.args(["--set", &set]);
    }
    let line = run_to_end(&mut command)?;
    say(&line);
    Ok(line)
}
