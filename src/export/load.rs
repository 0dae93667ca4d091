//! Reading and running exports.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use podracer_compiler::TensorType;
use podracer_runtime::{
    Argument, Array, Buffer, Client, CompileOptions, Executable, ExecutableCache, Module,
};

use podracer_plugins::{read_regular, read_regular_text};
use sha2::{Digest, Sha256};

use super::manifest::FORMAT;
use super::{ArgumentManifest, MANIFEST, Manifest, ProgramManifest, ResultManifest};
use crate::UsageError;
use crate::parameters;

/// Greatest lengths of files in bytes.
const LARGEST_MANIFEST: u64 = 64 << 20;
const LARGEST_MODULE: u64 = 1 << 30;

/// A folder that `podracer export` wrote.
///
/// ```no_run
/// use std::collections::BTreeMap;
///
/// use podracer::export::Export;
/// use podracer::prelude::*;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let export = Export::open("exported")?;
/// let policy = export.compile(&Client::cpu(ClientOptions::default())?, "act_greedily")?;
/// // The parameters are the export's own, as long as none are given.
/// let observation = Array::from_slice([4], &[0.0f32, 0.1, 0.0, -0.1])?;
/// let results = policy.run(&BTreeMap::from([("observation".to_owned(), observation)]))?;
/// println!("{:?}", results["action"].item::<i32>()?);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Export {
    folder: PathBuf,
    manifest: Manifest,
    parameters: Vec<(String, Array)>,
}

impl Export {
    /// Reads the manifest and the parameters.
    ///
    /// # Errors
    /// An error if a file is missing or damaged or has another version, or if the parameters do not
    /// fit the programs.
    pub fn open(folder: impl AsRef<Path>) -> Result<Self> {
        let folder = folder.as_ref().to_owned();
        let path = folder.join(MANIFEST);
        let text = read_regular_text(&path, LARGEST_MANIFEST).with_context(|| {
            format!("cannot read `{}`: `podracer export` makes such a folder", path.display())
        })?;
        let manifest: Manifest = serde_json::from_str(&text)
            .with_context(|| format!("`{}` is no manifest of an export", path.display()))?;
        ensure!(
            manifest.format == FORMAT,
            "`{}` has format {}, and this podracer reads {FORMAT}",
            path.display(),
            manifest.format
        );
        let bytes = read(&folder, &manifest, parameters::FILE, parameters::LARGEST)?;
        let parameters = parameters::from_bytes(&folder.join(parameters::FILE), &bytes)?;
        manifest.check_parameters(&parameters)?;
        Ok(Export { folder, manifest, parameters })
    }

    /// The manifest of the export.
    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The networks' parameters, by key path.
    #[must_use]
    pub fn parameters(&self) -> &[(String, Array)] {
        &self.parameters
    }

    /// Compiles a program for the client's first device.
    ///
    /// # Errors
    /// [`UsageError`] for an unknown program; an error if its module differs from the manifest;
    /// errors of XLA.
    pub fn compile(&self, client: &Client, program: &str) -> Result<ExportedProgram> {
        let Some(manifest) = self.manifest.programs.get(program) else {
            let names: Vec<&str> = self.manifest.programs.keys().map(String::as_str).collect();
            return Err(UsageError::new(format!(
                "there is no program `{program}` in this export: there are {}",
                names.join(", ")
            ))
            .into());
        };
        let path = self.folder.join(&manifest.file);
        let text = read(&self.folder, &self.manifest, &manifest.file, LARGEST_MODULE)?;
        let text =
            String::from_utf8(text).with_context(|| format!("cannot read `{}`", path.display()))?;
        ExportedProgram::compile(client, program, manifest, &text, &self.parameters)
            .with_context(|| format!("cannot load `{}`", path.display()))
    }
}

