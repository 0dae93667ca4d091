//! The places of run directories: the folder that the user names, or the next free one.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::CONFIG;
use crate::settings::UsageError;

pub(super) fn given(path: &Path) -> Result<PathBuf> {
    fs::create_dir_all(path)
        .with_context(|| format!("cannot make the run directory `{}`", path.display()))?;
    if path.join(CONFIG).exists() {
        let path = path.display();
        let problem = format!(
            "`{path}` holds a run already: name another folder with --run-dir, or remove it"
        );
        return Err(UsageError::new(problem).into());
    }
    Ok(path.to_owned())
}

pub(super) fn next_free(name: &str) -> Result<PathBuf> {
    let runs = Path::new("runs");
    let failed = |path: &Path| format!("cannot make the run directory `{}`", path.display());
    fs::create_dir_all(runs).with_context(|| failed(runs))?;
    let mut number = 1u64;
    loop {
        let path = runs.join(format!("{name}-{number}"));
        // Creating the folder claims the number: another process may look for a number too.
        match fs::create_dir(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => number += 1,
            Err(error) => return Err(error).with_context(|| failed(&path)),
        }
    }
}

/// A folder for the run directories of several runs: `path`, or the next free `runs/<name>-<n>`.
///
/// # Errors
/// An error if the folder cannot be created.
pub fn group(path: Option<&Path>, name: &str) -> Result<PathBuf> {
    let Some(path) = path else { return next_free(name) };
    let failed = || format!("cannot make the folder `{}`", path.display());
    fs::create_dir_all(path).with_context(failed)?;
    Ok(path.to_owned())
}
