//! A compiled program, loaded or not: the queries that do not run it.

use std::any::Any;
use std::collections::BTreeMap;
use std::ptr::NonNull;

use podracer_compiler::TensorType;
use prost::Message;

use super::api::{Api, call, rest, slice, text};
use super::client::no_value;
use super::value::{NamedValue, read};
use super::{ffi, types};
use crate::proto::HloModuleProtoWithConfig;
use crate::{HloModule, Module, RuntimeError};

/// A compiled program. One that was compiled for a [`crate::Topology`] cannot run here; one of an [`crate::Executable`] can.
pub struct Compiled {
    raw: NonNull<ffi::PJRT_Executable>,
    api: Api,
    /// The client or topology that compiled it, which must live as long.
    _made_by: Box<dyn Any + Send + Sync>,
}

// SAFETY: PJRT's executables may be used from any thread, and from several at once.
unsafe impl Send for Compiled {}
// SAFETY: as above.
unsafe impl Sync for Compiled {}

/// Bytes a compiled program needs on each device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryStats {
    /// Bytes of machine code.
    pub code: i64,
    /// Bytes of arguments.
    pub arguments: i64,
    /// Bytes of results.
    pub outputs: i64,
    /// The part of the results that reuses donated arguments' memory.
    pub aliased: i64,
    /// Intermediate values.
    pub temporary: i64,
    /// The most that is in use at one time, where the plugin says.
    pub peak: i64,
}

impl MemoryStats {
    /// The least number of bytes that a run takes in addition to its arguments: results that reuse
    /// none of their memory, and intermediate values.
    #[must_use]
    pub fn beside_arguments(&self) -> i64 {
        self.temporary + (self.outputs - self.aliased).max(0)
    }
}

impl Compiled {
    /// Owns the plugin's executable; `None` if it is null.
    ///
    /// # Safety
    /// `raw` is null, or an executable of this plugin that has no other owner; `made_by` is the
    /// client or topology that compiled it.
    pub(super) unsafe fn new(
        raw: *mut ffi::PJRT_Executable,
        api: Api,
        made_by: impl Any + Send + Sync,
    ) -> Option<Self> {
        NonNull::new(raw).map(|raw| Self { raw, api, _made_by: Box::new(made_by) })
    }

    /// The bytes it needs on each device.
    ///
    /// # Errors
    /// [`RuntimeError::Xla`].
    pub fn memory_stats(&self) -> Result<MemoryStats, RuntimeError> {
        let mut args =
            ffi::PJRT_Executable_GetCompiledMemoryStats_Args { executable: self.raw(), ..rest() };
        // SAFETY: the executable is live.
        unsafe { call!(self.api, PJRT_Executable_GetCompiledMemoryStats, &mut args) }?;
        Ok(MemoryStats {
            code: args.generated_code_size_in_bytes,
            arguments: args.argument_size_in_bytes,
            outputs: args.output_size_in_bytes,
            aliased: args.alias_size_in_bytes,
            temporary: args.temp_size_in_bytes,
            peak: args.peak_memory_in_bytes,
        })
    }

    /// XLA's estimate of its work (`flops`, `bytes accessed`), with the body of every loop counted **once**.
    ///
    /// # Errors
    /// [`RuntimeError::Xla`].
    pub fn cost_analysis(&self) -> Result<BTreeMap<String, NamedValue>, RuntimeError> {
        let mut args =
            ffi::PJRT_Executable_GetCostAnalysis_Args { executable: self.raw(), ..rest() };
        // SAFETY: the executable is live, and the properties live as long as it.
        unsafe {
            call!(self.api, PJRT_Executable_GetCostAnalysis, &mut args)?;
            Ok(read(args.properties, args.num_properties))
        }
    }

    /// XLA's fingerprint of the compiled program.
    ///
    /// # Errors
    /// [`RuntimeError::Xla`], for example if the plugin has no fingerprints.
    pub fn fingerprint(&self) -> Result<String, RuntimeError> {
        let mut args = ffi::PJRT_Executable_Fingerprint_Args { executable: self.raw(), ..rest() };
        // SAFETY: the executable is live, and the fingerprint lives as long as it.
        unsafe {
            call!(self.api, PJRT_Executable_Fingerprint, &mut args)?;
            Ok(text(args.executable_fingerprint, args.executable_fingerprint_size))
        }
    }

    /// The optimized program.
    ///
    /// # Errors
    /// [`RuntimeError::Xla`].
    pub fn optimized(&self) -> Result<HloModule, RuntimeError> {
        let (bytes, format) = self.optimized_bytes()?;
        HloModule::decode(&bytes, &format)
    }

    /// XLA's options as this program was compiled with them: a serialized `DebugOptions` with every field that has a value.
    pub(super) fn debug_options(&self) -> Result<Vec<u8>, RuntimeError> {
        let (bytes, _) = self.optimized_bytes()?;
        let program = HloModuleProtoWithConfig::decode(bytes.as_slice()).ok();
        let options = program.and_then(|program| program.config?.debug_options);
        options.ok_or_else(|| no_value("PJRT_Executable_OptimizedProgram"))
    }

