//! The rollouts of a replay on the disk: a log that grows at its end and drops its oldest rollouts.
//!
//! # Invariants
//! - Written data never changes. So a checkpoint contains the files themselves, under its own
//!   names, and records the length of its part.
//! - The files have no names except in checkpoints. So no file is left behind, however the process
//!   ends, and no other file can be overwritten.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::num::NonZeroU64;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{Advice, CWD, Mode, OFlags, fadvise, openat, statvfs};
use sha2::{Digest, Sha256};

use crate::checkpoint::FileSource;
use crate::learning::error::ReplayError;
use crate::pjrt::PIECE;
use crate::pjrt::memory;

/// Bytes of a segment, unless the log is so small or so large that it would have too few or too
/// many segments.
const SEGMENT: u64 = 64 << 20;
/// Segments of a log, at least and at most.
const SEGMENTS: (u64, u64) = (8, 128);

/// The last rollouts of a run, in segments of equally many.
pub(super) struct RolloutLog {
    folder: PathBuf,
    /// Bytes of a rollout.
    rollout: u64,
    /// Number of rollouts that stay readable.
    kept: u64,
    /// Rollouts of a segment.
    per_segment: u64,
    /// The segments in order; only the last segment is not full.
    segments: VecDeque<Segment>,
    /// Number of rollouts written since the start of the run.
    written: u64,
    /// True if the log probably does not fit in memory. Reads are then announced, so that the disk
    /// reads several windows at a time.
    pub(super) announces: bool,
}

struct Segment {
    number: u64,
    file: Arc<File>,
    bytes: u64,
    sha256: Hash,
}

/// The sha256 of a whole segment.
enum Hash {
    /// The hash so far of a segment that may grow.
    Begun(Box<Sha256>),
    /// The hash of a full segment, as its checkpoint records it.
    Known(String),
}

/// Number of rollouts in a segment, for a log that keeps `kept` rollouts of `rollout` bytes.
fn per_segment(rollout: u64, kept: u64) -> u64 {
    let (fewest, most) = SEGMENTS;
    let bytes = SEGMENT.max(kept.saturating_mul(rollout) / most);
    (bytes / rollout.max(1)).min(kept / fewest).max(1)
}

/// The most bytes that a log takes on the disk.
pub(super) fn bytes(rollout: u64, kept: u64) -> u64 {
    // One rollout of the oldest segment may still be readable while the youngest segment grows.
    rollout.saturating_mul(kept.saturating_add(per_segment(rollout, kept)))
}

/// Checks that the folder's disk has `needed` bytes of room.
///
/// # Errors
/// [`ReplayError::Space`], and [`ReplayError::Io`] if the folder does not exist.
pub(super) fn check_space(folder: &Path, needed: u64) -> Result<(), ReplayError> {
    let disk = statvfs(folder).map_err(failed("look at", folder))?;
    let available = disk.f_bavail.saturating_mul(disk.f_frsize);
    if needed <= available {
        return Ok(());
    }
    Err(ReplayError::Space { folder: folder.to_owned(), needed, available })
}

impl RolloutLog {
    /// An empty log in a folder. The last `kept` rollouts, of `rollout` bytes each, can be read.
    pub(super) fn new(folder: &Path, rollout: usize, kept: u64) -> Self {
        let rollout = rollout as u64;
        RolloutLog {
            folder: folder.to_owned(),
            rollout,
            kept,
            per_segment: per_segment(rollout, kept),
            segments: VecDeque::new(),
            written: 0,
            announces: memory::available().is_some_and(|free| bytes(rollout, kept) > free / 2),
        }
    }

    /// Resumes after `written` rollouts, with the segments of a checkpoint in their order. Full
    /// segments are read in place. The last segment's part is copied, so that the checkpoint stays
    /// unchanged.
    pub(super) fn restore(
        &mut self,
        (written, per_segment): (u64, u64),
        parts: &[(u64, &FileSource)],
    ) -> Result<(), ReplayError> {
        let log = RolloutLog::new(&self.folder, self.rollout as usize, self.kept);
        let mut log = RolloutLog { per_segment, written, ..log };
        let folder = &self.folder;
        let full = per_segment * log.rollout;
        let mut expected = written.saturating_sub(self.kept) / per_segment;
        for &(number, part) in parts {
            let bytes = full.min((written - (number * per_segment).min(written)) * log.rollout);
            if number != expected || part.bytes() != bytes || bytes == 0 {
                let problem = format!("segment {number} of the replay has {} bytes", part.bytes());
                return Err(ReplayError::Misfit(problem));
            }
            expected += 1;
            if bytes == full {
                let sha256 = Hash::Known(part.sha256().to_owned());
                log.segments.push_back(Segment { number, file: part.file(), bytes, sha256 });
                continue;
            }
            let mut segment = log.begin(number)?;
            let mut piece = vec![0; PIECE.min(bytes as usize)];
            while segment.bytes < bytes {
                let length = piece.len().min((bytes - segment.bytes) as usize);
                let read = part.file().read_exact_at(&mut piece[..length], segment.bytes);
                read.map_err(failed("read the replay's checkpoint for", folder))?;
                append(&mut segment, &piece[..length])
                    .map_err(failed("write the replay into", folder))?;
            }
            log.segments.push_back(segment);
        }
        if expected != written.div_ceil(per_segment) {
            let problem = format!("the replay has {} segments", parts.len());
            return Err(ReplayError::Misfit(problem));
        }
        *self = log;
        Ok(())
    }

