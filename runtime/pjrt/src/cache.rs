//! Compiled programs kept on disk, so that a program is compiled once per machine and not once per
//! run.
//!
//! # Invariants
//! - The key covers everything that a compilation depends on. It contains the module without source
//!   locations, its types, the options, `XLA_FLAGS` and the platform. It also contains the
//!   placement, the kind of its devices, the plugin's content and the processor.
//! - An entry begins with its own key: a file that was renamed or exchanged is not loaded as another program.
//! - An entry appears atomically (it is written under another name, then renamed) and is checked by
//!   its checksum when it is read. A damaged entry is removed and the program is compiled again.
//! - An entry is machine code: one that other users can write is not loaded.
//! - The cache is never the reason that a run fails: what cannot be read or written is a warning.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use podracer_plugins::{make_folder, others_can_write, read_regular, write_whole_as};
use sha2::{Digest, Sha256};

use crate::{Client, CompileOptions, Executable, Module, RuntimeError, flags, machine};

/// Compiled programs in a folder.
///
/// The folder holds one file per program, and at most [`ExecutableCache::LIMIT`] bytes in total.
/// After a new program is stored, the least recently used programs are removed until the rest fits.
#[derive(Clone, Debug)]
pub struct ExecutableCache {
    folder: Option<PathBuf>,
    limit: u64,
}

const EXTENSION: &str = "exe";
/// Greatest length of an entry in bytes.
const LARGEST: u64 = 1 << 32;

impl ExecutableCache {
    /// Bytes that are kept at most: 1 GiB.
    pub const LIMIT: u64 = 1 << 30;

    /// The user's cache: `$XDG_CACHE_HOME/podracer/executables/`, or
    /// `~/.cache/podracer/executables/`. If neither folder is defined, nothing is cached and a
    /// warning is logged.
    #[must_use]
    pub fn user() -> Self {
        match podracer_plugins::cache_folder() {
            Ok(folder) => Self::at(folder.join("executables"), Self::LIMIT),
            Err(error) => {
                tracing::warn!(%error, "compiled programs are not cached");
                Self::disabled()
            }
        }
    }

    /// A cache in this folder (created when first needed), of at most `limit` bytes.
    #[must_use]
    pub fn at(folder: impl Into<PathBuf>, limit: u64) -> Self {
        Self { folder: Some(folder.into()), limit }
    }

    /// A cache that keeps nothing: everything is compiled.
    #[must_use]
    pub fn disabled() -> Self {
        Self { folder: None, limit: 0 }
    }

    /// Compiles like [`Client::compile`], or loads the program from the cache. The flag says whether the cache had it.
    ///
    /// # Errors
    /// As [`Client::compile`].
    pub fn compile(
        &self,
        client: &Client,
        module: &Module,
        options: &CompileOptions,
    ) -> Result<(Executable, bool), RuntimeError> {
        // A program of other processes' devices is for these alone, and all have to compile it together.
        let spanned = options.processes.are_spanned();
        let Some(folder) = self.folder.as_ref().filter(|_| !spanned) else {
            return Ok((client.compile(module, options)?, false));
        };
        let key = key(client, module, options)?;
        let path = folder.join(&key).with_extension(EXTENSION);
        if let Some(executable) = load(client, &path, &key) {
            return Ok((executable, true));
        }
        let executable = client.compile(module, options)?;
        let serialized = executable.serialize().map_err(io::Error::other);
        if let Err(error) =
            serialized.and_then(|bytes| store(&path, &[key.as_bytes(), &bytes].concat()))
        {
            tracing::warn!(path = %path.display(), %error, "a compiled program cannot be cached");
        } else {
            evict(folder, &path, self.limit);
        }
        Ok((executable, false))
    }
}

