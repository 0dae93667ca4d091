//! Devices, batching and limits of a run.

use std::path::PathBuf;
use std::time::Duration;

use podracer_envs::host::Workers;

use super::programs::SeedLoop;
use crate::sebulba::SebulbaError;
use crate::{ExecutableCache, OptionValue};

/// Devices, batching and limits of a run.
#[derive(Clone, Debug)]
pub struct SeedOptions {
    /// Indices of the devices that infer, each with a thread and an equal part of the lanes.
    pub inference: Vec<usize>,
    /// Indices of the devices that learn.
    pub learners: Vec<usize>,
    /// Number of waiting environments at which a batch closes; `None` picks one of the compiled sizes by measured inference
    /// times.
    pub capacity: Option<usize>,
    /// Time after its first step at which a batch closes; `None` is twice the measured time of an inference.
    pub timeout: Option<Duration>,
    /// Iterations by which acting may be ahead of learning. With 0 a thread waits for the iteration of every unroll batch that it
    /// completes.
    pub lag: usize,
    /// Time without any activity after which the run is given up.
    pub patience: Duration,
    /// True if workers come from elsewhere: the run waits for them as long as it takes.
    pub waits_for_workers: bool,
    /// The folder whose disk has the replay, for programs with a replay on the host.
    pub replay_folder: Option<PathBuf>,
    /// Options for XLA, by name.
    pub xla: Vec<(String, OptionValue)>,
    /// The cache of compiled programs.
    pub cache: ExecutableCache,
}

impl SeedOptions {
    /// Checks that devices and workers fit the programs.
    pub(super) fn check(
        &self,
        programs: &SeedLoop,
        workers: &[Box<dyn Workers>],
    ) -> Result<(), SebulbaError> {
        let shape = programs.learning.shape;
        let wrong = |problem: String| Err(SebulbaError::Options(problem));
        if self.inference.len() != shape.threads || workers.len() != shape.threads {
            return wrong(format!(
                "the programs are for {} inference device(s); {} are named, and there are workers for {}",
                shape.threads,
                self.inference.len(),
                workers.len()
            ));
        }
        if self.learners.len() != shape.learners {
            return wrong(format!(
                "the programs are for {} learner device(s) and {} are named",
                shape.learners,
                self.learners.len()
            ));
        }
        if let Some(capacity) = self.capacity
            && !(1..=programs.largest()).contains(&capacity)
        {
            return wrong(format!(
                "a batch closes at {capacity} environments, and the programs are for 1 to {}",
                programs.largest()
            ));
        }
        if programs.learning.replay.is_some() && self.replay_folder.is_none() {
            return wrong("a replay on the host needs a folder for its files".to_owned());
        }
        Ok(())
    }
}
