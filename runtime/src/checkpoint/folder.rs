//! The folder of checkpoints.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use podracer_compiler::TensorType;
use podracer_plugins::{open_regular, read_regular_text};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::error::{CheckpointError, FORMAT, UNCHECKED, failed};
use super::file::FileSource;
use super::source::ArraySource;
use super::{Checkpoint, tensors};
use crate::pjrt::PIECE;

pub(super) const ARRAYS: &str = "arrays.safetensors";
pub(super) const MANIFEST: &str = "manifest.json";
/// The folder that is being written.
pub(super) const UNFINISHED: &str = "unfinished";
/// The placeholder of a manifest's sha256 during its computation.
const NO_SHA256: &str = "0000000000000000000000000000000000000000000000000000000000000000";
/// Greatest length of a manifest in bytes.
const LARGEST_MANIFEST: u64 = 64 << 20;
/// The end of a partial checkpoint's name.
const PARTIAL: &str = "-partial";

/// The content of `manifest.json`.
#[derive(Deserialize, Serialize)]
struct Manifest {
    format: u64,
    /// sha256 of this file, with [`NO_SHA256`] in place of this value.
    #[serde(default)]
    manifest_sha256: String,
    #[serde(alias = "updates")]
    iterations: u64,
    file: String,
    bytes: u64,
    sha256: String,
    about: Value,
    arrays: BTreeMap<String, String>,
    /// The files of a store on the disk.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    files: BTreeMap<String, FileEntry>,
}

/// A file of the store: the checkpoint's part, which is a prefix.
#[derive(Deserialize, Serialize)]
struct FileEntry {
    bytes: u64,
    sha256: String,
}

/// A folder of checkpoints; the last checkpoints are kept. Only one process at a time writes into
/// it.
#[derive(Clone, Debug)]
pub struct Checkpoints {
    folder: PathBuf,
    keep: usize,
}

/// A checkpoint that was found in a folder.
#[derive(Debug)]
pub struct Found {
    /// The checkpoint. Its arrays stay in the file until they are needed.
    pub checkpoint: Checkpoint<'static>,
    /// The checkpoint's folder.
    pub path: PathBuf,
    /// Errors of the younger checkpoints that were skipped, the youngest first.
    pub skipped: Vec<CheckpointError>,
}

impl Checkpoints {
    /// The checkpoints in `folder`. The last `keep` checkpoints (at least one) and the last `keep`
    /// checkpoints that are not partial are kept. If the youngest is damaged, an older checkpoint
    /// is used.
    pub fn new(folder: impl Into<PathBuf>, keep: usize) -> Self {
        Checkpoints { folder: folder.into(), keep: keep.max(1) }
    }

    /// The folder with all checkpoints.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Writes a checkpoint, and removes the checkpoints that are no longer kept. Returns the
    /// checkpoint's folder. Arrays are fetched and written one after another, in pieces of a few
    /// megabytes.
    ///
    /// # Errors
    /// [`CheckpointError::Io`] names the file; [`CheckpointError::Runtime`] for an error of a
    /// device. Existing checkpoints stay unchanged.
    pub fn save(&self, checkpoint: &Checkpoint<'_>) -> Result<PathBuf, CheckpointError> {
        let types = checkpoint.arrays.iter().map(|(name, array)| (name.as_str(), array.ty()));
        let (header, order) = tensors::header(types).map_err(CheckpointError::Array)?;
        fs::create_dir_all(&self.folder).map_err(failed("make the folder", &self.folder))?;
        let before = self.all()?;
        let sequence = before.last().map_or(1, |(sequence, _)| sequence + 1);
        let partial = if checkpoint.partial { PARTIAL } else { "" };
        let name = format!("{sequence}-{}{partial}", checkpoint.iterations);
        let (unfinished, path) = (self.folder.join(UNFINISHED), self.folder.join(name));
        let written = make_empty(&unfinished).and_then(|()| {
            let arrays = order.iter().map(|name| &checkpoint.arrays[*name]);
            let (bytes, sha256) = write_arrays(&unfinished.join(ARRAYS), &header, arrays)?;
            for (name, file) in &checkpoint.files {
                let path = unfinished.join(name);
                file.save(&path).map_err(failed("write", &path))?;
            }
            write_manifest(&unfinished.join(MANIFEST), checkpoint, bytes, sha256)?;
            synchronise(&unfinished)?;
            fs::rename(&unfinished, &path).map_err(failed("write", &path))?;
            synchronise(&self.folder)
        });
        if written.is_err() {
            // Best effort: the error above is the relevant error.
            let _ = fs::remove_dir_all(&unfinished);
        }
        written?;
        let (mut all, mut whole) = (1, usize::from(!checkpoint.partial));
        for (_, old) in before.iter().rev() {
            if all >= self.keep && (whole >= self.keep || is_partial(old)) {
                fs::remove_dir_all(old).map_err(failed("remove the old checkpoint", old))?;
            }
            all += 1;
            whole += usize::from(!is_partial(old));
        }
        Ok(path)
    }