fn key(client: &Client, module: &Module, options: &CompileOptions) -> Result<String, RuntimeError> {
    // The placement is part of the program, and a wrong one an error whether cached or not.
    let placement = options.placement(client.devices().len())?;
    let types = |types: &[podracer_compiler::TensorType]| {
        types.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    };
    let mut hasher = Sha256::new();
    let (arguments, results) = (types(&module.arguments), types(&module.results));
    let options = options.with_rule(client.platform());
    let how = format!("{placement:?} {:?} {:?}", options.xla, client.compiles_for());
    let flags = flags::environment();
    // A GPU's program is for GPUs of its kind.
    let kinds: Vec<String> = placement
        .iter()
        .map(|&index| Ok(client.device(index)?.kind().to_owned()))
        .collect::<Result<_, RuntimeError>>()?;
    let kinds = kinds.join("\n");
    let parts: [&[u8]; 11] = [
        b"podracer executable 2",
        module.key().as_bytes(),
        arguments.as_bytes(),
        results.as_bytes(),
        how.as_bytes(),
        flags.as_bytes(),
        client.platform().as_bytes(),
        client.platform_version().as_bytes(),
        kinds.as_bytes(),
        client.plugin().fingerprint().as_bytes(),
        machine::fingerprint().as_bytes(),
    ];
    for part in parts {
        // The length in front keeps two different lists from running together into one text.
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    Ok(format!("{:x}", hasher.finalize()))
}

fn load(client: &Client, path: &Path, key: &str) -> Option<Executable> {
    if !path.exists() {
        return None;
    }
    if let Some(found) = others_can_write(path) {
        tracing::warn!("a cached program is not used and is compiled again: {found}");
        return None;
    }
    let bytes = match read_regular(path, LARGEST) {
        Ok(bytes) => bytes,
        Err(error) => {
            if error.kind() != ErrorKind::NotFound {
                tracing::warn!(path = %path.display(), %error, "a cached program cannot be read");
            }
            return None;
        }
    };
    let Some(program) = bytes.strip_prefix(key.as_bytes()) else {
        tracing::warn!(path = %path.display(), "a cached program is not the program of its name: it is removed and compiled again");
        let _ = fs::remove_file(path);
        return None;
    };
    match client.load(program) {
        Ok(executable) => {
            // Its time of change is when it was last used. A cache that cannot be written evicts nothing anyway.
            let _ = File::options()
                .write(true)
                .open(path)
                .and_then(|file| file.set_modified(SystemTime::now()));
            Some(executable)
        }
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "a cached program is unusable: it is removed and compiled again");
            let _ = fs::remove_file(path);
            None
        }
    }
}

/// Writes a file so that it is there as a whole or not at all.
fn store(path: &Path, bytes: &[u8]) -> io::Result<()> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let folder = path.parent().ok_or(ErrorKind::NotFound)?;
    make_folder(folder)?;
    let number = COUNTER.fetch_add(1, Ordering::Relaxed);
    let temporary = path.with_extension(format!("{}-{number}.tmp", process::id()));
    // Other processes may store the same program at this moment, and other users must not be able
    // to write a program that is run.
    let mut options = File::options();
    options.write(true).create_new(true).mode(0o644);
    write_whole_as(&temporary, &options, path, bytes)
}

/// Removes the least recently used entries, but never `newest`.
fn evict(folder: &Path, newest: &Path, limit: u64) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    let mut files: Vec<(SystemTime, PathBuf, u64)> = entries
        .filter_map(|entry| {
            let (path, metadata) =
                entry.and_then(|entry| Ok((entry.path(), entry.metadata()?))).ok()?;
            let ours = path
                .extension()
                .is_some_and(|extension| extension == EXTENSION || extension == "tmp");
            ours.then_some((metadata.modified().ok()?, path, metadata.len()))
        })
        .collect();
    files.sort();
    let mut total: u64 = files.iter().map(|(_, _, size)| size).sum();
    for (_, path, size) in files {
        if total <= limit {
            return;
        }
        if path != newest && fs::remove_file(&path).is_ok() {
            total -= size;
        }
    }
}
