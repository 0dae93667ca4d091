//! What a run leaves behind: a folder with its settings, metrics, learning curve, parameters and result.
//!
//! # Invariants
//! - A folder holds one run: one that has a `config.toml` already is never written to.
//! - `config.toml` is written before anything is compiled, so that a folder which cannot be written costs no time.
//! - Files that are written once appear whole or not at all. Those that grow end in whole lines or records after every call.

mod curve;
mod events;
mod metrics;

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Serialize;

pub use curve::Point;

use crate::files::write_whole;
use crate::parameters;
use crate::settings::{Settings, UsageError};
use crate::training::CallMetrics;
use events::Events;
use metrics::Metrics;
use podracer_runtime::HostArray;

const CONFIG: &str = "config.toml";

/// The folder of a run under way.
pub struct RunDirectory {
    path: PathBuf,
    metrics: Metrics,
    events: Events,
}

/// What stands in `config.toml` beside the settings: for readers, and ignored when the file is read as an experiment.
#[derive(Debug, Serialize)]
pub struct Recorded {
    /// podracer's version.
    pub podracer: String,
    /// XLA's name of the platform.
    pub platform: String,
    /// What the platform says of its version.
    pub platform_version: String,
    /// The plugin's file.
    pub plugin: String,
    /// The kind of the devices.
    pub device_kind: String,
    /// The devices used, by index.
    pub devices: Vec<usize>,
}

impl RunDirectory {
    /// Makes the folder (`path`, or the next free `runs/<experiment>-<seed>-<n>`) and writes the settings into it.
    ///
    /// # Errors
    /// Where the folder holds a run already, or cannot be written.
    pub fn create(path: Option<&Path>, settings: &Settings, recorded: &Recorded) -> Result<Self> {
        let path = match path {
            Some(path) => given(path)?,
            None => next_free(&settings.experiment, settings.train.seed)?,
        };
        #[derive(Serialize)]
        struct Table<'a> {
            recorded: &'a Recorded,
        }
        let text = format!(
            "# The settings of a run, complete: `podracer train` takes this file as an experiment.\n{}\n{}",
            settings.to_toml()?,
            toml::to_string(&Table { recorded })?
        );
        write_whole(&path.join(CONFIG), text.as_bytes())?;
        Ok(Self {
            metrics: Metrics::create(&path.join("metrics.jsonl"))?,
            events: Events::create(&path)?,
            path,
        })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds what a call of the training loop reported. `before` are the updates and environment steps of the calls before it,
    /// `seconds` is what it took.
    ///
    /// # Errors
    /// Where the folder cannot be written.
    pub fn record(&mut self, call: &CallMetrics, before: (u64, u64), seconds: f64) -> Result<()> {
        self.metrics.write(call, before, seconds)?;
        self.events.write(call, before, seconds)
    }

    /// Writes `learning_curve.svg`.
    ///
    /// # Errors
    /// Where the folder cannot be written.
    pub fn write_curve(&self, settings: &Settings, points: &[Point]) -> Result<()> {
        let caption = format!("{}, seed {}", settings.experiment, settings.train.seed);
        let svg = curve::svg(&caption, points)?;
        write_whole(&self.path.join("learning_curve.svg"), svg.as_bytes())
    }

    /// Writes `parameters.safetensors`.
    ///
    /// # Errors
    /// Where the folder cannot be written, or two parameters share a name.
    pub fn write_parameters(&self, parameters: &[(String, HostArray)]) -> Result<()> {
        parameters::save(parameters, &self.path.join("parameters.safetensors"))
    }

    /// Writes `result.json`.
    ///
    /// # Errors
    /// Where the folder cannot be written.
    pub fn write_result(&self, result: &impl Serialize) -> Result<()> {
        let text = serde_json::to_string_pretty(result)? + "\n";
        write_whole(&self.path.join("result.json"), text.as_bytes())
    }
}

fn given(path: &Path) -> Result<PathBuf> {
    fs::create_dir_all(path)
        .with_context(|| format!("cannot make the run directory `{}`", path.display()))?;
    if path.join(CONFIG).exists() {
        let path = path.display();
        let problem = format!(
            "`{path}` holds a run already: name another folder with --run-dir, or remove it"
        );
        return Err(UsageError::new(problem).into());
    }
    Ok(path.to_owned())
}

fn next_free(experiment: &str, seed: u64) -> Result<PathBuf> {
    let runs = Path::new("runs");
    let failed = |path: &Path| format!("cannot make the run directory `{}`", path.display());
    fs::create_dir_all(runs).with_context(|| failed(runs))?;
    let mut number = 1u64;
    loop {
        let path = runs.join(format!("{experiment}-{seed}-{number}"));
        // Making the folder is what claims the number: another process may look for one too.
        match fs::create_dir(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => number += 1,
            Err(error) => return Err(error).with_context(|| failed(&path)),
        }
    }
}

#[cfg(test)]
mod tests;
