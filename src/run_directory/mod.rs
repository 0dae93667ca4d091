//! Run directories: a folder with the settings, metrics, learning curve, checkpoints, parameters and result of a run.
//!
//! # Invariants
//! - A folder holds one run: if it has a `config.toml`, only `resume` of that run writes to it, in one process at a time.
//! - Every checkpoint has the lengths of the growing files at its time. A resumed run truncates them to these lengths, so
//!   that no iteration is recorded twice.
//! - `config.toml` is written before anything is compiled, so that a folder that cannot be written
//!   costs no time.
//! - Files that are written once are written atomically. Files that grow end in whole lines or
//!   records after every call, and have every iteration before a checkpoint.

mod best;
#[cfg(feature = "plots")]
mod clock;
mod events;
mod films;
mod folder;
mod messages;
mod metrics;
mod overview;
mod place;
mod progress;
mod reading;
#[cfg(feature = "plots")]
mod report;
mod series;
mod thinning;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[cfg(feature = "plots")]
pub use clock::RunClock;
pub(crate) use films::FilmName;
pub(crate) use folder::Folder;
use messages::MESSAGES;
pub(crate) use messages::{Message, MessageKind};
use overview::is_running;
pub(crate) use overview::settings_by_key;
pub(crate) use overview::{MEMORY, PROFILE, write_profile};
pub use overview::{RunOverview, RunState, differences, runs_in};
pub use place::group;
use place::{given, next_free};
pub use progress::{Counters, Evaluated, Files, RunProgress};
#[cfg(feature = "plots")]
pub(crate) use reading::open_if_there;
pub(crate) use reading::{next_line, open, tail};
#[cfg(feature = "plots")]
pub use series::Sample;
pub use series::Series;
#[cfg(feature = "plots")]
pub use series::{Timed, is_metric};

use crate::axis::Point;
use crate::files::write_whole;
use crate::loading::Overrides;
#[cfg(any(feature = "central", test))]
use crate::machine::random_name;
use crate::parameters;
use crate::program_name::program_name;
use crate::registry::Registry;
use crate::settings::{Settings, UsageError};
use crate::training::CallMetrics;
use events::Events;
use metrics::Metrics;
use podracer_runtime::{Array, Checkpoint, CheckpointError, Checkpoints, Found};
use thinning::{Line, Thinning};

pub(crate) const CONFIG: &str = "config.toml";
pub(crate) const METRICS: &str = "metrics.jsonl";
const CHECKPOINTS: &str = "checkpoints";
pub(crate) const RESULT: &str = "result.json";
/// The identity of the run for workers elsewhere.
const IDENTITY: &str = "identity.txt";
const CURVE: &str = "learning_curve.svg";
/// The folder of recorded episodes.
const EPISODES: &str = "episodes";

/// The folder of a run in progress.
pub struct RunDirectory {
    folder: Folder,
    thinning: Thinning,
    metrics: Metrics,
    events: Events,
    checkpoints: Checkpoints,
    /// The last checkpoint to resume from that was written or read: its folder, and its number of
    /// iterations.
    last: Option<(PathBuf, u64)>,
    /// Iterations of the last checkpoint, including partial checkpoints.
    checkpointed: u64,
}

/// The table `[recorded]` of `config.toml`: versions and devices, for readers. Experiments ignore it.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Recorded {
    /// podracer's version.
    pub podracer: String,
    /// XLA's name of the platform.
    pub platform: String,
    /// The platform's version.
    pub platform_version: String,
    /// Fingerprint of the plugin.
    pub plugin: String,
    /// The kind of the devices.
    pub device_kind: String,
    /// The devices used, by index.
    pub devices: Vec<usize>,
    /// Name of the machine; empty in records of earlier versions.
    #[serde(default)]
    pub host: String,
    /// The machine's processor and number of cores; empty in records of earlier versions.
    #[serde(default)]
    pub processor: String,
}

