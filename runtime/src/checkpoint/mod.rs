//! Checkpoints: the state that the next iterations of a training depend on, in folders that are
//! complete or absent.
//!
//! A [`Checkpoints`] is a folder with one folder for each checkpoint, named
//! `<sequence>-<iterations>`. `arrays.safetensors` contains named arrays. `manifest.json` contains
//! their types and sha256, and the program's data about itself. Files of a store on the disk are in
//! the same folder, each under its name. The name of a partial checkpoint, which a training cannot
//! resume from, ends in `-partial`.
//!
//! # Invariants
//! - A checkpoint is written under another name, and renamed when it is completely on the disk.
//!   Older checkpoints are removed only after that.
//! - A checkpoint that is read equals the written checkpoint: the manifest has the sha256 of itself
//!   and of the arrays' file, and the type of every array.
//! - A file of the store is a link to the append-only file that the run writes, or a copy of it.
//!   The manifest has the length and the sha256 of the checkpoint's part, which is a prefix.
//! - Arrays go from devices to the file, and from the file to devices, in pieces: the host never
//!   holds all arrays.

mod error;
mod file;
mod folder;
mod source;
mod tensors;

pub use error::CheckpointError;
pub use file::FileSource;
pub use folder::{Checkpoints, Found};
pub use source::ArraySource;
pub use tensors::{NamedArrays, from_safetensors, to_safetensors};

use std::collections::BTreeMap;

use podracer_compiler::TensorType;
use serde_json::Value;

use crate::Array;

/// The state of a training after some iterations. Its arrays may be on devices; it then borrows
/// them.
#[derive(Clone, Debug, Default)]
pub struct Checkpoint<'a> {
    /// Iterations since the start of the training.
    pub iterations: u64,
    /// The caller's own data, as JSON: settings, counters.
    pub about: Value,
    /// The arrays by name: the name of a part, with a dot at its end, and a leaf's key path.
    pub arrays: BTreeMap<String, ArraySource<'a>>,
    /// Files by name, named like arrays: parts of a store on the disk.
    pub files: BTreeMap<String, FileSource>,
    /// True if arrays were left out ([`Checkpoint::leave_out`]): it can be evaluated and exported,
    /// but a training cannot resume from it.
    pub partial: bool,
}

impl<'a> Checkpoint<'a> {
    /// Adds the leaves of a part.
    pub fn insert<A: Into<ArraySource<'a>>>(
        &mut self,
        part: &str,
        leaves: impl IntoIterator<Item = (String, A)>,
    ) {
        let leaves = leaves.into_iter();
        self.arrays.extend(leaves.map(|(path, array)| (part.to_owned() + &path, array.into())));
    }

    /// Removes the arrays and files with names that begin with `part`, such as a replay that would
    /// take minutes to write. If there are any, the checkpoint is partial.
    pub fn leave_out(&mut self, part: &str) {
        let before = self.arrays.len() + self.files.len();
        self.arrays.retain(|name, _| !name.starts_with(part));
        self.files.retain(|name, _| !name.starts_with(part));
        self.partial |= self.arrays.len() + self.files.len() < before;
    }

    /// The leaves of a part, such as `state.`, in the order of `expected`, with exactly these paths
    /// and types. A leaf with a path that begins with an index, or that is the whole part, may also
    /// be named without the part's dot: `state[0]`, `state`.
    ///
    /// # Errors
    /// [`CheckpointError::Misfit`].
    pub fn part(
        &self,
        part: &str,
        expected: &[(String, TensorType)],
    ) -> Result<Vec<&ArraySource<'a>>, CheckpointError> {
        let undotted = part.strip_suffix('.').unwrap_or(part);
        let names = expected.iter().map(|(path, _)| {
            let other = undotted.to_owned() + path;
            let is_other = path.is_empty() || path.starts_with('[');
            let is_there = is_other && self.arrays.contains_key(&other);
            if is_there { other } else { part.to_owned() + path }
        });
        let names: Vec<String> = names.collect();
        let leaves = names.iter().zip(expected).map(|(name, (_, ty))| {
            self.source(name).and_then(|array| {
                let problem = format!("`{name}` is {} and must be {ty}", array.ty());
                (array.ty() == ty).then_some(array).ok_or(CheckpointError::Misfit(problem))
            })
        });
        let leaves = leaves.collect::<Result<_, _>>()?;
        let known = |name: &&String| !name.starts_with(part) || names.contains(name);
        match self.arrays.keys().find(|name| !known(name)) {
            None => Ok(leaves),
            Some(name) => Err(CheckpointError::Misfit(format!(
                "it has `{name}`, which there is no place for"
            ))),
        }
    }

    /// An array by its whole name, on the host.
    ///
    /// # Errors
    /// [`CheckpointError::Misfit`], and the errors of [`ArraySource::to_host`].
    pub fn array(&self, name: &str) -> Result<Array, CheckpointError> {
        self.source(name)?.to_host()
    }

    fn source(&self, name: &str) -> Result<&ArraySource<'a>, CheckpointError> {
        let array = self.arrays.get(name);
        let partial = if self.partial { ": it is partial, written to be evaluated" } else { "" };
        array.ok_or_else(|| CheckpointError::Misfit(format!("it has no `{name}`{partial}")))
    }

    /// Copies all arrays to the host: for small states, and for comparing.
    ///
    /// # Errors
    /// As [`ArraySource::to_host`].
    pub fn to_host(&self) -> Result<NamedArrays, CheckpointError> {
        self.arrays.iter().map(|(name, array)| Ok((name.clone(), array.to_host()?))).collect()
    }

    /// Sends this process's parts of arrays to the first process, which saves the checkpoint for
    /// every process. Every other process calls this while the first process saves.
    ///
    /// # Errors
    /// [`CheckpointError::Runtime`], [`CheckpointError::Array`].
    pub fn give(&self) -> Result<(), CheckpointError> {
        let types = self.arrays.iter().map(|(name, array)| (name.as_str(), array.ty()));
        let (_, order) = tensors::header(types).map_err(CheckpointError::Array)?;
        order.into_iter().try_for_each(|name| self.arrays[name].give())
    }

    /// A checkpoint that borrows nothing: all arrays are copied to the host. Its files stay in
    /// place, unchanged.
    ///
    /// # Errors
    /// As [`ArraySource::to_host`].
    pub fn detached(&self) -> Result<Checkpoint<'static>, CheckpointError> {
        let arrays = self.to_host()?.into_iter().map(|(name, array)| (name, array.into()));
        let arrays = arrays.collect();
        let Checkpoint { iterations, ref about, ref files, partial, .. } = *self;
        Ok(Checkpoint { iterations, about: about.clone(), arrays, files: files.clone(), partial })
    }
}

#[cfg(test)]
mod tests;
