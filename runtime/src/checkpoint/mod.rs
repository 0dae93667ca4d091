//! Checkpoints: all that a training's next steps depend on, in folders that are whole or not there.
//!
//! A [`Checkpoints`] is a folder with one folder for each, named `<sequence>-<updates>`: `arrays.safetensors` has named
//! arrays, `manifest.json` what is to be known of them.
//!
//! # Invariants
//! - A checkpoint is written under another name, and given its own when all of it is on the disk. Older ones are removed
//!   only then.
//! - What is read is what was written: the manifest has the sha256 of the arrays' file, and the type of every array.

mod tensors;

pub use tensors::{NamedArrays, from_safetensors, to_safetensors};

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use podracer_compiler::TensorType;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::{HostArray, RuntimeError};

const ARRAYS: &str = "arrays.safetensors";
const MANIFEST: &str = "manifest.json";
/// The folder that is being written.
const UNFINISHED: &str = "unfinished";
/// The version of the manifest and of what it says of the arrays.
const FORMAT: u64 = 1;

/// What a training goes on from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Checkpoint {
    /// The updates that made it.
    pub updates: u64,
    /// What else is to be known: the settings, counters.
    pub about: Value,
    /// The state. A part of it has a name that ends in a dot, in front of the key paths of its leaves.
    pub arrays: NamedArrays,
}

impl Checkpoint {
    /// Adds the leaves of a part.
    pub fn insert(&mut self, part: &str, leaves: impl IntoIterator<Item = (String, HostArray)>) {
        let leaves = leaves.into_iter();
        self.arrays.extend(leaves.map(|(path, array)| (part.to_owned() + &path, array)));
    }

    /// The leaves of a part, in the order of `expected`: as many as there, of these paths and types.
    ///
    /// # Errors
    /// [`CheckpointError::Misfit`].
    pub fn part(
        &self,
        part: &str,
        expected: &[(String, TensorType)],
    ) -> Result<Vec<&HostArray>, CheckpointError> {
        let leaves = expected.iter().map(|(path, ty)| {
            let name = part.to_owned() + path;
            self.array(&name).and_then(|array| {
                let problem = format!("`{name}` is {} and must be {ty}", array.ty());
                (array.ty() == ty).then_some(array).ok_or(CheckpointError::Misfit(problem))
            })
        });
        let leaves = leaves.collect::<Result<_, _>>()?;
        let known = |name: &&String| {
            let path = name.strip_prefix(part);
            path.is_none_or(|path| expected.iter().any(|(known, _)| known == path))
        };
        match self.arrays.keys().find(|name| !known(name)) {
            None => Ok(leaves),
            Some(name) => Err(CheckpointError::Misfit(format!(
                "it has `{name}`, which there is no place for"
            ))),
        }
    }

    /// An array by its whole name.
    ///
    /// # Errors
    /// [`CheckpointError::Misfit`].
    pub fn array(&self, name: &str) -> Result<&HostArray, CheckpointError> {
        let array = self.arrays.get(name);
        array.ok_or_else(|| CheckpointError::Misfit(format!("it has no `{name}`")))
    }
}

/// Why a checkpoint is not written, or not read.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// A file or folder.
    #[error("cannot {what} `{}`", path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// With what.
        path: PathBuf,
        /// How that ended.
        #[source]
        error: io::Error,
    },
    /// There is none.
    #[error("there is no checkpoint in `{}`", folder.display())]
    None {
        /// Where it was looked for.
        folder: PathBuf,
    },
    /// It is not what was written.
    #[error("the checkpoint `{}` is damaged: {problem}", path.display())]
    Damaged {
        /// Its folder.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// It was written by another version of this.
    #[error("the checkpoint `{}` has format {format}, and this podracer reads {FORMAT}: read it with the version that wrote it", path.display())]
    Format {
        /// Its folder.
        path: PathBuf,
        /// Its format.
        format: u64,
    },
    /// It is of another program.
    #[error(
        "the checkpoint does not fit the program: {0}; one of the same experiment, settings and number of devices does"
    )]
    Misfit(String),
    /// An array that cannot be written.
    #[error("the checkpoint cannot be written: {0}")]
    Array(String),
    /// The devices.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
}

