//! Errors of writing and reading checkpoints.

use std::io;
use std::path::{Path, PathBuf};

use crate::RuntimeError;

/// The version of the manifest and of its description of the arrays.
pub(super) const FORMAT: u64 = 2;
/// The version with a manifest that has no checksum of itself.
pub(super) const UNCHECKED: u64 = 1;

/// Errors of writing or reading a checkpoint.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// A file or folder that cannot be used.
    #[error("cannot {what} `{}`", path.display())]
    Io {
        /// The operation: `read`, `write`.
        what: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        #[source]
        error: io::Error,
    },
    /// A folder without a checkpoint.
    #[error("there is no checkpoint in `{}`", folder.display())]
    None {
        /// The folder that has none.
        folder: PathBuf,
    },
    /// A checkpoint with files that differ from the files as written.
    #[error("the checkpoint `{}` is damaged: {problem}", path.display())]
    Damaged {
        /// The checkpoint's folder.
        path: PathBuf,
        /// The first difference that was found.
        problem: String,
    },
    /// A file of the checkpoint cannot be read.
    #[error("the checkpoint `{}` cannot be read: {problem}", path.display())]
    Unreadable {
        /// The checkpoint's folder.
        path: PathBuf,
        /// The file, and its problem.
        problem: String,
    },
    /// There are checkpoints, but none is good.
    #[error("no checkpoint in `{}` is good:{}", folder.display(), lines(all))]
    NoneGood {
        /// The folder that was searched for checkpoints.
        folder: PathBuf,
        /// The error of each checkpoint, the youngest first.
        all: Vec<CheckpointError>,
    },
    /// A checkpoint that another version of podracer wrote.
    #[error("the checkpoint `{}` has format {format}, and this podracer reads {FORMAT}: read it with the version that wrote it", path.display())]
    Format {
        /// The checkpoint's folder.
        path: PathBuf,
        /// The format's number.
        format: u64,
    },
    /// A checkpoint with the arrays of another program.
    #[error(
        "the checkpoint does not fit the program: {0}; one of the same experiment, settings and number of devices does"
    )]
    Misfit(String),
    /// An array that cannot be written.
    #[error("the checkpoint cannot be written: {0}")]
    Array(String),
    /// The error of a device.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
}

/// Each error on its own line.
fn lines(all: &[CheckpointError]) -> String {
    all.iter().map(|error| format!("\n  {error}")).collect()
}

/// An error of the system, of a file or folder.
pub(super) fn failed(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> CheckpointError {
    let path = path.to_owned();
    move |error| CheckpointError::Io { what, path, error }
}
