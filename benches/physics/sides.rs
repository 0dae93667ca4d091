//! The sides of a comparison: ours and the peers, each as a child process that prints one line of JSON.

use std::path::Path;
use std::process::Command;
use std::{env, thread};

use anyhow::{Result, bail};
use serde_json::Value;

use crate::Options;
use crate::support::{self, Peer, say};

/// Least speed of each of several devices, of the speed of one device alone.
const OF_A_DEVICE: f64 = 0.85;
/// Least ratio of our environment steps per CPU-second to MJX's.
const OF_MJX: f64 = 30.0;

/// One side with its arguments.
pub struct Side<'a> {
    /// Name in the tables.
    pub label: String,
    /// True for ours.
    pub ours: bool,
    /// Least ratio of our environment steps per CPU-second to this peer's. For ours, the least ratio of its speed to one
    /// device's.
    pub target: f64,
    /// Runs in a round.
    repeats: usize,
    arguments: Vec<String>,
    peer: Option<&'a Peer>,
}

impl<'a> Side<'a> {
    /// Ours with one device, ours with all devices if there are more, and the peers.
    ///
    /// `caches` is a folder for the executables of ours and of MJX: the first round compiles, later rounds load.
    pub fn all(
        options: &Options,
        peer: Option<&'a Peer>,
        caches: &Path,
        (name, environments): (&str, usize),
    ) -> Result<Vec<Self>> {
        let repeats = options.turns.repeats;
        let folder = |side: &str| caches.join(side).display().to_string();
        let mut devices = vec![1, options.devices];
        devices.dedup();
        let mut sides = Vec::new();
        for devices in devices {
            let arguments = vec![
                format!("--executables={}", folder(&format!("{name}-{environments}-{devices}"))),
                format!("--envs={name}"),
                format!("--environments={environments}"),
                format!("--devices={devices}"),
                format!("--steps={}", options.steps),
            ];
            let target = OF_A_DEVICE * devices as f64;
            let label = format!("podracer, {devices} device(s)");
            sides.push(Side { label, ours: true, target, repeats, arguments, peer: None });
        }
        let Some(peer) = peer else { return Ok(sides) };
        let cores = thread::available_parallelism()?.get();
        let of_c = match name {
            "half-cheetah" => 15.0,
            "ant" => 8.0,
            "humanoid" | "humanoid-standup" => 5.0,
            _ => 10.0,
        };
        let mut add = |(label, target), environments: usize, steps: usize, more: &[String]| {
            let mut arguments = vec![
                format!("--env={name}"),
                format!("--num-envs={environments}"),
                format!("--steps={steps}"),
            ];
            arguments.extend_from_slice(more);
            sides.push(Side { label, ours: false, target, repeats, arguments, peer: Some(peer) });
        };
        for kind in &options.peers {
            let side = format!("--side={kind}");
            match kind.as_str() {
                "rollout" => {
                    let mut threads = vec![1, cores];
                    threads.dedup();
                    for threads in threads {
                        let more = [side.clone(), format!("--threads={threads}")];
                        let label = format!("MuJoCo's C, {threads} thread(s)");
                        add((label, of_c), environments, options.peer_steps, &more);
                    }
                }
                "envpool" => {
                    let more = [side, format!("--threads={cores}")];
                    let label = format!("EnvPool, {cores} thread(s)");
                    add((label, of_c), environments, options.peer_steps, &more);
                }
                "mjx" => {
                    let iterations = options.mjx_iterations;
                    let environments = options.mjx_environments.unwrap_or(environments);
                    let more = [
                        side,
                        format!("--iterations={iterations}"),
                        format!("--cache={}", folder("mjx")),
                    ];
                    let label =
                        format!("MJX, {environments} environments, {iterations} iterations");
                    add((label, OF_MJX), environments, options.mjx_steps, &more);
                }
                other => bail!("no peer `{other}`: there are rollout, envpool and mjx"),
            }
        }
        Ok(sides)
    }

    /// The runs of a round: their line of JSON, which is printed.
    pub fn run(&self, round: usize) -> Result<Value> {
        let mut arguments = self.arguments.clone();
        arguments.push(format!("--seed={}", round * (self.repeats + 1)));
        arguments.push(format!("--repeats={}", self.repeats));
        match self.peer {
            Some(peer) => peer.run("physics.py", &arguments),
            None => {
                let line = support::run(Command::new(env::current_exe()?).args(&arguments))?;
                say(&line);
                Ok(line)
            }
        }
    }
}
