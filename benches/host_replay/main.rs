//! A replay on the host compared with a replay on the device: the time of an iteration, and the
//! speed of reading windows.
//!
//! `cargo bench --bench host_replay -- [FOLDER]`, where the folder's disk has the replay. Runs with the replay on the device and on the host
//! alternate; the ratio is the result. Then the windows are read after the system has forgotten them (*cold*), where checkpoints
//! link the files.

#[path = "../support/mod.rs"]
mod support;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use podracer::envs::host::{HostEnvironment, NativeCartPole, Pool};
use podracer::prelude::*;
use podracer::rl::learn::{LearnFromReplay, ReplaySettings, Replayed, Window, Windows};
use podracer::runtime::{Activity, SebulbaRun};
use podracer_runtime::ReplayMemory;
use rustix::fs::{Advice, fadvise};

use support::{Table, machine, say, time};

const LANES: usize = 32;
const UNROLL: usize = 16;
const THREADS: usize = 2;
const ROUNDS: usize = 3;
const ITERATIONS: usize = 60;

/// Acts at random, and sums its inputs when learning: the replay takes most of an iteration.
#[derive(Clone)]
struct Sums {
    /// Bytes of a step.
    bytes: usize,
    length: usize,
}

impl Agent for Sums {
    type Observation = Tensor;
    type Params = Tensor;
    type Memory = ();
    type Extras = ();
    fn init_memory(&self, _: LaneId) {}
    fn begin_episode(&self, (): ()) {}
    fn act(&self, _: &Tensor, (): (), _: Input, _: Mode, key: Key) -> Act<(), ()> {
        Act { action: key.randint([], 0..2), memory: (), extras: () }
    }
}

impl LearnFromReplay for Sums {
    type State = Tensor;
    type Step = Tensor;
    type Start = ();
    type Metrics = Tensor;
    fn init(&self, _: Key) -> Tensor {
        scalar(0.0)
    }
    fn params(&self, state: &Tensor) -> Tensor {
        *state
    }
    fn keep(&self, rollout: Rollout<Self>) -> (Tensor, ()) {
        let shape = [&rollout.reward.shape()[..], &[self.bytes]].concat();
        (rollout.reward.astype(U8).expand_dims(2).broadcast_to(shape), ())
    }
    fn window(&self, _: &Spec<Tensor>) -> Window {
        Window { length: self.length, period: 1, learnt: self.length }
    }
    fn gradient_step(
        &self,
        sum: Tensor,
        windows: Windows<Tensor>,
        _: &Cx,
    ) -> (Tensor, Tensor, Tensor) {
        let read = windows.steps.astype(I32).sum_axis(2).sum_axis(0).astype(F32);
        (sum + read.sum(), read.abs() * 1e-6 + 1.0, read.mean())
    }
}

/// Sizes of a replay, and how often its windows are learnt from.
struct Case {
    bytes: usize,
    length: usize,
    batch: usize,
    /// Gradient steps of an iteration.
    steps: usize,
    capacity: usize,
}

impl Case {
    fn sebulba(&self, folder: Option<&Path>) -> Sebulba<Replayed<Sums>> {
        let &Case { bytes, length, batch, steps, capacity } = self;
        let acted = (THREADS * LANES * UNROLL) as f64;
        let replay_ratio = (steps * batch * length) as f64 / acted;
        let minimum = capacity / 2;
        let settings = ReplaySettings {
            capacity,
            minimum,
            batch,
            replay_ratio,
            prioritized: true,
            ..ReplaySettings::default()
        };
        let agent = Replayed { agent: Sums { bytes, length }, settings, iterations: 1000 };
        let sebulba =
            Sebulba::new(agent).actors(vec![0]).learners(vec![1]).threads(THREADS).unroll(UNROLL);
        folder.map_or(sebulba.clone(), |folder| {
            sebulba.replay(ReplayMemory::Host).replay_folder(Some(folder.to_owned()))
        })
    }

    /// Bytes that an iteration reads.
    fn read(&self) -> f64 {
        (self.steps * self.batch * self.length * self.bytes) as f64
    }
}

