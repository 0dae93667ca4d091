//! Errors before a plugin is loaded.

use std::io;
use std::path::{Path, PathBuf};

use crate::OthersCanWrite;

/// A plugin that cannot be found, installed or trusted. Each message ends in what to do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PluginError {
    /// A name that is no plugin's in the table.
    #[error("there is no plugin `{name}`: the known names are {known}")]
    UnknownName {
        /// The name that was asked for.
        name: String,
        /// The names in the table.
        known: String,
    },
    /// A plugin that is in none of the searched places.
    #[error(
        "the plugin `{name}` is not installed (looked in {searched}): run `podracer plugins install {name}`, `make setup` in a \
         checkout, or set PODRACER_PLUGIN_PATH to where it is"
    )]
    NotInstalled {
        /// The plugin's name.
        name: &'static str,
        /// The places that were searched, in order.
        searched: String,
    },
    /// An entry of `PODRACER_PLUGIN_PATH` does not exist or is no plugin.
    #[error("PODRACER_PLUGIN_PATH names `{}`, {problem}", entry.display())]
    PluginPath {
        /// The entry of the variable.
        entry: PathBuf,
        /// The mistake, and what would be right.
        problem: String,
    },
    /// Neither `XDG_CACHE_HOME` nor `HOME` names a folder.
    #[error("there is no cache folder: set XDG_CACHE_HOME or HOME to an absolute path")]
    NoCacheFolder,
    /// A library that differs from the installed library.
    #[error(
        "the plugin file `{}` is corrupt ({problem}): run `podracer plugins install {name}` to replace it",
        library.display()
    )]
    Corrupt {
        /// The plugin's name.
        name: &'static str,
        /// The plugin's library.
        library: PathBuf,
        /// The difference between the library and the installed library.
        problem: String,
    },
    /// Other users can write a file that is to be run.
    #[error("{found}; `{remedy}` checks or replaces the installed files")]
    OthersCanWrite {
        /// The file or folder.
        found: OthersCanWrite,
        /// The command that mends it.
        remedy: String,
    },
    /// A wheel, from pip or from `PODRACER_PLUGIN_PATH`, that is not the pinned one.
    #[error(
        "the wheel of `{package}`, `{}`, has sha256 {got} where {expected} is pinned: it is damaged, or another file",
        wheel.display()
    )]
    WheelHash {
        /// Name of the package.
        package: &'static str,
        /// The pinned hash.
        expected: &'static str,
        /// The hash of the wheel.
        got: String,
        /// File of the wheel.
        wheel: PathBuf,
    },
    /// Pip and uv are missing, or pip failed.
    #[error("cannot download `{package}` {version} with pip: {problem}")]
    Pip {
        /// Name of the package.
        package: &'static str,
        /// Version that podracer is pinned to.
        version: &'static str,
        /// The message of pip, or the missing program.
        problem: String,
    },
    /// A name that is no set of packages' in the table.
    #[error("there are no packages `{name}` for environments: the known names are {known}")]
    UnknownPackages {
        /// The name that was asked for.
        name: String,
        /// The names in the table.
        known: String,
    },
    /// Packages for environments that are not where they should be.
    #[error(
        "the Python packages `{name}` are missing from `{}` ({problem}): run `podracer envs install {name}`",
        folder.display()
    )]
    PackagesMissing {
        /// The set's name.
        name: &'static str,
        /// The folder that should have them.
        folder: PathBuf,
        /// The reason why they count as missing.
        problem: &'static str,
    },
    /// Packages for environments that cannot be installed.
    #[error("cannot install the Python packages `{name}`: {problem}")]
    Packages {
        /// The set's name.
        name: &'static str,
        /// The message of pip, or the missing program.
        problem: String,
    },
    /// A wheel that cannot be unpacked.
    #[error("cannot unpack the wheel `{}`: {source}", wheel.display())]
    Unpack {
        /// File of the wheel.
        wheel: PathBuf,
        /// The error of reading it.
        source: zip::result::ZipError,
    },
    /// A kind of machine that a plugin has no pinned wheel for.
    #[error(
        "the pinned wheels of the plugin `{name}` are for {there} and this is {system}: build the plugin from XLA's sources and set \
         PODRACER_PLUGIN_PATH"
    )]
    Unsupported {
        /// The plugin's name.
        name: &'static str,
        /// Systems and architectures that there are wheels for.
        there: String,
        /// System and architecture of this machine.
        system: String,
    },
    /// A file or folder that cannot be read or written.
    #[error("cannot {action} `{}`: {source}", path.display())]
    Io {
        /// The operation: `read`, `write`.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

impl PluginError {
    /// Adds operation and path to an error of the system, for `map_err`.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { action, path, source }
    }
}
