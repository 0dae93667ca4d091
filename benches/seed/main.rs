//! Messages of central inference: steps that cross from workers to a learner, and actions that come back, without a model.
//!
//! `cargo bench -p podracer-remote --bench seed -- [--seconds S] [--rounds N] [--python PYTHON]`
//!
//! Two processes on one machine: the learner's side gathers a batch of observations into one array and answers with zeros at once, the
//! workers' side has environments that do nothing. What is measured is the way: Unix socket, loopback TCP, TLS on both sides; beside
//! a bare echo of the same messages with tonic (no checks, no gathering, no thread between), a server of grpcio and NumPy that
//! gathers the same way (`benches/peer/seed_server.py`, where PYTHON has grpcio-tools), and the environment servers of Python packages,
//! which share memory with the learner's process and send no messages but of a line (with `python3`, or PYTHON). All of them
//! alternate in one run. There a step waits for all environments of the batch: its latency is of the whole way from actions to
//! observations.
#![allow(clippy::print_stdout, reason = "tables are what it is asked for")]

mod client;
mod servers;
mod shared;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use podracer_remote::{Address, Security, certificates};

/// Environments of each worker: one message carries them.
pub const PER_WORKER: usize = 16;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Kinds of server, and of connection to it.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Unix,
    Tcp,
    Tls,
    Echo,
    EchoTcp,
    Python,
    Shared,
}

const KINDS: [(Kind, &str); 7] = [
    (Kind::Unix, "ours, Unix socket"),
    (Kind::Tcp, "ours, loopback TCP"),
    (Kind::Tls, "ours, TLS"),
    (Kind::Echo, "tonic echo, Unix socket"),
    (Kind::EchoTcp, "tonic echo, loopback TCP"),
    (Kind::Python, "grpcio + NumPy, Unix socket"),
    (Kind::Shared, "environment servers, shared memory"),
];

/// The figures of one run.
#[derive(Clone, Copy)]
struct Figures {
    observations: f64,
    p50: f64,
    p99: f64,
    worker_cpu: f64,
    learner_cpu: f64,
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|one| one != "--bench").collect();
    if arguments.first().is_some_and(|first| first == "client") {
        return client::run(&arguments[1..]);
    }
    let value = |name: &str| {
        let at = arguments.iter().position(|one| one == name)?;
        arguments.get(at + 1).cloned()
    };
    let number = |name: &str, or: f64| value(name).and_then(|text| text.parse().ok()).unwrap_or(or);
    let (seconds, rounds) = (number("--seconds", 1.5), number("--rounds", 3.0) as usize);
    let python = value("--python").map(PathBuf::from);
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    println!(
        "load {}cores {}",
        load.trim_end().to_owned() + ", ",
        thread::available_parallelism()?
    );
    println!(
        "| observation | batch | way | observations/s | p50 | p99 | CPU per observation: workers + learner | of the echo's |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- |");
    for (shape, shown) in [(vec![4], "4 floats"), (vec![84, 84, 4], "84x84x4 bytes")] {
        for batch in [16, 64, 256] {
            let mut runs: Vec<Vec<Figures>> = vec![Vec::new(); KINDS.len()];
            for _ in 0..rounds {
                for (index, (kind, name)) in KINDS.iter().enumerate() {
                    if *kind == Kind::Python && python.is_none() {
                        continue;
                    }
                    match measure(*kind, &shape, batch, seconds, python.as_ref()) {
                        Ok(figures) => runs[index].push(figures),
                        Err(error) => eprintln!("{name}, batch {batch}: {error}"),
                    }
                }
            }
            // The run with the least CPU: a busy minute adds to it, and never takes away.
            let cpu = |figures: &Figures| figures.worker_cpu + figures.learner_cpu;
            let best =
                |runs: &Vec<Figures>| runs.iter().copied().min_by(|a, b| cpu(a).total_cmp(&cpu(b)));
            let echo = |kind: Kind| {
                let of = if kind == Kind::Tcp || kind == Kind::EchoTcp { 4 } else { 3 };
                best(&runs[of]).map_or(f64::NAN, |figures| cpu(&figures))
            };
            for (runs, (kind, name)) in runs.iter().zip(KINDS) {
                let Some(figures) = best(runs) else { continue };
                println!(
                    "| {shown} | {batch} | {name} | {:.0} | {:.2} ms | {:.2} ms | {:.2} + {:.2} us | {:.2} |",
                    figures.observations,
                    figures.p50,
                    figures.p99,
                    figures.worker_cpu,
                    figures.learner_cpu,
                    cpu(&figures) / echo(kind)
                );
            }
        }
    }
    Ok(())
}

