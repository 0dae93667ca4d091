//! A client: one plugin's devices, opened.

use std::env;
use std::fmt;
use std::num::NonZero;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;

use super::api::{Api, call, rest, slice, text};
use super::exchange;
use super::ffi;
use super::key_value::{KeyValueStore, attach, node};
use super::plugin::Plugin;
use super::threads::with_cores;
use super::value::{self, NamedValue};
use crate::error::ErrorCode;
use crate::{Processes, RuntimeError, World};

/// Options of opening a client.
///
/// A client of GPUs takes their memory as it is needed. `PODRACER_GPU_MEMORY=0.75` makes it take three quarters of it at once,
/// which XLA does otherwise, and which leaves nothing to a second process.
#[derive(Clone, Copy, Default)]
pub struct ClientOptions {
    /// The number of CPU devices; by default one per core that this process may use. Only for the `cpu` plugin.
    pub cpu_devices: Option<usize>,
    /// The number of threads that compute on the CPU; by default one per core that this process may use, and never fewer than
    /// devices. In small programs, threads wait for each other longer than they compute. Only for the `cpu` plugin.
    pub cpu_threads: Option<NonZero<usize>>,
    /// The processes with devices that run programs together with this client's; by default this
    /// process runs alone.
    pub world: Option<World>,
    /// The store that the processes of a world use to exchange information about their devices.
    /// Only for the plugin `cuda13`, which needs it in a world: its collectives span processes.
    pub store: Option<&'static dyn KeyValueStore>,
}

/// The variable that names the share of a GPU's memory to take at once.
const GPU_MEMORY: &str = "PODRACER_GPU_MEMORY";

/// The variable that a launcher sets to the GPUs of a process.
const GPUS: &str = "CUDA_VISIBLE_DEVICES";

/// The rule for a GPU's memory: it is taken as it is needed, or a share of it at once.
fn gpu_memory(share: Option<&str>) -> Result<Vec<(String, NamedValue)>, RuntimeError> {
    let preallocate = |on| ("preallocate".to_owned(), NamedValue::Bool(on));
    let Some(share) = share else {
        return Ok(vec![preallocate(false)]);
    };
    match share.parse::<f32>() {
        Ok(fraction) if fraction > 0.0 && fraction <= 1.0 => {
            Ok(vec![preallocate(true), ("memory_fraction".to_owned(), NamedValue::Float(fraction))])
        }
        _ => Err(RuntimeError::Options(format!(
            "{GPU_MEMORY} is `{share}`: expected a share of the memory above 0 and up to 1, such as 0.75, or no such variable"
        ))),
    }
}

/// One plugin's devices, opened. Cloning is cheap and yields the same client; it closes when the last buffer and executable are
/// gone too.
#[derive(Clone)]
pub struct Client {
    pub(super) inner: Arc<Inner>,
}

pub(super) struct Inner {
    plugin: Plugin,
    raw: NonNull<ffi::PJRT_Client>,
    platform: String,
    version: String,
    pub(super) devices: Vec<DeviceData>,
    /// A lock held while a replicated program is launched: two launches that interleave would wait for each other's devices
    /// for ever.
    pub(super) launch: Mutex<()>,
    /// XLA's own values of its options, once they were needed.
    pub(super) debug_options: OnceLock<Vec<u8>>,
    world: Option<World>,
    cpu_threads: Option<NonZero<usize>>,
    /// XLA's numbers of the devices of each process of the world, once they have exchanged them.
    everywhere: OnceLock<Vec<Vec<i64>>>,
}

/// The facts about a device that never change.
pub(super) struct DeviceData {
    pub(super) raw: *mut ffi::PJRT_Device,
    pub(super) id: i64,
    pub(super) kind: String,
}

// SAFETY: PJRT's devices may be used from any thread, and live as long as the client that owns this list.
unsafe impl Send for DeviceData {}
// SAFETY: as above.
unsafe impl Sync for DeviceData {}

