//! Overview of a run: experiment, settings, results and state, read from its folder without an
//! agent or environment.

use std::collections::BTreeMap;
use std::fs::{self, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Serialize;
use serde_json::Value;
use toml::Table;

use super::best::BEST;
use super::reading::{open, read_text, tail};
use super::{CHECKPOINTS, CONFIG, CURVE, EPISODES, IDENTITY, MESSAGES, METRICS, RESULT};
use crate::files::write_whole;
use crate::parameters;
use crate::settings::UsageError;

/// Files of `podracer profile --into`: time by line, and memory by buffer.
pub(crate) const PROFILE: &str = "profile.json";
pub(crate) const MEMORY: &str = "memory.json";

/// Number of bytes at the end of `metrics.jsonl` that are searched for the last line.
const TAIL: u64 = 1 << 16;

/// The files of a run that have one name; the file of TensorBoard and the folders are others.
const FILES: [&str; 9] =
    [CONFIG, METRICS, MESSAGES, CURVE, RESULT, IDENTITY, PROFILE, MEMORY, parameters::FILE];

/// Overview of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunOverview {
    /// Path of its folder.
    pub run: PathBuf,
    /// Name of the experiment.
    pub experiment: String,
    /// Seed of the run.
    pub seed: u64,
    /// Number of recorded environment steps.
    pub env_steps: u64,
    /// Mean return of at least the last 100 episodes, as last recorded.
    pub mean_return: Option<f64>,
    /// Environment steps per second, if the run has a result.
    pub env_steps_per_second: Option<f64>,
    /// Environment steps per second of the whole training, over all its processes, if the run has a
    /// result.
    pub total_steps_per_second: Option<f64>,
    /// State of the run.
    pub state: RunState,
    /// The settings except the seed, by dotted key, as in TOML.
    #[serde(skip)]
    pub settings: BTreeMap<String, String>,
}

/// State of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunState {
    /// A process trains it now.
    Running,
    /// All requested steps are done.
    Finished,
    /// A signal stopped it, and it has a result.
    Stopped,
    /// It ended without a result: it was killed, or failed.
    Unfinished,
}

impl RunState {
    /// The state in a word.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            RunState::Running => "running",
            RunState::Finished => "finished",
            RunState::Stopped => "stopped",
            RunState::Unfinished => "unfinished",
        }
    }
}

impl RunOverview {
    /// Reads the folder of a run.
    ///
    /// # Errors
    /// [`UsageError`] for a folder without a run, or with settings that are not TOML; an error if a
    /// file cannot be read.
    pub fn read(run: &Path) -> Result<Self> {
        let path = run.join(CONFIG);
        if !path.is_file() {
            let problem = format!("`{}` holds no run: it has no {CONFIG}", run.display());
            return Err(UsageError::new(problem).into());
        }
        let text = read_text(run, CONFIG)?.unwrap_or_default();
        let config: Table = text
            .parse()
            .map_err(|error| UsageError::new(format!("`{}`: {error}", path.display())))?;
        let mut settings = settings_by_key(&config);
        let seed = settings.remove("train.seed").and_then(|seed| seed.parse().ok());
        let result: Value = read_text(run, RESULT)?
            .and_then(|text| serde_json::from_str(&text).ok())
            .unwrap_or_default();
        let last = last_line(run);
        let state = match result["interrupted"].as_bool() {
            _ if is_running(run) => RunState::Running,
            Some(true) => RunState::Stopped,
            Some(false) => RunState::Finished,
            None => RunState::Unfinished,
        };
        let total_seconds = result["total_seconds"].as_f64().filter(|seconds| *seconds > 0.0);
        let experiment = config.get("experiment").and_then(toml::Value::as_str);
        Ok(RunOverview {
            run: run.to_owned(),
            experiment: experiment.unwrap_or_default().to_owned(),
            seed: seed.unwrap_or_default(),
            env_steps: last["env_steps"].as_u64().or(result["env_steps"].as_u64()).unwrap_or(0),
            mean_return: last["mean_return"].as_f64().or(result["mean_return"].as_f64()),
            env_steps_per_second: result["env_steps_per_second"].as_f64(),
            total_steps_per_second: result["env_steps"]
                .as_f64()
                .zip(total_seconds)
                .map(|(steps, seconds)| steps / seconds),
            state,
            settings,
        })
    }

