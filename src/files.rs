//! Files that appear whole or not at all.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Writes a file under another name, and gives it its own when it is whole and on the disk.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(".unfinished");
    let unfinished = PathBuf::from(unfinished);
    let written = File::create(&unfinished)
        .and_then(|mut file| {
            file.write_all(bytes)?;
            match file.sync_all() {
                // What is no ordinary file cannot be synchronised, and need not be.
                Err(error) if error.kind() == ErrorKind::InvalidInput => Ok(()),
                other => other,
            }
        })
        .and_then(|()| fs::rename(&unfinished, path));
    if written.is_err() {
        // Best effort: the error that matters is the one above.
        let _ = fs::remove_file(&unfinished);
    }
    written.with_context(|| cannot_write(path))
}

pub(crate) fn cannot_write(path: &Path) -> String {
    format!("cannot write `{}`", path.display())
}
