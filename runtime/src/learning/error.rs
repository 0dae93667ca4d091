//! Errors of a Sebulba run and of its threads.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use podracer_dsl::prelude::TraceErrors;
use podracer_envs::host::{HostError, WorkersClosed};

use crate::pjrt::memory;
use crate::{CheckpointError, ProjectionError, RuntimeError};

/// Errors that keep a run from starting, or end it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SebulbaError {
    /// The mistakes of the trace, with the user's lines.
    #[error(transparent)]
    Trace(#[from] TraceErrors),
    /// An error of the runtime, outside of the threads.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// A checkpoint of another run, or one that cannot be read.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// Parameters or a carry that are no part of the state.
    #[error(transparent)]
    Projection(#[from] ProjectionError),
    /// A replay on the host without enough room.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// Sizes, devices or environments that do not fit together.
    #[error("{0}")]
    Options(String),
    /// A thread ended.
    #[error("{thread} {failure}")]
    Thread {
        /// The name of the thread.
        thread: String,
        /// The reason why the thread ended.
        failure: ThreadFailure,
    },
    /// No thread made progress for too long.
    #[error("nothing happened for {} s, the run's `patience`: {}", after.as_secs_f64(), doing.join("; "))]
    Stalled {
        /// The time without any activity.
        after: Duration,
        /// For each thread a sentence about its activity.
        doing: Vec<String>,
    },
    /// The run has already ended with an error.
    #[error("the run ended with an error before")]
    Over,
}

/// Errors that end a thread.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ThreadFailure {
    /// Code in it panicked.
    #[error("panicked: {0}")]
    Panicked(String),
    /// An error of the thread's environments.
    #[error("was stopped by its environments: {0}")]
    Environment(#[from] HostError),
    /// The workers of an inference thread are permanently gone.
    #[error("was stopped: {0}")]
    Workers(#[from] WorkersClosed),
    /// A device or the runtime ended in an error.
    #[error("was stopped by its device: {0}")]
    Runtime(#[from] RuntimeError),
    /// Rollouts could not be written to the disk, or windows could not be read.
    #[error("was stopped: {0}")]
    Replay(#[from] ReplayError),
}

/// Errors of a replay on the host.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// The folder's disk cannot be used.
    #[error("cannot {what} the folder `{}`: {error}", folder.display())]
    Io {
        /// The operation.
        what: &'static str,
        /// Folder of the replay.
        folder: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// The folder's disk is too small.
    #[error(
        "the replay takes {needed} bytes ({}) in `{}`, and {available} bytes ({}) are free there: lower the replay's capacity, or name a          folder on another disk",
        memory::size(*needed), folder.display(), memory::size(*available)
    )]
    Space {
        /// Folder of the replay.
        folder: PathBuf,
        /// Bytes of the replay.
        needed: u64,
        /// Bytes that are free.
        available: u64,
    },
    /// Data that does not belong to the replay.
    #[error("{0}")]
    Misfit(String),
}

impl From<crate::ExecuteError> for ThreadFailure {
    fn from(error: crate::ExecuteError) -> Self {
        RuntimeError::from(error).into()
    }
}