/// `manifest.json`.
#[derive(Deserialize, Serialize)]
struct Manifest {
    format: u64,
    updates: u64,
    file: String,
    bytes: u64,
    sha256: String,
    about: Value,
    arrays: BTreeMap<String, String>,
}

/// A folder of checkpoints, of which the last ones are kept. One process at a time writes into it.
#[derive(Clone, Debug)]
pub struct Checkpoints {
    folder: PathBuf,
    keep: usize,
}

/// The checkpoint that was found.
#[derive(Debug)]
pub struct Found {
    /// What it holds.
    pub checkpoint: Checkpoint,
    /// Its folder.
    pub path: PathBuf,
    /// Why younger ones were not taken, the youngest first.
    pub skipped: Vec<CheckpointError>,
}

impl Checkpoints {
    /// The checkpoints in `folder`, of which the last `keep` stay, at least one. An older one serves where the youngest is
    /// damaged.
    pub fn new(folder: impl Into<PathBuf>, keep: usize) -> Self {
        Checkpoints { folder: folder.into(), keep: keep.max(1) }
    }

    /// Where they are.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Writes a checkpoint, and removes those that are not to be kept. Gives its folder.
    ///
    /// # Errors
    /// [`CheckpointError::Io`] names the file. The checkpoints that were there stay as they are.
    pub fn save(&self, checkpoint: &Checkpoint) -> Result<PathBuf, CheckpointError> {
        let arrays = to_safetensors(&checkpoint.arrays).map_err(CheckpointError::Array)?;
        let types = checkpoint.arrays.iter();
        let manifest = Manifest {
            format: FORMAT,
            updates: checkpoint.updates,
            file: ARRAYS.to_owned(),
            bytes: arrays.len() as u64,
            sha256: sha256(&arrays),
            about: checkpoint.about.clone(),
            arrays: types.map(|(name, array)| (name.clone(), array.ty().to_string())).collect(),
        };
        let manifest = serde_json::to_vec_pretty(&manifest)
            .map_err(|error| CheckpointError::Array(error.to_string()))?;

        fs::create_dir_all(&self.folder).map_err(failed("make the folder", &self.folder))?;
        let before = self.all()?;
        let sequence = before.last().map_or(1, |(sequence, _)| sequence + 1);
        let name = format!("{sequence}-{}", checkpoint.updates);
        let (unfinished, path) = (self.folder.join(UNFINISHED), self.folder.join(name));
        let written = self.write(&unfinished, &path, &arrays, &manifest);
        if written.is_err() {
            // Best effort: the error that matters is the one above.
            let _ = fs::remove_dir_all(&unfinished);
        }
        written?;
        let surplus = (before.len() + 1).saturating_sub(self.keep);
        for (_, old) in &before[..surplus] {
            fs::remove_dir_all(old).map_err(failed("remove the old checkpoint", old))?;
        }
        Ok(path)
    }

