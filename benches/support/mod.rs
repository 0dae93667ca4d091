//! Code that the benches share: figures of repeated runs, peers as child processes, and their
//! output.
//!
//! Standard output gets a JSON line for every run and Markdown tables at the end; progress goes to
//! standard error. podracer's runs and the peer's alternate, so that a busy minute affects both.
#![allow(dead_code, reason = "every bench uses its part")]

pub mod dots;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;
use std::{env, hint, thread};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use mimalloc::MiMalloc;
use podracer_runtime::{Client, ClientOptions, Compiled, HloModule, Plugin};
use serde_json::{Value, json};
use tempfile::NamedTempFile;

/// As the program `podracer` has it.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// The figures of repeated runs, in the order of the runs.
#[derive(Clone, Debug, Default)]
pub struct Figures(Vec<f64>);

impl Figures {
    /// Adds the figures of one more run.
    pub fn extend(&mut self, figures: impl IntoIterator<Item = f64>) {
        self.0.extend(figures);
    }

    /// All figures, in the order of the runs.
    pub fn all(&self) -> &[f64] {
        &self.0
    }

    fn sorted(&self) -> Vec<f64> {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        sorted
    }

    /// The greatest: the best speed. NaN without runs.
    pub fn greatest(&self) -> f64 {
        self.0.iter().copied().fold(f64::NAN, f64::max)
    }

    /// The least: the best time. NaN without runs.
    pub fn least(&self) -> f64 {
        self.0.iter().copied().fold(f64::NAN, f64::min)
    }

    /// The middle one, the mean of both where two are in the middle. NaN without runs.
    pub fn median(&self) -> f64 {
        let sorted = self.sorted();
        let upper = sorted.len() / 2;
        match sorted.get(upper) {
            None => f64::NAN,
            Some(middle) if sorted.len() % 2 == 1 => *middle,
            Some(middle) => (sorted[upper - 1] + middle) / 2.0,
        }
    }

    /// Four cells of a row: these and the peer's figures, best and median, the ratio of the best
    /// figures, judged, and the ratio of the medians.
    pub fn beside(&self, peer: &Figures, target: f64, text: impl Fn(f64) -> String) -> [String; 4] {
        let both = |figures: &Figures| {
            format!("{} / {}", text(figures.greatest()), text(figures.median()))
        };
        let ratio = self.greatest() / peer.greatest();
        let medians = format!("{:.2}", self.median() / peer.median());
        [both(self), both(peer), judged(ratio, ratio >= target), medians]
    }
}

/// Options of a bench with runs that alternate with a peer's.
#[derive(Args)]
pub struct Turns {
    /// Number of times that our runs and the peer's take turns.
    #[arg(long, default_value_t = 3)]
    pub rounds: usize,
    /// Runs of each in a round.
    #[arg(long, default_value_t = 3)]
    pub repeats: usize,
    /// Leave the peer out.
    #[arg(long)]
    pub alone: bool,
    /// Print the optimized program.
    #[arg(long)]
    pub hlo: bool,
    /// Cargo passes it.
    #[arg(long, hide = true)]
    bench: bool,
}

impl Turns {
    /// Makes all runs: `ours` with the number of each, and `theirs` once a round, after ours.
    pub fn take(
        &self,
        mut ours: impl FnMut(u64) -> Result<()>,
        mut theirs: impl FnMut() -> Result<()>,
    ) -> Result<()> {
        for round in 0..self.rounds {
            for repeat in 0..self.repeats {
                ours((round * self.repeats + repeat) as u64)?;
            }
            theirs()?;
        }
        Ok(())
    }
}

/// Opens a platform: the CPU with `devices` devices (by default one for each core), or GPUs.
pub fn open(platform: &str, cpu_devices: Option<usize>) -> Result<Client> {
    Ok(Client::new(
        Plugin::load(platform)?,
        ClientOptions { cpu_devices, ..ClientOptions::default() },
    )?)
}

/// True in the program of the GPU kit, which is `podracer` too and has lines for a report in the place of tables.
pub const KIT: bool = option_env!("CARGO_BIN_EXE_podracer").is_none();