// SAFETY: PJRT's clients may be used from any thread, and from several at once.
unsafe impl Send for Inner {}
// SAFETY: as above.
unsafe impl Sync for Inner {}

impl Client {
    /// Opens the CPU: [`Plugin::load`] of `cpu`, and [`Client::new`].
    ///
    /// # Errors
    /// The errors of [`Plugin::load`] and [`Client::new`].
    pub fn cpu(options: ClientOptions) -> Result<Self, RuntimeError> {
        Self::new(Plugin::load("cpu")?, options)
    }

    /// Opens the plugin's devices.
    ///
    /// # Errors
    /// [`RuntimeError::Options`] for zero devices, or for CPU devices of another plugin; [`RuntimeError::Xla`] where the plugin
    /// finds no device.
    pub fn new(plugin: Plugin, options: ClientOptions) -> Result<Self, RuntimeError> {
        match options.cpu_threads {
            Some(cores) if plugin.name() == "cpu" => {
                with_cores(cores.get(), || Self::open(plugin, options))
            }
            _ => Self::open(plugin, options),
        }
    }

    fn open(plugin: Plugin, options: ClientOptions) -> Result<Self, RuntimeError> {
        let inner = Inner::create(plugin, &create_options(plugin, options)?, options)?;
        Ok(Self { inner: Arc::new(inner) })
    }

    /// The plugin it belongs to.
    #[must_use]
    pub fn plugin(&self) -> Plugin {
        self.inner.plugin
    }

    /// The devices, and the threads that were asked for: a CPU's programs are compiled for as many threads.
    pub(crate) fn compiles_for(&self) -> (usize, Option<NonZero<usize>>) {
        (self.inner.devices.len(), self.inner.cpu_threads)
    }

    /// XLA's name of the platform: `cpu`, `cuda`, `tpu`.
    #[must_use]
    pub fn platform(&self) -> &str {
        &self.inner.platform
    }

    /// The platform's description of its version.
    #[must_use]
    pub fn platform_version(&self) -> &str {
        &self.inner.version
    }

    /// The processes with devices that run programs together with this client's; `None` for a
    /// single process.
    #[must_use]
    pub fn world(&self) -> Option<World> {
        self.inner.world
    }

    /// The processes that run programs together with this process.
    #[must_use]
    pub fn processes(&self) -> Processes {
        let by_calls = self.platform() == "cpu";
        self.world().map_or(Processes::ONE, |world| Processes { count: world.size(), by_calls })
    }

    /// Tells all processes of the world which devices each of them has, where the platform's collectives span them.
    pub(crate) fn meet(&self, world: World) -> Result<(), RuntimeError> {
        if !self.processes().are_spanned() || self.inner.everywhere.get().is_some() {
            return Ok(());
        }
        let ids = self.inner.devices.iter().flat_map(|device| device.id.to_le_bytes());
        let all = world.gather(&ids.collect::<Vec<u8>>())?;
        let read = |bytes: &Vec<u8>| {
            bytes.as_chunks().0.iter().map(|id| i64::from_le_bytes(*id)).collect()
        };
        // Another thread of this process has no other answer.
        let _ = self.inner.everywhere.set(all.iter().map(read).collect());
        Ok(())
    }

    /// XLA's numbers of the devices of a module's replicas: this process's devices, by index. If
    /// the module is for all processes, the devices with the same indices in every other process
    /// follow.
    pub(super) fn assigned(
        &self,
        placement: &[usize],
        processes: Processes,
    ) -> Result<Vec<i64>, RuntimeError> {
        if !processes.are_spanned() {
            return Ok(placement.iter().map(|&index| self.inner.devices[index].id).collect());
        }
        let unknown = || {
            RuntimeError::Options(
                "the processes have not exchanged their devices: call CompileOptions::agree first"
                    .to_owned(),
            )
        };
        let everywhere = self.inner.everywhere.get().ok_or_else(unknown)?;
        assigned(everywhere, placement)
    }

    pub(super) fn api(&self) -> Api {
        self.inner.plugin.api()
    }

