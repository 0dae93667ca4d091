//! How much more several threads of an actor device do than one, where the environments take as long as inference; and how
//! much time is neither.
//!
//! The environments are native CartPoles that answer no sooner than a latency after they were asked. First they have
//! none, which gives the time of inference; then they have that. So `k` threads can do `k` times what one does, until the
//! device has no time left (2 times) or the processors have none, whose use is shown. What is lost before that is lost to
//! the learner, which has the same cores: its kernels are not interrupted, and an inference that comes meanwhile waits for
//! milliseconds. Hence few environments: the fewer, the cheaper is learning beside inference.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::Args;
use podracer::sebulba::Sebulba;
use podracer_envs::host::{HostEnvironment, HostError, HostSpec, HostStep, NativeCartPole, Pool};
use podracer_rl::agents::Ppo;
use podracer_runtime::setters::*;
use podracer_runtime::{Activity, Client, ClientOptions, ThreadTimes};
use serde_json::json;

use crate::experiment::Stopwatch;
use crate::support::{Figures, Table, judged, say, si, time};

/// Lowest speed of two actor threads that is good enough, as a multiple of the speed of one.
const TARGET: f64 = 1.6;
/// Greatest share of the actor threads' time that is neither environment, nor device, nor waiting.
const HOST_TARGET: f64 = 0.03;

#[derive(Args)]
pub struct OverlapOptions {
    /// Environments of a thread, for the overlap.
    #[arg(long, default_value_t = 4)]
    late_environments: usize,
    /// Environments of each of two threads, for the host's share.
    #[arg(long, default_value_t = 64)]
    host_environments: usize,
    /// Units of each of two hidden layers: what inference takes.
    #[arg(long, default_value_t = 512)]
    hidden: usize,
    /// Steps of a trajectory.
    #[arg(long, default_value_t = 64)]
    unroll: usize,
    /// Iterations that are timed, after two that are not.
    #[arg(long, default_value_t = 40)]
    iterations: usize,
}

/// Environments that answer late.
struct Late<H> {
    inner: H,
    latency: Duration,
    sent: Instant,
}

impl<H: HostEnvironment> HostEnvironment for Late<H> {
    fn spec(&self) -> &HostSpec {
        self.inner.spec()
    }
    fn reset(&mut self, seed: u64, first: usize, step: &mut HostStep<'_>) -> Result<(), HostError> {
        self.inner.reset(seed, first, step)
    }
    fn send(&mut self, actions: &[u8]) -> Result<(), HostError> {
        self.sent = Instant::now();
        self.inner.send(actions)
    }
    fn receive(&mut self, step: &mut HostStep<'_>) -> Result<(), HostError> {
        self.inner.receive(step)?;
        thread::sleep(self.latency.saturating_sub(self.sent.elapsed()));
        Ok(())
    }
}

/// Measurements of a run.
struct Measured {
    steps_per_second: f64,
    /// Seconds of one inference, seen from its thread.
    inference: f64,
    /// The share of the actor threads' time that is neither environment, nor device, nor waiting.
    host: f64,
    /// The share of its time that the learner waits.
    learner_waits: f64,
    /// Mean number of busy processors.
    processors: f64,
}

