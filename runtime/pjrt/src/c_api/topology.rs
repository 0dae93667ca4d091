//! Compilation for devices that are not present.

use std::ptr::NonNull;
use std::sync::Arc;

use super::api::{call, rest, text};
use super::client::no_value;
use super::compiled::Compiled;
use super::executable::{program, smallest};
use super::ffi;
use super::plugin::Plugin;
use super::value::{self, NamedValue};
use crate::{CompileOptions, Module, RuntimeError};

/// The shape of a machine to compile for: `v3:32x32` is a pod of 2048 TPU cores.
///
/// Programs for it are compiled, measured and inspected here, and cannot run here. The `tpu` plugin does this without a TPU; the
/// `cpu` plugin has no topologies.
#[derive(Clone)]
pub struct Topology {
    inner: Arc<TopologyInner>,
}

struct TopologyInner {
    raw: NonNull<ffi::PJRT_TopologyDescription>,
    plugin: Plugin,
    name: String,
}

// SAFETY: PJRT's topologies may be used from any thread, and from several at once.
unsafe impl Send for TopologyInner {}
// SAFETY: as above.
unsafe impl Sync for TopologyInner {}

impl Topology {
    /// The topology that the plugin knows as `name` (TPU: `v2`, `v3`, `v4`, `v5e`, `v5p`, `v6e`, `tpu7x`, then `:AxB` or `:AxBxC`
    /// chips), with its options, such as `chips_per_host_bounds`.
    ///
    /// # Errors
    /// [`RuntimeError::Xla`] for a name or option that the plugin does not know.
    pub fn new(
        plugin: Plugin,
        name: &str,
        options: &[(String, NamedValue)],
    ) -> Result<Self, RuntimeError> {
        let written = value::write(options);
        let mut args = ffi::PJRT_TopologyDescription_Create_Args {
            topology_name: name.as_ptr().cast(),
            topology_name_size: name.len(),
            create_options: written.as_ptr(),
            num_options: written.len(),
            ..rest()
        };
        // SAFETY: the name and the options outlive the call.
        unsafe { call!(plugin.api(), PJRT_TopologyDescription_Create, &mut args) }?;
        let raw = NonNull::new(args.topology)
            .ok_or_else(|| no_value("PJRT_TopologyDescription_Create"))?;
        Ok(Self { inner: Arc::new(TopologyInner { raw, plugin, name: name.to_owned() }) })
    }

    /// The number of devices (cores, if a chip exposes several).
    ///
    /// # Errors
    /// [`RuntimeError::Xla`].
    pub fn devices(&self) -> Result<usize, RuntimeError> {
        let mut args = ffi::PJRT_TopologyDescription_GetDeviceDescriptions_Args {
            topology: self.raw(),
            ..rest()
        };
        // SAFETY: the topology is live.
        unsafe {
            call!(
                self.inner.plugin.api(),
                PJRT_TopologyDescription_GetDeviceDescriptions,
                &mut args
            )
        }?;
        Ok(args.num_descriptions)
    }

    /// XLA's name of the platform: `tpu`, `cuda`.
    ///
    /// # Errors
    /// [`RuntimeError::Xla`].
    pub fn platform(&self) -> Result<String, RuntimeError> {
        let mut args =
            ffi::PJRT_TopologyDescription_PlatformName_Args { topology: self.raw(), ..rest() };
        // SAFETY: the topology is live, and the name lives as long as it.
        unsafe {
            call!(self.inner.plugin.api(), PJRT_TopologyDescription_PlatformName, &mut args)?;
            Ok(text(args.platform_name, args.platform_name_size))
        }
    }

    /// Compiles a module for this machine.
    ///
    /// # Errors
    /// [`RuntimeError::Options`] if the replicas do not fit or devices are named,
    /// [`RuntimeError::Xla`] if XLA rejects the module or it does not fit the device's memory,
    /// [`RuntimeError::Signature`].
    pub fn compile(
        &self,
        module: &Module,
        options: &CompileOptions,
    ) -> Result<Compiled, RuntimeError> {
        self.compile_exactly(module, &options.with_rule(&self.platform()?))
    }

    /// [`Topology::compile`] with the options that are given, and XLA's own values of the others.
    fn compile_exactly(
        &self,
        module: &Module,
        options: &CompileOptions,
    ) -> Result<Compiled, RuntimeError> {
        if options.device_assignment.is_some() {
            let problem = "a topology places replicas by itself: leave the device assignment out";
            return Err(RuntimeError::Options(problem.to_owned()));
        }
        let devices = self.devices()?;
        options.placement(devices)?;
        self.check_ring(options.replicas, devices)?;
        module.check_replicas(options.replicas)?;
        let debug_options = if options.needs_debug_options() {
            let smallest = self.compile_exactly(&smallest(), &CompileOptions::default())?;
            Some(smallest.debug_options()?)
        } else {
            None
        };
        let encoded = options.encode(None, debug_options)?;
        let program = program(&module.text);
        let mut args = ffi::PJRT_Compile_Args {
            topology: self.raw(),
            program: &program,
            compile_options: encoded.as_ptr().cast(),
            compile_options_size: encoded.len(),
            ..rest()
        };
        let api = self.inner.plugin.api();
        // SAFETY: the topology is live, the program's text and the options outlive the call, and the new executable is ours.
        let compiled = unsafe {
            call!(api, PJRT_Compile, &mut args)?;
            Compiled::new(args.executable, api, self.inner.clone())
        };
        let compiled = compiled.ok_or_else(|| no_value("PJRT_Compile"))?;
        compiled.check_signature(module)?;
        Ok(compiled)
    }

    /// Refuses replicas that do not divide the devices of a ring: libtpu would end the process.
    fn check_ring(&self, replicas: usize, devices: usize) -> Result<(), RuntimeError> {
        let name = &self.inner.name;
        let rings = ["v5e", "v6e"].iter().any(|ring| name.starts_with(ring));
        if replicas < 2 || !rings || devices.is_multiple_of(replicas) {
            return Ok(());
        }
        let parts = (2..=devices).filter(|&part| devices.is_multiple_of(part));
        let parts: Vec<String> = parts.map(|part| part.to_string()).collect();
        Err(RuntimeError::Reduction(format!(
            "{replicas} of the {devices} devices of {name} cannot reduce among themselves: XLA takes {} there",
            parts.join(", ")
        )))
    }

    fn raw(&self) -> *mut ffi::PJRT_TopologyDescription {
        self.inner.raw.as_ptr()
    }
}

impl Drop for TopologyInner {
    fn drop(&mut self) {
        let mut args =
            ffi::PJRT_TopologyDescription_Destroy_Args { topology: self.raw.as_ptr(), ..rest() };
        // SAFETY: `self` owned the handle, and programs compiled with it hold it.
        let destroyed =
            unsafe { call!(self.plugin.api(), PJRT_TopologyDescription_Destroy, &mut args) };
        if let Err(error) = destroyed {
            tracing::warn!(%error, "cannot free a topology");
        }
    }
}
