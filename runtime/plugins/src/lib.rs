//! Finds and installs PJRT plugins: the table of pinned wheels, the search for an installed plugin,
//! and the installation. The Python packages of environment servers are installed the same way
//! ([`PackageSet`]). Code that reads files from other users uses [`read_regular`], which all crates
//! of the host side share.
//!
//! A *plugin* is the shared library that lets XLA drive one kind of device (`cpu`, `cuda13`,
//! `tpu`). Each is published as a Python wheel. From Python only `pip` is used (of `python3`, or
//! through `uv`), because it knows the user's mirrors, proxies and certificates.
//! `PODRACER_PLUGIN_PATH` may name the wheel's file instead.
//!
//! # Where a plugin is looked for
//! 1. `PODRACER_PLUGIN_PATH`: a list of files and folders, separated as in `PATH` (see [`find`]).
//! 2. The cache folder: `$XDG_CACHE_HOME/podracer/plugins/<name>-<version>/`, or `~/.cache/podracer/...` where
//!    `XDG_CACHE_HOME` is unset, empty or relative.
//!
//! # What never happens here
//! No library is loaded (that is `podracer-runtime`'s work), no registry is named (that is pip's), and nothing is downloaded
//! except by [`install`] and [`PackageSet::install`].
//!
//! # Invariant
//! A folder with a plugin's final name is complete: the installation works in a folder next to it,
//! which is renamed at the end. A record next to the library ([`check`], [`verify`]) detects later
//! changes of the file. Only the user can write an installed plugin, and a plugin that others can
//! write is rejected.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod error;
mod files;
mod install;
mod locate;
mod python;
mod record;
mod signals;
mod table;
mod work;

pub use error::PluginError;
pub use files::{
    OthersCanWrite, check_regular, make_folder, open_regular, others_can_write, read_regular,
    read_regular_text, write_whole, write_whole_as,
};
pub use install::install;
pub use locate::{
    Located, Origin, PLUGIN_PATH_VARIABLE, cache_folder, find, header, install_folder,
};
pub use python::{PACKAGE_SETS, PackageSet, package_set};
pub use record::{check, fingerprint, sha256, verify};
pub use signals::unblocked;
pub use table::{PLUGINS, PluginSpec, Wheel, spec};
