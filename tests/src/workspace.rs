//! The files of the repository.

use anyhow::{Context as _, Result};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The repository's root.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map(Path::to_path_buf).unwrap_or_default()
}

/// Every existing file that git tracks, relative to the root, in order; without git, every file
/// except build outputs.
///
/// # Errors
/// Where a folder cannot be read.
pub fn files() -> Result<Vec<PathBuf>> {
    let listed = Command::new("git").args(["ls-files", "-z"]).current_dir(root()).output();
    let mut files = match listed {
        Ok(output) if output.status.success() => {
            let names = String::from_utf8(output.stdout).context("file names are UTF-8")?;
            names.split('\0').filter(|name| !name.is_empty()).map(PathBuf::from).collect()
        }
        _ => walk(Path::new(""))?,
    };
    files.retain(|file| root().join(file).is_file());
    files.sort();
    Ok(files)
}

fn walk(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in
        std::fs::read_dir(root().join(folder)).with_context(|| folder.display().to_string())?
    {
        let name = entry?.file_name();
        let path = folder.join(&name);
        if [".git", "target", "runs"].iter().any(|built| name == *built) {
            continue;
        }
        if root().join(&path).is_dir() {
            files.extend(walk(&path)?);
        } else {
            files.push(path);
        }
    }
    Ok(files)
}

/// A file's text, or nothing if it is not text.
pub fn text(file: &Path) -> Option<String> {
    String::from_utf8(std::fs::read(root().join(file)).ok()?).ok()
}