    pub(super) fn raw(&self) -> *mut ffi::PJRT_Client {
        self.inner.raw.as_ptr()
    }
}

/// The options of the plugin's that the client is created with. XLA ignores the names of options it does not know, so only those known to
/// exist are sent.
fn create_options(
    plugin: Plugin,
    options: ClientOptions,
) -> Result<Vec<(String, NamedValue)>, RuntimeError> {
    let wrong = |problem: String| Err(RuntimeError::Options(problem));
    let name = plugin.name();
    if name == "cpu" {
        let cores = || thread::available_parallelism().map_or(1, NonZero::get);
        let devices = options.cpu_devices.unwrap_or_else(cores);
        if devices == 0 {
            return wrong("a client needs at least one device and 0 were asked for".to_owned());
        }
        if let Some(world) = options.world {
            exchange::join(plugin, world)?;
        }
        return Ok(vec![("cpu_device_count".to_owned(), NamedValue::Int(devices as i64))]);
    }
    if let Some(devices) = options.cpu_devices {
        return wrong(format!("{devices} CPU devices were asked of the plugin `{name}`"));
    }
    if name != "cuda13" {
        // A TPU's processes find each other by themselves.
        return Ok(Vec::new());
    }
    let share = env::var_os(GPU_MEMORY).map(|share| share.to_string_lossy().into_owned());
    let mut create = gpu_memory(share.as_deref())?;
    if let Some(world) = options.world {
        if options.store.is_none() {
            return wrong(format!("the processes of the plugin `{name}` need a store"));
        }
        create.extend(node(world, env::var_os(GPUS).is_some()));
    }
    Ok(create)
}

/// The devices with these indices of each process, one process's after another's.
fn assigned(everywhere: &[Vec<i64>], placement: &[usize]) -> Result<Vec<i64>, RuntimeError> {
    let ids = everywhere.iter().enumerate().flat_map(|(rank, ids)| {
        placement.iter().map(move |&index| {
            ids.get(index).copied().ok_or_else(|| {
                RuntimeError::Options(format!(
                    "each process needs device {index}, and process {rank} has {}",
                    ids.len()
                ))
            })
        })
    });
    ids.collect()
}

impl Inner {
    pub(super) fn create(
        plugin: Plugin,
        create: &[(String, NamedValue)],
        options: ClientOptions,
    ) -> Result<Self, RuntimeError> {
        let written = value::write(create);
        let mut args = ffi::PJRT_Client_Create_Args {
            create_options: written.as_ptr(),
            num_options: written.len(),
            ..rest()
        };
        if let Some(store) = options.store {
            attach(&mut args, store);
        }
        let api = plugin.api();
        // SAFETY: the options point into `create`, which outlives the call.
        unsafe { call!(api, PJRT_Client_Create, &mut args) }?;
        let raw = NonNull::new(args.client).ok_or_else(|| no_value("PJRT_Client_Create"))?;
        // From here on the client is freed by `Inner::drop`, whatever fails.
        let mut inner = Inner {
            plugin,
            raw,
            platform: String::new(),
            version: String::new(),
            devices: Vec::new(),
            launch: Mutex::new(()),
            debug_options: OnceLock::new(),
            world: options.world,
            cpu_threads: options.cpu_threads,
            everywhere: OnceLock::new(),
        };
        inner.platform = inner.read_platform()?;
        inner.version = inner.read_version()?;
        inner.devices = inner.read_devices()?;
        Ok(inner)
    }

    fn read_platform(&self) -> Result<String, RuntimeError> {
        let mut args = ffi::PJRT_Client_PlatformName_Args { client: self.raw.as_ptr(), ..rest() };
        // SAFETY: the client is live, and the name lives as long as it.
        unsafe {
            call!(self.plugin.api(), PJRT_Client_PlatformName, &mut args)?;
            Ok(text(args.platform_name, args.platform_name_size))
        }
    }

