//! `manifest.json`: the programs of an export, with their arguments and results.

use std::collections::BTreeMap;

use anyhow::Result;
use podracer_compiler::{DType, TensorType};
use podracer_runtime::Array;
use serde::{Deserialize, Serialize};

use super::Portable;
use crate::UsageError;

/// Version of the folder's format.
pub(super) const FORMAT: u32 = 1;

/// Contents of an export's folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of the folder's format: 1.
    pub format: u32,
    /// The version of podracer that wrote it.
    pub podracer: String,
    /// Name of the exported experiment.
    pub experiment: String,
    /// The programs by name.
    pub programs: BTreeMap<String, ProgramManifest>,
    /// The sha256 of each file next to the manifest. Exports of earlier versions have none, and are
    /// not checked.
    #[serde(default)]
    pub sha256: BTreeMap<String, String>,
}

/// A program of an export.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramManifest {
    /// Description of the program, for readers.
    pub about: String,
    /// The StableHLO module, in the same folder.
    pub file: String,
    /// Arguments of the program's function `main`, in order.
    pub arguments: Vec<ArgumentManifest>,
    /// Results of the program's function `main`, in order.
    pub results: Vec<ResultManifest>,
}

/// An argument of a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArgumentManifest {
    /// Key path of the argument: `parameters.policy.layers[0].weight`, `state.sharded.lanes.key`, `observation`.
    pub name: String,
    /// The element type: `bool`, `i8` to `i64`, `u8` to `u64`, `f16`, `bf16`, `f32`, `f64`.
    pub dtype: String,
    /// The extents of the axes.
    pub shape: Vec<usize>,
    /// Role of the argument.
    pub kind: ArgumentKind,
    /// Index of the result that reuses the argument's memory; none if the caller keeps the
    /// argument.
    pub donated_to: Option<usize>,
}

/// Roles of arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ArgumentKind {
    /// A parameter: `parameters.` and its name in `parameters.safetensors`.
    Parameter,
    /// A result of the previous program, with the same name.
    State,
    /// A random key, u32 `[2]`: the high and the low half of a seed, or the result of a split.
    Key,
    /// An input of the caller, such as an observation.
    Input,
}

/// A result of a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResultManifest {
    /// Key path of the result: `action`, `metrics.loss`.
    pub name: String,
    /// The element type, as for an argument.
    pub dtype: String,
    /// The extents of the axes.
    pub shape: Vec<usize>,
}

impl Manifest {
    pub(super) fn new(experiment: &str, programs: &[Portable]) -> Self {
        let named = |program: &Portable| (program.name.to_owned(), program.manifest());
        Manifest {
            format: FORMAT,
            podracer: env!("CARGO_PKG_VERSION").to_owned(),
            experiment: experiment.to_owned(),
            programs: programs.iter().map(named).collect(),
            sha256: BTreeMap::new(),
        }
    }

    /// Checks that there is a parameter of the right type for each parameter argument of the
    /// programs.
    ///
    /// # Errors
    /// [`UsageError`] with the first parameter that is missing or has another type.
    pub fn check_parameters(&self, parameters: &[(String, Array)]) -> Result<()> {
        let parameters: BTreeMap<&str, &Array> =
            parameters.iter().map(|(name, array)| (name.as_str(), array)).collect();
        for program in self.programs.values() {
            for argument in &program.arguments {
                let Some(name) = argument.parameter() else {
                    continue;
                };
                let got = match parameters.get(name) {
                    Some(array) if *array.ty() == argument.ty()? => continue,
                    Some(array) => format!("is {}", array.ty()),
                    None => "is not there".to_owned(),
                };
                return Err(UsageError::new(format!(
                    "the parameter `{name}` must be {} and {got}: these parameters belong to another agent or environment; \
                     `podracer export RUN/config.toml --run RUN` exports what a run trained",
                    argument.ty()?
                ))
                .into());
            }
        }
        Ok(())
    }
}

impl ArgumentManifest {
    /// Type of the argument.
    ///
    /// # Errors
    /// A dtype that does not exist.
    pub fn ty(&self) -> Result<TensorType> {
        tensor_type(&self.name, &self.dtype, &self.shape)
    }

    /// Name of the argument in `parameters.safetensors`, if it is a parameter.
    #[must_use]
    pub fn parameter(&self) -> Option<&str> {
        match self.kind {
            ArgumentKind::Parameter => self.name.strip_prefix("parameters."),
            _ => None,
        }
    }
}

impl ResultManifest {
    /// Type of the result.
    ///
    /// # Errors
    /// A dtype that does not exist.
    pub fn ty(&self) -> Result<TensorType> {
        tensor_type(&self.name, &self.dtype, &self.shape)
    }
}

fn tensor_type(name: &str, dtype: &str, shape: &[usize]) -> Result<TensorType> {
    let known = DType::parse(dtype).ok_or_else(|| {
        UsageError::new(format!(
            "manifest.json: `{name}` has the dtype `{dtype}`, which is none: {}",
            DType::ALL.map(DType::name).join(", ")
        ))
    })?;
    Ok(TensorType::new(known, shape))
}