impl RunDirectory {
    /// Creates the folder (`path`, or the next free `runs/<experiment>-<seed>-<n>`) and writes the
    /// settings into it.
    ///
    /// # Errors
    /// An error if the folder already holds a run, or cannot be written.
    pub fn create(path: Option<&Path>, settings: &Settings, recorded: &Recorded) -> Result<Self> {
        let path = match path {
            Some(path) => given(path)?,
            None => next_free(&format!("{}-{}", settings.experiment, settings.train.seed))?,
        };
        write_settings(&path, settings, recorded)?;
        let folder = held(&path)?;
        Ok(Self {
            thinning: Thinning::new(settings.metrics.every),
            metrics: Metrics::create(&path.join(METRICS))?,
            events: Events::create(&path)?,
            checkpoints: checkpoints(&folder.inside(), settings),
            last: None,
            checkpointed: 0,
            folder,
        })
    }

    /// The settings of the run in a folder, with `overrides`.
    ///
    /// # Errors
    /// [`UsageError`] for a folder without a run; errors of [`Registry::load`].
    pub fn settings(path: &Path, overrides: &Overrides, registry: &Registry) -> Result<Settings> {
        registry.load(&config(path)?.to_string_lossy(), overrides)
    }

    /// The identity of the run. It stays the same when the folder moves or the run resumes: it is
    /// random, and made when it is first read.
    ///
    /// # Errors An error that names the file that cannot be read or written.
    #[cfg(feature = "central")]
    pub fn identity(&self) -> Result<String> {
        self.folder.naming_folder(identity_in(&self.folder.inside()))
    }

    /// The start time of the run in a folder: the time of its settings.
    ///
    /// # Errors An error if the system does not report it.
    pub fn began(path: &Path) -> Result<SystemTime> {
        let config = path.join(CONFIG);
        let time = fs::metadata(&config).and_then(|file| file.modified());
        time.with_context(|| format!("cannot tell the age of `{}`", config.display()))
    }

    /// True if a folder holds a run.
    #[must_use]
    pub fn is_run(path: &Path) -> bool {
        config(path).is_ok()
    }

    /// True if a folder holds a run with a checkpoint, damaged or not.
    #[must_use]
    pub fn has_begun(path: &Path) -> bool {
        let latest = || Checkpoints::new(path.join(CHECKPOINTS), 1).latest();
        Self::is_run(path) && !matches!(latest(), Err(CheckpointError::None { .. }))
    }

    /// Makes room for a new run in the folder of a run that was stopped before its first
    /// checkpoint.
    ///
    /// # Errors An error if the run is in progress, or if its settings cannot be removed.
    pub fn give_way(path: &Path) -> Result<()> {
        if !Self::is_run(path) || Self::has_begun(path) {
            return Ok(());
        }
        drop(Metrics::create(&path.join(METRICS))?);
        let config = path.join(CONFIG);
        fs::remove_file(&config).with_context(|| format!("cannot remove `{}`", config.display()))
    }

    /// The parameters that the run in a folder has trained, which belong to its result.
    ///
    /// # Errors [`UsageError`] for a folder without a run; an error if the run has not ended, or if its files are damaged.
    pub fn parameters(path: &Path) -> Result<Vec<(String, Array)>> {
        config(path)?;
        let parameters = parameters::read(&path.join(parameters::FILE))?;
        let result = path.join(RESULT);
        let cannot = || format!("cannot read `{}`", result.display());
        let text = reading::read_text(path, RESULT)?.with_context(cannot)?;
        let known: Value = serde_json::from_str(&text).with_context(cannot)?;
        let (found, known) = (parameters::sha256(&parameters), &known["params_sha256"]);
        ensure!(
            known.as_str() == Some(&found),
            "the parameters in `{}` have the hash {found}, and `{}` says {known}",
            path.join(parameters::FILE).display(),
            result.display()
        );
        Ok(parameters)
    }

    /// A checkpoint of the run in a folder: [`Checkpoints::latest`] to resume from,
    /// [`Checkpoints::latest_parameters`] to evaluate.
    ///
    /// # Errors
    /// An error if there is no checkpoint, or if every checkpoint is damaged.
    pub fn find(
        path: &Path,
        settings: &Settings,
        find: impl Fn(&Checkpoints) -> Result<Found, CheckpointError>,
    ) -> Result<Found> {
        find(&checkpoints(path, settings)).map_err(|error| match error {
            CheckpointError::None { .. } if is_running(path) => {
                UsageError::new(format!("{error}: the run is under way, in another process")).into()
            }
            CheckpointError::None { .. } => UsageError::new(format!(
                "{error}: the run in `{path}` was stopped before its first checkpoint; `{program} train {path}/{CONFIG}` begins it anew",
                program = program_name(),
                path = path.display()
            ))
            .into(),
            error => error.into(),
        })
    }

