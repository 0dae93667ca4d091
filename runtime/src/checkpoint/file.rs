//! The files of a checkpoint: parts of files that only grow, linked into the checkpoint's folder or copied there.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{AtFlags, CWD, linkat};
use sha2::{Digest, Sha256};

use crate::pjrt::PIECE;

/// The first bytes of a file that only grows. It is open: it can be read when it has no name any more.
#[derive(Clone, Debug)]
pub struct FileSource {
    file: Arc<File>,
    bytes: u64,
    sha256: String,
}

impl FileSource {
    /// The first `bytes` of a file, whose sha256 is this, in lower-case hexadecimal. They never change.
    #[must_use]
    pub fn new(file: Arc<File>, bytes: u64, sha256: String) -> Self {
        FileSource { file, bytes, sha256 }
    }

    /// The file, which may have more bytes.
    #[must_use]
    pub fn file(&self) -> Arc<File> {
        Arc::clone(&self.file)
    }

    /// Number of bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The sha256 of the bytes, in lower-case hexadecimal.
    #[must_use]
    pub fn sha256(&self) -> &str {
        &self.sha256
    }

    /// Gives the file another name, or copies the bytes where that cannot be done: on another disk. All is on the disk then.
    pub(super) fn save(&self, path: &Path) -> io::Result<()> {
        // The file may have no name: only so can it be given one without a special right.
        let open = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        if linkat(CWD, open, CWD, path, AtFlags::SYMLINK_FOLLOW).is_ok() {
            return self.file.sync_all();
        }
        let mut copy = File::create_new(path)?;
        self.read(&mut |piece| copy.write_all(piece))?;
        copy.sync_all()
    }

    /// The sha256 that the bytes have now.
    pub(crate) fn found_sha256(&self) -> io::Result<String> {
        let mut hasher = Sha256::new();
        self.read(&mut |piece| {
            hasher.update(piece);
            Ok(())
        })?;
        Ok(format!("{:x}", hasher.finalize()))
    }

    fn read(&self, sink: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        let mut piece = vec![0; PIECE.min(self.bytes as usize)];
        let mut done = 0;
        while done < self.bytes {
            let length = piece.len().min((self.bytes - done) as usize);
            self.file.read_exact_at(&mut piece[..length], done)?;
            sink(&piece[..length])?;
            done += length as u64;
        }
        Ok(())
    }
}