/// Reads a file of an export, of at most `most` bytes, and checks it against the manifest.
fn read(folder: &Path, manifest: &Manifest, file: &str, most: u64) -> Result<Vec<u8>> {
    let path = folder.join(file);
    let bytes =
        read_regular(&path, most).with_context(|| format!("cannot read `{}`", path.display()))?;
    let found = format!("{:x}", Sha256::digest(&bytes));
    let known = manifest.sha256.get(file).unwrap_or(&found);
    ensure!(
        found == *known,
        "`{}` is damaged: it has the sha256 {found} and had {known} when it was exported",
        path.display()
    );
    Ok(bytes)
}

/// A program of an export, compiled.
pub struct ExportedProgram {
    name: String,
    executable: Executable,
    /// Names and types of the arguments.
    arguments: Vec<(String, TensorType)>,
    results: Vec<String>,
    /// Parameters on the device, by argument name.
    parameters: BTreeMap<String, Buffer>,
}

impl ExportedProgram {
    pub(super) fn compile(
        client: &Client,
        name: &str,
        manifest: &ProgramManifest,
        text: &str,
        parameters: &[(String, Array)],
    ) -> Result<Self> {
        let module = Module::parse(text)?;
        let named = |argument: &ArgumentManifest| Ok((argument.name.clone(), argument.ty()?));
        let arguments = manifest.arguments.iter().map(named).collect::<Result<Vec<_>>>()?;
        let results =
            manifest.results.iter().map(ResultManifest::ty).collect::<Result<Vec<_>>>()?;
        ensure!(
            arguments.iter().map(|(_, ty)| ty).eq(&module.arguments) && results == module.results,
            "the module's types are not those that the manifest says"
        );
        let options = CompileOptions::default();
        let (executable, _) = ExecutableCache::user().compile(client, &module, &options)?;
        let mut on_device = BTreeMap::new();
        for (index, argument) in manifest.arguments.iter().enumerate() {
            let own = |(name, _): &&(String, Array)| Some(name.as_str()) == argument.parameter();
            if let Some((_, array)) = parameters.iter().find(own) {
                on_device.insert(argument.name.clone(), executable.upload(0, index, array)?);
            }
        }
        Ok(ExportedProgram {
            name: name.to_owned(),
            executable,
            arguments,
            results: manifest.results.iter().map(|result| result.name.clone()).collect(),
            parameters: on_device,
        })
    }

    /// Runs the program once. Takes its arguments by name; missing parameters are the export's own.
    ///
    /// # Errors
    /// [`UsageError`] for an argument that is missing, has another type, or is unknown; errors of
    /// the runtime.
    pub fn run(&self, inputs: &BTreeMap<String, Array>) -> Result<BTreeMap<String, Array>> {
        let names: BTreeSet<&str> = self.arguments.iter().map(|(name, _)| name.as_str()).collect();
        if let Some(unknown) = inputs.keys().find(|name| !names.contains(name.as_str())) {
            return Err(self.mistake(format!("takes no `{unknown}`")));
        }
        let mut arguments = Vec::new();
        for (index, (name, ty)) in self.arguments.iter().enumerate() {
            arguments.push(match (inputs.get(name), self.parameters.get(name)) {
                (Some(array), _) if array.ty() == ty => {
                    Argument::Donated(self.executable.upload(0, index, array)?)
                }
                (Some(array), _) => {
                    let problem = format!("takes `{name}` as {ty} and was given {}", array.ty());
                    return Err(self.mistake(problem));
                }
                (None, Some(parameter)) => Argument::Kept(parameter),
                (None, None) => return Err(self.mistake(format!("takes `{name}`, {ty}, too"))),
            });
        }
        let outputs = self.executable.execute(vec![arguments])?;
        let named = self.results.iter().zip(outputs.iter().flatten());
        named.map(|(name, output)| Ok((name.clone(), output.to_host()?))).collect()
    }

    fn mistake(&self, problem: String) -> anyhow::Error {
        let takes: Vec<String> = (self.arguments.iter())
            .filter(|(name, _)| !self.parameters.contains_key(name))
            .map(|(name, ty)| format!("{name}: {ty}"))
            .collect();
        UsageError::new(format!(
            "the program `{}` {problem}; it takes {}",
            self.name,
            takes.join(", ")
        ))
        .into()
    }
}
