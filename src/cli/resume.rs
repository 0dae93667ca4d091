//! `podracer resume`: resumes a training from its last checkpoint.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use anyhow::Result;
use clap::Args;
use podracer_runtime::Checkpoints;

use super::console::Console;
use super::numbers::steps;
use super::program::Program;
use super::session::exporter::Exporter;
use super::session::{Reopened, Session, follow};
use super::together;
use crate::loading::Overrides;
use crate::run_directory::RunDirectory;
use crate::settings::{Devices, UsageError};

#[derive(Args, Debug)]
pub(super) struct ResumeArguments {
    /// The run directory
    pub(super) run: PathBuf,
    /// Environment steps in total, including those already done [default: as before]; an annealed
    /// learning rate follows the schedule of the new total
    #[arg(long, allow_negative_numbers = true, value_parser = steps)]
    pub(super) steps: Option<u64>,
    /// The devices [default: as before; with a different number the resumed run differs from an
    /// uninterrupted run]
    #[arg(long, value_parser = Devices::parse, allow_negative_numbers = true)]
    pub(super) devices: Option<Devices>,
    /// With [sebulba] or [central]: the devices that act, with [sebulba] as many as before
    #[arg(long, value_name = "DEVICES", value_delimiter = ',')]
    pub(super) actors: Option<Vec<usize>>,
    /// With [sebulba] or [central]: the devices that learn
    #[arg(long, value_name = "DEVICES", value_delimiter = ',')]
    pub(super) learners: Option<Vec<usize>>,
    /// Use the programs and folders that the experiment's files name, such as environment.python
    #[arg(long)]
    pub(super) trust: bool,
    /// Serve the metrics to Prometheus at this address
    #[arg(long, value_name = "HOST:PORT")]
    pub(super) metrics: Option<String>,
    /// Print the result as one JSON object, the last line of standard output
    #[arg(long)]
    pub(super) json: bool,
}

pub(super) fn resume(
    args: &ResumeArguments,
    started: Instant,
    console: &mut Console<'_>,
    program: Program<'_>,
    interrupt: &AtomicBool,
) -> Result<u8> {
    let world = together::join(console)?;
    let reopened = together::agree(world, reopen(args, console, program), Reopened::facts)?;
    let Reopened { ready, found, .. } = &reopened;
    if let Some(world) = follow::following(world, ready) {
        return follow::follow(world, ready, Some(&found.checkpoint), None);
    }
    session(args, reopened, started, console)?.run(console, interrupt)
}

/// The run to resume.
pub(super) fn reopen(
    args: &ResumeArguments,
    console: &mut Console<'_>,
    program: Program<'_>,
) -> Result<Reopened> {
    let overrides = Overrides {
        steps: args.steps,
        devices: args.devices.clone(),
        actors: args.actors.clone(),
        learners: args.learners.clone(),
        trust: args.trust,
        ..Overrides::default()
    };
    let find = |settings: &_| RunDirectory::find(&args.run, settings, Checkpoints::latest);
    Reopened::open(&args.run, find, &overrides, console, program)
}

