//! Files that other users may have created or changed: who can write them, and limits on reading
//! them.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The bits of a mode that let the group and all other users write.
const OTHERS: u32 = 0o022;
/// The numbers of root, and of owners that a container does not know.
const ROOT: u32 = 0;
const UNKNOWN: u32 = 65534;
/// In a folder with this bit, such as that for temporary files, only the owner of a file can replace it.
const STICKY: u32 = 0o1000;

/// A file of code or of a record about code, or a folder above it, that other users can write: its content may be theirs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OthersCanWrite {
    /// The permissions let other users write.
    #[error(
        "other users can write `{path}` (mode {mode:04o}), and programs that they put there would run as you: `chmod go-w {path}`, if you trust its present contents",
        path = path.display()
    )]
    Mode {
        /// The file or folder.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// Another user, who is not root, owns it.
    #[error(
        "`{path}` belongs to another user (number {owner}), and programs that they put there would run as you: `chown {user} {path}`, if you trust its present contents",
        path = path.display()
    )]
    Owner {
        /// The file or folder.
        path: PathBuf,
        /// Number of its owner.
        owner: u32,
        /// Number of the user.
        user: u32,
    },
}

/// Checks if other users can write a file, or replace it. It returns the first writable path among
/// the file, its folder, and the folders above, if the group or all users can write it. It also
/// returns the file or its folder if another user owns it. Links are followed. A missing file
/// cannot be written.
#[must_use]
pub fn others_can_write(file: &Path) -> Option<OthersCanWrite> {
    let target = fs::canonicalize(file).ok();
    let above = target.as_deref().and_then(Path::parent);
    let near = [Some(file), file.parent(), above].into_iter().flatten();
    let far = above.into_iter().flat_map(Path::ancestors).skip(1);
    // The folder of a process belongs to its user.
    let user = fs::metadata("/proc/self").map_or(ROOT, |process| process.uid());
    let place = |(path, is_near): (&Path, bool)| {
        let metadata = fs::metadata(path).ok()?;
        let mode = metadata.mode() & 0o7777;
        if mode & OTHERS != 0 && !(metadata.is_dir() && mode & STICKY != 0) {
            return Some(OthersCanWrite::Mode { path: path.to_owned(), mode });
        }
        let owner = metadata.uid();
        let is_strange = is_near && ![user, ROOT, UNKNOWN].contains(&owner);
        is_strange.then(|| OthersCanWrite::Owner { path: path.to_owned(), owner, user })
    };
    near.map(|path| (path, true)).chain(far.map(|path| (path, false))).find_map(place)
}

/// Makes a folder and the folders above it. Only the user can write them, regardless of the umask.
///
/// # Errors
/// Errors of the system.
pub fn make_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o755).create(folder)
}

/// Takes from all in a folder the permissions that the folder itself does not give, and from others that to write. Links stay as
/// they are.
pub(crate) fn restrict(folder: &Path) -> io::Result<()> {
    let mask = fs::metadata(folder)?.mode() & !OTHERS;
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            let metadata = fs::symlink_metadata(&path)?;
            if metadata.is_symlink() {
                continue;
            }
            let mode = metadata.mode() & 0o7777;
            if mode & !mask & 0o777 != 0 {
                fs::set_permissions(&path, fs::Permissions::from_mode(mode & (mask | !0o777)))?;
            }
            if metadata.is_dir() {
                folders.push(path);
            }
        }
    }
    Ok(())
}

/// Opens a regular file of at most `most` bytes, and gives its length. A link to a device, a pipe or a folder is an error, and so
/// is a file that is larger.
///
/// # Errors
/// Errors of the system; [`io::ErrorKind::InvalidInput`] with the actual kind of the file.
pub fn open_regular(path: &Path, most: u64) -> io::Result<(File, u64)> {
    // Before it is opened: opening a pipe waits for a writer.
    check_regular(&fs::metadata(path)?, u64::MAX)?;
    let file = File::open(path)?;
    let bytes = check_regular(&file.metadata()?, most)?;
    Ok((file, bytes))
}

/// Checks that a file is regular and has at most `most` bytes, and gives its length.
///
/// # Errors
/// [`io::ErrorKind::InvalidInput`] with the kind of another file, or with a length above `most`.
pub fn check_regular(metadata: &fs::Metadata, most: u64) -> io::Result<u64> {
    let refused = |problem: String| Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
    match (irregular(metadata), metadata.len()) {
        (Some(kind), _) => refused(format!("it is {kind} and must be a regular file")),
        (None, bytes) if bytes > most => {
            refused(format!("it has {bytes} bytes, and at most {most} are read"))
        }
        (None, bytes) => Ok(bytes),
    }
}