/// A run with a full replay.
fn filled(case: &Case, client: &Client, folder: Option<&Path>) -> Result<SebulbaRun> {
    let batch = || Pool::new(&NativeCartPole::new(500), LANES);
    let spec = batch().spec().clone();
    let mut run = case.sebulba(folder).start(client, &spec, 0, |_| Ok(Box::new(batch())))?;
    run.run(case.capacity / (THREADS * LANES * UNROLL) + 8)?;
    Ok(run)
}

/// Seconds that the thread of the replay spent so.
fn spent(run: &SebulbaRun, activity: Activity) -> f64 {
    run.times().last().map_or(0.0, |thread| thread.of(activity).as_secs_f64())
}

/// Has the system forget the replay's files: it links them into a checkpoint for that.
fn forget(run: &mut SebulbaRun) -> Result<()> {
    for file in run.checkpoint()?.files.values() {
        let file: &File = &file.file();
        file.sync_all()?;
        fadvise(file, 0, None, Advice::DontNeed)?;
    }
    Ok(())
}

fn timed(run: &mut SebulbaRun, iterations: usize) -> Result<Duration> {
    let began = Instant::now();
    run.run(iterations)?;
    Ok(began.elapsed())
}

fn main() -> Result<()> {
    let folder = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let folder = folder.map_or_else(std::env::temp_dir, PathBuf::from);
    say(&machine());
    let mut table = Table::new(&[
        "bytes of a step",
        "window",
        "batch",
        "gradient steps",
        "on the device",
        "on the host",
        "ratio",
        "gathered, in memory",
        "cold",
        "stored",
    ]);
    for case in [
        Case { bytes: 32, length: 2, batch: 256, steps: 4, capacity: 1 << 18 },
        Case { bytes: 32, length: 80, batch: 64, steps: 2, capacity: 1 << 18 },
        Case { bytes: 7_056, length: 2, batch: 32, steps: 8, capacity: 1 << 16 },
        Case { bytes: 28_224, length: 2, batch: 32, steps: 8, capacity: 1 << 15 },
    ] {
        let client =
            Client::cpu(ClientOptions { cpu_devices: Some(2), ..ClientOptions::default() })?;
        let mut device = filled(&case, &client, None)?;
        let mut host = filled(&case, &client, Some(&folder))?;
        let mut ratios = Vec::new();
        let mut best = [f64::MAX; 2];
        let before = [Activity::Gathering, Activity::Storing].map(|one| spent(&host, one));
        for _ in 0..ROUNDS {
            let times = [timed(&mut device, ITERATIONS)?, timed(&mut host, ITERATIONS)?];
            let each = times.map(|time| time.as_secs_f64() / ITERATIONS as f64);
            ratios.push(each[1] / each[0]);
            best = [best[0].min(each[0]), best[1].min(each[1])];
        }
        ratios.sort_by(f64::total_cmp);
        let iterations = (ROUNDS * ITERATIONS) as f64;
        let gathered = iterations * case.read() / (spent(&host, Activity::Gathering) - before[0]);
        let written = iterations * (THREADS * LANES * UNROLL * case.bytes) as f64;
        let stored = written / (spent(&host, Activity::Storing) - before[1]);
        forget(&mut host)?;
        let before = spent(&host, Activity::Gathering);
        host.run(4)?;
        let cold = 4.0 * case.read() / (spent(&host, Activity::Gathering) - before);
        let median = ratios.get(ROUNDS / 2).ok_or_else(|| anyhow!("no rounds"))?;
        let speed = |bytes: f64| format!("{:.2} GB/s", bytes * 1e-9);
        let sizes = [case.bytes, case.length, case.batch, case.steps].map(|size| size.to_string());
        table.row(sizes.into_iter().chain([
            time(best[0]),
            time(best[1]),
            format!("{median:.2}"),
            speed(gathered),
            speed(cold),
            speed(stored),
        ]));
    }
    table.print(&format!(
        "A prioritized replay on the host beside one on the device: {} lanes, {UNROLL} steps",
        THREADS * LANES
    ));
    Ok(())
}
