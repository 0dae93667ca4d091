//! The search for an installed plugin.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::{PLUGINS, PluginError, PluginSpec, spec};

/// The environment variable that names plugins outside the cache folder.
pub const PLUGIN_PATH_VARIABLE: &str = "PODRACER_PLUGIN_PATH";

/// The search that found a plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Through `PODRACER_PLUGIN_PATH`: the user's file, of any version.
    PluginPath,
    /// The cache folder, which has the pinned version.
    Cache,
}

/// A plugin's files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located {
    /// The plugin's entry in the table.
    pub spec: &'static PluginSpec,
    /// The shared library.
    pub library: PathBuf,
    /// `pjrt_c_api.h`, if it is in the folder `include/` next to the library.
    pub header: Option<PathBuf>,
    /// The search that found the plugin.
    pub origin: Origin,
}

impl Located {
    fn new(spec: &'static PluginSpec, library: PathBuf, origin: Origin) -> Self {
        let header = library
            .parent()
            .map(|folder| folder.join("include/pjrt_c_api.h"))
            .filter(|header| header.is_file());
        Self { spec, library, header, origin }
    }
}

/// podracer's cache folder: `$XDG_CACHE_HOME/podracer`, or `~/.cache/podracer`. It need not exist.
///
/// # Errors
/// [`PluginError::NoCacheFolder`] where neither variable is an absolute path.
pub fn cache_folder() -> Result<PathBuf, PluginError> {
    let absolute =
        |variable| env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    // A relative XDG_CACHE_HOME is to be ignored, says the XDG base directory specification.
    absolute("XDG_CACHE_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".cache")))
        .map(|cache| cache.join("podracer"))
        .ok_or(PluginError::NoCacheFolder)
}

/// The folder that [`crate::install`] puts this plugin into.
///
/// # Errors
/// As [`cache_folder`].
pub fn install_folder(spec: &PluginSpec) -> Result<PathBuf, PluginError> {
    Ok(cache_folder()?.join("plugins").join(spec.folder()))
}

/// Finds the library of the plugin `name`. The file is not opened: [`crate::check`] does that.
///
/// An entry of `PODRACER_PLUGIN_PATH` is a library or a folder with a library. A library is
/// recognised by its file name: `xla_cpu_pjrt.so`, `xla_cuda_plugin.so`, `libtpu.so`, or XLA's own
/// `pjrt_c_api_{cpu,gpu,tpu}_plugin.so`. A folder holds it directly, as an unpacked wheel (a
/// `site-packages` is one), or in the layout of podracer's cache. The first entry with the plugin
/// wins, then the cache folder. A plugin's wheel is also an entry: [`crate::install`] uses it
/// instead of a download, and the search skips it.
///
/// # Errors
/// [`PluginError::NotInstalled`] with the places searched; [`PluginError::PluginPath`] for an entry that can never be right: one
/// that was set by hand and silently passed over would be worse than none.
pub fn find(name: &str) -> Result<Located, PluginError> {
    let spec = spec(name)?;
    let mut searched = Vec::new();
    let mut found = None;
    for entry in plugin_path() {
        found = found.or(in_entry(spec, &entry)?);
        searched.push(entry);
    }
    if let Some(library) = found {
        return Ok(Located::new(spec, library, Origin::PluginPath));
    }
    let library = install_folder(spec)?.join(spec.library);
    if library.is_file() {
        return Ok(Located::new(spec, library, Origin::Cache));
    }
    searched.push(library);
    let searched =
        searched.iter().map(|path| format!("`{}`", path.display())).collect::<Vec<_>>().join(", ");
    Err(PluginError::NotInstalled { name: spec.name, searched })
}

/// The newest known `pjrt_c_api.h` on this machine: the header that the `cpu` plugin ships. The
/// runtime's bindings are generated from it.
///
/// # Errors
/// [`PluginError::NotInstalled`] if no `cpu` plugin with a header is found, and the errors of
/// [`find`].
pub fn header() -> Result<PathBuf, PluginError> {
    if let Some(header) = find("cpu")?.header {
        return Ok(header);
    }
    // A library set by hand may come without its header; the pinned wheel's serves as well.
    let spec = spec("cpu")?;
    let library = install_folder(spec)?.join(spec.library);
    Located::new(spec, library.clone(), Origin::Cache).header.ok_or_else(|| {
        PluginError::NotInstalled {
            name: spec.name,
            searched: format!("`{}` (for include/pjrt_c_api.h)", library.display()),
        }
    })
}

/// The wheel of `spec` in `PODRACER_PLUGIN_PATH`, of whatever version.
pub(crate) fn wheel(spec: &PluginSpec) -> Option<PathBuf> {
    plugin_path().into_iter().find(|entry| entry.is_file() && spec.is_wheel(entry))
}

fn plugin_path() -> Vec<PathBuf> {
    let value = env::var_os(PLUGIN_PATH_VARIABLE).unwrap_or_default();
    env::split_paths(&value).filter(|entry| !entry.as_os_str().is_empty()).collect()
}

/// The library of `spec` under one entry of `PODRACER_PLUGIN_PATH`.
fn in_entry(spec: &PluginSpec, entry: &Path) -> Result<Option<PathBuf>, PluginError> {
    let problem = |problem: String| PluginError::PluginPath { entry: entry.to_owned(), problem };
    if entry.is_dir() {
        let in_cache_layout = Path::new(&spec.folder()).join(spec.library);
        let candidates = spec
            .library_names()
            .map(PathBuf::from)
            .into_iter()
            .chain([spec.library.into(), in_cache_layout]);
        return Ok(candidates
            .map(|candidate| entry.join(candidate))
            .find(|library| library.is_file()));
    }
    if !entry.exists() {
        return Err(problem("which does not exist: correct or unset the variable".to_owned()));
    }
    if PLUGINS.iter().any(|plugin| plugin.is_wheel(entry)) {
        return Ok(None);
    }
    let owner = PLUGINS.iter().find(|plugin| {
        plugin.library_names().iter().any(|name| entry.file_name() == Some(OsStr::new(name)))
    });
    match owner {
        Some(owner) => Ok((owner == spec).then(|| entry.to_owned())),
        None => {
            let names =
                PLUGINS.iter().flat_map(PluginSpec::library_names).collect::<Vec<_>>().join(", ");
            Err(problem(format!(
                "which has no plugin's file name: expected one of {names}, a wheel of one, or a folder"
            )))
        }
    }
}
