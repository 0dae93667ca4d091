//! Finds and installs PJRT plugins: the table of pinned wheels, the search for an installed one, and the installation. The
//! Python packages of environment servers are installed the same way ([`PackageSet`]). What reads files that somebody else may
//! have written goes through [`read_regular`], which all crates of the host side share.
//!
//! A *plugin* is the shared library through which XLA drives one kind of device (`cpu`, `cuda13`, `tpu`). Each is published as a
//! Python wheel; nothing of Python is used but `pip` (of `python3`, or through `uv`), which knows the user's mirrors, proxies and
//! certificates. `PODRACER_PLUGIN_PATH` may name the wheel's file instead.
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
//! A folder with a plugin's final name is complete: installation happens in a folder beside it that is renamed at the end, and a
//! record beside the library ([`check`], [`verify`]) tells when the file changed afterwards. Only the user can write what is
//! installed, and what others can write is refused.
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