    /// True if there is a checkpoint to resume from.
    #[must_use]
    pub fn has_checkpoint(&self) -> bool {
        fs::read_dir(self.run.join(CHECKPOINTS)).is_ok_and(|mut entries| entries.next().is_some())
    }

    /// The run's result as JSON; `None` if it has none.
    ///
    /// # Errors
    /// An error if the file cannot be read.
    pub fn result(&self) -> Result<Option<String>> {
        read_text(&self.run, RESULT)
    }

    /// Removes the files of the run, and its folder if nothing else is in it. Returns the remaining
    /// files.
    ///
    /// # Errors [`UsageError`] for a run in progress; an error if a file cannot be removed.
    pub fn remove(&self) -> Result<Vec<PathBuf>> {
        if is_running(&self.run) {
            let run = self.run.display();
            let problem = format!("`{run}` is not removed: another process trains it");
            return Err(UsageError::new(problem).into());
        }
        let failed = |path: &Path| format!("cannot remove `{}`", path.display());
        let mut left = Vec::new();
        let read = || failed(&self.run);
        for entry in fs::read_dir(&self.run).with_context(read)? {
            let path = entry.with_context(read)?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let whole = name.strip_suffix(".unfinished").unwrap_or(&name);
            let removed = if [CHECKPOINTS, BEST, EPISODES].contains(&whole) && !path.is_symlink() {
                fs::remove_dir_all(&path)
            } else if FILES.contains(&whole) || name.starts_with("events.out.tfevents.") {
                fs::remove_file(&path)
            } else {
                left.push(path.clone());
                Ok(())
            };
            removed.with_context(|| failed(&path))?;
        }
        if left.is_empty() {
            fs::remove_dir(&self.run).with_context(read)?;
        }
        left.sort();
        Ok(left)
    }
}

/// Writes a profile of a run's experiment into its folder, as the file `name`.
///
/// # Errors
/// An error if the file cannot be written.
pub(crate) fn write_profile(run: &Path, name: &str, profile: &Value) -> Result<()> {
    write_whole(&run.join(name), (serde_json::to_string_pretty(profile)? + "\n").as_bytes())
}

/// The runs in a folder, in the order of their names; none if the folder does not exist.
///
/// # Errors
/// An error if the folder cannot be read. A run that cannot be read is left out.
pub fn runs_in(folder: &Path) -> Result<Vec<RunOverview>> {
    let cannot = || format!("cannot read `{}`", folder.display());
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.with_context(cannot)?,
    };
    let mut runs = Vec::new();
    for entry in entries {
        runs.extend(RunOverview::read(&entry.with_context(cannot)?.path()));
    }
    runs.sort_by(|one, other| one.run.cmp(&other.run));
    Ok(runs)
}

/// The settings that differ between runs: the values of each run, in order, by dotted key. The seed
/// is not included.
#[must_use]
pub fn differences(runs: &[&RunOverview]) -> BTreeMap<String, Vec<String>> {
    let keys = runs.iter().flat_map(|run| run.settings.keys());
    let values = |key: &String| -> Vec<String> {
        let value = |run: &&RunOverview| run.settings.get(key).cloned().unwrap_or("-".to_owned());
        runs.iter().map(value).collect()
    };
    keys.map(|key| (key.clone(), values(key)))
        .filter(|(_, values)| values.iter().any(|value| *value != values[0]))
        .collect()
}

/// The settings by dotted key, without the table `[recorded]`.
pub(crate) fn settings_by_key(config: &Table) -> BTreeMap<String, String> {
    let mut entries = BTreeMap::new();
    for (section, value) in config {
        match value {
            toml::Value::Table(_) if section == "recorded" => {}
            toml::Value::Table(keys) => entries
                .extend(keys.iter().map(|(key, value)| (format!("{section}.{key}"), text(value)))),
            _ if section == "description" => {}
            value => {
                entries.insert(section.clone(), text(value));
            }
        }
    }
    entries
}

fn text(value: &toml::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The last line of a call in the metrics, or null.
fn last_line(run: &Path) -> Value {
    let tail = tail(run, METRICS, TAIL).unwrap_or_default();
    let tail = String::from_utf8_lossy(&tail);
    let lines = tail.lines().rev().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines.into_iter().find(|line| line.get("mean_return").is_some()).unwrap_or_default()
}

/// True if a process trains the run: it has the lock of the metrics.
pub(super) fn is_running(run: &Path) -> bool {
    let file = open(run, METRICS, u64::MAX);
    file.is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}