/// Ends a process when it is dropped.
struct Ends(Child);

impl Drop for Ends {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn measure(
    kind: Kind,
    shape: &[usize],
    batch: usize,
    seconds: f64,
    python: Option<&PathBuf>,
) -> Result<Figures> {
    if kind == Kind::Shared {
        let program = python.map_or(Path::new("python3"), PathBuf::as_path);
        return shared::measure(shape, batch, seconds, program);
    }
    let folder = tempfile::tempdir()?;
    let socket = Address::Unix(folder.path().join("seed.sock"));
    let port: Address = "127.0.0.1:0".parse()?;
    let security = match kind {
        Kind::Tcp | Kind::EchoTcp => Some(Security::Insecure),
        Kind::Tls => {
            certificates::write(&folder.path().join("certificates"), &[])?;
            Some(Security::Certificates(folder.path().join("certificates")))
        }
        _ => None,
    };
    let over_unix = security.is_none();
    let listen = if over_unix { socket.clone() } else { port };
    let mut served = None;
    let mut peer = None;
    let mut echo = None;
    let address = match kind {
        Kind::Unix | Kind::Tcp | Kind::Tls => {
            let ours = servers::ours(listen, security.clone(), shape, batch)?;
            let address = ours.address();
            served = Some(ours);
            address
        }
        Kind::Echo | Kind::EchoTcp => {
            let (runtime, address) = servers::echo(listen, shape)?;
            echo = Some(runtime);
            address
        }
        Kind::Shared => unreachable!("it has no messages"),
        Kind::Python => {
            let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
            let program = python.ok_or("no Python")?;
            let dimensions: Vec<String> = shape.iter().map(ToString::to_string).collect();
            let mut child = Command::new(program)
                .arg(format!("{root}/benches/peer/seed_server.py"))
                .args([socket.to_string(), batch.to_string(), dimensions.join(",")])
                .stdout(Stdio::piped())
                .spawn()?;
            let mut line = String::new();
            let out = child.stdout.take().ok_or("no output")?;
            peer = Some(Ends(child));
            BufReader::new(out).read_line(&mut line)?;
            if line.trim() != "ready" {
                return Err("the peer does not start".into());
            }
            socket
        }
    };
    let way = match &security {
        Some(Security::Certificates(folder)) => folder.display().to_string(),
        Some(Security::Insecure) => "insecure".to_owned(),
        None => "socket".to_owned(),
    };
    let bare = if echo.is_some() { "bare" } else { "worker" };
    let dimensions: Vec<String> = shape.iter().map(ToString::to_string).collect();
    let mut workers = Ends(
        Command::new(std::env::current_exe()?)
            .args(["client", bare, &address.to_string(), &way, &batch.to_string()])
            .args([dimensions.join(","), seconds.to_string()])
            .stdout(Stdio::piped())
            .spawn()?,
    );
    let learner = peer.as_ref().map_or_else(std::process::id, |peer| peer.0.id());
    let lines = BufReader::new(workers.0.stdout.take().ok_or("no output")?);
    let (mut before, mut result) = (0.0, None);
    for line in lines.lines() {
        let line = line?;
        match line.strip_prefix("end ") {
            None => before = cpu_seconds(learner)?,
            Some(figures) => {
                let used = cpu_seconds(learner)? - before;
                let figures: Vec<f64> =
                    figures.split(' ').map(str::parse).collect::<std::result::Result<_, _>>()?;
                let [observations, elapsed, p50, p99, workers] = figures[..] else {
                    return Err("the workers say nonsense".into());
                };
                result = Some(Figures {
                    observations: observations / elapsed,
                    p50,
                    p99,
                    worker_cpu: workers / observations * 1e6,
                    learner_cpu: used / observations * 1e6,
                });
                break;
            }
        }
    }
    drop((workers, served, echo, peer));
    result.ok_or_else(|| "the workers ended early".into())
}

/// Time that a process has spent on processors, in steps of 10 ms.
pub fn cpu_seconds(process: u32) -> Result<f64> {
    let text = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
    let after = text.rsplit_once(')').ok_or("a process has a name")?.1;
    let mut fields = after.split_whitespace().skip(11);
    let mut ticks = || fields.next().and_then(|field| field.parse::<f64>().ok()).unwrap_or(0.0);
    Ok((ticks() + ticks()) / 100.0)
}

/// Waits until `done`, or fails after some seconds.
pub fn wait(what: &str, done: impl Fn() -> bool) -> Result<()> {
    let until = Instant::now() + Duration::from_secs(20);
    while !done() {
        if Instant::now() > until {
            return Err(format!("not in time: {what}").into());
        }
        thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}