/// The program `podracer`: Cargo's, or this program if it is both.
pub fn program() -> Result<PathBuf> {
    Ok(match option_env!("CARGO_BIN_EXE_podracer") {
        Some(program) => program.into(),
        None => env::current_exe()?,
    })
}

/// Bytes of a compiled program as the peers count them: arguments, results and intermediate values.
pub fn bytes(compiled: &Compiled) -> Result<i64> {
    let memory = compiled.memory_stats()?;
    Ok(memory.arguments + memory.outputs + memory.temporary - memory.aliased)
}

/// The JAX programs of `benches/peer`.
pub struct Peer {
    python: PathBuf,
    scripts: PathBuf,
    platform: &'static str,
}

impl Peer {
    /// With the Python and the folder of scripts in `PODRACER_PEER_PYTHON` and
    /// `PODRACER_PEER_SCRIPTS`, or else with the repository's, where `scripts/python` installs the
    /// packages if they are missing.
    pub fn prepare(platform: &str) -> Result<Self> {
        Peer::with(platform, "peer", "benches/peer/requirements.txt")
    }

    /// [`Peer::prepare`] with other packages, in a Python of this name.
    pub fn with(platform: &str, name: &str, requirements: &str) -> Result<Self> {
        let platform = if platform == "cpu" { "cpu" } else { "cuda" };
        let scripts = env::var_os("PODRACER_PEER_SCRIPTS")
            .map_or_else(|| root().join("benches/peer"), PathBuf::from);
        if let Some(python) = env::var_os("PODRACER_PEER_PYTHON") {
            return Ok(Peer { python: python.into(), scripts, platform });
        }
        let output = Command::new(root().join("scripts/python"))
            .args([name, requirements])
            .stderr(Stdio::inherit())
            .output()
            .context("cannot run scripts/python")?;
        ensure!(output.status.success(), "scripts/python failed: {}", output.status);
        let python = String::from_utf8(output.stdout)?;
        Ok(Peer { python: python.trim().into(), scripts, platform })
    }

    /// Runs one of its trainings some times, with these environments and total steps.
    pub fn train(
        &self,
        program: &str,
        (environments, steps): (usize, usize),
        seed: usize,
        repeats: usize,
    ) -> Result<Value> {
        let arguments = [
            format!("--num-envs={environments}"),
            format!("--total-timesteps={steps}"),
            format!("--seed={seed}"),
            format!("--repeats={repeats}"),
        ];
        self.run(program, &arguments)
    }

    /// Runs one of its programs, and gives its line of JSON, with the number of `kernels` where it has one program.
    pub fn run(&self, program: &str, arguments: &[String]) -> Result<Value> {
        let hlo = NamedTempFile::new()?;
        let mut command = Command::new(&self.python);
        command
            .arg(self.scripts.join(program))
            .args(arguments)
            .env("PODRACER_PEER_HLO", hlo.path());
        // As ours: memory is taken as it is needed.
        command.env("JAX_PLATFORMS", self.platform).env("XLA_PYTHON_CLIENT_PREALLOCATE", "false");
        let mut line = run(&mut command)?;
        let module = std::fs::read(hlo.path())?;
        if !module.is_empty() {
            line["kernels"] = HloModule::read(&module)?.kernels().into();
        }
        say(&line);
        Ok(line)
    }
}

/// Runs a program to its end, and gives the last line of its standard output, which is JSON.
pub fn run(command: &mut Command) -> Result<Value> {
    let described = || {
        let words = command.get_args().map(OsStr::to_string_lossy);
        let name = Path::new(command.get_program()).file_name().unwrap_or_default();
        words.fold(name.to_string_lossy().into_owned(), |all, word| all + " " + &word)
    };
    let described = described();
    eprintln!("bench: {described}");
    let output = command.output().with_context(|| format!("cannot run `{described}`"))?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        bail!("`{described}` failed: {}\n{errors}", output.status);
    }
    let text = String::from_utf8(output.stdout)?;
    let last = text.lines().last().unwrap_or_default();
    serde_json::from_str(last).with_context(|| format!("the last line of `{described}`: `{last}`"))
}

