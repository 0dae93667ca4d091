//! Parameters in files, and the hash by which runs are compared.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::Path;

use anyhow::{Context, Error, Result, ensure};
use podracer_dsl::Spec;
use podracer_plugins::read_regular;
use podracer_runtime::{HostArray, NamedArrays, from_safetensors, projection, to_safetensors};
use podracer_stdlib::agents::Learn;
use sha2::{Digest, Sha256};

use crate::UsageError;
use crate::files::write_whole;

/// The name of such a file in a run directory, and in an export.
pub const FILE: &str = "parameters.safetensors";
/// Greatest length of such a file in bytes.
pub(crate) const LARGEST: u64 = 64 << 30;

/// Writes arrays as safetensors, with key paths as names: the whole file, or none.
///
/// # Errors
/// Where the file cannot be written, or two arrays share a name.
pub fn save(parameters: &[(String, HostArray)], path: &Path) -> Result<()> {
    write_whole(path, &to_bytes(parameters)?)
}

/// The bytes of the file that [`save`] writes.
pub(crate) fn to_bytes(parameters: &[(String, HostArray)]) -> Result<Vec<u8>> {
    let mut arrays = NamedArrays::new();
    for (name, array) in parameters {
        ensure!(
            arrays.insert(name.clone(), array.clone()).is_none(),
            "two parameters have the key path `{name}`"
        );
    }
    let bytes = to_safetensors(&arrays).map_err(Error::msg);
    bytes.context("the parameters cannot be written")
}

/// The parameters among the leaves of an agent's `state`: position and path of each.
///
/// # Errors
/// The mistakes of the agent, with the user's lines; parameters that are no part of the state.
#[track_caller]
pub fn positions<A: Learn>(agent: &A, state: &Spec<A::State>) -> Result<Vec<(usize, String)>> {
    Ok(projection("params", state, |state| agent.params(&state))?)
}

/// Reads what [`save`] wrote: arrays by key path, in the order of their names.
///
/// # Errors
/// [`UsageError`] where the file cannot be read, or is not what it should be.
pub fn read(path: &Path) -> Result<Vec<(String, HostArray)>> {
    let bytes = read_regular(path, LARGEST).map_err(|error| unreadable(path, &error))?;
    from_bytes(path, &bytes)
}

/// The parameters in the bytes of the file at `path`.
pub(crate) fn from_bytes(path: &Path, bytes: &[u8]) -> Result<Vec<(String, HostArray)>> {
    let arrays = from_safetensors(bytes).map_err(|problem| unreadable(path, &problem))?;
    Ok(arrays.into_iter().collect())
}

fn unreadable(path: &Path, problem: &dyn Display) -> UsageError {
    UsageError::new(format!("cannot read parameters from `{}`: {problem}", path.display()))
}

/// The share of the numbers that are NaN or infinite, as a sentence: `15108 of 15108 parameters are not finite`. `None` if
/// there are none.
#[must_use]
pub fn not_finite(parameters: &[(String, HostArray)]) -> Option<String> {
    let numbers: usize = parameters.iter().map(|(_, array)| array.ty().elements()).sum();
    let wrong: usize = parameters.iter().map(|(_, array)| array.not_finite()).sum();
    (wrong > 0).then(|| format!("{wrong} of {numbers} parameters are not finite"))
}

/// Refuses parameters of which some are not finite.
///
/// # Errors
/// [`UsageError`] says how many, and how they are taken nevertheless.
pub fn check_finite(parameters: &[(String, HostArray)]) -> Result<(), UsageError> {
    not_finite(parameters).map_or(Ok(()), |problem| {
        Err(UsageError::new(format!("{problem}; --allow-nan takes them as they are")))
    })
}

/// sha256 over the parameters in the order of their key paths: of each the path, a zero byte, the type (`f32[64,4]`), a zero byte,
/// and the elements' bytes. In lower-case hexadecimal.
#[must_use]
pub fn sha256(parameters: &[(String, HostArray)]) -> String {
    let sorted: BTreeMap<&str, &HostArray> =
        parameters.iter().map(|(name, array)| (name.as_str(), array)).collect();
    let mut hasher = Sha256::new();
    for (name, array) in sorted {
        hasher.update(name.as_bytes());
        hasher.update([0]);
        hasher.update(array.ty().to_string().as_bytes());
        hasher.update([0]);
        hasher.update(array.bytes());
    }
    format!("{:x}", hasher.finalize())
}