    /// A new segment: a file without a name.
    fn begin(&self, number: u64) -> Result<Segment, ReplayError> {
        let file = unnamed(&self.folder).map_err(failed("write into", &self.folder))?;
        // Windows are scattered: the bytes after a window are not needed with it.
        let _ = fadvise(&file, 0, None, Advice::Random);
        let sha256 = Hash::Begun(Box::default());
        Ok(Segment { number, file: Arc::new(file), bytes: 0, sha256 })
    }

    /// Adds a rollout, and drops the rollouts that no window can contain any more.
    pub(super) fn append(&mut self, rollout: &[u8]) -> Result<(), ReplayError> {
        debug_assert_eq!(rollout.len() as u64, self.rollout);
        let number = self.written / self.per_segment;
        if self.segments.back().is_none_or(|last| last.number < number) {
            let segment = self.begin(number)?;
            self.segments.push_back(segment);
        }
        let last = self.segments.back_mut().expect("it was made above");
        append(last, rollout).map_err(failed("write the replay into", &self.folder))?;
        self.written += 1;
        let oldest = self.written.saturating_sub(self.kept) / self.per_segment;
        while self.segments.front().is_some_and(|first| first.number < oldest) {
            self.segments.pop_front();
        }
        Ok(())
    }

    /// Reads bytes of a rollout, starting at `offset`.
    pub(super) fn read(
        &self,
        rollout: u64,
        offset: usize,
        into: &mut [u8],
    ) -> Result<(), ReplayError> {
        let (segment, offset) = self.place(rollout, offset)?;
        let read = segment.file.read_exact_at(into, offset);
        read.map_err(failed("read the replay in", &self.folder))
    }

    /// Announces that bytes of a rollout will be read, if that helps.
    pub(super) fn announce(&self, rollout: u64, offset: usize, bytes: usize) {
        if let (Ok((segment, offset)), Some(bytes)) =
            (self.place(rollout, offset), NonZeroU64::new(bytes as u64))
        {
            // The system may ignore it: then the bytes are loaded when they are read.
            let _ = fadvise(&segment.file, offset, Some(bytes), Advice::WillNeed);
        }
    }

    /// The segment, and the byte in it, of the byte `offset` of a rollout.
    fn place(&self, rollout: u64, offset: usize) -> Result<(&Segment, u64), ReplayError> {
        let number = rollout / self.per_segment;
        let first = self.segments.front().map_or(0, |first| first.number);
        let segment = number.checked_sub(first).and_then(|i| self.segments.get(i as usize));
        let Some(segment) = segment.filter(|_| rollout < self.written) else {
            return Err(ReplayError::Misfit(format!("rollout {rollout} is not in the replay")));
        };
        Ok((segment, (rollout % self.per_segment) * self.rollout + offset as u64))
    }

    /// Number of rollouts written since the start of the run.
    pub(super) fn written(&self) -> u64 {
        self.written
    }

    /// Rollouts of a segment.
    pub(super) fn per_segment(&self) -> u64 {
        self.per_segment
    }

    /// The segments, with their numbers.
    pub(super) fn parts(&self) -> Vec<(u64, FileSource)> {
        let part = |segment: &Segment| {
            let sha256 = match &segment.sha256 {
                Hash::Begun(hasher) => format!("{:x}", hasher.clone().finalize()),
                Hash::Known(sha256) => sha256.clone(),
            };
            (segment.number, FileSource::new(Arc::clone(&segment.file), segment.bytes, sha256))
        };
        self.segments.iter().map(part).collect()
    }
}

fn append(segment: &mut Segment, bytes: &[u8]) -> std::io::Result<()> {
    segment.file.write_all_at(bytes, segment.bytes)?;
    if let Hash::Begun(hasher) = &mut segment.sha256 {
        hasher.update(bytes);
    }
    segment.bytes += bytes.len() as u64;
    Ok(())
}

/// A file without a name in a folder. On a file system that does not support this, it is a new file
/// that is unlinked at once; checkpoints then copy it.
fn unnamed(folder: &Path) -> std::io::Result<File> {
    // As for every other file, the user's umask decides who may read it.
    let mode = Mode::from_raw_mode(0o666);
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    if let Ok(file) = openat(CWD, folder, flags | OFlags::TMPFILE, mode) {
        return Ok(File::from(file));
    }
    for number in 0u64.. {
        let path = folder.join(format!(".replay-{}-{number}", std::process::id()));
        match File::options().read(true).write(true).create_new(true).open(&path) {
            Ok(file) => {
                fs::remove_file(&path)?;
                return Ok(file);
            }
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    unreachable!("some number is free")
}

/// An error of the system that concerns a folder.
fn failed<E: Into<std::io::Error>>(
    what: &'static str,
    folder: &Path,
) -> impl FnOnce(E) -> ReplayError {
    let folder = folder.to_owned();
    move |error| ReplayError::Io { what, folder, error: error.into() }
}
