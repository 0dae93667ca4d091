//! Parameters in files, and the hash for comparing runs.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::Path;

use anyhow::{Context, Error, Result, ensure};
use podracer_dsl::{Spec, Tree};
use podracer_plugins::read_regular;
use podracer_rl::learn::Learn;
use podracer_runtime::{Array, Host, NamedArrays, from_safetensors, projection, to_safetensors};
use sha2::{Digest, Sha256};

use crate::UsageError;
use crate::files::write_whole;

/// The name of the file in a run directory, and in an export.
pub const FILE: &str = "parameters.safetensors";
/// Greatest length of the file in bytes.
pub(crate) const LARGEST: u64 = 64 << 30;

/// Writes arrays as safetensors, atomically, with key paths as names.
///
/// # Errors
/// An error if the file cannot be written, or if two arrays share a name.
pub fn save(parameters: &[(String, Array)], path: &Path) -> Result<()> {
    write_whole(path, &to_bytes(parameters)?)
}

/// The bytes of the file that [`save`] writes.
pub(crate) fn to_bytes(parameters: &[(String, Array)]) -> Result<Vec<u8>> {
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

/// The parameters among the leaves of an agent's `state`: index and path of each.
///
/// # Errors
/// The mistakes of the agent, with the user's lines; parameters that are no part of the state.
#[track_caller]
pub fn positions<A: Learn>(agent: &A, state: &Spec<A::State>) -> Result<Vec<(usize, String)>> {
    Ok(projection("params", state, |state| agent.params(&state))?)
}

/// Reads a file that [`save`] wrote: arrays by key path, in the order of their names.
///
/// # Errors
/// [`UsageError`] if the file cannot be read or is malformed.
pub fn read(path: &Path) -> Result<Vec<(String, Array)>> {
    let bytes = read_regular(path, LARGEST).map_err(|error| unreadable(path, &error))?;
    from_bytes(path, &bytes)
}

/// The parameters in the bytes of the file at `path`.
pub(crate) fn from_bytes(path: &Path, bytes: &[u8]) -> Result<Vec<(String, Array)>> {
    let arrays = from_safetensors(bytes).map_err(|problem| unreadable(path, &problem))?;
    Ok(arrays.into_iter().collect())
}

fn unreadable(path: &Path, problem: &dyn Display) -> UsageError {
    UsageError::new(format!("cannot read parameters from `{}`: {problem}", path.display()))
}

/// The share of the numbers that are NaN or infinite, as a sentence: `15108 of 15108 parameters are not finite`. `None` if
/// there are none.
#[must_use]
pub fn not_finite(parameters: &[(String, Array)]) -> Option<String> {
    let numbers: usize = parameters.iter().map(|(_, array)| array.ty().elements()).sum();
    let wrong: usize = parameters.iter().map(|(_, array)| array.not_finite()).sum();
    (wrong > 0).then(|| format!("{wrong} of {numbers} parameters are not finite"))
}

/// Rejects parameters that are not all finite.
///
/// # Errors
/// [`UsageError`] with their number, and the way to use them nevertheless.
pub fn check_finite(parameters: &[(String, Array)]) -> Result<(), UsageError> {
    not_finite(parameters).map_or(Ok(()), |problem| {
        Err(UsageError::new(format!("{problem}; --allow-nan takes them as they are")))
    })
}

/// Reads a tree of parameters, by key path, from a file that [`save`] or a loop's `save_parameters`
/// wrote. The agent's parameters have the types from `eval_shape` of its `init`.
///
/// # Errors [`UsageError`] if the file cannot be read, and with everything that does not fit: parameters that are missing, have another type, or are unknown to the spec.
pub fn load_parameters<T: Tree>(spec: &Spec<T>, path: impl AsRef<Path>) -> Result<Host<T>> {
    let path = path.as_ref();
    Host::from_named(spec, read(path)?).map_err(|problem| {
        let path = path.display();
        UsageError::new(format!("the parameters in `{path}` do not fit: {problem}")).into()
    })
}

/// The sha256 over the parameters in the order of their key paths: for each the path, a zero byte,
/// the type (`f32[64,4]`), a zero byte, and the elements' bytes. In lower-case hexadecimal.
#[must_use]
pub fn sha256(parameters: &[(String, Array)]) -> String {
    let sorted: BTreeMap<&str, &Array> =
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

#[cfg(test)]
mod tests {
    use super::*;
    use podracer_dsl::prelude::*;

    #[derive(Tree, Clone)]
    struct Layer {
        weight: Tensor,
        bias: Tensor,
    }

    #[test]
    fn parameters_are_read_by_key_path_and_misfits_are_all_named() -> Result<()> {
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("parameters.safetensors");
        let bias = Array::from_slice([2], &[1f32, 2.0])?;
        let weight = Array::from_slice([1, 2], &[3f32, 4.0])?;
        save(&[("bias".into(), bias), ("weight".into(), weight)], &file)?;
        let layer = |bias: usize| {
            eval_shape((), |()| Layer { weight: ones(F32, [1, 2]), bias: ones(F32, [bias]) })
        };
        let spec = layer(2)?;
        let loaded = load_parameters(&spec, &file)?;
        assert_eq!(loaded.weight.to_vec::<f32>()?, [3.0, 4.0]);
        assert_eq!(loaded.bias.to_vec::<f32>()?, [1.0, 2.0]);
        let error = load_parameters(&layer(3)?, &file).expect_err("another type").to_string();
        assert!(error.contains("`bias` must be f32[3] and is f32[2]"), "{error}");
        let pair = eval_shape((), |()| (scalar(0.0), scalar(1)))?;
        let error = load_parameters(&pair, &file).expect_err("other names").to_string();
        for part in
            ["`0` (f32[]) is missing", "`1` (i32[]) is missing", "there is no leaf `weight`"]
        {
            assert!(error.contains(part), "{part}: {error}");
        }
        let error = load_parameters(&spec, folder.path().join("none")).expect_err("no file");
        assert!(error.to_string().contains("cannot read parameters from"), "{error}");
        Ok(())
    }
}
