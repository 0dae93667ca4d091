//! Atomic writing of files.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Writes a file atomically: [`podracer_plugins::write_whole`].
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> Result<()> {
    podracer_plugins::write_whole(path, bytes).with_context(|| cannot_write(path))
}

pub(crate) fn cannot_write(path: &Path) -> String {
    format!("cannot write `{}`", path.display())
}

/// Guard of a file that is written in pieces. The file gets its name when it is complete; until
/// then, an older file of that name stays as it is. Dropping the guard before that removes the
/// unfinished file.
pub(crate) struct Unfinished<'a> {
    path: &'a Path,
    /// Path of the unfinished file; `None` for a device or a pipe, which is written directly.
    so_far: Option<PathBuf>,
}

impl<'a> Unfinished<'a> {
    /// Creates a file that will be at `path`.
    ///
    /// # Errors
    /// An error if it cannot be created.
    pub(crate) fn create(path: &'a Path) -> io::Result<(File, Self)> {
        let there = fs::metadata(path).ok();
        if there.as_ref().is_some_and(fs::Metadata::is_dir) {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        let special = there.is_some_and(|there| !there.is_file());
        let so_far = (!special).then(|| path.with_added_extension("unfinished"));
        let file = File::create(so_far.as_deref().unwrap_or(path))?;
        Ok((file, Unfinished { path, so_far }))
    }

    /// Gives the finished file its name.
    ///
    /// # Errors
    /// An error if it cannot be renamed.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.so_far.take().map_or(Ok(()), |so_far| fs::rename(so_far, self.path))
    }
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if let Some(so_far) = &self.so_far {
            // Best effort: the earlier error matters more.
            let _ = fs::remove_file(so_far);
        }
    }
}
