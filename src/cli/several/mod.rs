//! Several runs trained by a single command: seeds of an experiment, or a sweep of its settings.
//! They are one program if possible, and otherwise one process each.

pub(super) mod axes;
pub(super) mod one_by_one;
mod one_program;
mod outcomes;
pub(super) mod population;
mod shared_runs;
pub(super) mod sweep;

use std::mem;
use std::num::NonZero;
use std::path::Path;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use podracer_rl::population::Exploit;
use podracer_runtime::World;
use serde::{Deserialize, Serialize};

use super::console::Console;
use super::named_runs::present_value;
use super::numbers::at_least_one;
use super::session::outcome::Outcome;
use crate::settings::{Settings, UsageError};
use crate::training::Column;

/// Runs that are trained as one program.
pub(crate) struct Several<'a> {
    /// The experiment, and the difference between the runs: the name of their folder.
    pub(crate) name: String,
    /// The runs, which differ in their seeds and in the settings of `keys`.
    pub(crate) runs: Vec<Planned>,
    pub(crate) keys: Vec<String>,
    pub(crate) run_dir: Option<&'a Path>,
    /// The arguments of `train` that all runs share, if each run is a process.
    pub(crate) common: Vec<String>,
    /// The command's own arguments, for the tasks of an array job.
    pub(crate) again: Vec<String>,
    /// Population-based training of the runs, if they take over agents from each other.
    pub(crate) exploit: Option<Exploit>,
    /// Greatest number of runs in one program.
    pub(crate) together: Option<NonZero<usize>>,
    /// Settings for runs in separate processes, if they cannot be one program.
    pub(crate) apart: Apart,
    /// True if the user names the devices.
    pub(crate) on_devices: bool,
    pub(crate) json: bool,
}

impl Several<'_> {
    /// True if the runs are processes even if they could be one program.
    fn apart(&self) -> bool {
        self.apart.launch.is_some() || self.apart.only.is_some()
    }

    /// Rejects runs that are separate programs, if they are to take over agents from each other.
    pub(crate) fn alone(&self, why: &str) -> Result<(), UsageError> {
        match self.exploit {
            None => Ok(()),
            Some(_) => Err(UsageError::new(format!(
                "--exploit-every is for runs of one program, and {why}"
            ))),
        }
    }

    /// If runs took over agents from each other, describes each by its last settings, its first
    /// settings and its seed. Each run is then a separate row of the results: its first settings do
    /// not describe it, and it is not another seed of its last settings.
    fn settings_at_the_end(&mut self, folder: &Path) {
        if self.exploit.is_none() {
            return;
        }
        for run in &mut self.runs {
            let path = folder.join(&run.folder);
            let first = mem::take(&mut run.chosen);
            let now = |(key, first): (&String, &String)| {
                present_value(&path, key, first).unwrap_or_else(|| first.clone())
            };
            run.chosen = self.keys.iter().zip(&first).map(now).collect();
            run.chosen.extend(first);
            run.chosen.push(run.settings.train.seed.to_string());
        }
        let first = |key: &String| format!("{key} at the beginning");
        let first: Vec<String> = self.keys.iter().map(first).collect();
        self.keys.extend(first);
        self.keys.push("seed".to_owned());
    }

    /// The settings that differ between the runs, as numbers.
    fn columns(&self) -> Result<Vec<Column>> {
        let column = |(index, key): (usize, &String)| {
            let values = self.runs.iter().map(|run| {
                run.chosen[index].parse().map_err(|_| {
                    UsageError::new(format!(
                        "{key} = {}: only numbers differ between the runs of one program",
                        run.chosen[index]
                    ))
                })
            });
            Ok(Column { key: key.clone(), values: values.collect::<Result<_, UsageError>>()? })
        };
        self.keys.iter().enumerate().map(column).collect()
    }
}

/// A run that is to be trained.
pub(crate) struct Planned {
    /// The name of its folder.
    pub(crate) folder: String,
    /// The values of the keys, as the user wrote them.
    pub(crate) chosen: Vec<String>,
    /// All settings that the user gave it, each `KEY=VALUE`.
    pub(crate) sets: Vec<String>,
    pub(crate) settings: Settings,
}

/// Settings for runs in separate processes.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Apart {
    /// Number of runs that are trained at once, if they are separate programs [default: 1]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = at_least_one("process"))]
    pub(crate) processes: Option<NonZero<usize>>,
    /// Write a script that trains each run as a task of a cluster's array job, `FOLDER/sweep.sbatch`, and train nothing
    #[arg(long, value_name = "CLUSTER")]
    pub(crate) launch: Option<Cluster>,
    /// Submit the script with `sbatch`
    #[arg(long, requires = "launch")]
    pub(crate) submit: bool,
    /// Train only the run with this number: a task of an array job
    #[arg(long, hide = true, conflicts_with = "launch")]
    pub(crate) only: Option<usize>,
}

/// Programs that run array jobs on a cluster.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Cluster {
    /// Array jobs of Slurm.
    Slurm,
}

/// The runs that a process has trained.
#[derive(Default, Deserialize, Serialize)]
pub(crate) struct Trained {
    /// The runs that have finished or were stopped, by index.
    pub(crate) finished: Vec<(usize, Outcome)>,
    pub(crate) failed: Vec<Failed>,
    /// Seconds and speed of the runs together, if they were one program.
    pub(crate) together: Option<Together>,
    pub(crate) interrupted: bool,
}

impl Trained {
    /// The runs that all processes have trained, known to each of them.
    pub(crate) fn of_all(self, world: Option<World>) -> Result<Self> {
        let Some(world) = world else { return Ok(self) };
        let mut all = Trained::default();
        for (rank, report) in world.gather(&serde_json::to_vec(&self)?)?.iter().enumerate() {
            let one: Trained = serde_json::from_slice(report)
                .with_context(|| format!("the results of process {rank}"))?;
            all.finished.extend(one.finished);
            all.failed.extend(one.failed);
            all.interrupted |= one.interrupted;
            all.together = match all.together.zip(one.together) {
                Some((these, those)) => Some(these.beside(those)),
                None if rank == 0 => one.together,
                None => None,
            };
        }
        Ok(all)
    }
}

/// Seconds and speed of runs that were one program.
#[derive(Clone, Copy, Deserialize, Serialize)]
pub(crate) struct Together {
    pub(crate) compile_seconds: f64,
    pub(crate) run_seconds: f64,
    pub(crate) env_steps_per_second: Option<f64>,
}

impl Together {
    /// Seconds and speed of two processes that ran at once.
    fn beside(self, other: Together) -> Together {
        let speeds = self.env_steps_per_second.zip(other.env_steps_per_second);
        Together {
            compile_seconds: self.compile_seconds.max(other.compile_seconds),
            run_seconds: self.run_seconds.max(other.run_seconds),
            env_steps_per_second: speeds.map(|(one, other)| one + other),
        }
    }
}

/// A run that failed.
#[derive(Deserialize, Serialize)]
pub(crate) struct Failed {
    pub(crate) run: String,
    pub(crate) problem: String,
}

impl Failed {
    /// A run that ended with an error, which is printed.
    pub(crate) fn new(run: &Planned, error: &anyhow::Error, console: &mut Console<'_>) -> Self {
        let (run, problem) = (run.folder.clone(), format!("{error:#}"));
        console.warn(&format!("{run}: {problem}; the other runs continue"));
        Failed { run, problem }
    }
}
