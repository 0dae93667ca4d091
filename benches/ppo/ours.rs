//! `podracer train cartpole-ppo` as a child process.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use clap::ValueEnum;
use podracer::loading::{Overrides, load};
use podracer::settings::Settings;
use serde_json::Value;
use tempfile::TempDir;

use crate::support;

/// Steps of a rollout of PPO on CartPole, the experiment's and the peer's.
pub const UNROLL: usize = 128;

/// An experiment of Anakin's, and the peer that does the same.
#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
pub enum Task {
    /// PPO on CartPole, compared with PureJaxRL's.
    CartpolePpo,
    /// The online actor-critic on Catch, Anakin's minimal unit.
    CatchOnline,
    /// SAC on Pendulum.
    PendulumSac,
    /// PQN on MinAtar's Breakout, compared with purejaxql's.
    MinatarBreakoutPqn,
    /// DQN on CartPole, compared with PureJaxRL's.
    CartpoleDqn,
}

impl Task {
    pub fn experiment(self) -> &'static str {
        match self {
            Task::CartpolePpo => "cartpole-ppo",
            Task::CatchOnline => "catch-online",
            Task::PendulumSac => "pendulum-sac",
            Task::MinatarBreakoutPqn => "minatar-breakout-pqn",
            Task::CartpoleDqn => "cartpole-dqn",
        }
    }

    pub fn title(self) -> &'static str {
        match self {
            Task::CartpolePpo => "PPO on CartPole",
            Task::CatchOnline => "online actor-critic on Catch (Anakin)",
            Task::PendulumSac => "SAC on Pendulum",
            Task::MinatarBreakoutPqn => "PQN on Breakout of MinAtar",
            Task::CartpoleDqn => "DQN on CartPole",
        }
    }

    /// The peer's program.
    pub fn script(self) -> &'static str {
        match self {
            Task::CartpolePpo => "ppo_cartpole.py",
            Task::CatchOnline => "online_catch.py",
            Task::PendulumSac => "sac_pendulum.py",
            Task::MinatarBreakoutPqn => "pqn_minatar.py",
            Task::CartpoleDqn => "dqn_cartpole.py",
        }
    }

    /// Steps of a rollout, the experiment's and the peer's.
    fn unroll(self) -> usize {
        match self {
            Task::CartpolePpo => UNROLL,
            Task::CatchOnline | Task::MinatarBreakoutPqn => 32,
            Task::PendulumSac => 1,
            Task::CartpoleDqn => 8,
        }
    }
}

/// Size of a run: the experiment, its environments and devices.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// The experiment.
    pub task: Task,
    /// Environments in all.
    pub environments: usize,
    /// Devices of ours.
    pub devices: usize,
    /// Environment steps that are timed.
    pub steps: usize,
    /// Iterations in one call of ours.
    pub iterations_per_call: usize,
}

impl Shape {
    /// Enough steps for seconds, in several calls.
    pub fn new(
        task: Task,
        environments: usize,
        devices: usize,
        steps: Option<usize>,
        on_cpu: bool,
    ) -> Self {
        let unroll = task.unroll();
        let wanted = steps.unwrap_or(match environments {
            0..64 => 500_000,
            // A GPU makes many steps at once, and as many one after the other as a CPU.
            _ if !on_cpu => (16 * environments * unroll).max(1 << 20),
            _ => 1 << 20,
        });
        let iterations = (wanted / (environments * unroll)).max(1);
        // At least four calls, where there are as many iterations.
        let iterations_per_call = (iterations / 4).clamp(1, 16);
        let iterations = iterations / iterations_per_call * iterations_per_call;
        Shape {
            task,
            environments,
            devices,
            steps: iterations * environments * unroll,
            iterations_per_call,
        }
    }

    /// The same with one iteration, and nothing that is timed after it.
    pub fn one_iteration(self) -> Self {
        Shape { steps: 0, iterations_per_call: 1, ..self }
    }

    /// Environment steps of a call.
    pub fn steps_per_call(&self) -> usize {
        self.environments * self.task.unroll() * self.iterations_per_call
    }
}

/// The program on a platform, and a cache folder of its own.
pub struct Ours {
    folder: TempDir,
    platform: String,
    set: Vec<String>,
}

impl Ours {
    /// With settings from the user in addition to the shape's.
    pub fn prepare(platform: &str, set: &[String]) -> Result<Self> {
        let folder = TempDir::new()?;
        // The plugins are installed already; only the compiled programs are to be missing.
        let podracer = folder.path().join("cache/podracer");
        fs::create_dir_all(&podracer)?;
        let installed = podracer_plugins::cache_folder()?.join("plugins");
        symlink(installed, podracer.join("plugins"))?;
        Ok(Ours { folder, platform: platform.to_owned(), set: set.to_vec() })
    }

    /// The settings of the experiment in this shape.
    pub fn settings(&self, shape: Shape) -> Result<Settings> {
        load(shape.task.experiment(), &Overrides { set: self.sets(shape), ..Overrides::default() })
    }

    fn sets(&self, shape: Shape) -> Vec<String> {
        let shaped = [
            format!("anakin.environments={}", shape.environments),
            format!("anakin.iterations_per_call={}", shape.iterations_per_call),
            format!("train.devices={}", shape.devices),
            format!("train.platform={}", self.platform),
            // The first call is not timed.
            format!("train.steps={}", shape.steps + shape.steps_per_call()),
        ];
        shaped.into_iter().chain(self.set.iter().cloned()).collect()
    }

    /// Trains, with the compiled program in the cache or not. Gives the result, and the XLA options as `xla`.
    pub fn train(&self, shape: Shape, warm: bool, seed: u64) -> Result<Value> {
        let cache = self.folder.path().join("cache");
        let executables = cache.join("podracer/executables");
        if !warm && executables.exists() {
            fs::remove_dir_all(&executables)?;
        }
        let run = self.folder.path().join("run");
        let mut command = Command::new(support::program()?);
        command.env("XDG_CACHE_HOME", &cache).args(["train", shape.task.experiment(), "--json"]);
        command.arg(format!("--seed={seed}")).arg("--run-dir").arg(&run);
        for set in self.sets(shape) {
            command.args(["--set", &set]);
        }
        let mut line = support::run(&mut command)?;
        line["xla"] = xla(&run)?;
        fs::remove_dir_all(&run)?;
        Ok(line)
    }
}

/// The XLA options that a run recorded.
fn xla(run: &Path) -> Result<Value> {
    let path = run.join("config.toml");
    let text = fs::read_to_string(&path).context("a run records its configuration")?;
    let table: toml::Table = text.parse()?;
    let options = table.get("xla").map(serde_json::to_value).transpose()?;
    Ok(options.unwrap_or(Value::Null))
}