    /// The youngest good checkpoint to resume from: neither partial, nor damaged, unreadable or in
    /// another format. Another process may write into the folder at the same time.
    ///
    /// # Errors
    /// [`CheckpointError::None`] for a folder without checkpoints; [`CheckpointError::NoneGood`] if none is good.
    pub fn latest(&self) -> Result<Found, CheckpointError> {
        self.youngest(|path| !is_partial(path), true)
    }

    /// The youngest good checkpoint, partial or not: for evaluating or exporting its parameters.
    ///
    /// # Errors
    /// As [`Checkpoints::latest`].
    pub fn latest_parameters(&self) -> Result<Found, CheckpointError> {
        self.youngest(|_| true, false)
    }

    /// The youngest good checkpoint among the `wanted` folders, with or without the files of its
    /// store.
    fn youngest(
        &self,
        wanted: impl Fn(&Path) -> bool,
        with_files: bool,
    ) -> Result<Found, CheckpointError> {
        let wanted = || {
            let mut all = self.all()?;
            all.retain(|(_, path)| wanted(path));
            Ok::<_, CheckpointError>(all)
        };
        loop {
            let all = wanted()?;
            let mut skipped = Vec::new();
            for (_, path) in all.iter().rev() {
                match open(path, with_files) {
                    Ok(checkpoint) => {
                        return Ok(Found { checkpoint, path: path.clone(), skipped });
                    }
                    Err(error) => skipped.push(error),
                }
            }
            // An incomplete checkpoint may be in the process of removal, because there are younger
            // checkpoints by now.
            if wanted()? == all {
                let folder = self.folder.clone();
                return Err(match skipped.is_empty() {
                    true => CheckpointError::None { folder },
                    false => CheckpointError::NoneGood { folder, all: skipped },
                });
            }
        }
    }

    /// Numbers and folders of the checkpoints, in the order of writing.
    fn all(&self) -> Result<Vec<(u64, PathBuf)>, CheckpointError> {
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failed("read", &self.folder)(error)),
        };
        let mut all = Vec::new();
        for entry in entries {
            let path = entry.map_err(failed("read", &self.folder))?.path();
            let name = path.file_name().and_then(|name| name.to_str());
            let sequence = name.and_then(|name| name.split_once('-')?.0.parse().ok());
            all.extend(sequence.map(|sequence| (sequence, path)));
        }
        all.sort();
        Ok(all)
    }
}

/// True for a partial checkpoint's folder.
fn is_partial(path: &Path) -> bool {
    path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.ends_with(PARTIAL))
}

/// Makes an empty folder for writing, without leftovers of a process that was killed.
fn make_empty(folder: &Path) -> Result<(), CheckpointError> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(failed("remove", folder)(error));
        }
        _ => {}
    }
    fs::create_dir(folder).map_err(failed("make the folder", folder))
}