    /// The last checkpoint to resume from, for the run in a folder; `None` if there is none yet.
    ///
    /// # Errors An error if every checkpoint is damaged.
    pub fn find_any(path: &Path, settings: &Settings) -> Result<Option<Found>> {
        match checkpoints(path, settings).latest() {
            Err(CheckpointError::None { .. }) => Ok(None),
            found => Ok(Some(found?)),
        }
    }

    /// Opens the folder to resume from a checkpoint, and removes the records after it. Also returns
    /// the learning curve so far.
    ///
    /// # Errors An error if another process trains the run, or if the folder cannot be written.
    pub fn resume(
        path: &Path,
        settings: &Settings,
        recorded: &Recorded,
        found: &Found,
        files: &Files,
    ) -> Result<(Self, Vec<Point>)> {
        let metrics = path.join(METRICS);
        // The lock comes first: nothing is changed if another process trains the run.
        let opened = Metrics::open(&metrics, files.metrics)?;
        let points = metrics::points(path)?;
        let folder = held(path)?;
        write_settings(path, settings, recorded)?;
        let directory = Self {
            thinning: Thinning::new(settings.metrics.every),
            metrics: opened,
            events: Events::open(path, &files.events_name, files.events)?,
            checkpoints: checkpoints(&folder.inside(), settings),
            last: Some((found.path.clone(), found.checkpoint.iterations)),
            checkpointed: found.checkpoint.iterations,
            folder,
        };
        Ok((directory, points))
    }

    /// Writes a checkpoint, with the run's settings, counters and lengths of files.
    ///
    /// # Errors
    /// An error that names the file that cannot be written.
    pub fn write_checkpoint(
        &mut self,
        mut checkpoint: Checkpoint,
        settings: &Settings,
        recorded: &Recorded,
        counters: Counters,
    ) -> Result<()> {
        // A run that resumes from here repeats the iterations after it, but not those before.
        self.flush()?;
        self.look()?;
        let progress = RunProgress {
            settings: serde_json::to_value(settings)?,
            recorded: recorded.clone(),
            counters,
            files: Files {
                metrics: self.metrics.synchronised()?,
                events_name: self.events.name(),
                events: self.events.synchronised()?,
            },
        };
        checkpoint.about = serde_json::to_value(progress)?;
        let path =
            self.folder.naming_folder(self.checkpoints.save(&checkpoint).map_err(Into::into))?;
        self.checkpointed = counters.iterations;
        if !checkpoint.partial {
            self.last = Some((path, counters.iterations));
        }
        Ok(())
    }

    /// Iterations of the last checkpoint, partial or not; 0 before the first.
    #[must_use]
    pub fn checkpointed(&self) -> u64 {
        self.checkpointed
    }

    /// Iterations of the last checkpoint to resume from; `None` before the first.
    #[must_use]
    pub fn resumable(&self) -> Option<u64> {
        self.last.as_ref().map(|(_, iterations)| *iterations)
    }

    /// The command that resumes from the last checkpoint, as a sentence for the user.
    #[must_use]
    pub fn way_back(&self) -> String {
        let run = self.folder.path().display();
        match &self.last {
            None => "there is no checkpoint to resume from yet".to_owned(),
            Some((path, iterations)) => format!(
                "`{} resume {run}` resumes after {iterations} iterations, from `{}`",
                program_name(),
                self.folder.shown(path).display()
            ),
        }
    }

    /// Path of the folder at the last check.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The folder, held open.
    pub(crate) fn folder(&self) -> &Folder {
        &self.folder
    }

    /// Adds the metrics of a call. `before` has the iterations and environment steps before the
    /// call, `seconds` is its duration.
    ///
    /// # Errors
    /// An error if the folder cannot be written.
    pub fn record(&mut self, call: &CallMetrics, before: (u64, u64), seconds: f64) -> Result<()> {
        let lines = self.thinning.add(call, before, seconds);
        self.write(&lines)
    }

    /// Writes the metrics that wait for the end of their second.
    fn flush(&mut self) -> Result<()> {
        let line = self.thinning.flush();
        self.write(line.as_slice())
    }

