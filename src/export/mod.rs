//! Standalone programs: StableHLO with names, to run without podracer and to read back.
//!
//! A folder written by `podracer export` holds
//! - `manifest.json`: the programs, and for each the names, types and donation of its arguments and
//!   results ([`Manifest`]);
//! - a StableHLO module for each program, as text, for every PJRT plugin and for jaxlib;
//! - `parameters.safetensors`: the networks' parameters, with key paths as names;
//! - `load.py`, which runs the programs with only jaxlib and NumPy.
//!
//! # Invariants
//! - A program runs on one device, from arrays to arrays. An argument is named by its key path
//!   below its role (`parameters.policy.layers[0].weight`), and so is a result.
//! - `manifest.json` is written last: a folder that has a manifest is complete. It has the sha256
//!   of the modules and the parameters, which every reader checks.

mod load;
mod manifest;
mod portable;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use podracer_runtime::{Array, Checkpoint, Client};
use sha2::{Digest, Sha256};

use crate::UsageError;
use crate::files::write_whole;
use crate::parameters;

pub use load::{Export, ExportedProgram};
pub use manifest::{ArgumentKind, ArgumentManifest, Manifest, ProgramManifest, ResultManifest};
pub use portable::Portable;

pub(crate) use portable::policy;

const MANIFEST: &str = "manifest.json";

/// Python module that runs the programs.
const LOADER: &str = include_str!("load.py");

/// Source of exported parameters.
pub enum Parameters<'a> {
    /// Parameters at the start of a run with this seed, which the exported `init` computes on a device.
    Initial {
        /// The device's client.
        client: &'a Client,
        /// The run's seed.
        seed: u64,
    },
    /// Parameters of a run, by key path.
    Trained(Vec<(String, Array)>),
}

/// Writes programs and parameters into `folder`, which is created if it does not exist.
///
/// # Errors
/// [`UsageError`] if the folder already holds an export, or if the parameters do not fit the
/// programs; an error if the folder cannot be written; errors of the runtime.
pub fn write(
    folder: &Path,
    experiment: &str,
    programs: &[Portable],
    parameters: Parameters<'_>,
) -> Result<Manifest> {
    fs::create_dir_all(folder)
        .with_context(|| format!("cannot make the folder `{}`", folder.display()))?;
    if folder.join(MANIFEST).exists() {
        return Err(UsageError::new(format!(
            "`{}` holds an export already: name another folder, or remove it",
            folder.display()
        ))
        .into());
    }
    let mut manifest = Manifest::new(experiment, programs);
    let parameters = match parameters {
        Parameters::Initial { client, seed } => initial(programs, client, seed)?,
        Parameters::Trained(parameters) => parameters,
    };
    manifest.check_parameters(&parameters)?;
    let modules = programs.iter().map(|program| {
        (manifest.programs[program.name].file.clone(), program.text().as_bytes().to_vec())
    });
    let mut files: BTreeMap<String, Vec<u8>> = modules.collect();
    files.insert(parameters::FILE.to_owned(), parameters::to_bytes(&parameters)?);
    for (file, bytes) in files {
        write_whole(&folder.join(&file), &bytes)?;
        manifest.sha256.insert(file, format!("{:x}", Sha256::digest(&bytes)));
    }
    write_whole(&folder.join("load.py"), LOADER.as_bytes())?;
    let text = serde_json::to_string_pretty(&manifest)? + "\n";
    write_whole(&folder.join(MANIFEST), text.as_bytes())?;
    Ok(manifest)
}

/// The parameters in a folder: an export's parameters, which are checked, or a single file.
pub(crate) fn parameters(folder: &Path) -> Result<Vec<(String, Array)>> {
    if folder.join(MANIFEST).exists() {
        return Ok(Export::open(folder)?.parameters().to_vec());
    }
    parameters::read(&folder.join(parameters::FILE))
}

/// The parameters in a checkpoint, if the state is named as by the exported `init`.
pub(crate) fn of_checkpoint(
    programs: &[Portable],
    checkpoint: &Checkpoint<'_>,
) -> Result<Vec<(String, Array)>> {
    let init = programs.iter().find(|program| program.name == "init");
    let init = init.context("there is no program `init`, which names the parameters")?;
    let results = init.manifest().results;
    let parameter = |(leaf, path): &(usize, String)| {
        Ok((path.clone(), checkpoint.array(&results[*leaf].name)?))
    };
    init.parameters().iter().map(parameter).collect()
}

/// The parameters at the start of a run: part of the state from `init`.
fn initial(programs: &[Portable], client: &Client, seed: u64) -> Result<Vec<(String, Array)>> {
    let init = programs.iter().find(|program| program.name == "init");
    let init = init.context("there is no program `init`, which the first parameters come from")?;
    let compiled = ExportedProgram::compile(client, "init", &init.manifest(), init.text(), &[])?;
    let key = Array::key(seed);
    let state = compiled.run(&BTreeMap::from([("key".to_owned(), key)]))?;
    let results = init.manifest().results;
    let parameter = |(leaf, path): &(usize, String)| {
        let name = &results.get(*leaf)?.name;
        Some((path.clone(), state.iter().find(|(given, _)| *given == name)?.1.clone()))
    };
    let parameters: Vec<_> = init.parameters().iter().filter_map(parameter).collect();
    ensure!(!parameters.is_empty(), "`init` gives no parameters");
    Ok(parameters)
}