    fn read_version(&self) -> Result<String, RuntimeError> {
        let mut args =
            ffi::PJRT_Client_PlatformVersion_Args { client: self.raw.as_ptr(), ..rest() };
        // SAFETY: the client is live, and the version lives as long as it.
        unsafe {
            call!(self.plugin.api(), PJRT_Client_PlatformVersion, &mut args)?;
            Ok(text(args.platform_version, args.platform_version_size))
        }
    }

    fn read_devices(&self) -> Result<Vec<DeviceData>, RuntimeError> {
        let api = self.plugin.api();
        // Devices of other processes are not listed: programs and buffers of this client cannot be
        // on them.
        let mut args =
            ffi::PJRT_Client_AddressableDevices_Args { client: self.raw.as_ptr(), ..rest() };
        // SAFETY: the client is live, and the list lives as long as it.
        let devices = unsafe {
            call!(api, PJRT_Client_AddressableDevices, &mut args)?;
            slice(args.addressable_devices, args.num_addressable_devices)
        };
        let describe = |&raw: &*mut ffi::PJRT_Device| {
            let mut args = ffi::PJRT_Device_GetDescription_Args { device: raw, ..rest() };
            // SAFETY: the device and its description live as long as the client.
            unsafe { call!(api, PJRT_Device_GetDescription, &mut args) }?;
            let device_description = args.device_description;
            let mut id = ffi::PJRT_DeviceDescription_Id_Args { device_description, ..rest() };
            let mut kind = ffi::PJRT_DeviceDescription_Kind_Args { device_description, ..rest() };
            // SAFETY: as above.
            let kind = unsafe {
                call!(api, PJRT_DeviceDescription_Id, &mut id)?;
                call!(api, PJRT_DeviceDescription_Kind, &mut kind)?;
                text(kind.device_kind, kind.device_kind_size)
            };
            Ok(DeviceData { raw, id: i64::from(id.id), kind })
        };
        devices.iter().map(describe).collect()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let mut args = ffi::PJRT_Client_Destroy_Args { client: self.raw.as_ptr(), ..rest() };
        // SAFETY: buffers, events and executables each hold the client, so none is left.
        let destroyed = unsafe { call!(self.plugin.api(), PJRT_Client_Destroy, &mut args) };
        if let Err(error) = destroyed {
            tracing::warn!(%error, "cannot close a client");
        }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Client({} x {})", self.inner.devices.len(), self.inner.platform)
    }
}

/// The error for a call that succeeded and returned no handle.
pub(super) fn no_value(call: &'static str) -> RuntimeError {
    let message = "it returned neither a value nor an error".to_owned();
    RuntimeError::Xla { call, code: ErrorCode::Internal, message }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replicas_are_on_the_devices_of_all_processes_in_their_order() {
        let everywhere = [vec![0, 1], vec![8, 9]];
        assert_eq!(assigned(&everywhere, &[0, 1]).unwrap(), [0, 1, 8, 9]);
        assert_eq!(assigned(&everywhere, &[1]).unwrap(), [1, 9]);
        let error = assigned(&[vec![0, 1], vec![8]], &[1]).unwrap_err().to_string();
        assert!(error.contains("process 1 has 1"), "{error}");
    }

    #[test]
    fn the_memory_of_a_gpu_is_taken_as_it_is_needed_unless_a_share_is_named() {
        let pair = |name: &str, value| (name.to_owned(), value);
        let lazy = [pair("preallocate", NamedValue::Bool(false))];
        assert_eq!(gpu_memory(None).unwrap(), lazy);
        let share = [
            pair("preallocate", NamedValue::Bool(true)),
            pair("memory_fraction", NamedValue::Float(0.5)),
        ];
        assert_eq!(gpu_memory(Some("0.5")).unwrap(), share);
        for wrong in ["", "0", "-1", "1.5", "75", "half", "nan"] {
            let error = gpu_memory(Some(wrong)).unwrap_err().to_string();
            assert!(error.contains("PODRACER_GPU_MEMORY") && error.contains(wrong), "{error}");
        }
    }
}