fn measure(
    options: &OverlapOptions,
    environments: usize,
    threads: usize,
    latency: Duration,
) -> Result<Measured> {
    let client = Client::cpu(ClientOptions { cpu_devices: Some(2), ..ClientOptions::default() })?;
    let batch = || Pool::new(&NativeCartPole::new(500), environments);
    let spec = batch().spec().clone();
    // As little learning as there can be: it shares the cores.
    let mut agent = Ppo::new(spec.observation.clone(), spec.action.clone());
    agent.settings.networks.hidden = vec![options.hidden; 2];
    (agent.settings.epochs, agent.settings.minibatches) = (1, 1);
    let mut run = Sebulba::new(agent).threads(threads).unroll(options.unroll).lag(1).start(
        &client,
        &spec,
        0,
        |_| Ok(Box::new(Late { inner: batch(), latency, sent: Instant::now() })),
    )?;
    run.run(2)?;
    let (before, acted) = (run.times(), run.transfers().act.launches);
    let watch = Stopwatch::start()?;
    run.run(options.iterations)?;
    let cost = watch.read()?;
    let seconds = cost.wall;
    let acted = run.transfers().act.launches - acted;
    let now = run.times();
    let spent: Vec<ThreadTimes> = now.iter().zip(&before).map(|(a, b)| a.since(b)).collect();
    let of = |threads: &[ThreadTimes], activity| -> f64 {
        let spent = threads.iter().map(|thread| thread.of(activity));
        spent.sum::<Duration>().as_secs_f64()
    };
    let (actors, learner) = spent.split_at(threads);
    let steps = options.iterations * threads * options.unroll * environments;
    Ok(Measured {
        steps_per_second: steps as f64 / seconds,
        inference: of(actors, Activity::Inference) / acted as f64,
        host: of(actors, Activity::Host) / (seconds * threads as f64),
        learner_waits: of(learner, Activity::WaitingForTrajectory) / seconds,
        processors: cost.processor / seconds,
    })
}

pub fn run(options: &OverlapOptions, rounds: usize) -> Result<()> {
    let mut table =
        Table::new(&["threads", "steps/s", "of one thread", "host", "learner waits", "processors"]);
    let (few, counts) = (options.late_environments, [1, 2, 4]);
    let mut ratios = counts.map(|_| Figures::default());
    let mut rows: Vec<Vec<Measured>> = counts.iter().map(|_| Vec::new()).collect();
    for _ in 0..rounds {
        let latency = measure(options, few, 1, Duration::ZERO)?.inference;
        eprintln!("inference takes {}", time(latency));
        for (row, &threads) in rows.iter_mut().zip(&counts) {
            let measured = measure(options, few, threads, Duration::from_secs_f64(latency))?;
            say(&json!({
                "threads": threads,
                "latency": latency,
                "steps_per_second": measured.steps_per_second,
                "inference": measured.inference,
                "host": measured.host,
                "learner_waits": measured.learner_waits,
                "processors": measured.processors,
            }));
            row.push(measured);
        }
        for (ratio, row) in ratios.iter_mut().zip(&rows) {
            let last = |row: &[Measured]| row.last().map(|one| one.steps_per_second);
            let (this, one) = (last(row), last(&rows[0]));
            ratio.extend(this.zip(one).map(|(this, one)| this / one));
        }
    }
    let mut waited = f64::INFINITY;
    for ((row, ratio), threads) in rows.iter().zip(&ratios).zip(counts) {
        let median = |of: fn(&Measured) -> f64| {
            let mut figures = Figures::default();
            figures.extend(row.iter().map(of));
            figures.median()
        };
        let (host, waits) = (median(|one| one.host), median(|one| one.learner_waits));
        table.row([
            threads.to_string(),
            si(median(|one| one.steps_per_second)),
            match threads {
                2 => judged(ratio.median(), ratio.median() >= TARGET),
                _ => format!("{:.2}", ratio.median()),
            },
            format!("{:.1}%", 100.0 * host),
            judged(waits, waits < waited),
            format!("{:.2}", median(|one| one.processors)),
        ]);
        waited = waits;
    }
    table.print("Environments as slow as inference, one actor device");

    let many = options.host_environments;
    let mut host = Figures::default();
    for _ in 0..rounds {
        host.extend([measure(options, many, 2, Duration::ZERO)?.host]);
    }
    let mut table = Table::new(&["environments of a thread", "host, median", "most"]);
    let percent = |share: f64| format!("{:.2}%", 100.0 * share);
    let good = host.median() < HOST_TARGET;
    table.row([
        many.to_string(),
        format!("{} {}", percent(host.median()), if good { "ok" } else { "MISSED" }),
        percent(host.greatest()),
    ]);
    table.print("Neither environment, nor device, nor waiting: of the time of two actor threads");
    Ok(())
}
