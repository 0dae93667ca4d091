//! Loading a plugin, once per process and file.

use std::collections::BTreeMap;
use std::env;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use libloading::Library;
use podracer_plugins::Located;

use super::api::{Api, call, rest};
use super::ffi;
use super::value::{NamedValue, read};
use crate::{RuntimeError, flags};

/// A loaded plugin: the way to one kind of device. It stays loaded until the process ends, since XLA's threads never end.
///
/// # The environment
/// `XLA_FLAGS` is checked before anything is loaded (see [`RuntimeError::XlaFlags`]). Then some
/// variables are set if they are unset. One is `TF_CPP_MIN_LOG_LEVEL=1`. Before the `tpu` plugin is
/// loaded on a machine without a TPU, further variables keep it from searching for a TPU (for
/// minutes). Load plugins before starting threads of C code that read the environment.
#[derive(Clone, Copy)]
pub struct Plugin {
    inner: &'static PluginInner,
}

struct PluginInner {
    name: &'static str,
    library: PathBuf,
    fingerprint: String,
    version: (i32, i32),
    attributes: BTreeMap<String, NamedValue>,
    api: Api,
}

static LOADED: Mutex<BTreeMap<PathBuf, &'static PluginInner>> = Mutex::new(BTreeMap::new());

impl Plugin {
    /// Finds (see [`podracer_plugins::find`]), checks and loads the plugin `cpu`, `cuda13` or `tpu`.
    ///
    /// # Errors
    /// [`RuntimeError::Plugin`] where it is not installed or corrupt, [`RuntimeError::XlaFlags`], [`RuntimeError::Load`].
    pub fn load(name: &str) -> Result<Self, RuntimeError> {
        Self::open(&podracer_plugins::find(name)?)
    }

    /// Loads a plugin that was found already, as [`Plugin::load`] does.
    ///
    /// # Errors
    /// As [`Plugin::load`].
    pub fn open(located: &Located) -> Result<Self, RuntimeError> {
        let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
        let path = located.library.canonicalize().unwrap_or_else(|_| located.library.clone());
        if let Some(&inner) = loaded.get(&path) {
            return Ok(Self { inner });
        }
        podracer_plugins::check(located)?;
        flags::check_environment()?;
        // XLA tells on stderr of every client it makes; its warnings and errors still come.
        set_where_unset(&[("TF_CPP_MIN_LOG_LEVEL", "1")]);
        if located.spec.name == "tpu" {
            prepare_tpu_environment();
        }
        let inner = initialize(located)?;
        loaded.insert(path, inner);
        Ok(Self { inner })
    }

    /// The plugin's name: `cpu`, `cuda13` or `tpu`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.inner.name
    }

    /// The file it was loaded from.
    #[must_use]
    pub fn library(self) -> &'static Path {
        &self.inner.library
    }

    /// The version of the C API that it implements.
    #[must_use]
    pub fn version(self) -> (i32, i32) {
        self.inner.version
    }

    /// Identifies the plugin's content, for the key of a cache.
    #[must_use]
    pub fn fingerprint(self) -> &'static str {
        &self.inner.fingerprint
    }

    /// The plugin's attributes: `stablehlo_current_version`, `stablehlo_minimum_version`, `xla_version`.
    #[must_use]
    pub fn attributes(self) -> &'static BTreeMap<String, NamedValue> {
        &self.inner.attributes
    }

    /// A plugin of this table of functions, for tests.
    #[cfg(test)]
    pub(super) fn of_table(name: &'static str, api: Api) -> Self {
        let (library, fingerprint) = (PathBuf::new(), String::new());
        let (version, attributes) = ((0, 0), BTreeMap::new());
        Self {
            inner: Box::leak(Box::new(PluginInner {
                name,
                library,
                fingerprint,
                version,
                attributes,
                api,
            })),
        }
    }

    pub(super) fn api(self) -> Api {
        self.inner.api
    }
}

impl PartialEq for Plugin {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.inner, other.inner)
    }
}

impl fmt::Debug for Plugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plugin")
            .field("name", &self.inner.name)
            .field("library", &self.inner.library)
            .finish()
    }
}

fn initialize(located: &Located) -> Result<&'static PluginInner, RuntimeError> {
    let failed = |problem: String| RuntimeError::Load { library: located.library.clone(), problem };
    // SAFETY: a plugin's initialisers are safe to run; its name and record state that the file is a
    // plugin.
    let library =
        unsafe { Library::new(&located.library) }.map_err(|error| failed(error.to_string()))?;
    // Threads and static data of the plugin live on whatever happens below.
    let library = Box::leak(Box::new(library));
    // SAFETY: this is the function's type in every version of the C API.
    let table = unsafe {
        let get = library
            .get::<unsafe extern "C" fn() -> *const ffi::PJRT_Api>(b"GetPjrtApi\0")
            .map_err(|_| failed("it exports no `GetPjrtApi`: it is no PJRT plugin".to_owned()))?;
        get().as_ref()
    }
    .ok_or_else(|| failed("its `GetPjrtApi` returned nothing".to_owned()))?;

    let version = (table.pjrt_api_version.major_version, table.pjrt_api_version.minor_version);
    let header = (ffi::PJRT_API_MAJOR as i32, ffi::PJRT_API_MINOR as i32);
    if version.0 != header.0 || table.struct_size < ffi::PJRT_Api_STRUCT_SIZE as usize {
        let (major, minor) = version;
        return Err(failed(format!(
            "it implements version {major}.{minor} of PJRT's C API and podracer was built for {}.{} or a later minor one: \
             install the pinned version, or rebuild with the header of this plugin",
            header.0, header.1
        )));
    }
    // SAFETY: the table has this header's functions (checked above) and is static data of a library that is never unloaded.
    let api = unsafe { Api::new(table) };
    let mut args = ffi::PJRT_Plugin_Initialize_Args { ..rest() };
    // SAFETY: called once per plugin, under the lock, before anything else.
    unsafe { call!(api, PJRT_Plugin_Initialize, &mut args) }?;
    let mut args = ffi::PJRT_Plugin_Attributes_Args { ..rest() };
    // SAFETY: attributes have the lifetime of the process.
    let attributes = unsafe {
        call!(api, PJRT_Plugin_Attributes, &mut args)?;
        read(args.attributes, args.num_attributes)
    };
    Ok(Box::leak(Box::new(PluginInner {
        name: located.spec.name,
        library: located.library.clone(),
        fingerprint: podracer_plugins::fingerprint(&located.library)?,
        version,
        attributes,
        api,
    })))
}

/// Without these libtpu asks a metadata server that is not there (29 s a question), and fails where another process has it loaded.
fn prepare_tpu_environment() {
    let has_tpu = ["/dev/accel0", "/dev/vfio/0"].iter().any(|device| Path::new(device).exists());
    if has_tpu {
        return;
    }
    set_where_unset(&[
        ("TPU_SKIP_MDS_QUERY", "1"),
        ("ALLOW_MULTIPLE_LIBTPU_LOAD", "1"),
        ("TPU_WORKER_HOSTNAMES", "localhost"),
        ("TPU_ACCELERATOR_TYPE", "v5litepod-8"),
    ]);
}

fn set_where_unset(variables: &[(&str, &str)]) {
    for (variable, value) in variables {
        if env::var_os(variable).is_none() {
            // SAFETY: Rust's own readers are locked out by the standard library; C code that reads the environment at the same
            // time is excluded by the documentation of `Plugin`.
            unsafe { env::set_var(variable, value) };
        }
    }
}
