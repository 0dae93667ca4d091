//! PPO on CartPole compared with PureJaxRL's, or another Anakin training compared with its peer.
//!
//! Ours is what `podracer train cartpole-ppo` does, as a process of its own like the peer. The peer's compilation and ours
//! include the making of the first state.

mod counts;
mod dots;
mod ours;

use anyhow::{Result, ensure};
use clap::Parser;
use podracer_runtime::Client;
use serde_json::{Value, json};

use crate::support::{
    Figures, KIT, Peer, Table, compile_seconds, judged, machine, number, open, say, si, speeds,
    time,
};
use ours::{Ours, Shape, Task};

/// Greatest ratio of our time from the trace to the executable to JAX's.
const COMPILE_TARGET: f64 = 0.5;
/// Seconds from the shell to the first iteration, without a cache and with one.
const FIRST_UPDATE_TARGET: [f64; 2] = [3.0, 0.5];

/// Times PPO on CartPole, compared with PureJaxRL.
#[derive(Parser)]
pub struct Options {
    /// The experiment, and its peer.
    #[arg(long, value_enum, default_value = "cartpole-ppo")]
    task: Task,
    /// `cpu`, or `cuda13` for one GPU.
    #[arg(long, default_value = "cpu")]
    platform: String,
    /// Environments in all.
    #[arg(long, value_delimiter = ',', default_values_t = [4, 64, 512, 2048])]
    environments: Vec<usize>,
    /// Number of times that our runs and the peer's take turns.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Numbers of podracer's devices, at most 1 for 4 environments; all by default.
    #[arg(long)]
    devices: Option<usize>,
    /// Environment steps of a run; by default half a million with 4 environments, else 2^20.
    #[arg(long)]
    steps: Option<usize>,
    /// Settings for ours, as `podracer train --set`.
    #[arg(long, value_name = "TABLE.KEY=VALUE")]
    set: Vec<String>,
    /// Leave the peer out.
    #[arg(long)]
    alone: bool,
    /// Leave out the dots and the counts of the programs' contents.
    #[arg(long)]
    brief: bool,
    /// Cargo passes it.
    #[arg(long, hide = true)]
    bench: bool,
}

/// Least ratio of our speed to the peer's.
fn speed_target(environments: usize) -> f64 {
    if environments < 64 { 1.2 } else { 2.0 }
}

/// Figures at one number of environments.
struct Measured {
    shape: Shape,
    ours: Figures,
    peer: Figures,
    /// From the trace to the executable.
    compile: Figures,
    peer_compile: Figures,
    /// Bytes of the peer's program, and kernels of a run of it.
    peer_program: [Figures; 2],
    first_iteration: [Figures; 2],
}

pub fn run(options: &Options) -> Result<()> {
    ensure!(options.rounds > 0, "at least one round");
    say(&machine());
    let platform = options.platform.as_str();
    let on_cpu = platform == "cpu";
    let client = open(platform, options.devices)?;
    let devices = if on_cpu { client.devices().len() } else { 1 };
    let peer = (!options.alone).then(|| Peer::prepare(platform)).transpose()?;
    let ours = Ours::prepare(platform, &options.set)?;
    let mut all = Vec::new();
    for &environments in &options.environments {
        let devices = if environments < 64 { 1 } else { devices };
        let shape = Shape::new(options.task, environments, devices, options.steps, on_cpu);
        all.push(measure(shape, &ours, peer.as_ref(), options.rounds)?);
    }
    if KIT {
        return say_rows(&all, &client, &ours, &options.set);
    }
    let brief = options.brief || options.task != Task::CartpolePpo;
    let limits = if brief {
        Vec::new()
    } else {
        all.iter().map(|one| dots::limit(&client, one.shape)).collect::<Result<Vec<_>>>()?
    };
    print_speeds(&all);
    print_compilation(&all);
    if !brief {
        dots::print(&all.iter().map(|one| one.ours.greatest()).collect::<Vec<_>>(), &limits);
        counts::print(&client, &all.iter().map(|one| one.shape).collect::<Vec<_>>(), &ours)?;
    }
    Ok(())
}

