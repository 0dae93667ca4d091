//! The folder of a run in progress, held open: the run's files go into this folder even after it is
//! renamed.

use std::error::Error;
use std::fmt;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Result, bail};

/// An open folder.
#[derive(Clone, Debug)]
pub(crate) struct Folder {
    open: Arc<File>,
    /// Path of the folder at the last check, for messages.
    path: PathBuf,
}

impl Folder {
    /// Opens a folder.
    ///
    /// # Errors
    /// System errors.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Ok(Folder { open: Arc::new(File::open(path)?), path: path.to_owned() })
    }

    /// Path of the folder, for messages.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Path for writing files into the folder; it is valid while the folder is held open.
    pub(crate) fn inside(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.open.as_raw_fd()))
    }

    /// Path of a file in the folder, for messages, from its path [`inside`](Self::inside).
    pub(crate) fn shown(&self, file: &Path) -> PathBuf {
        file.strip_prefix(self.inside()).map_or(file.to_owned(), |file| self.path.join(file))
    }

    /// The result of writing a file, with the folder's path in the message of an error.
    pub(crate) fn naming_folder<T>(&self, result: Result<T>) -> Result<T> {
        let (inside, path) = (self.inside().display().to_string(), self.path.display().to_string());
        result.map_err(|error| {
            let causes: Vec<String> = error.chain().map(ToString::to_string).collect();
            let contexts = &causes[..causes.len() - 1];
            let text = contexts.join(": ").replace(&inside, &path);
            if contexts.is_empty() { error } else { NamingFolder { text, error }.into() }
        })
    }

    /// Finds the folder's present path. Returns the former path if the folder was renamed.
    ///
    /// # Errors
    /// An error if the folder was removed.
    pub(crate) fn look(&mut self) -> Result<Option<PathBuf>> {
        let held = self.open.metadata()?;
        let same = |there: fs::Metadata| (there.dev(), there.ino()) == (held.dev(), held.ino());
        if fs::metadata(&self.path).is_ok_and(same) {
            return Ok(None);
        }
        let now = fs::read_link(self.inside()).unwrap_or_default();
        if !fs::metadata(&now).is_ok_and(same) {
            bail!(
                "the run directory `{}` was removed while the run is under way: nothing more of the run can be kept",
                self.path.display()
            );
        }
        Ok(Some(std::mem::replace(&mut self.path, now)))
    }
}

/// An error in writing a file of the folder: its context with the folder's path, and its root cause
/// unchanged.
#[derive(Debug)]
struct NamingFolder {
    text: String,
    error: anyhow::Error,
}

impl fmt::Display for NamingFolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Error for NamingFolder {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(self.error.root_cause())
    }
}
