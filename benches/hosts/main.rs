//! Two processes that train together by MPI. Measures an all-reduce inside a program compared with
//! a bare loop of `MPI_Allreduce`, PPO on CartPole compared with one process with two devices, and
//! both with added latency.
//!
//! `cargo bench --bench hosts -- [--rounds N] [--environments N]`
//!
//! `PODRACER_MPIRUN` names the launcher, else `scripts/mpi` installs one. The processes are this program once more, with `--role`.

#[path = "../support/mod.rs"]
mod support;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use clap::{Parser, ValueEnum};
use podracer::anakin::Anakin;
use podracer::prelude::*;
use podracer_dsl::trace_replicated;
use podracer_runtime::pjrt::{self, launched};
use podracer_runtime::{CompileOptions, Placement, Program, ProgramOptions, World};
use podracer_test_support::mpi;
use serde_json::{Value, json};
use support::{Figures, Table, root, say, si};

#[derive(Parser)]
struct Options {
    /// Times that each side is timed.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Environments of PPO, in all.
    #[arg(long, default_value_t = 64)]
    environments: usize,
    /// The part of a process that the bench starts.
    #[arg(long)]
    role: Option<Role>,
    /// Cargo passes this to every bench.
    #[arg(long, hide = true)]
    bench: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Role {
    /// All-reduces, in a program and in a bare loop.
    Exchange,
    /// PPO on CartPole.
    Train,
}

/// Bytes of an all-reduce, and how many follow each other.
const SIZES: [(usize, usize); 3] = [(36 << 10, 2_000), (4 << 20, 100), (64 << 20, 6)];

/// Added latency, in microseconds.
const DELAYS: [u64; 2] = [1_000, 10_000];

fn main() -> Result<()> {
    let options = Options::parse();
    match options.role {
        Some(Role::Exchange) => exchange(),
        Some(Role::Train) => train(&options),
        None => compare(&options),
    }
}

/// The processes that were started with this process; `None` for a single process.
fn world() -> Result<Option<World>> {
    Ok(launched().map(World::join).transpose()?)
}

/// Seconds of an all-reduce of each size, in a program and in a bare loop, on the first process's standard output.
fn exchange() -> Result<()> {
    let world = world()?.context("several processes")?;
    let client = Client::cpu(ClientOptions {
        cpu_devices: Some(1),
        world: Some(world),
        ..ClientOptions::default()
    })?;
    for (bytes, repeats) in SIZES {
        let numbers = bytes / 4;
        let traced = trace_replicated(world.size(), (f32([numbers]),), |(x,)| {
            // The loop carries a number: one that carries the sums would copy them.
            fori_loop(0..repeats, scalar(0.0f32), |_, last| last + psum(x, Replicas).index(0))
        })?;
        let compile = CompileOptions { processes: client.processes(), ..CompileOptions::default() };
        let options = ProgramOptions { compile, ..ProgramOptions::default() };
        let placements = vec![Placement::Replicated];
        let program = Program::compile(&client, "exchange", &traced, placements, &options)?;
        // Zeros, which stay zeros.
        let zeros = vec![0_u8; bytes];
        let x = Array::from_bytes(TensorType::new(DType::F32, [numbers]), zeros.clone())?;
        let x = program.upload(x)?;
        let mut sums = zeros.clone();
        for round in 0..4 {
            world.gather(&[])?;
            let began = Instant::now();
            program.run((&x,))?.to_host()?;
            let inside = began.elapsed().as_secs_f64() / repeats as f64;
            world.gather(&[])?;
            let began = Instant::now();
            for _ in 0..repeats {
                world.all_reduce(
                    (pjrt::Number::F32, pjrt::Combine::Sum),
                    Some(&zeros),
                    &mut sums,
                )?;
            }
            let bare = began.elapsed().as_secs_f64() / repeats as f64;
            // The first round finds its memory.
            if world.is_first() && round > 0 {
                say(&json!({ "bytes": bytes, "program_seconds": inside, "bare_seconds": bare }));
            }
        }
    }
    Ok(world.leave()?)
}

/// Speed of PPO on CartPole with two devices in all, and the exchanges of an iteration.
fn train(options: &Options) -> Result<()> {
    const DEVICES: usize = 2;
    const CALLS: usize = 30;
    let world = world()?;
    let processes = world.map_or(1, World::size);
    let cpu_devices = Some(DEVICES / processes);
    let client = Client::cpu(ClientOptions { cpu_devices, world, ..ClientOptions::default() })?;
    let environment = podracer::envs::CartPole::default();
    let agent = Ppo::new(environment.observation_space(), environment.action_space());
    let anakin = Anakin::new(environment, agent)
        .environments(options.environments)
        .unroll(128)
        .iterations_per_call(4)
        .devices(DEVICES)
        .compile(&client)?;
    let (mut state, _) = anakin.run(anakin.init(0)?)?;
    let exchanges = |world: Option<World>| world.map_or(0, World::exchanges);
    let (before, began) = (exchanges(world), Instant::now());
    for _ in 0..CALLS {
        (state, _) = anakin.run(state)?;
    }
    let seconds = began.elapsed().as_secs_f64();
    if world.is_none_or(World::is_first) {
        let iterations = (CALLS * anakin.iterations_per_call()) as f64;
        say(&json!({
            "processes": processes,
            "steps_per_second": (CALLS as u64 * anakin.steps_per_call()) as f64 / seconds,
            "iteration_seconds": seconds / iterations,
            "exchanges_per_iteration": (exchanges(world) - before) as f64 / iterations,
        }));
    }
    if let Some(world) = world {
        world.leave()?;
    }
    Ok(())
}

fn compare(options: &Options) -> Result<()> {
    let mpirun = launcher()?;
    let mut table =
        Table::new(&["bytes", "in a program, best", "median", "bare, best", "median", "ratio"]);
    let lines = lines(processes(&mpirun).arg("--role=exchange"))?;
    for (bytes, _) in SIZES {
        let (mut program, mut bare) = (Figures::default(), Figures::default());
        for line in lines.iter().filter(|line| line["bytes"] == bytes) {
            program.extend(line["program_seconds"].as_f64());
            bare.extend(line["bare_seconds"].as_f64());
        }
        let micros = |seconds: f64| format!("{:.1} us", seconds * 1e6);
        table.row([
            bytes.to_string(),
            micros(program.least()),
            micros(program.median()),
            micros(bare.least()),
            micros(bare.median()),
            format!("{:.2}", program.median() / bare.median()),
        ]);
    }
    table.print("An all-reduce between two processes");

    let environments = format!("--environments={}", options.environments);
    let this = std::env::current_exe()?;
    let role = ["--role=train", &environments];
    let (mut two, mut one) = (Figures::default(), Figures::default());
    let mut last = Value::Null;
    for _ in 0..options.rounds {
        for line in self::lines(processes(&mpirun).args(role))? {
            two.extend(line["steps_per_second"].as_f64());
            last = line;
        }
        let line = self::lines(Command::new(&this).args(role))?;
        one.extend(line.iter().filter_map(|line| line["steps_per_second"].as_f64()));
    }
    let mut table = Table::new(&["", "steps/s, best", "median", "of one process"]);
    for (what, figures) in [("two processes of one device", &two), ("one of two devices", &one)] {
        let ratio = format!("{:.2}", figures.median() / one.median());
        let row = [what.to_owned(), si(figures.greatest()), si(figures.median()), ratio];
        table.row(row);
    }
    table.print(&format!("PPO on CartPole, {} environments", options.environments));

    let number = |line: &Value, key: &str| line[key].as_f64().unwrap_or(f64::NAN);
    let exchanges = number(&last, "exchanges_per_iteration");
    let plain = number(&last, "iteration_seconds");
    // With a delay before each sum.
    let delay = mpi::wrapped(&mpirun, &root().join("benches/hosts/delay.c"));
    let mut table = Table::new(&["added latency", "an iteration", "predicted", "ratio"]);
    for micros in DELAYS {
        let mut command = processes(&mpirun);
        command.args(role).env("PODRACER_MPI", &delay).env("PODRACER_DELAY", micros.to_string());
        for line in self::lines(&mut command)? {
            let took = number(&line, "iteration_seconds");
            let predicted = plain + exchanges * micros as f64 / 1e6;
            table.row([
                format!("{} ms", micros as f64 / 1e3),
                support::time(took),
                support::time(predicted),
                format!("{:.2}", took / predicted),
            ]);
        }
    }
    table.print(&format!("{exchanges:.1} exchanges an iteration of {}", support::time(plain)));
    Ok(())
}

/// The launcher: the named launcher, or else the pinned one.
fn launcher() -> Result<PathBuf> {
    if let Some(named) = std::env::var_os("PODRACER_MPIRUN") {
        return Ok(named.into());
    }
    let output = Command::new(root().join("scripts/mpi")).stderr(Stdio::inherit()).output()?;
    ensure!(output.status.success(), "scripts/mpi failed");
    Ok(String::from_utf8(output.stdout)?.trim().into())
}

/// This program as two processes, each on a core.
fn processes(mpirun: &Path) -> Command {
    let mut command = mpi::launcher(mpirun);
    command.args(["-n", "2"]).arg(std::env::current_exe().expect("this program"));
    command
}

/// The lines of JSON that a command prints.
fn lines(command: &mut Command) -> Result<Vec<Value>> {
    let output = command.stderr(Stdio::inherit()).output()?;
    ensure!(output.status.success(), "{command:?} failed");
    let text = String::from_utf8(output.stdout)?;
    let lines = text.lines().map(|line| Ok(serde_json::from_str(line)?));
    let lines = lines.collect::<Result<Vec<Value>>>()?;
    lines.iter().for_each(say);
    Ok(lines)
}
