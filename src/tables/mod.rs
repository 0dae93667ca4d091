//! The metrics of runs in other programs' formats: CSV, and the folders of Weights & Biases.

mod columns;
mod csv;
mod wandb;

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

use crate::run_directory::{RunDirectory, RunOverview, RunState, Series};

pub(crate) use csv::write as csv;
pub(crate) use wandb::write as wandb;

/// A run and its metrics.
struct Exported {
    overview: RunOverview,
    series: Series,
    /// Name of its folder.
    name: String,
    /// Digits of a hash of its folder's path, which identify it in other programs, the same every
    /// time.
    id: String,
    /// The start time of the run.
    began: SystemTime,
}

impl Exported {
    fn read(run: &Path) -> Result<Exported> {
        let overview = RunOverview::read(run)?;
        let path = run
            .canonicalize()
            .with_context(|| format!("cannot find the folder `{}`", run.display()))?;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let hash = format!("{:x}", Sha256::digest(path.as_os_str().as_encoded_bytes()));
        let id = hash[..32].to_owned();
        let (series, began) = (Series::read(run)?, RunDirectory::began(run)?);
        Ok(Exported { overview, series, name, id, began })
    }

    /// The time after `seconds` seconds of training, in seconds since 1970: pauses between two
    /// processes are left out.
    fn seconds_since_1970(&self, seconds: f64) -> f64 {
        let began = self.began.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        began.as_secs_f64() + seconds
    }

    /// Seconds of training of the whole run.
    fn seconds(&self) -> f64 {
        self.series.rows().last().map_or(0.0, |row| row.seconds)
    }

    /// True unless the run ended before its requested steps.
    fn is_whole(&self) -> bool {
        matches!(self.overview.state, RunState::Finished | RunState::Running)
    }
}

/// A file that exports a run, and its use, for the user.
pub(crate) struct Written {
    pub(crate) path: PathBuf,
    pub(crate) advice: Option<String>,
}