fn measure(shape: Shape, ours: &Ours, peer: Option<&Peer>, rounds: usize) -> Result<Measured> {
    let mut measured = Measured {
        shape,
        ours: Figures::default(),
        peer: Figures::default(),
        compile: Figures::default(),
        peer_compile: Figures::default(),
        peer_program: [Figures::default(), Figures::default()],
        first_iteration: [Figures::default(), Figures::default()],
    };
    for round in 0..rounds {
        for warm in [false, true] {
            let line = ours.train(shape, warm, round as u64)?;
            let speed = number(&line, "env_steps_per_second")?;
            measured.ours.extend([speed]);
            if !warm {
                measured.compile.extend([number(&line, "compile_seconds")?]);
            }
            say(&summary(shape, warm, &line));
        }
        for (warm, figures) in [false, true].into_iter().zip(&mut measured.first_iteration) {
            let line = ours.train(shape.one_iteration(), warm, round as u64)?;
            figures.extend([number(&line, "first_call_seconds")?]);
        }
        if let Some(peer) = peer {
            let line =
                peer.train(shape.task.script(), (shape.environments, shape.steps), round, 2)?;
            measured.peer.extend(speeds(&line)?);
            for (figures, name) in measured.peer_program.iter_mut().zip(["bytes", "kernels"]) {
                figures.extend([number(&line, name)?]);
            }
            measured.peer_compile.extend([compile_seconds(&line)?]);
        }
    }
    Ok(measured)
}

/// A line for each row of the report on a GPU.
fn say_rows(all: &[Measured], client: &Client, ours: &Ours, set: &[String]) -> Result<()> {
    let share = std::env::var("PODRACER_GPU_MEMORY").ok();
    let share = share.map(|share| format!("PODRACER_GPU_MEMORY={share}"));
    let settings = set.iter().cloned().chain(share).collect::<Vec<_>>().join(" ");
    for one in all {
        let Measured { shape, ours: speed, peer, compile, peer_compile, .. } = one;
        let counted = counts::count(client, *shape, ours)?;
        let steps = |kernels: f64, steps: usize| kernels / (steps / shape.environments) as f64;
        let [peer_bytes, peer_kernels] = &one.peer_program;
        say(&json!({"row": {
            "program": shape.task.title(), "environments": shape.environments, "settings": settings,
            "ours": speed.greatest(), "peer": peer.greatest(), "ours_all": speed.all(), "peer_all": peer.all(),
            "ours_compile": compile.least(), "peer_compile": peer_compile.least(),
            "ours_bytes": counted.bytes, "peer_bytes": peer_bytes.least(),
            "ours_kernels": steps(counted.kernels as f64, shape.steps_per_call()),
            "peer_kernels": steps(peer_kernels.least(), shape.steps),
        }}));
    }
    Ok(())
}

fn summary(shape: Shape, warm: bool, line: &Value) -> Value {
    let of = |name: &str| line.get(name).cloned().unwrap_or(Value::Null);
    json!({
        "bench": "ppo",
        "environments": shape.environments,
        "devices": shape.devices,
        "iterations_per_call": shape.iterations_per_call,
        "cached": warm,
        "env_steps": of("env_steps"),
        "run_seconds": of("run_seconds"),
        "steps_per_second": of("env_steps_per_second"),
        "compile_seconds": of("compile_seconds"),
        "first_call_seconds": of("first_call_seconds"),
        "mean_return": of("mean_return"),
        "xla": of("xla"),
    })
}

fn print_speeds(all: &[Measured]) {
    let mut table = Table::new(&[
        "environments",
        "devices",
        "ours best / median",
        "peer best / median",
        "ratio of bests",
        "of medians",
        "wanted",
    ]);
    for Measured { shape, ours, peer, .. } in all {
        let target = speed_target(shape.environments);
        let shown = [shape.environments.to_string(), shape.devices.to_string()];
        let rest = [target.to_string()];
        table.row(shown.into_iter().chain(ours.beside(peer, target, si)).chain(rest));
    }
    let title = all.first().map_or("", |one| one.shape.task.title());
    table.print(&format!("{title}, environment steps a second"));
}

fn print_compilation(all: &[Measured]) {
    let mut table = Table::new(&[
        "environments",
        "ours, trace to executable",
        "JAX, trace + lower + compile",
        "ratio of bests",
        "first iteration from the shell, without cache",
        "with cache",
    ]);
    for Measured { shape, compile, peer_compile, first_iteration, .. } in all {
        let ratio = compile.least() / peer_compile.least();
        let [cold, warm] = [0, 1].map(|i| {
            let seconds = first_iteration[i].least();
            judged(seconds, seconds < FIRST_UPDATE_TARGET[i])
        });
        table.row([
            shape.environments.to_string(),
            time(compile.least()),
            time(peer_compile.least()),
            judged(ratio, ratio <= COMPILE_TARGET),
            cold,
            warm,
        ]);
    }
    table.print("Compiling (seconds, best runs)");
}
