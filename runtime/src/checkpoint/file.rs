//! The files of a checkpoint: prefixes of append-only files, linked or copied into the checkpoint's
//! folder.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{AtFlags, CWD, linkat};
use sha2::{Digest, Sha256};

use crate::pjrt::PIECE;

/// The first bytes of an append-only file. The file is open, so it can be read after it has lost
/// its name.
#[derive(Clone, Debug)]
pub struct FileSource {
    file: Arc<File>,
    bytes: u64,
    sha256: String,
}

impl FileSource {
    /// The first `bytes` of a file, with the digest `sha256` in lower-case hexadecimal. They never
    /// change.
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

    /// Gives the file another name, or copies the bytes if a link is impossible because the folder
    /// is on another disk. Afterwards everything is on the disk.
    pub(super) fn save(&self, path: &Path) -> io::Result<()> {
        // The file may have no name: without a special right, only this path can give it a name.
        let open = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        if linkat(CWD, open, CWD, path, AtFlags::SYMLINK_FOLLOW).is_ok() {
            return self.file.sync_all();
        }
        let mut copy = File::create_new(path)?;
        self.read(&mut |piece| copy.write_all(piece))?;
        copy.sync_all()
    }

    /// Computes the sha256 of the present bytes.
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
