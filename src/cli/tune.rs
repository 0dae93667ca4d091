//! `podracer tune`: short trainings with different settings, to see which are fastest.
//!
//! Each is a separate process of the same program, so that a crash caused by XLA's options is only
//! a failed trial.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::Args;
use podracer_plugins::read_regular_text;
use rustix::process::{Pid, Signal, kill_process};
use serde::Serialize;
use serde_json::Value as Json;
use toml::Value;

use super::arguments::ExperimentArguments;
use super::console::Console;
use super::program::{FAILURE, INTERRUPTED};
use super::several::axes::{Axis, axis, combinations};
use super::{processes, signals};
use crate::files::write_whole;
use crate::format::count;
use crate::loading::{Overrides, parse_sets};
use crate::program_name::program_name;
use crate::registry::Registry;
use crate::run_directory::METRICS;
use crate::settings::{Settings, TrainingLoop};

#[derive(Args, Debug)]
pub(super) struct TuneArguments {
    #[command(flatten)]
    pub(super) experiment: ExperimentArguments,
    /// Values to try, such as sebulba.threads=1,2,4 [repeatable: every combination is tried] [default: sizes of the
    /// loop that fit the experiment]
    #[arg(long = "try", value_name = "TABLE.KEY=VALUE,VALUE")]
    pub(super) tries: Vec<String>,
    /// Seconds of training for each, after compilation
    #[arg(long, default_value_t = 5.0)]
    pub(super) seconds: f64,
    /// Write the experiment with the fastest settings to this TOML file
    #[arg(long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
    /// Print the report as one JSON object, the last line of standard output
    #[arg(long)]
    pub(super) json: bool,
}

/// An experiment, with the settings that all trials share.
struct Common<'a> {
    registry: &'a Registry,
    experiment: &'a str,
    /// Settings, each `KEY=VALUE`.
    set: Vec<String>,
    trust: bool,
}

/// A training with some settings.
#[derive(Clone, Debug, Serialize)]
struct Trial {
    /// One setting per axis, `KEY=VALUE`.
    settings: Vec<String>,
    env_steps_per_second: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// Longest time until a trial's first metrics.
const PATIENCE: Duration = Duration::from_secs(300);
/// Interval between checks of a trial.
const LOOK: Duration = Duration::from_millis(50);
/// Number of iterations of a trial: more than it reaches before it is stopped, and few enough for
/// schedules to count.
const ITERATIONS: u64 = 1_000_000;

pub(super) fn tune(
    args: &TuneArguments,
    registry: &Registry,
    console: &mut Console<'_>,
    interrupt: &AtomicBool,
) -> Result<u8> {
    let ExperimentArguments { experiment, devices, set, trust } = &args.experiment;
    let devices =
        devices.iter().map(|devices| format!("train.devices={}", Value::from(devices.clone())));
    let set = devices.chain(set.iter().cloned()).collect();
    let common = Common { registry, experiment, set, trust: *trust };
    let settings = common.with(&[])?;
    let axes = if args.tries.is_empty() {
        usual(&settings)
    } else {
        let parsed = args.tries.iter().map(|text| axis(text));
        parsed.collect::<Result<Vec<_>>>()?
    };
    let combinations = combinations(&axes);
    // Some settings may not fit together. If no combination fits, the mistake is in the request.
    let mistakes = combinations.iter().map(|chosen| common.with(chosen).err());
    if let Some(mistakes) = mistakes.collect::<Option<Vec<_>>>()
        && let Some(mistake) = mistakes.into_iter().next()
    {
        return Err(mistake);
    }
    let _heeding = signals::heed();
    let folder = tempfile::tempdir().context("cannot make a folder for the trials")?;
    let mut trials = Vec::new();
    for (number, chosen) in combinations.iter().enumerate() {
        let folder = folder.path().join(number.to_string());
        let tried = common.trial(chosen, &folder, args.seconds, interrupt);
        if interrupt.load(Ordering::Relaxed) {
            console.say("stopped; nothing is written");
            return Ok(INTERRUPTED);
        }
        let (speed, error, said) = match tried {
            Ok(speed) => (Some(speed), None, format!("{} steps/s", count(speed))),
            Err(error) => (None, Some(format!("{error:#}")), format!("{error:#}")),
        };
        console.say(&format!("{}/{} {}: {said}", number + 1, combinations.len(), chosen.join(" ")));
        trials.push(Trial { settings: chosen.clone(), env_steps_per_second: speed, error });
    }
    let speed = |trial: &Trial| trial.env_steps_per_second.unwrap_or(f64::NEG_INFINITY);
    trials.sort_by(|a, b| speed(b).total_cmp(&speed(a)));
    let best = trials.first().filter(|trial| trial.error.is_none());
    if let (Some(best), Some(path)) = (best, &args.output) {
        write_whole(path, common.to_toml(best)?.as_bytes())?;
    }
    console.print(&if args.json {
        let report = serde_json::json!({
            "experiment": settings.experiment,
            "trials": trials,
            "best": best,
        });
        report.to_string() + "\n"
    } else {
        common.table(&trials, best)
    })?;
    Ok(if best.is_some() { 0 } else { FAILURE })
}

impl Common<'_> {
    /// The settings of the experiment with a trial's settings.
    fn with(&self, chosen: &[String]) -> Result<Settings> {
        let set = [&self.set, chosen].concat();
        let overrides = Overrides { set, trust: self.trust, ..Overrides::default() };
        self.registry.load(self.experiment, &overrides)
    }

