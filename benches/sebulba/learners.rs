//! One to six learner devices, and the learner's waiting time as actors are added. All devices of a
//! CPU client share its cores: with more devices than cores a row shows the cost of splitting the
//! batch and averaging the gradients, not the gain.

use anyhow::Result;
use clap::Args;
use serde_json::json;

use crate::experiment::{Experiment, Ran};
use crate::support::{Figures, Table, judged, say, si};

#[derive(Args)]
pub struct LearnersOptions {
    /// Learner devices, with two actor threads. They divide the 60 environments of a thread.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 2, 3, 4, 5, 6])]
    learners: Vec<usize>,
    /// Actor threads, with one learner device.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 2, 4])]
    actor_threads: Vec<usize>,
    /// Seconds of a run.
    #[arg(long, default_value_t = 2.0)]
    learner_seconds: f64,
}

/// Runs of one shape.
struct Runs(Vec<Ran>);

impl Runs {
    /// PPO in CartPole.
    fn measure(learners: usize, threads: usize, seconds: f64, rounds: usize) -> Result<Self> {
        let sets = [format!("sebulba.threads={threads}"), "sebulba.environments=60".to_owned()];
        let experiment = Experiment::load("cartpole-sebulba-ppo", learners, &sets)?;
        let run = |seed| -> Result<Ran> {
            let ran = experiment.start(seed as u64)?.train(seconds)?;
            say(&json!({
                "learners": learners,
                "threads": threads,
                "steps_per_second": ran.speed(),
                "learner_iterations": ran.learner("iteration"),
                "learner_waits": ran.learner("waiting_for_trajectory"),
                "processors": ran.cost.processor / ran.cost.wall,
            }));
            Ok(ran)
        };
        Ok(Runs((0..rounds).map(run).collect::<Result<_>>()?))
    }

    fn median(&self, of: impl Fn(&Ran) -> f64) -> f64 {
        let mut figures = Figures::default();
        figures.extend(self.0.iter().map(of));
        figures.median()
    }

    fn learner(&self, activity: &str) -> f64 {
        self.median(|ran| ran.learner(activity))
    }
}

pub fn run(options: &LearnersOptions, rounds: usize) -> Result<()> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let percent = |share: f64| format!("{:.0}%", 100.0 * share);
    let seconds = options.learner_seconds;
    let mut table = Table::new(&[
        "learner devices",
        "devices for a core",
        "steps/s",
        "learner iterations",
        "waits",
    ]);
    for &learners in &options.learners {
        let runs = Runs::measure(learners, 2, seconds, rounds)?;
        table.row([
            learners.to_string(),
            format!("{:.1}", (learners + 1) as f64 / cores as f64),
            si(runs.median(Ran::speed)),
            percent(runs.learner("iteration")),
            percent(runs.learner("waiting_for_trajectory")),
        ]);
    }
    table.print("Learner devices, beside one actor device with two threads");

    let mut table = Table::new(&["actor threads", "steps/s", "learner iterations", "waits"]);
    let mut before = f64::INFINITY;
    for &threads in &options.actor_threads {
        let runs = Runs::measure(1, threads, seconds, rounds)?;
        let waits = runs.learner("waiting_for_trajectory");
        table.row([
            threads.to_string(),
            si(runs.median(Ran::speed)),
            percent(runs.learner("iteration")),
            judged(waits, waits < before),
        ]);
        before = waits;
    }
    table.print("Actor threads, beside one learner device");
    Ok(())
}
