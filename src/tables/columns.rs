//! The columns of a table with a row for each line of the runs' metrics.

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::Result;

use crate::run_directory::{RunOverview, Series, differences};

/// The columns that every table has, before the settings that differ between its runs and the
/// metrics.
pub(super) const FIRST: [&str; 6] =
    ["run", "experiment", "seed", "iteration", "env_steps", "seconds"];

/// The columns of a table of some runs.
pub(super) struct Columns {
    /// The settings that differ between the runs, by dotted key.
    pub(super) settings: Vec<String>,
    pub(super) metrics: Vec<String>,
}

impl Columns {
    /// The columns for these runs, which are read one after another.
    pub(super) fn of(runs: &[PathBuf]) -> Result<Columns> {
        let mut metrics = BTreeSet::new();
        let mut overviews = Vec::new();
        for run in runs {
            overviews.push(RunOverview::read(run)?);
            metrics.extend(Series::read(run)?.names().into_iter().map(str::to_owned));
        }
        let settings = differences(&overviews.iter().collect::<Vec<_>>()).into_keys();
        let settings = settings.filter(|key| !FIRST.contains(&key.as_str())).collect();
        Ok(Columns { settings, metrics: metrics.into_iter().collect() })
    }

    /// The names of all columns, in order.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        let others = self.settings.iter().chain(&self.metrics).map(String::as_str);
        FIRST.into_iter().chain(others)
    }
}
