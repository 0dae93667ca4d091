//! The program of the GPU kit (`make gpu-kit`, docs/gpu.md): `podracer`, and `podracer kit` with
//! checks and measurements for a machine with an NVIDIA GPU, without Rust and network. One file has
//! both.

mod check;
mod compile;
mod report;
mod variants;

#[allow(dead_code, reason = "the bench of Sebulba uses more of it")]
#[path = "../sebulba/beside.rs"]
mod beside;
#[path = "../envs/mod.rs"]
mod envs;
#[path = "../ppo/mod.rs"]
mod ppo;
#[path = "../search/mod.rs"]
mod search;
#[path = "../support/mod.rs"]
mod support;

use std::env;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Parser;
use serde_json::json;

use beside::Pair;
use support::{Peer, machine, number, say};

/// Checks and measures podracer on a GPU, compared with JAX.
#[derive(Parser)]
#[command(name = "podracer kit")]
enum Kit {
    /// Checks the runtime on the device; standard output has a line of JSON for each check.
    Check(check::Options),
    /// PPO on CartPole compared with PureJaxRL's; `--task=catch-online` for Anakin's minimal unit.
    Ppo(ppo::Options),
    /// Environments under a random policy, compared with gymnax's.
    Envs(envs::Options),
    /// Searches of a batch of roots, compared with mctx's.
    Search(search::Options),
    /// IMPALA on pixel Catch, acting and learning on one device, compared with Cleanba's schedule.
    Impala(Impala),
    /// One row of the table of XLA's options: PPO on CartPole with and without each.
    Variant(variants::Options),
    /// Compiles the training loops for an H100 that is not there, and counts kernels and bytes.
    Compile(compile::Options),
    /// Makes `report.md` and `report.json` from the other commands' results in a folder.
    Report {
        /// The folder, with a file of JSON lines for each command.
        folder: PathBuf,
    },
}

#[derive(clap::Args)]
struct Impala {
    #[arg(long, default_value = "cuda13")]
    platform: String,
    /// Environments of each of two actor threads.
    #[arg(long, default_value_t = 64)]
    environments: usize,
    /// Environment steps of a run.
    #[arg(long, default_value_t = 400_000)]
    steps: usize,
    #[arg(long, default_value_t = 2)]
    rounds: usize,
}

fn main() -> ExitCode {
    let mut arguments = env::args();
    if arguments.nth(1).as_deref() != Some("kit") {
        return podracer::App::built_in().run();
    }
    match run(Kit::parse_from(["podracer kit".to_owned()].into_iter().chain(arguments))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(kit: Kit) -> Result<()> {
    match kit {
        Kit::Check(options) => check::run(&options),
        Kit::Ppo(options) => ppo::run(&options),
        Kit::Envs(options) => envs::run(&options),
        Kit::Search(options) => search::run(&options),
        Kit::Impala(options) => impala(&options),
        Kit::Variant(options) => variants::run(&options),
        Kit::Compile(options) => compile::run(&options),
        Kit::Report { folder } => report::run(&folder),
    }
}

fn impala(options: &Impala) -> Result<()> {
    say(&machine());
    let Impala { platform, environments, steps, rounds } = options;
    let pair = Pair {
        platform,
        experiment: "catch-impala",
        set: ["sebulba.actors=[0]", "sebulba.learners=[0]"].map(str::to_owned).into(),
        script: "sebulba_catch.py",
        environments: *environments,
        steps: *steps,
    };
    let ([ours, peer], lines) = pair.measure(&Peer::prepare(platform)?, *rounds)?;
    let compile = number(lines.first().context("at least one round")?, "compile_seconds")?;
    say(&json!({"row": {
        "program": "IMPALA on pixel Catch (Sebulba)", "environments": 2 * environments, "settings": "",
        "ours": ours.greatest(), "peer": peer.greatest(), "ours_all": ours.all(), "peer_all": peer.all(),
        "ours_compile": compile,
    }}));
    Ok(())
}
