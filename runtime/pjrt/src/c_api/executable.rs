//! A program loaded on devices: compiled here, or read back from its serialized form.

use std::ptr::NonNull;
use std::sync::{Arc, OnceLock};

use podracer_compiler::TensorType;

use super::api::{call, rest};
use super::client::{Client, no_value};
use super::compiled::Compiled;
use super::device::Device;
use super::{Buffer, ffi};
use crate::serialized::Serialized;
use crate::transfers::Transfers;
use crate::{Array, CompileOptions, Module, Processes, RuntimeError};

/// A program loaded on the devices it runs on.
pub struct Executable {
    pub(super) raw: NonNull<ffi::PJRT_LoadedExecutable>,
    pub(super) client: Client,
    /// The device of each replica.
    pub(super) devices: Vec<Device>,
    pub(super) arguments: Vec<TensorType>,
    pub(super) results: Vec<TensorType>,
    pub(super) transfers: Arc<Transfers>,
    /// Bytes that a launch takes in addition to its arguments, on all devices; set once this much
    /// memory was free.
    pub(super) takes: OnceLock<u64>,
    pub(super) compiled: Compiled,
}

// SAFETY: PJRT's executables may be used from any thread, and from several at once.
unsafe impl Send for Executable {}
// SAFETY: as above.
unsafe impl Sync for Executable {}

impl Client {
    /// Compiles a module and loads it on its devices, with XLA's options by podracer's rule where `options` leave them open.
    ///
    /// # Errors
    /// [`RuntimeError::Options`] for a placement that this client cannot have, [`RuntimeError::Xla`] for a module or option that
    /// XLA rejects, [`RuntimeError::Signature`] where the declared types are not the module's.
    pub fn compile(
        &self,
        module: &Module,
        options: &CompileOptions,
    ) -> Result<Executable, RuntimeError> {
        self.compile_exactly(module, &options.with_rule(self.platform()))
    }

    /// [`Client::compile`] with the options that are given, and XLA's own values of the others.
    fn compile_exactly(
        &self,
        module: &Module,
        options: &CompileOptions,
    ) -> Result<Executable, RuntimeError> {
        let placement = options.placement(self.inner.devices.len())?;
        let (asked, processes) = (options.processes, self.processes());
        if ![Processes::ONE, processes].contains(&asked) {
            return Err(RuntimeError::Options(format!(
                "a program of {} processes was asked for and there are {}",
                asked.count, processes.count
            )));
        }
        let devices = self.assigned(&placement, asked)?;
        module.check_replicas(devices.len())?;
        let debug_options =
            if options.needs_debug_options() { Some(self.debug_options()?) } else { None };
        let encoded = options.encode(Some(&devices), debug_options)?;
        let program = program(&module.text);
        let mut args = ffi::PJRT_Client_Compile_Args {
            client: self.raw(),
            program: &program,
            compile_options: encoded.as_ptr().cast(),
            compile_options_size: encoded.len(),
            ..rest()
        };
        // SAFETY: the client is live; the program's text and the options live during the call.
        unsafe { call!(self.api(), PJRT_Client_Compile, &mut args) }?;
        // SAFETY: the new executable is ours.
        let executable = unsafe {
            self.loaded(args.executable, &module.arguments, &module.results, &placement)
        }?;
        executable.compiled.check_signature(module)?;
        Ok(executable)
    }

    /// Loads what [`Executable::serialize`] made, on a machine with the same plugin and processor.
    ///
    /// # Errors
    /// [`RuntimeError::Serialized`] if the bytes are damaged or were made elsewhere, and the errors
    /// of [`Client::compile`].
    pub fn load(&self, bytes: &[u8]) -> Result<Executable, RuntimeError> {
        let serialized = Serialized::decode(bytes, self.plugin().fingerprint())?;
        let (arguments, results) = serialized.signature()?;
        let options = serialized.placement_options();
        let placement = options.placement(self.inner.devices.len())?;
        let mut args = ffi::PJRT_Executable_DeserializeAndLoad_Args {
            client: self.raw(),
            serialized_executable: serialized.payload.as_ptr().cast(),
            serialized_executable_size: serialized.payload.len(),
            ..rest()
        };
        // SAFETY: the client is live; the bytes are what this plugin once made (by checksum and fingerprint), and live during the
        // call.
        unsafe { call!(self.api(), PJRT_Executable_DeserializeAndLoad, &mut args) }?;
        // SAFETY: the new executable is ours.
        unsafe { self.loaded(args.loaded_executable, &arguments, &results, &placement) }
    }

    /// XLA's own values for its options. XLA reports them only for a compiled program, so this
    /// compiles the smallest program.
    fn debug_options(&self) -> Result<Vec<u8>, RuntimeError> {
        if let Some(options) = self.inner.debug_options.get() {
            return Ok(options.clone());
        }
        let smallest = self.compile_exactly(&smallest(), &CompileOptions::default())?;
        let options = smallest.compiled.debug_options()?;
        Ok(self.inner.debug_options.get_or_init(|| options).clone())
    }