    /// Trains for a while, and returns the steps per second.
    fn trial(
        &self,
        chosen: &[String],
        folder: &Path,
        seconds: f64,
        interrupt: &AtomicBool,
    ) -> Result<f64> {
        let plan = self.with(chosen)?.plan();
        let steps = plan.steps_per_iteration.saturating_mul(ITERATIONS);
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["train", self.experiment, "--json", "--set=train.eval_every=none"]);
        command.args(self.trust.then_some("--trust"));
        command.args(["--steps", &steps.to_string()]);
        command.arg("--run-dir").arg(folder);
        for set in self.set.iter().chain(chosen) {
            command.args(["--set", set]);
        }
        let [out, err] = ["out", "err"].map(|name| folder.with_extension(name));
        let mut child = processes::start(&mut command, File::create(&out)?, File::create(&err)?)?;
        let ended = watch(&mut child, folder, seconds, interrupt);
        if ended.is_err() {
            let _ = child.kill();
        }
        child.wait()?;
        ended?;
        let printed = read_regular_text(&out, processes::LARGEST)?;
        let result =
            printed.lines().last().and_then(|line| serde_json::from_str::<Json>(line).ok());
        let speed = result.and_then(|result| result.get("env_steps_per_second")?.as_f64());
        speed.with_context(|| processes::last_words(&err))
    }

    /// An experiment with the settings of a trial.
    fn to_toml(&self, best: &Trial) -> Result<String> {
        let mut table = parse_sets(&[&self.set[..], &best.settings].concat())?;
        let base = Value::String(self.experiment.to_owned());
        table.insert("base".to_owned(), base);
        Ok(toml::to_string(&table)?)
    }

    /// The trials, fastest first, and the command that trains with the first.
    fn table(&self, trials: &[Trial], best: Option<&Trial>) -> String {
        let mut text = String::new();
        for trial in trials {
            let speed = trial.env_steps_per_second;
            let result = speed.map_or_else(|| "-".to_owned(), count);
            text += &format!("{result:>8} steps/s  {}\n", trial.settings.join(" "));
        }
        if let Some(best) = best {
            let sets = self.set.iter().chain(&best.settings);
            let trust = self.trust.then(|| " --trust".to_owned());
            let sets: Vec<String> = sets.map(|set| format!(" --set {set}")).chain(trust).collect();
            text += &format!(
                "fastest: {} train {}{}\n",
                program_name(),
                self.experiment,
                sets.concat()
            );
            text += "Batches of another size learn differently: compare the learning curves too.\n";
        }
        text
    }
}