/// Writes the arrays' file, one array after another. Returns its length and sha256.
fn write_arrays<'a, 's: 'a>(
    path: &Path,
    header: &[u8],
    mut arrays: impl Iterator<Item = &'a ArraySource<'s>>,
) -> Result<(u64, String), CheckpointError> {
    let mut file = File::create(path).map_err(failed("write", path))?;
    let (mut bytes, mut hasher) = (0, Sha256::new());
    let mut write = |piece: &[u8]| {
        bytes += piece.len() as u64;
        hasher.update(piece);
        file.write_all(piece).map_err(failed("write", path))
    };
    write(header)?;
    arrays.try_for_each(|array| array.read(&mut write))?;
    file.sync_all().map_err(failed("write", path))?;
    Ok((bytes, format!("{:x}", hasher.finalize())))
}

fn write_manifest(
    path: &Path,
    checkpoint: &Checkpoint<'_>,
    bytes: u64,
    sha256: String,
) -> Result<(), CheckpointError> {
    let types = checkpoint.arrays.iter();
    let entry = |(name, file): (&String, &FileSource)| {
        (name.clone(), FileEntry { bytes: file.bytes(), sha256: file.sha256().to_owned() })
    };
    let manifest = Manifest {
        format: FORMAT,
        manifest_sha256: NO_SHA256.to_owned(),
        iterations: checkpoint.iterations,
        file: ARRAYS.to_owned(),
        bytes,
        sha256,
        about: checkpoint.about.clone(),
        arrays: types.map(|(name, array)| (name.clone(), array.ty().to_string())).collect(),
        files: checkpoint.files.iter().map(entry).collect(),
    };
    let manifest = serde_json::to_string_pretty(&manifest)
        .map_err(|error| CheckpointError::Array(error.to_string()))?;
    // The first occurrence: only the format precedes it.
    let manifest = manifest.replacen(NO_SHA256, &format!("{:x}", Sha256::digest(&manifest)), 1);
    let written = File::create(path).and_then(|mut file| {
        file.write_all(manifest.as_bytes())?;
        file.sync_all()
    });
    written.map_err(failed("write", path))
}

/// Checks a checkpoint's files, and reads everything except the arrays. The store's files are
/// skipped unless `with_files`.
fn open(path: &Path, with_files: bool) -> Result<Checkpoint<'static>, CheckpointError> {
    let damaged = |problem: String| CheckpointError::Damaged { path: path.to_owned(), problem };
    let unreadable = |name: &str, error: io::Error| match error.kind() {
        ErrorKind::NotFound => damaged(format!("it has no `{name}`")),
        _ => {
            let problem = format!("`{name}`: {error}");
            CheckpointError::Unreadable { path: path.to_owned(), problem }
        }
    };
    let text = read_regular_text(&path.join(MANIFEST), LARGEST_MANIFEST)
        .map_err(|error| unreadable(MANIFEST, error))?;
    let manifest = read_manifest(path, &text)?;
    let arrays_path = path.join(ARRAYS);
    let (mut file, length) =
        open_regular(&arrays_path, u64::MAX).map_err(|error| unreadable(ARRAYS, error))?;
    if length != manifest.bytes {
        return Err(damaged(format!(
            "`{ARRAYS}` has {length} bytes and had {} when it was written",
            manifest.bytes
        )));
    }
    let found = sha256(&mut file).map_err(|error| unreadable(ARRAYS, error))?;
    if found != manifest.sha256 {
        return Err(damaged(format!(
            "`{ARRAYS}` has the sha256 {found} and had {} when it was written",
            manifest.sha256
        )));
    }
    let tensors = tensors::read_header(&file, length)
        .map_err(|error| damaged(format!("{ARRAYS}: {error}")))?;
    let agree = |(name, ty, _): &(String, TensorType, u64)| {
        manifest.arrays.get(name).is_some_and(|known| *known == ty.to_string())
    };
    if !tensors.iter().all(agree) || tensors.len() != manifest.arrays.len() {
        return Err(damaged(format!("{MANIFEST} names other arrays than `{ARRAYS}` has")));
    }
    let file = (Arc::new(file), Arc::new(arrays_path));
    let arrays = tensors
        .into_iter()
        .map(|(name, ty, start)| (name, ArraySource::in_file(ty, file.clone(), start)))
        .collect();
    let mut files = BTreeMap::new();
    for (name, entry) in manifest.files.into_iter().filter(|_| with_files) {
        files.insert(name.clone(), open_file(path, &name, entry)?);
    }
    Ok(Checkpoint {
        iterations: manifest.iterations,
        about: manifest.about,
        arrays,
        files,
        partial: is_partial(path),
    })
}