/// Reads a regular file of at most `most` bytes.
///
/// # Errors
/// As [`open_regular`].
pub fn read_regular(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let (file, bytes) = open_regular(path, most)?;
    let mut read = Vec::new();
    // It may grow while it is read.
    file.take(bytes).read_to_end(&mut read)?;
    Ok(read)
}

/// Reads a regular file of at most `most` bytes, which must be UTF-8.
///
/// # Errors
/// As [`open_regular`]; [`io::ErrorKind::InvalidData`].
pub fn read_regular_text(path: &Path, most: u64) -> io::Result<String> {
    let not_text = |error| io::Error::new(io::ErrorKind::InvalidData, error);
    String::from_utf8(read_regular(path, most)?).map_err(not_text)
}

/// Writes a file atomically: the file is complete or unchanged, whenever this program is stopped.
/// It is written under the name with `.unfinished` appended, and renamed when it is on the disk.
/// Use it for files with a single writing program; [`write_whole_as`] is for others.
///
/// # Errors
/// Where it cannot be written.
pub fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = File::options();
    options.write(true).create(true).truncate(true);
    write_whole_as(&path.with_added_extension("unfinished"), &options, path, bytes)
}

/// [`write_whole`] with another name, in the same folder, and other options for the unfinished file.
///
/// # Errors
/// As [`write_whole`].
pub fn write_whole_as(
    unfinished: &Path,
    options: &OpenOptions,
    path: &Path,
    bytes: &[u8],
) -> io::Result<()> {
    let written = options.open(unfinished).and_then(|mut file| {
        file.write_all(bytes)?;
        match file.sync_all() {
            // A file that is not regular cannot be synchronised, and need not be.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
            // A full disk can show only here.
            other => other,
        }
    });
    let written = written.and_then(|()| fs::rename(unfinished, path));
    if written.is_err() {
        // Best effort: the error above is the relevant error.
        let _ = fs::remove_file(unfinished);
    }
    written
}

/// The kind of a file that is not regular, as in `a device`; `None` for a regular one.
fn irregular(metadata: &fs::Metadata) -> Option<&'static str> {
    use std::os::unix::fs::FileTypeExt;
    let kind = metadata.file_type();
    match kind {
        _ if kind.is_file() => None,
        _ if kind.is_dir() => Some("a folder"),
        _ if kind.is_fifo() => Some("a pipe"),
        _ if kind.is_socket() => Some("a socket"),
        _ => Some("a device"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_can_write_is_named_with_its_folder_and_what_it_links_to() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, "").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let mode = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap()
        };
        let found = |path: &Path| match others_can_write(path) {
            Some(OthersCanWrite::Mode { path, mode }) => Some((path, mode)),
            None => None,
            Some(other) => panic!("{other}"),
        };
        mode(&file, 0o644);
        assert_eq!((found(&file), found(&link)), (None, None));
        for open in [0o664, 0o646, 0o777] {
            mode(&file, open);
            assert_eq!(found(&file), Some((file.clone(), open)));
            assert_eq!(found(&link), Some((link.clone(), open)));
        }
        mode(&file, 0o600);
        mode(folder.path(), 0o770);
        assert_eq!(found(&file), Some((folder.path().to_owned(), 0o770)));
        mode(folder.path(), 0o1777);
        assert_eq!(found(&file), None);
        // Who can write a folder above can put another folder in the place of the file's.
        let below = folder.path().join("a/b");
        fs::create_dir_all(&below).unwrap();
        fs::write(below.join("file"), "").unwrap();
        assert_eq!(found(&below.join("file")), None);
        mode(&folder.path().join("a"), 0o777);
        assert_eq!(found(&below.join("file")), Some((folder.path().join("a"), 0o777)));
        assert_eq!(found(&folder.path().join("nothing")), None);
    }

    #[test]
    fn a_file_of_another_user_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        let user = fs::metadata(&file).unwrap().uid();
        // Root alone may give a file away.
        let given = std::os::unix::fs::chown(&file, Some(4242), None).is_ok();
        let found = OthersCanWrite::Owner { path: file.clone(), owner: 4242, user };
        assert_eq!(others_can_write(&file), given.then_some(found));
    }

    #[test]
    fn only_regular_files_of_a_bounded_size_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "four").unwrap();
        assert_eq!(read_regular_text(&file, 4).unwrap(), "four");
        let problem = |path: &Path| read_regular(path, 3).unwrap_err().to_string();
        assert_eq!(problem(&file), "it has 4 bytes, and at most 3 are read");
        assert_eq!(problem(folder.path()), "it is a folder and must be a regular file");
        for device in ["/dev/zero", "/dev/null"] {
            let link = folder.path().join("link");
            std::os::unix::fs::symlink(device, &link).unwrap();
            assert_eq!(problem(&link), "it is a device and must be a regular file");
            fs::remove_file(link).unwrap();
        }
        let pipe = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        assert_eq!(problem(&pipe), "it is a pipe and must be a regular file");
    }
}
