//! Frames of an Atari game through environment servers, per second and per second of processor
//! time, compared with ale-py's own vector environment alone. Both take random actions, alternating
//! in one run. If other programs use the processors too, only processor time is meaningful. `cargo
//! bench -p podracer-envs --bench servers -- PYTHON [GAME] [SECONDS]`, where PYTHON is the
//! interpreter that `podracer envs list` shows next to `atari`.

use std::error::Error;
use std::io::{Write, stdout};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use podracer_envs::Space;
use podracer_envs::host::server::{ServerOptions, Servers};
use podracer_envs::host::{HostEnvironment, Random, StepMemory};
use serde_json::json;

const ENVIRONMENTS: usize = 64;
const THREADS: usize = 2;
const FRAMES: usize = 4;
const ROUNDS: usize = 5;

/// ale-py alone: prints frames per second for each line it reads.
const ALONE: &str = "
import sys, time, numpy as np, ale_py
from ale_py.vector_env import AtariVectorEnv
ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
game, count, threads, seconds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
envs = AtariVectorEnv(game, count, num_threads=threads, autoreset_mode='SameStep', use_fire_reset=False,
                      reward_clipping=False, full_action_space=True)
envs.reset(seed=np.arange(count))
random, steps = np.random.default_rng(0), 0
began = time.perf_counter()
spent = time.process_time()
while time.perf_counter() - began < seconds:
    envs.step(random.integers(0, 18, count))
    steps += 1
frames = 4 * count * steps
print(frames / (time.perf_counter() - began), frames / (time.process_time() - spent))
";

type Failure = Box<dyn Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|one| one != "--bench").collect();
    let Some(python) = arguments.first() else {
        writeln!(stdout(), "name the interpreter that `podracer envs list` shows beside `atari`")?;
        return Ok(());
    };
    let game = arguments.get(1).map_or("breakout", String::as_str);
    let seconds: f64 = arguments.get(2).map_or(Ok(6.0), |seconds| seconds.parse())?;
    let mut ratios = vec![Vec::new(); 2 * SHAPES.len()];
    for round in 1..=ROUNDS {
        let alone = alone(python, game, seconds)?;
        let mut line = format!("round {round}: ale-py alone {alone}");
        for (shape, ratios) in SHAPES.iter().zip(ratios.chunks_mut(2)) {
            let served = served(python, game, seconds, *shape)?;
            ratios[0].push(served.by_second / alone.by_second);
            ratios[1].push(served.by_processor / alone.by_processor);
            line += &format!("; {shape} {served}");
        }
        writeln!(stdout(), "{line}")?;
    }
    for (i, ratios) in ratios.iter_mut().enumerate() {
        ratios.sort_by(f64::total_cmp);
        let (median, least, most) = (ratios[ROUNDS / 2], ratios[0], ratios[ROUNDS - 1]);
        let (shape, by) = (SHAPES[i / 2], ["second", "processor's second"][i % 2]);
        writeln!(
            stdout(),
            "{shape}: {median:.3} of ale-py's frames by the {by} ({least:.3} to {most:.3})"
        )?;
    }
    Ok(())
}

/// Frames per second of wall-clock time and of processor time.
#[derive(Clone, Copy)]
struct Rates {
    by_second: f64,
    by_processor: f64,
}

impl std::fmt::Display for Rates {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Rates { by_second, by_processor } = self;
        write!(f, "{by_second:.0} frames/s, {by_processor:.0} by the processor's second")
    }
}

/// Processor seconds of some processes. Linux counts hundredths.
fn spent(processes: &[String]) -> Result<f64, Failure> {
    let mut hundredths = 0.0;
    for process in processes {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
        let fields = stat.rsplit(") ").next().unwrap_or_default().split(' ');
        for field in fields.skip(11).take(2) {
            hundredths += field.parse::<f64>()?;
        }
    }
    Ok(hundredths / 100.0)
}

/// Actor threads, each with a server.
#[derive(Clone, Copy)]
struct Shape {
    actors: usize,
}

/// All have the same total number of environments and of ale-py's threads.
const SHAPES: [Shape; 2] = [Shape { actors: 1 }, Shape { actors: 2 }];

impl std::fmt::Display for Shape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Shape { actors } = self;
        write!(f, "{actors} x {} environments", ENVIRONMENTS / actors)
    }
}

fn alone(python: &str, game: &str, seconds: f64) -> Result<Rates, Failure> {
    let numbers = [ENVIRONMENTS.to_string(), THREADS.to_string(), seconds.to_string()];
    let output = Command::new(python).args(["-P", "-c", ALONE, game]).args(numbers).output()?;
    let said = String::from_utf8(output.stdout)?;
    let rates = said.split_whitespace().map(str::parse).collect::<Result<Vec<f64>, _>>()?;
    match rates[..] {
        [by_second, by_processor] => Ok(Rates { by_second, by_processor }),
        _ => Err(String::from_utf8_lossy(&output.stderr).into_owned().into()),
    }
}

fn served(python: &str, game: &str, seconds: f64, shape: Shape) -> Result<Rates, Failure> {
    let configuration = json!({
        "name": "atari", "game": game, "threads": THREADS / shape.actors, "height": 84, "width": 84, "stack": 4,
        "action_repeat": FRAMES, "pool": true, "most_noops": 30, "fire_reset": false, "life_loss_ends": false,
        "clip_rewards": false, "full_actions": true, "sticky_actions": 0.0, "most_frames": 108_000,
        "bootstrap_time_limit": false,
    });
    let options = ServerOptions::new(python, &configuration)?;
    let begin = |actor| -> Result<_, Failure> {
        let environments = ENVIRONMENTS / shape.actors;
        let mut batch = Servers::start(&options, environments)?;
        let mut memory = StepMemory::new(batch.spec());
        batch.reset(0, actor * environments, &mut memory.step())?;
        Ok((batch, memory))
    };
    let batches: Vec<_> = (0..shape.actors).map(begin).collect::<Result<_, _>>()?;
    let servers = batches.iter().flat_map(|(batch, _)| batch.processes());
    let processes: Vec<String> =
        servers.map(|process| process.to_string()).chain(["self".to_owned()]).collect();
    let (before, began) = (spent(&processes)?, Instant::now());
    let limit = Duration::from_secs_f64(seconds);
    let threads: Vec<_> = batches
        .into_iter()
        .map(|(batch, memory)| thread::spawn(move || act(batch, memory, limit)))
        .collect();
    // The batches are returned, so that the servers still exist when their processor time is read.
    let acted = threads
        .into_iter()
        .map(|thread| thread.join().map_err(|_| "an actor panicked")?)
        .collect::<Result<Vec<_>, _>>()?;
    let frames = acted.iter().map(|(frames, _)| *frames).sum::<usize>() as f64;
    Ok(Rates {
        by_second: frames / began.elapsed().as_secs_f64(),
        by_processor: frames / (spent(&processes)? - before),
    })
}

/// The frames of one actor with random actions.
fn act(
    mut batch: Servers,
    mut memory: StepMemory,
    limit: Duration,
) -> Result<(usize, Servers), Failure> {
    let Space::Discrete { n, .. } = batch.spec().action else {
        return Err("games have discrete actions".into());
    };
    let environments = batch.spec().environments;
    let (mut random, mut steps) = (Random::from_state(0), 0);
    let began = Instant::now();
    while began.elapsed() < limit {
        let actions = (0..environments).flat_map(|_| (random.below(n) as i32).to_le_bytes());
        batch.step(&actions.collect::<Vec<u8>>(), &mut memory.step())?;
        steps += 1;
    }
    Ok((FRAMES * environments * steps, batch))
}