    /// Owns the plugin's loaded executable.
    ///
    /// # Safety
    /// `raw` is null, or a loaded executable of this client that has no other owner, with these
    /// types and devices.
    unsafe fn loaded(
        &self,
        raw: *mut ffi::PJRT_LoadedExecutable,
        arguments: &[TensorType],
        results: &[TensorType],
        placement: &[usize],
    ) -> Result<Executable, RuntimeError> {
        let raw = NonNull::new(raw).ok_or_else(|| no_value("PJRT_Client_Compile"))?;
        let mut args = ffi::PJRT_LoadedExecutable_GetExecutable_Args {
            loaded_executable: raw.as_ptr(),
            ..rest()
        };
        // SAFETY: the loaded executable is live, and the new handle is ours.
        let compiled = unsafe {
            call!(self.api(), PJRT_LoadedExecutable_GetExecutable, &mut args)?;
            Compiled::new(args.executable, self.api(), self.clone())
        };
        Ok(Executable {
            raw,
            client: self.clone(),
            devices: placement.iter().map(|&index| self.device(index)).collect::<Result<_, _>>()?,
            arguments: arguments.to_vec(),
            results: results.to_vec(),
            transfers: Arc::default(),
            takes: OnceLock::new(),
            compiled: compiled.ok_or_else(|| no_value("PJRT_LoadedExecutable_GetExecutable"))?,
        })
    }
}

/// The smallest possible module; its program does nothing.
pub(super) fn smallest() -> Module {
    Module::new("module @smallest { func.func public @main() { return } }", vec![], vec![])
}

/// A StableHLO text in the C API's form, which points into `text`.
pub(super) fn program(text: &str) -> ffi::PJRT_Program {
    const FORMAT: &str = "mlir";
    ffi::PJRT_Program {
        // Read only, though the C API has no `const` here.
        code: text.as_ptr().cast_mut().cast(),
        code_size: text.len(),
        format: FORMAT.as_ptr().cast(),
        format_size: FORMAT.len(),
        ..rest()
    }
}

impl Executable {
    /// The argument types of each replica.
    #[must_use]
    pub fn arguments(&self) -> &[TensorType] {
        &self.arguments
    }

    /// The result types of each replica.
    #[must_use]
    pub fn results(&self) -> &[TensorType] {
        &self.results
    }

    /// The device of each replica.
    #[must_use]
    pub fn devices(&self) -> &[Device] {
        &self.devices
    }

    /// The client it runs on.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The compiled program, which tells its memory, cost and optimized form without being run.
    #[must_use]
    pub fn compiled(&self) -> &Compiled {
        &self.compiled
    }

    /// Copies to and from the host for this executable; see [`Transfers`].
    #[must_use]
    pub fn transfers(&self) -> &Transfers {
        &self.transfers
    }

    /// Copies one host value to the device of `replica`, to be its argument `index`; counted for this executable.
    ///
    /// # Errors
    /// [`RuntimeError::ArgumentType`], [`RuntimeError::ArgumentCount`] or
    /// [`RuntimeError::ReplicaCount`] if there is no such argument, and the errors of
    /// [`Buffer::from_host`].
    pub fn upload(
        &self,
        replica: usize,
        index: usize,
        array: &Array,
    ) -> Result<Buffer, RuntimeError> {
        let (device, expected) = self.argument(replica, index)?;
        if array.ty() != expected {
            let (expected, got) = (expected.clone(), array.ty().clone());
            return Err(RuntimeError::ArgumentType { replica, index, expected, got });
        }
        Buffer::upload(expected, array.bytes(), device, Some(&self.transfers))
    }

    /// Uploads an argument as [`Executable::upload`] does, from the bytes of a value of its type.
    ///
    /// # Errors
    /// [`RuntimeError::Array`] for a wrong number of bytes, and the errors of
    /// [`Executable::upload`].
    pub fn upload_bytes(
        &self,
        replica: usize,
        index: usize,
        bytes: &[u8],
    ) -> Result<Buffer, RuntimeError> {
        let (device, ty) = self.argument(replica, index)?;
        Buffer::upload(ty, bytes, device, Some(&self.transfers))
    }

    /// The device of a replica and the type of an argument.
    fn argument(
        &self,
        replica: usize,
        index: usize,
    ) -> Result<(&Device, &TensorType), RuntimeError> {
        let replicas = self.devices.len();
        let device = self.devices.get(replica);
        let device =
            device.ok_or(RuntimeError::ReplicaCount { expected: replicas, got: replica + 1 })?;
        let count = self.arguments.len();
        let ty = self.arguments.get(index);
        let ty =
            ty.ok_or(RuntimeError::ArgumentCount { replica, expected: count, got: index + 1 })?;
        Ok((device, ty))
    }

    /// The machine code with its types and placement, for [`Client::load`] in another process.
    ///
    /// # Errors
    /// [`RuntimeError::Xla`].
    pub fn serialize(&self) -> Result<Vec<u8>, RuntimeError> {
        let placement: Vec<usize> = self.devices.iter().map(Device::index).collect();
        let fingerprint = self.client.plugin().fingerprint();
        let payload = self.compiled.serialize_raw()?;
        Ok(Serialized::new(fingerprint, &self.arguments, &self.results, &placement, payload)
            .encode())
    }
}

impl Drop for Executable {
    fn drop(&mut self) {
        let mut args =
            ffi::PJRT_LoadedExecutable_Destroy_Args { executable: self.raw.as_ptr(), ..rest() };
        // SAFETY: `self` owned the handle. Running computations keep the program by themselves.
        let destroyed =
            unsafe { call!(self.client.api(), PJRT_LoadedExecutable_Destroy, &mut args) };
        if let Err(error) = destroyed {
            tracing::warn!(%error, "cannot free an executable");
        }
    }
}