/// A number in a program's output.
pub fn number(line: &Value, name: &str) -> Result<f64> {
    let value = line.get(name).and_then(Value::as_f64);
    value.with_context(|| format!("no number `{name}` in {line}"))
}

/// The speeds of a peer's runs, in environment steps a second.
pub fn speeds(line: &Value) -> Result<Vec<f64>> {
    let steps = number(line, "env_steps")?;
    let runs = line.get("run_seconds").and_then(Value::as_array);
    let runs = runs.with_context(|| format!("no list `run_seconds` in {line}"))?;
    Ok(runs.iter().filter_map(Value::as_f64).map(|seconds| steps / seconds).collect())
}

/// The seconds of a peer from its source to the executable.
pub fn compile_seconds(line: &Value) -> Result<f64> {
    let stages = ["trace_seconds", "lower_seconds", "compile_seconds"];
    stages.iter().map(|stage| number(line, stage)).sum()
}

/// The repository's root.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// One line of JSON on standard output.
#[allow(clippy::print_stdout, reason = "standard output is what a bench is for")]
pub fn say(line: &Value) {
    println!("{line}");
}

/// Number of cores, and of programs that want one, averaged over the last minute: a figure means little where the latter is
/// not well below the former. And the nanoseconds of a signal from one core to another and back: where threads share their work, a
/// virtual machine whose cores are in two core complexes for the moment is slower than itself.
pub fn machine() -> Value {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = text.split(' ').next().and_then(|first| first.parse().ok());
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let signal = (cores > 1).then(signal_nanoseconds);
    json!({ "machine": {
        "cores": cores, "load": load.unwrap_or(f64::NAN), "signal_nanoseconds": signal.map(f64::round),
    } })
}

/// Nanoseconds of a signal from a thread to another thread and back, both spinning.
fn signal_nanoseconds() -> f64 {
    const SIGNALS: u32 = 5_000;
    let turn = AtomicU32::new(0);
    let wait = |number| {
        while turn.load(Ordering::Acquire) != number {
            hint::spin_loop();
        }
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            for signal in 0..=SIGNALS {
                wait(2 * signal + 1);
                turn.store(2 * signal + 2, Ordering::Release);
            }
        });
        let send = |signal| {
            turn.store(2 * signal + 1, Ordering::Release);
            wait(2 * signal + 2);
        };
        // Until the first signal is answered the thread starts.
        send(0);
        let began = Instant::now();
        (1..=SIGNALS).for_each(send);
        began.elapsed().as_secs_f64() * 1e9 / f64::from(SIGNALS)
    })
}

/// A Markdown table.
pub struct Table {
    columns: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// With these headings.
    pub fn new(columns: &[&'static str]) -> Self {
        Table { columns: columns.to_vec(), rows: Vec::new() }
    }

    /// Adds a row to the table.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Prints it on standard output.
    #[allow(clippy::print_stdout, reason = "standard output is what a bench is for")]
    pub fn print(&self, title: &str) {
        println!("\n## {title}\n\n| {} |", self.columns.join(" | "));
        println!("|{}", " --- |".repeat(self.columns.len()));
        for row in &self.rows {
            println!("| {} |", row.join(" | "));
        }
    }
}

/// A count with three digits and its unit: `1.23M`.
pub fn si(value: f64) -> String {
    let (scaled, unit) = match value.abs() {
        size if size >= 1e9 => (value / 1e9, "G"),
        size if size >= 1e6 => (value / 1e6, "M"),
        size if size >= 1e3 => (value / 1e3, "k"),
        _ => (value, ""),
    };
    let decimals = match scaled.abs() {
        size if size < 10.0 => 2,
        size if size < 100.0 => 1,
        _ => 0,
    };
    format!("{scaled:.decimals$}{unit}")
}

/// Seconds or milliseconds.
pub fn time(seconds: f64) -> String {
    if seconds < 0.1 { format!("{:.1} ms", seconds * 1e3) } else { format!("{seconds:.2} s") }
}

/// A ratio and its required value.
pub fn judged(ratio: f64, good: bool) -> String {
    format!("{ratio:.2} {}", if good { "ok" } else { "MISSED" })
}
