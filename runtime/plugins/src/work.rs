//! Installation into a folder that appears by one rename: it is complete or absent.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process;
use std::time::Duration;

use crate::files::restrict;
use crate::{PluginError, make_folder};

/// Age of a working folder that an installation must have left when it was killed.
const ABANDONED_AFTER: Duration = Duration::from_secs(3600);
const PREFIX: &str = ".installing-";

/// A folder next to the final folder (renaming works only within a file system), removed when
/// dropped.
pub(crate) struct WorkFolder(pub(crate) PathBuf);

impl WorkFolder {
    /// Makes a work folder in `parent`, for an installation that will get the name `name` in it.
    pub(crate) fn create(parent: &Path, name: &str) -> Result<Self, PluginError> {
        make_folder(parent).map_err(PluginError::io("create", parent))?;
        remove_abandoned(parent);
        let path = parent.join(format!("{PREFIX}{name}-{}", process::id()));
        let _ = fs::remove_dir_all(&path);
        make_folder(&path).map_err(PluginError::io("create", &path))?;
        Ok(Self(path))
    }

    /// Renames `complete` to `folder`. Nothing in it has more permissions than the umask gives, and others cannot write it: wheels
    /// name modes of their own.
    pub(crate) fn publish(&self, complete: &Path, folder: &Path) -> Result<(), PluginError> {
        restrict(&self.0).map_err(PluginError::io("set the permissions of", complete))?;
        // The present folder is either the folder that the caller rejected, or another process's
        // fresh installation. A fresh installation has the same content, so replacing either is
        // right.
        let old = self.0.join("old");
        match fs::rename(folder, &old) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(PluginError::io("replace", folder)(error));
            }
            _ => {}
        }
        match fs::rename(complete, folder) {
            Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => Ok(()),
            other => other.map_err(PluginError::io("create", folder)),
        }
    }
}

impl Drop for WorkFolder {
    fn drop(&mut self) {
        // Left-overs cost disk space only, and the next installation removes them.
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn remove_abandoned(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else {
        return;
    };
    for entry in entries.filter_map(Result::ok) {
        let ours = entry.file_name().to_string_lossy().starts_with(PREFIX);
        let age = entry
            .metadata()
            .and_then(|metadata| metadata.modified())
            .ok()
            .and_then(|time| time.elapsed().ok());
        if ours && age.is_some_and(|age| age > ABANDONED_AFTER) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}
