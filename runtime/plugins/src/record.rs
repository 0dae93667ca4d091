//! Detecting changed plugin files at almost no cost.
//!
//! Hashing hundreds of megabytes at every start would take longer than loading them. So the size
//! and modification time are compared with the recorded values from the installation, and the hash
//! is compared only if they differ. Only [`verify`] finds a change that keeps both.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use sha2::{Digest, Sha256};

use crate::{Located, Origin, PluginError, open_regular, others_can_write, read_regular_text};

/// Greatest length of a record in bytes.
const LONGEST: u64 = 1 << 16;

/// The record of an installation, kept in a file next to the library.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) sha256: String,
    size: u64,
    modified_ns: u128,
}

impl Record {
    /// Describes `library` as it is now.
    pub(crate) fn of(library: &Path) -> Result<Self, PluginError> {
        let (size, modified_ns) = stamp(library)?;
        Ok(Self { sha256: sha256(library)?, size, modified_ns })
    }

    /// Writes the record next to `library`.
    pub(crate) fn write(&self, library: &Path) -> Result<(), PluginError> {
        let path = record_path(library);
        let text = format!(
            "sha256 {}\nsize {}\nmodified_ns {}\n",
            self.sha256, self.size, self.modified_ns
        );
        fs::write(&path, text).map_err(PluginError::io("write", &path))
    }

    pub(crate) fn read(library: &Path) -> Option<Self> {
        let text = read_regular_text(&record_path(library), LONGEST).ok()?;
        let field =
            |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        Some(Self {
            sha256: field("sha256")?.to_owned(),
            size: field("size")?.parse().ok()?,
            modified_ns: field("modified_ns")?.parse().ok()?,
        })
    }
}

/// Checks that an installed plugin's library is unchanged since the installation: by size and time,
/// and by hash if these differ. A library from `PODRACER_PLUGIN_PATH` without a record must only be
/// a complete ELF file. No other user may be able to write it.
///
/// # Errors
/// [`PluginError::Corrupt`] says how it differs; [`PluginError::OthersCanWrite`].
pub fn check(plugin: &Located) -> Result<(), PluginError> {
    compare(plugin, false)
}

/// Checks a plugin as [`check`] does, always by hash.
///
/// # Errors
/// As [`check`].
pub fn verify(plugin: &Located) -> Result<(), PluginError> {
    compare(plugin, true)
}

/// Identifies the library's content in the key of a cache: the recorded hash, or for a library without record its path, size
/// and modification time.
///
/// # Errors
/// [`PluginError::Io`] where the file cannot be looked at.
pub fn fingerprint(library: &Path) -> Result<String, PluginError> {
    let (size, modified_ns) = stamp(library)?;
    Ok(match Record::read(library) {
        Some(record) if (record.size, record.modified_ns) == (size, modified_ns) => record.sha256,
        _ => format!("{}:{size}:{modified_ns}", library.display()),
    })
}

fn compare(plugin: &Located, always_hash: bool) -> Result<(), PluginError> {
    let library = &plugin.library;
    let corrupt = |problem: String| PluginError::Corrupt {
        name: plugin.spec.name,
        library: library.clone(),
        problem,
    };
    // Bindings are generated from the header: it is code too.
    let files = [Some(library.clone()), Some(record_path(library)), plugin.header.clone()];
    if let Some(found) = files.iter().flatten().find_map(|file| others_can_write(file)) {
        let remedy = format!("podracer plugins install {}", plugin.spec.name);
        return Err(PluginError::OthersCanWrite { found, remedy });
    }
    let Some(record) = Record::read(library) else {
        return match plugin.origin {
            Origin::PluginPath => check_elf(library).map_err(|problem| PluginError::PluginPath {
                entry: library.clone(),
                problem: format!("which is {problem}"),
            }),
            Origin::Cache => Err(corrupt("the record of its installation is missing".to_owned())),
        };
    };
    let (size, modified_ns) = stamp(library)?;
    if size != record.size {
        return Err(corrupt(format!("{size} bytes where {} were installed", record.size)));
    }
    if modified_ns == record.modified_ns && !always_hash {
        return Ok(());
    }
    let now = sha256(library)?;
    if now != record.sha256 {
        return Err(corrupt(format!("sha256 {now} where {} was installed", record.sha256)));
    }
    if modified_ns != record.modified_ns {
        // The content is right and only the time moved (a copied cache): note it, so that the next check is cheap again. In a
        // read-only cache the next check hashes again, which is slow and not wrong.
        let _ = Record { modified_ns, ..record }.write(library);
    }
    Ok(())
}

/// sha256 of a regular file, in lower-case hexadecimal.
///
/// # Errors
/// [`PluginError::Io`].
pub fn sha256(path: &Path) -> Result<String, PluginError> {
    let (mut file, _) = open_regular(path, u64::MAX).map_err(PluginError::io("open", path))?;
    let mut hasher = Sha256::new();
    let mut block = vec![0; 1 << 20];
    loop {
        match file.read(&mut block) {
            Ok(0) => return Ok(format!("{:x}", hasher.finalize())),
            Ok(read) => hasher.update(&block[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(PluginError::io("read", path)(error)),
        }
    }
}

/// Tells a file that the system's loader can be trusted with. On one that is cut off it may crash instead of complaining.
fn check_elf(library: &Path) -> Result<(), String> {
    let mut header = [0; 64];
    let size = open_regular(library, u64::MAX)
        .and_then(|(mut file, size)| {
            file.read_exact(&mut header)?;
            Ok(size)
        })
        .map_err(|error| format!("no shared library ({error})"))?;
    if !header.starts_with(b"\x7fELF\x02\x01") {
        return Err(
            "no shared library (it is not in the format ELF, 64 bits, little-endian)".to_owned()
        );
    }
    let number = |at: usize, length: usize| {
        header[at..at + length].iter().rev().fold(0u64, |n, &byte| n << 8 | u64::from(byte))
    };
    // The table of sections stands at the end of the file: e_shoff, e_shentsize, e_shnum.
    let end = number(0x28, 8).saturating_add(number(0x3a, 2) * number(0x3c, 2));
    if size < end { Err(format!("cut off: it has {size} bytes of {end}")) } else { Ok(()) }
}

pub(crate) fn record_path(library: &Path) -> PathBuf {
    library.with_extension("so.podracer")
}

fn stamp(library: &Path) -> Result<(u64, u128), PluginError> {
    let metadata = fs::metadata(library).map_err(PluginError::io("look at", library))?;
    let modified = metadata.modified().map_err(PluginError::io("look at", library))?;
    Ok((metadata.len(), modified.duration_since(UNIX_EPOCH).map_or(0, |age| age.as_nanos())))
}
