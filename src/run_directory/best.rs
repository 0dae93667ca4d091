//! `best/`: the agent's state at the evaluation with the highest mean return.

use std::path::Path;

use anyhow::Result;
use podracer_runtime::{Checkpoint, Checkpoints, Found};

use super::{Counters, Files, Recorded, RunDirectory, RunProgress};
use crate::evaluation::is_of_agent;
use crate::settings::{Settings, UsageError};

pub(crate) const BEST: &str = "best";

impl RunDirectory {
    /// Writes `best/`: the part of a checkpoint that `eval` and `export` read.
    ///
    /// # Errors An error that names the file that cannot be written.
    pub fn write_best(
        &self,
        mut checkpoint: Checkpoint,
        (settings, recorded): (&Settings, &Recorded),
        counters: Counters,
    ) -> Result<()> {
        checkpoint.arrays.retain(|name, _| is_of_agent(name));
        checkpoint.partial = true;
        checkpoint.about = serde_json::to_value(RunProgress {
            settings: serde_json::to_value(settings)?,
            recorded: recorded.clone(),
            counters,
            // No training resumes from this checkpoint.
            files: Files::default(),
        })?;
        let best = Checkpoints::new(self.folder.inside().join(BEST), 1);
        self.folder.naming_folder(best.save(&checkpoint).map(drop).map_err(Into::into))
    }

    /// The checkpoint of the evaluation with the highest mean return, for the run in a folder.
    ///
    /// # Errors
    /// [`UsageError`] for a run without evaluations; a damaged checkpoint.
    pub fn find_best(path: &Path) -> Result<Found> {
        check(path)?;
        Ok(Checkpoints::new(path.join(BEST), 1).latest_parameters()?)
    }
}

fn check(path: &Path) -> Result<(), UsageError> {
    if path.join(BEST).is_dir() {
        return Ok(());
    }
    Err(UsageError::new(format!(
        "`{}` has no {BEST}/: evaluations during a training write it (`--set train.eval_every=100`)",
        path.display()
    )))
}