/// The axes that are tried by default: the sizes of `[sebulba]` and `[central]`, and the number of
/// acting devices, with the rest as learners; lanes and devices of `[anakin]`.
fn usual(settings: &Settings) -> Vec<Axis> {
    let axis = |name: &str, values: &[usize]| {
        let values = values.iter().map(ToString::to_string);
        (name.to_owned(), values.collect())
    };
    let cores = thread::available_parallelism().map_or(1, usize::from);
    if let TrainingLoop::Central(central) = &settings.training_loop {
        let (environments, workers) = (central.environments, central.workers);
        let axes = vec![
            axis("central.environments", &[environments, 2 * environments]),
            axis("central.workers", &[workers.div_ceil(2), workers]),
            axis(
                "central.capacity",
                &[environments.div_ceil(4), environments.div_ceil(2), environments],
            ),
        ];
        return axes.into_iter().chain(acting(settings, cores, "central.actors")).collect();
    }
    if let TrainingLoop::Sebulba(sebulba) = &settings.training_loop {
        let (environments, unroll) = (sebulba.environments, sebulba.host.unroll);
        let axes = vec![
            axis("sebulba.environments", &[environments, 2 * environments]),
            axis("sebulba.threads", &[1, 2, 4]),
            axis("sebulba.unroll", &[unroll.div_ceil(2), unroll]),
        ];
        return axes.into_iter().chain(acting(settings, cores, "sebulba.actors")).collect();
    }
    let devices = if cores > 1 { vec![1, cores] } else { vec![1] };
    let environments = settings.training_loop.environments();
    vec![
        axis("anakin.environments", &[environments, 4 * environments, 16 * environments]),
        axis("train.devices", &devices),
    ]
}

/// The numbers of acting devices to try, if there is a choice: a quarter, a half and three quarters
/// of the run's devices. The others learn, unless the settings name the learners.
fn acting(settings: &Settings, cores: usize, key: &str) -> Option<Axis> {
    let named = &settings.train.devices;
    let devices = named.resolve(cores.max(named.named()), "cpu").unwrap_or_default();
    let mut counts: Vec<usize> =
        (1..4).map(|quarters| (quarters * devices.len() / 4).max(1)).collect();
    counts.dedup();
    counts.retain(|&count| count < devices.len());
    let values: Vec<String> =
        counts.iter().map(|&count| format!("{:?}", &devices[..count])).collect();
    (values.len() > 1).then(|| (key.to_owned(), values))
}

/// Waits until a trial has made its first call and trained for `seconds` more, and then stops it.
fn watch(child: &mut Child, folder: &Path, seconds: f64, interrupt: &AtomicBool) -> Result<()> {
    let metrics = folder.join(METRICS);
    let (started, mut first) = (Instant::now(), None);
    loop {
        if child.try_wait()?.is_some() {
            return Ok(());
        }
        let began = fs::metadata(&metrics).is_ok_and(|file| file.len() > 0);
        if began {
            first.get_or_insert_with(Instant::now);
        }
        let enough = first.is_some_and(|first| first.elapsed().as_secs_f64() >= seconds);
        if enough || interrupt.load(Ordering::Relaxed) {
            return Ok(kill_process(Pid::from_child(child), Signal::INT)?);
        }
        if first.is_none() && started.elapsed() > PATIENCE {
            anyhow::bail!("no iteration within {} s", PATIENCE.as_secs());
        }
        thread::sleep(LOOK);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Registry;

    #[test]
    fn devices_that_act_and_learn_are_shared_out_in_several_ways() {
        let tried = |experiment: &str, devices: &str| {
            let set = vec![format!("train.devices={devices}")];
            let overrides = Overrides { set, ..Overrides::default() };
            let settings =
                Registry::built_in().load(experiment, &overrides).expect("it is built in");
            let axes = usual(&settings);
            let (key, values) = axes.last().expect("there are some").clone();
            key.ends_with(".actors").then_some(values)
        };
        let eight = tried("cartpole-central-ppo", "8").expect("there is a choice");
        assert_eq!(eight, ["[0, 1]", "[0, 1, 2, 3]", "[0, 1, 2, 3, 4, 5]"]);
        let three = tried("cartpole-sebulba-ppo", "[1, 4, 5]").expect("there is a choice");
        assert_eq!(three, ["[1]", "[1, 4]"]);
        assert_eq!(tried("cartpole-central-ppo", "2"), None, "one acts and one learns");
        assert_eq!(tried("cartpole-ppo", "8"), None);
    }
}