    fn optimized_bytes(&self) -> Result<(Vec<u8>, String), RuntimeError> {
        let mut program = ffi::PJRT_Program { ..rest() };
        let mut args = ffi::PJRT_Executable_OptimizedProgram_Args {
            executable: self.raw(),
            program: &mut program,
            ..rest()
        };
        // SAFETY: the executable is live; without a place for the code the call only says how long it is.
        unsafe { call!(self.api, PJRT_Executable_OptimizedProgram, &mut args) }?;
        let mut code = vec![0u8; program.code_size];
        program.code = code.as_mut_ptr().cast();
        args.program = &mut program;
        // SAFETY: the place is as long as the call before said; the format is the plugin's own and static.
        let format = unsafe {
            call!(self.api, PJRT_Executable_OptimizedProgram, &mut args)?;
            text(program.format, program.format_size)
        };
        Ok((code, format))
    }

    /// XLA's own serialized form. Reading a damaged one back can end the process: it is wrapped with a checksum before it leaves
    /// this crate.
    pub(super) fn serialize_raw(&self) -> Result<Vec<u8>, RuntimeError> {
        let mut args = ffi::PJRT_Executable_Serialize_Args { executable: self.raw(), ..rest() };
        // SAFETY: the executable is live; the bytes are copied before their owner is freed, once.
        unsafe {
            call!(self.api, PJRT_Executable_Serialize, &mut args)?;
            let bytes =
                slice(args.serialized_bytes.cast::<u8>(), args.serialized_bytes_size).to_vec();
            if let Some(free) = args.serialized_executable_deleter {
                free(args.serialized_executable);
            }
            Ok(bytes)
        }
    }

    /// Checks the types that `module` declares against the compiled types, as far as the plugin
    /// reports them.
    pub(super) fn check_signature(&self, module: &Module) -> Result<(), RuntimeError> {
        if let Some(results) = self.results()? {
            compare("result", &module.results, &results)?;
        }
        match self.optimized() {
            Ok(optimized) => optimized
                .arguments()
                .map_or(Ok(()), |types| compare("argument", &module.arguments, &types)),
            Err(error) => {
                tracing::warn!(%error, "the argument types of a compiled program cannot be checked");
                Ok(())
            }
        }
    }

    /// The result types, where podracer has them all.
    fn results(&self) -> Result<Option<Vec<TensorType>>, RuntimeError> {
        let mut elements =
            ffi::PJRT_Executable_OutputElementTypes_Args { executable: self.raw(), ..rest() };
        let mut dims =
            ffi::PJRT_Executable_OutputDimensions_Args { executable: self.raw(), ..rest() };
        // SAFETY: the executable is live, and the lists live as long as it. `dims` concatenates as many extents as `ranks` sum to.
        let (elements, ranks, mut dims) = unsafe {
            call!(self.api, PJRT_Executable_OutputElementTypes, &mut elements)?;
            call!(self.api, PJRT_Executable_OutputDimensions, &mut dims)?;
            let ranks = slice(dims.dim_sizes, dims.num_outputs);
            let extents = slice(dims.dims, ranks.iter().sum());
            (slice(elements.output_types, elements.num_output_types), ranks, extents)
        };
        if elements.len() != ranks.len() {
            return Err(no_value("PJRT_Executable_OutputDimensions"));
        }
        let mut types = Vec::with_capacity(ranks.len());
        for (&element, &rank) in elements.iter().zip(ranks) {
            let (shape, others) = dims.split_at(rank);
            dims = others;
            let Some(dtype) = types::from_c(element) else {
                return Ok(None);
            };
            let shape: Vec<usize> = shape.iter().map(|&extent| extent as usize).collect();
            types.push(TensorType::new(dtype, shape));
        }
        Ok(Some(types))
    }

    fn raw(&self) -> *mut ffi::PJRT_Executable {
        self.raw.as_ptr()
    }
}

fn compare(what: &str, declared: &[TensorType], actual: &[TensorType]) -> Result<(), RuntimeError> {
    if declared.len() != actual.len() {
        return Err(RuntimeError::Signature {
            place: format!("number of {what}s"),
            declared: declared.len().to_string(),
            actual: actual.len().to_string(),
        });
    }
    let differing =
        declared.iter().zip(actual).enumerate().find(|(_, (declared, actual))| declared != actual);
    differing.map_or(Ok(()), |(index, (declared, actual))| {
        Err(RuntimeError::Signature {
            place: format!("{what} {index}"),
            declared: declared.to_string(),
            actual: actual.to_string(),
        })
    })
}

impl Drop for Compiled {
    fn drop(&mut self) {
        let mut args = ffi::PJRT_Executable_Destroy_Args { executable: self.raw(), ..rest() };
        // SAFETY: `self` owned the handle.
        let destroyed = unsafe { call!(self.api, PJRT_Executable_Destroy, &mut args) };
        if let Err(error) = destroyed {
            tracing::warn!(%error, "cannot free a compiled program");
        }
    }
}