    fn write(&mut self, lines: &[Line]) -> Result<()> {
        if lines.is_empty() {
            return Ok(());
        }
        self.look()?;
        self.metrics.write(lines)?;
        self.events.write(lines)
    }

    /// Adds an evaluation after these iterations and environment steps: names and values.
    ///
    /// # Errors
    /// An error if the folder cannot be written.
    pub fn record_evaluation(
        &mut self,
        progress: (u64, u64),
        values: &[(&str, f64)],
    ) -> Result<()> {
        self.metrics.evaluation(progress, values)?;
        self.events.evaluation(progress.1, values)
    }

    /// Writes `learning_curve.svg`, if the program has the feature `plots`. The last point is the
    /// mean of `episodes` episodes.
    ///
    /// # Errors
    /// An error if the folder cannot be written.
    pub fn write_curve(&self, settings: &Settings, points: &[Point], episodes: u64) -> Result<()> {
        #[cfg(feature = "plots")]
        {
            let caption = format!("{}, seed {}", settings.experiment, settings.train.seed);
            let svg = crate::chart::learning_curve(&caption, points, episodes)?;
            self.write_file(CURVE, svg.as_bytes())?;
        }
        #[cfg(not(feature = "plots"))]
        let _ = (settings, points, episodes);
        Ok(())
    }

    /// Writes `parameters.safetensors`.
    ///
    /// # Errors
    /// An error if the folder cannot be written, or if two parameters share a name.
    pub fn write_parameters(&self, parameters: &[(String, Array)]) -> Result<()> {
        self.folder.naming_folder(parameters::save(
            parameters,
            &self.folder.inside().join(parameters::FILE),
        ))
    }

    /// Writes `result.json`.
    ///
    /// # Errors
    /// An error if the folder cannot be written.
    pub fn write_result(&self, result: &impl Serialize) -> Result<()> {
        let text = serde_json::to_string_pretty(result)? + "\n";
        self.write_file(RESULT, text.as_bytes())
    }

    /// Finds the folder's present path.
    fn look(&mut self) -> Result<()> {
        if let Some(before) = self.folder.look()? {
            tracing::warn!(
                "the run directory `{}` was renamed to `{}`: the run continues there",
                before.display(),
                self.folder.path().display()
            );
        }
        Ok(())
    }

    fn write_file(&self, name: &str, bytes: &[u8]) -> Result<()> {
        self.folder.naming_folder(write_whole(&self.folder.inside().join(name), bytes))
    }
}

/// The settings file of the run in a folder.
fn config(path: &Path) -> Result<PathBuf, UsageError> {
    let config = path.join(CONFIG);
    if config.is_file() {
        return Ok(config);
    }
    Err(UsageError::new(format!(
        "`{}` holds no run: name a run directory, which has a {CONFIG}, such as runs/catch-ppo-0-1",
        path.display()
    )))
}

impl Drop for RunDirectory {
    fn drop(&mut self) {
        // After a failed run the earlier error matters more.
        let _ = self.flush();
    }
}

fn write_settings(path: &Path, settings: &Settings, recorded: &Recorded) -> Result<()> {
    #[derive(Serialize)]
    struct Table<'a> {
        recorded: &'a Recorded,
    }
    let text = format!(
        "# The settings of a run, complete: `{} train` takes this file as an experiment.\n{}\n{}",
        program_name(),
        settings.to_toml()?,
        toml::to_string(&Table { recorded })?
    );
    write_whole(&path.join(CONFIG), text.as_bytes())
}

fn held(path: &Path) -> Result<Folder> {
    Folder::open(path)
        .with_context(|| format!("cannot open the run directory `{}`", path.display()))
}

fn checkpoints(path: &Path, settings: &Settings) -> Checkpoints {
    Checkpoints::new(path.join(CHECKPOINTS), settings.train.checkpoints_kept)
}

/// The identity of the run in a folder, which is created if there is none.
#[cfg(any(feature = "central", test))]
fn identity_in(folder: &Path) -> Result<String> {
    let path = folder.join(IDENTITY);
    if let Some(known) =
        reading::read_text(folder, IDENTITY)?.filter(|text| !text.trim().is_empty())
    {
        return Ok(known.trim().to_owned());
    }
    let identity = random_name();
    write_whole(&path, format!("{identity}\n").as_bytes())?;
    Ok(identity)
}

#[cfg(test)]
mod tests;