/// Checks a file of the store.
fn open_file(path: &Path, name: &str, entry: FileEntry) -> Result<FileSource, CheckpointError> {
    let damaged = |problem: String| CheckpointError::Damaged { path: path.to_owned(), problem };
    let unreadable = |error: io::Error| CheckpointError::Unreadable {
        path: path.to_owned(),
        problem: format!("{name}: {error}"),
    };
    let FileEntry { bytes, sha256 } = entry;
    if name.contains('/') {
        return Err(damaged(format!(
            "{MANIFEST} names `{name}`, which is not a file of the checkpoint"
        )));
    }
    let (file, length) = open_regular(&path.join(name), u64::MAX).map_err(unreadable)?;
    if length < bytes {
        return Err(damaged(format!(
            "`{name}` has {length} bytes and had {bytes} when it was written"
        )));
    }
    let file = FileSource::new(Arc::new(file), bytes, sha256);
    let found = file.found_sha256().map_err(unreadable)?;
    if found != file.sha256() {
        return Err(damaged(format!(
            "`{name}` has the sha256 {found} and had {} when it was written",
            file.sha256()
        )));
    }
    Ok(file)
}

/// The manifest of the checkpoint at `path`, checked by its own sha256. A manifest from an earlier
/// podracer has no sha256, and is not checked.
fn read_manifest(path: &Path, text: &str) -> Result<Manifest, CheckpointError> {
    let damaged = |problem: String| CheckpointError::Damaged { path: path.to_owned(), problem };
    let json = serde_json::from_str::<Value>(text)
        .map_err(|error| damaged(format!("{MANIFEST}: {error}")))?;
    let format = json["format"].as_u64();
    if let Some(format) = format.filter(|format| ![FORMAT, UNCHECKED].contains(format)) {
        return Err(CheckpointError::Format { path: path.to_owned(), format });
    }
    let manifest: Manifest =
        serde_json::from_value(json).map_err(|error| damaged(format!("{MANIFEST}: {error}")))?;
    let known = &manifest.manifest_sha256;
    if format == Some(UNCHECKED) && known.is_empty() {
        tracing::warn!(
            "the manifest of the checkpoint `{}` comes from an earlier version and has no checksum: it is taken as it is",
            path.display()
        );
        return Ok(manifest);
    }
    let found = format!("{:x}", Sha256::digest(text.replacen(known.as_str(), NO_SHA256, 1)));
    if known.is_empty() || found != *known {
        return Err(damaged(format!(
            "`{MANIFEST}` has the sha256 {found} and had `{known}` when it was written"
        )));
    }
    Ok(manifest)
}

/// The sha256 of the rest of a file, in lower-case hexadecimal.
fn sha256(file: &mut File) -> io::Result<String> {
    let (mut hasher, mut piece) = (Sha256::new(), vec![0; PIECE]);
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(format!("{:x}", hasher.finalize())),
            length => hasher.update(&piece[..length]),
        }
    }
}

/// Flushes a folder's entries to the disk.
fn synchronise(folder: &Path) -> Result<(), CheckpointError> {
    let synchronised = File::open(folder).and_then(|folder| folder.sync_all());
    synchronised.map_err(failed("write", folder))
}
