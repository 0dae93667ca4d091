//! PPO on Gymnasium's CartPole (its SyncVectorEnv), with the same threads, batches, network and iteration as the peer's. Ours steps
//! them in a process of their own; the peer in its actor threads.

use std::process::Command;

use anyhow::Result;
use clap::Args;
use podracer_plugins::package_set;
use serde_json::Value;
use tempfile::TempDir;

use crate::support::{
    Figures, Peer, Table, judged, number, program, run as run_to_end, say, si, speeds,
};

/// Lowest speed that is good enough, as a multiple of the peer's.
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

/// An experiment, and the peer that does the same.
pub struct Pair<'a> {
    /// `cpu` or `cuda13`.
    pub platform: &'a str,
    pub experiment: &'a str,
    /// Settings of ours, as `podracer train --set`.
    pub set: Vec<String>,
    /// The peer's program.
    pub script: &'a str,
    /// Environments of each of two actor threads.
    pub environments: usize,
    /// Environment steps of a run.
    pub steps: usize,
}

impl Pair<'_> {
    /// Speeds of both, which take turns: ours and the peer's, and the result lines of ours.
    pub fn measure(&self, peer: &Peer, rounds: usize) -> Result<([Figures; 2], Vec<Value>)> {
        let [mut ours, mut theirs] = [Figures::default(), Figures::default()];
        let mut lines = Vec::new();
        for seed in 0..rounds {
            let line = self.train(seed)?;
            ours.extend([number(&line, "env_steps_per_second")?]);
            lines.push(line);
            let arguments = [
                format!("--num-envs={}", self.environments),
                format!("--total-timesteps={}", self.steps),
                format!("--seed={seed}"),
            ];
            theirs.extend(speeds(&peer.run(self.script, &arguments)?)?);
        }
        Ok(([ours, theirs], lines))
    }

    fn train(&self, seed: usize) -> Result<Value> {
        let folder = TempDir::new()?;
        let mut command = Command::new(program()?);
        command.args(["train", self.experiment, "--json"]);
        command.arg(format!("--seed={seed}")).arg(format!("--steps={}", self.steps));
        command.arg("--run-dir").arg(folder.path().join("run"));
        let settings = [
            format!("train.platform={}", self.platform),
            format!("sebulba.environments={}", self.environments),
        ];
        for set in settings.iter().chain(&self.set) {
            command.args(["--set", set]);
        }
        let line = run_to_end(&mut command)?;
        say(&line);
        Ok(line)
    }
}

pub fn run(options: &BesideOptions, rounds: usize) -> Result<()> {
    let peer = Peer::prepare("cpu")?;
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
        let pair = Pair {
            platform: "cpu",
            experiment: "cartpole-sebulba-ppo",
            set: ["environment.name=gymnasium", "environment.id=CartPole-v1"]
                .map(str::to_owned)
                .into(),
            script: "sebulba_cartpole.py",
            environments,
            steps: options.steps,
        };
        let ([ours, theirs], _) = pair.measure(&peer, rounds)?;
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