/// The resumed training.
pub(super) fn session(
    args: &ResumeArguments,
    reopened: Reopened,
    started: Instant,
    console: &mut Console<'_>,
) -> Result<Session> {
    let Reopened { ready, found, progress, warning } = reopened;
    if let Some(warning) = warning {
        console.warn(&warning);
    }
    let counters = progress.counters;
    let plan = ready.settings.plan();
    if args.steps.is_some() && plan.calls < counters.calls {
        return Err(UsageError::new(format!(
            "--steps asks for {} calls of the training loop and {} are done, with {} steps: ask for more steps",
            plan.calls, counters.calls, counters.env_steps
        ))
        .into());
    }
    let (directory, points) =
        RunDirectory::resume(&args.run, &ready.settings, &ready.recorded, &found, &progress.files)?;
    console.say(&format!(
        "resuming after {} iterations, from {}",
        counters.iterations,
        found.path.display()
    ));
    Ok(Session {
        ready,
        directory,
        counters,
        points,
        from: Some(found.checkpoint),
        json: args.json,
        started,
        warned_of_nan: false,
        exporter: Exporter::of(args.metrics.as_deref(), console)?,
        serving: None,
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use serde_json::Value;

    use crate::cli::fake::{podracer, short, with};

    /// A run of 5 calls, stopped after `calls`.
    fn stopped(folder: &Path, calls: u64, more: &[&str]) {
        let printed = with(&short(folder, more), None, Some(calls));
        assert_eq!(printed.code, 130, "{}", printed.err);
        let resume = format!("`podracer resume {}` continues", folder.display());
        assert!(printed.err.contains(&resume), "{}", printed.err);
    }

    fn metrics(folder: &Path) -> Vec<Value> {
        let text = fs::read_to_string(folder.join("metrics.jsonl")).unwrap();
        let line = |line| serde_json::from_str::<Value>(line).unwrap();
        let mut lines: Vec<Value> = text.lines().map(line).collect();
        for line in &mut lines {
            // The load of the machine, such as `machine/cpu`, is no part of the training.
            line.as_object_mut()
                .unwrap()
                .retain(|key, _| !["seconds", "time"].contains(&&**key) && !key.contains('/'));
        }
        lines
    }

    #[test]
    fn a_stopped_run_resumes() {
        let folder = tempfile::tempdir().unwrap();
        let (alone, run) = (folder.path().join("alone"), folder.path().join("run"));
        let expected = podracer(&short(&alone, &["--json"])).json();
        stopped(&run, 2, &[]);
        let printed = podracer(&["resume", run.to_str().unwrap(), "--json"]);
        assert_eq!(printed.code, 0, "{}", printed.err);
        let result = printed.json();
        assert_eq!(result["resumed_from_iteration"], 32);
        assert_eq!(result["interrupted"], false);
        for key in ["calls", "iterations", "env_steps", "episodes", "mean_return"] {
            assert_eq!(result[key], expected[key], "{key}");
        }
        assert_eq!(metrics(&run), metrics(&alone));
        let file = |folder: &Path, name| fs::read_to_string(folder.join(name)).unwrap();
        for name in ["config.toml", "learning_curve.svg"] {
            assert_eq!(file(&run, name), file(&alone, name), "{name}");
        }
        // Nothing is left to do, unless more steps are requested.
        let again = podracer(&["resume", run.to_str().unwrap(), "--json"]);
        assert_eq!(again.json()["iterations"], 80);
        assert!(again.err.contains("--steps asks for more"), "{}", again.err);
        let arguments = ["resume", run.to_str().unwrap(), "--steps=50000", "--json"];
        assert_eq!(podracer(&arguments).json()["iterations"], 112);
        assert_eq!(metrics(&run).len(), 112);
        assert!(file(&run, "config.toml").contains("steps = 50000"));
    }

    /// Iterations after the checkpoint are recorded again, each once.
    #[test]
    fn what_comes_after_the_checkpoint_is_cut_off() {
        let folder = tempfile::tempdir().unwrap();
        let run = folder.path();
        let every = ["--set", "train.checkpoint_every=32"];
        let printed = with(&short(run, &every), Some(4), None);
        assert_eq!(printed.code, 1);
        let way_back = format!("`podracer resume {}` resumes after 32 iterations", run.display());
        assert!(
            printed.err.contains("the training failed after 48 iterations")
                && printed.err.contains(&way_back),
            "{}",
            printed.err
        );
        assert_eq!(metrics(run).len(), 48);
        let mut torn = fs::read_to_string(run.join("metrics.jsonl")).unwrap();
        torn += "{\"iteration\": 49, \"los";
        fs::write(run.join("metrics.jsonl"), torn).unwrap();
        let printed = podracer(&["resume", run.to_str().unwrap(), "--json"]);
        assert_eq!(printed.json()["resumed_from_iteration"], 32);
        let iterations: Vec<_> =
            metrics(run).iter().map(|line| line["iteration"].clone()).collect();
        assert_eq!(iterations, (1..=80).map(Value::from).collect::<Vec<_>>());
    }

    /// If the store takes long to write, only every third checkpoint has it, and a run that was
    /// killed resumes from such a checkpoint.
    #[test]
    fn a_run_goes_on_from_the_last_checkpoint_with_the_store() {
        let folder = tempfile::tempdir().unwrap();
        let run = folder.path();
        let every = ["--set=train.checkpoint_every=16", "--set=train.store_every=48"];
        let printed = with(&short(run, &every), Some(5), None);
        assert_eq!(printed.code, 1);
        let way_back = format!("`podracer resume {}` resumes after 48 iterations", run.display());
        assert!(printed.err.contains(&way_back), "{}", printed.err);
        let run = run.to_str().unwrap();
        assert_eq!(podracer(&["eval", run, "--json"]).json()["iterations"], 64);
        let result = podracer(&["resume", run, "--json"]).json();
        assert_eq!(
            (&result["resumed_from_iteration"], &result["iterations"]),
            (&48.into(), &80.into())
        );
        let iterations: Vec<_> =
            metrics(run.as_ref()).iter().map(|line| line["iteration"].clone()).collect();
        assert_eq!(iterations, (1..=80).map(Value::from).collect::<Vec<_>>());
    }

    #[test]
    fn a_damaged_checkpoint_is_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        let every = ["--set", "train.checkpoint_every=16"];
        stopped(folder.path(), 3, &every);
        let checkpoints = folder.path().join("checkpoints");
        fs::write(checkpoints.join("3-48/arrays.safetensors"), "half").unwrap();
        let run = folder.path().to_str().unwrap();
        let printed = podracer(&["resume", run, "--json"]);
        assert!(
            printed.err.contains("3-48` is damaged: `arrays.safetensors` has 4 bytes"),
            "{}",
            printed.err
        );
        assert_eq!(printed.json()["resumed_from_iteration"], 32);
        for one in fs::read_dir(&checkpoints).unwrap() {
            fs::write(one.unwrap().path().join("manifest.json"), "{}").unwrap();
        }
        let printed = podracer(&["resume", run]);
        assert_eq!(printed.code, 1);
        assert!(
            printed.err.contains("is damaged: manifest.json: missing field"),
            "{}",
            printed.err
        );
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (run, empty) = (folder.path().join("run"), folder.path().join("empty"));
        stopped(&run, 1, &[]);
        let name = run.to_str().unwrap();
        let config = fs::read_to_string(run.join("config.toml")).unwrap();
        let change = |from: &str, to: &str| {
            assert!(config.contains(from), "{config}");
            fs::write(run.join("config.toml"), config.replace(from, to)).unwrap();
            let printed = podracer(&["resume", name]);
            assert_eq!(printed.code, 2, "{}", printed.err);
            printed.err
        };
        let said = change("clip = 0.2", "clip = 0.3");
        assert!(said.contains("agent.clip was 0.2 and is 0.3; set them back"), "{said}");
        let said = change("experiment = \"cartpole-ppo\"", "experiment = \"other\"");
        assert!(said.contains("experiment was \"cartpole-ppo\" and is \"other\""), "{said}");
        fs::write(run.join("config.toml"), &config).unwrap();
        let printed = podracer(&["resume", name, "--steps=1", "--devices=2"]);
        assert_eq!(printed.code, 0, "{}", printed.err);
        let warning =
            "warning: the run learnt on 1 device(s) and resumes with 2: the resumed run differs";
        assert!(printed.err.contains(warning), "{}", printed.err);
        let config = fs::read_to_string(run.join("config.toml")).unwrap();
        assert!(config.contains("devices = 2"), "{config}");

        fs::remove_dir_all(run.join("checkpoints")).unwrap();
        let printed = podracer(&["resume", name]);
        assert_eq!(printed.code, 2);
        assert!(printed.err.contains("there is no checkpoint in `"), "{}", printed.err);
        assert!(printed.err.contains("config.toml` begins it anew"), "{}", printed.err);
        let printed = podracer(&["resume", empty.to_str().unwrap()]);
        assert_eq!(printed.code, 2);
        assert!(printed.err.contains("holds no run"), "{}", printed.err);
    }
}