    fn write(
        &self,
        unfinished: &Path,
        path: &Path,
        arrays: &[u8],
        manifest: &[u8],
    ) -> Result<(), CheckpointError> {
        // A process that was killed may have left one.
        match fs::remove_dir_all(unfinished) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(failed("remove", unfinished)(error));
            }
            _ => {}
        }
        fs::create_dir(unfinished).map_err(failed("make the folder", unfinished))?;
        for (name, bytes) in [(ARRAYS, arrays), (MANIFEST, manifest)] {
            let file = unfinished.join(name);
            let written = File::create(&file).and_then(|mut file| {
                file.write_all(bytes)?;
                file.sync_all()
            });
            written.map_err(failed("write", &file))?;
        }
        synchronise(unfinished)?;
        fs::rename(unfinished, path).map_err(failed("write", path))?;
        synchronise(&self.folder)
    }

    /// The youngest checkpoint that is whole. Another process may write into the folder meanwhile.
    ///
    /// # Errors
    /// [`CheckpointError::None`] without any; [`CheckpointError::Damaged`] where none is whole: of the youngest;
    /// [`CheckpointError::Format`].
    pub fn latest(&self) -> Result<Found, CheckpointError> {
        loop {
            let all = self.all()?;
            let mut skipped = Vec::new();
            for (_, path) in all.iter().rev() {
                match read(path) {
                    Ok(checkpoint) => {
                        return Ok(Found { checkpoint, path: path.clone(), skipped });
                    }
                    Err(error @ CheckpointError::Damaged { .. }) => skipped.push(error),
                    Err(error) => return Err(error),
                }
            }
            // What is not whole may be on its way out, because there are younger ones by now.
            if self.all()? == all {
                let none = || CheckpointError::None { folder: self.folder.clone() };
                return Err(skipped.into_iter().next().unwrap_or_else(none));
            }
        }
    }

    /// Those that are there, in the order in which they were written.
    fn all(&self) -> Result<Vec<(u64, PathBuf)>, CheckpointError> {
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failed("read", &self.folder)(error)),
        };
        let mut all = Vec::new();
        for entry in entries {
            let path = entry.map_err(failed("read", &self.folder))?.path();
            let name = path.file_name().and_then(|name| name.to_str());
            let sequence = name.and_then(|name| name.split_once('-')?.0.parse().ok());
            all.extend(sequence.map(|sequence| (sequence, path)));
        }
        all.sort();
        Ok(all)
    }
}

fn read(path: &Path) -> Result<Checkpoint, CheckpointError> {
    let damaged = |problem: String| CheckpointError::Damaged { path: path.to_owned(), problem };
    let file = |name: &str| {
        let file = path.join(name);
        match fs::read(&file) {
            Ok(bytes) => Ok(bytes),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                Err(damaged(format!("it has no `{name}`")))
            }
            Err(error) => Err(failed("read", &file)(error)),
        }
    };
    let manifest = file(MANIFEST)?;
    let parsed = serde_json::from_slice::<Value>(&manifest);
    let json = parsed.map_err(|error| damaged(format!("{MANIFEST}: {error}")))?;
    if let Some(format) = json["format"].as_u64().filter(|&format| format != FORMAT) {
        let path = path.to_owned();
        return Err(CheckpointError::Format { path, format });
    }
    let manifest: Manifest =
        serde_json::from_value(json).map_err(|error| damaged(format!("{MANIFEST}: {error}")))?;
    let bytes = file(ARRAYS)?;
    if bytes.len() as u64 != manifest.bytes {
        return Err(damaged(format!(
            "`{ARRAYS}` has {} bytes and had {} when it was written",
            bytes.len(),
            manifest.bytes
        )));
    }
    let found = sha256(&bytes);
    if found != manifest.sha256 {
        return Err(damaged(format!(
            "`{ARRAYS}` has the sha256 {found} and had {} when it was written",
            manifest.sha256
        )));
    }
    let arrays = from_safetensors(&bytes).map_err(|error| damaged(format!("{ARRAYS}: {error}")))?;
    let types = |name: &str| arrays.get(name).map(|array| array.ty().to_string());
    let agree = (manifest.arrays.iter()).all(|(name, ty)| types(name).as_ref() == Some(ty));
    if !agree || arrays.len() != manifest.arrays.len() {
        return Err(damaged(format!("{MANIFEST} names other arrays than `{ARRAYS}` has")));
    }
    Ok(Checkpoint { updates: manifest.updates, about: manifest.about, arrays })
}

fn sha256(bytes: &[u8]) -> String {
    format!("{:x}", Sha256::digest(bytes))
}

/// Has a folder's entries written to the disk.
fn synchronise(folder: &Path) -> Result<(), CheckpointError> {
    let synchronised = File::open(folder).and_then(|folder| folder.sync_all());
    synchronised.map_err(failed("write", folder))
}

fn failed(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> CheckpointError {
    let path = path.to_owned();
    move |error| CheckpointError::Io { what, path, error }
}

#[cfg(test)]
mod tests;
