//! The runs that a command names: folders of runs stand for their runs.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;

use super::Console;
use crate::run_directory::RunDirectory;
use crate::settings::UsageError;

/// Levels of folders below a named folder that are searched for runs: `runs` may contain sweeps.
pub(super) const DEPTH: usize = 2;

/// The folders of the runs that `named` stands for, each once: a run itself, or the runs in a folder. Files are skipped with a note: a
/// pattern such as `sweep/*` names them, too.
///
/// # Errors
/// [`UsageError`] if there are files alone.
pub(super) fn folders_of(named: &[PathBuf], console: &mut Console<'_>) -> Result<Vec<PathBuf>> {
    let (mut folders, mut files, mut known) = (Vec::new(), Vec::new(), BTreeSet::new());
    for path in named {
        let mut found = BTreeSet::new();
        find(path, DEPTH, &mut found);
        match found.is_empty() {
            true if path.is_file() => files.push(format!("`{}`", path.display())),
            // The error of reading it names the missing file.
            true => folders.push(path.clone()),
            false => folders.extend(found),
        }
    }
    folders.retain(|path| known.insert(fs::canonicalize(path).unwrap_or_else(|_| path.clone())));
    let files = match &files[..] {
        [] => return Ok(folders),
        [file] => format!("{file} is a file, not a run directory"),
        files => format!("{} are files, not run directories", files.join(", ")),
    };
    if folders.is_empty() {
        return Err(UsageError::new(files).into());
    }
    console.say(&format!("note: skipped: {files}"));
    Ok(folders)
}

/// The runs at a path, or in folders below it.
pub(super) fn find(path: &Path, depth: usize, found: &mut BTreeSet<PathBuf>) {
    if RunDirectory::is_run(path) {
        found.insert(path.to_owned());
    } else if depth > 0 {
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                find(&entry.path(), depth - 1, found);
            }
        }
    }
}
