//! Reading the files of a run. The folder may come from another person.
//!
//! # Invariants
//! - Every file of a run is opened by [`open`]: a regular file below a bound, in the folder itself
//!   and never behind a link. So a reader neither waits for a pipe, nor fills its memory, nor shows
//!   a file from elsewhere.
//! - A line has a bound as well: [`next_line`].

use std::fs::File;
use std::io::{self, BufRead, ErrorKind, Read, Seek, SeekFrom};
use std::path::Path;

use anyhow::{Context, Result};
use podracer_plugins::check_regular;
use rustix::fs::{Mode, OFlags, openat};
use rustix::io::Errno;

/// Greatest length in bytes of a file with settings, a result or messages.
pub(crate) const LARGEST_TEXT: u64 = 16 << 20;
/// Greatest length of a line in bytes, including its end.
const LONGEST_LINE: u64 = 1 << 20;

/// Opens a file of the run in the folder `run`. `name` is its path in the folder; `most` is the greatest length in bytes.
///
/// # Errors
/// [`ErrorKind::NotFound`]; [`ErrorKind::InvalidInput`] for a link, for anything else that is not a regular file, and for a file that is
/// longer than `most`; system errors.
pub(crate) fn open(run: &Path, name: &str, most: u64) -> io::Result<File> {
    let irregular = |kind: &str| {
        let problem = format!("it is {kind} and must be a regular file");
        io::Error::new(ErrorKind::InvalidInput, problem)
    };
    let linked = |error| match error {
        // The errors for a link in place of a file and of a folder.
        Errno::LOOP | Errno::NOTDIR => irregular("a link"),
        // The error for a socket.
        Errno::NXIO => irregular("a socket"),
        error => error.into(),
    };
    // Opening a pipe for reading waits for a writer, unless it is non-blocking.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mut file = File::open(run)?;
    let mut parts = name.split('/').peekable();
    while let Some(part) = parts.next() {
        let kind = if parts.peek().is_some() { OFlags::DIRECTORY } else { OFlags::empty() };
        file = openat(&file, part, flags | kind, Mode::empty()).map_err(linked)?.into();
    }
    check_regular(&file.metadata()?, most)?;
    Ok(file)
}

/// Does the same as [`open`], with the file's path in an error's message; `None` for a file that
/// does not exist.
///
/// # Errors
/// Errors of [`open`], unless the file does not exist.
pub(crate) fn open_if_there(run: &Path, name: &str, most: u64) -> Result<Option<File>> {
    match open(run, name, most) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        file => Ok(Some(file.with_context(|| cannot_read(run, name))?)),
    }
}

/// The bytes of a file of the run in the folder `run`, at most `most`; `None` if the file does not exist.
///
/// # Errors
/// As [`open_if_there`].
pub(crate) fn read(run: &Path, name: &str, most: u64) -> Result<Option<Vec<u8>>> {
    let Some(file) = open_if_there(run, name, most)? else { return Ok(None) };
    let mut bytes = Vec::new();
    // The file may grow while it is read.
    file.take(most).read_to_end(&mut bytes).with_context(|| cannot_read(run, name))?;
    Ok(Some(bytes))
}

/// The text of a file of the run in the folder `run`, at most [`LARGEST_TEXT`] bytes; `None` if the file does not exist.
///
/// # Errors
/// As [`open_if_there`], and for bytes that are not UTF-8.
pub(crate) fn read_text(run: &Path, name: &str) -> Result<Option<String>> {
    let text = read(run, name, LARGEST_TEXT)?.map(String::from_utf8).transpose();
    text.with_context(|| cannot_read(run, name))
}

/// The last `most` bytes of a file of the run in the folder `run`, or all bytes of a shorter file.
///
/// # Errors
/// Errors of [`open`].
pub(crate) fn tail(run: &Path, name: &str, most: u64) -> io::Result<Vec<u8>> {
    let mut file = open(run, name, u64::MAX)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(most)))?;
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads the next line into `line`, with its end. Returns its number of bytes in the file: 0 at the
/// end of the file. `line` is empty for a line with more than a mebibyte.
///
/// # Errors
/// System errors.
pub(crate) fn next_line(reader: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<u64> {
    line.clear();
    let mut bytes = reader.by_ref().take(LONGEST_LINE).read_until(b'\n', line)? as u64;
    if bytes == LONGEST_LINE && line.last() != Some(&b'\n') {
        line.clear();
        bytes += reader.skip_until(b'\n')? as u64;
    }
    Ok(bytes)
}

pub(crate) fn cannot_read(run: &Path, name: &str) -> String {
    format!("cannot read `{}`", run.join(name).display())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Cursor;
    use std::os::unix::fs::symlink;

    use rustix::fs::{CWD, FileType, mknodat};

    use super::*;

    #[test]
    fn a_file_behind_a_link_is_not_a_file_of_the_run() {
        let folder = tempfile::tempdir().unwrap();
        let (run, other) = (folder.path().join("run"), folder.path().join("other"));
        fs::create_dir_all(&run).unwrap();
        fs::create_dir_all(&other).unwrap();
        fs::write(other.join("film.gif"), "secret").unwrap();
        symlink(other.join("film.gif"), run.join("film.gif")).unwrap();
        symlink(&other, run.join("episodes")).unwrap();
        symlink("/dev/zero", run.join("zero")).unwrap();
        for name in ["film.gif", "episodes/film.gif", "zero"] {
            let error = open(&run, name, 100).unwrap_err().to_string();
            assert_eq!(error, "it is a link and must be a regular file", "{name}");
        }
        // The folder itself may be a link, because the user has named it.
        symlink(&other, folder.path().join("link")).unwrap();
        let read = read(&folder.path().join("link"), "film.gif", 100).unwrap();
        assert_eq!(read.as_deref(), Some(&b"secret"[..]));
    }

    #[test]
    fn a_pipe_or_a_file_of_gigabytes_is_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let run = folder.path();
        let mode = Mode::RUSR | Mode::WUSR;
        mknodat(CWD, run.join("pipe"), FileType::Fifo, mode, 0).unwrap();
        File::create(run.join("large")).unwrap().set_len(2 << 30).unwrap();
        let problem = |name| format!("{:#}", read_text(run, name).unwrap_err());
        assert!(problem("pipe").ends_with("/pipe`: it is a pipe and must be a regular file"));
        assert!(
            problem("large").ends_with("it has 2147483648 bytes, and at most 16777216 are read")
        );
        fs::create_dir(run.join("folder")).unwrap();
        assert!(problem("folder").ends_with("it is a folder and must be a regular file"));
        assert_eq!(read_text(run, "nothing").unwrap(), None);
    }

    #[test]
    fn a_line_without_an_end_is_left_out() {
        let text = [&b"a\n"[..], &vec![b'x'; 3 << 20], b"\nb\nc"].concat();
        let (mut reader, mut line, mut lines) = (Cursor::new(&text), Vec::new(), Vec::new());
        let mut read = 0;
        loop {
            match next_line(&mut reader, &mut line).unwrap() {
                0 => break,
                bytes => read += bytes,
            }
            assert!(line.capacity() <= 2 << 20, "{}", line.capacity());
            lines.push(String::from_utf8(line.clone()).unwrap());
        }
        assert_eq!((lines.concat().as_str(), lines.len()), ("a\nb\nc", 4));
        assert_eq!(read, text.len() as u64);
    }
}
