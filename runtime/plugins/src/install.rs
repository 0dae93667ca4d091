//! Download by pip, check, unpack, rename.

use std::env::consts;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::time::Duration;

use crate::record::{Record, sha256};
use crate::{Located, PluginError, PluginSpec, check, find, install_folder, spec};

/// A working folder this old was left by an installation that was killed.
const ABANDONED_AFTER: Duration = Duration::from_secs(3600);

/// Installs the pinned wheel of `name` into the cache folder, and returns where it is. Does nothing, and needs no network, where
/// an intact one is found already; replaces a corrupt one.
///
/// Safe against interruption (the final folder appears by one rename) and against several processes at once (the first wins).
///
/// # Errors
/// [`PluginError::Pip`] (no `python3`, no pip, no such wheel), [`PluginError::WheelHash`], [`PluginError::Unpack`],
/// [`PluginError::Io`], and those of [`find`].
pub fn install(name: &str) -> Result<Located, PluginError> {
    let spec = spec(name)?;
    match find(name) {
        Ok(found) if check(&found).is_ok() => return Ok(found),
        Ok(_) | Err(PluginError::NotInstalled { .. }) => {}
        Err(error) => return Err(error),
    }
    if (consts::OS, consts::ARCH) != ("linux", "x86_64") {
        return Err(PluginError::Unsupported {
            system: format!("{} on {}", consts::OS, consts::ARCH),
        });
    }
    let folder = install_folder(spec)?;
    let plugins = folder.parent().ok_or(PluginError::NoCacheFolder)?;
    fs::create_dir_all(plugins).map_err(PluginError::io("create", plugins))?;
    remove_abandoned(plugins);

    let work = WorkFolder::create(plugins, spec)?;
    let wheel = download(spec, &work.0.join("wheel"))?;
    let got = sha256(&wheel)?;
    if got != spec.sha256 {
        return Err(PluginError::WheelHash {
            package: spec.package,
            version: spec.version,
            expected: spec.sha256,
            got,
        });
    }
    let unpacked = work.0.join("unpacked");
    unpack(&wheel, &unpacked)?;
    let library = unpacked.join(spec.library);
    // On disk before the rename: a power failure must not leave the final name with half a file.
    File::open(&library)
        .and_then(|file| file.sync_all())
        .map_err(PluginError::io("write", &library))?;
    Record::of(&library)?.write(&library)?;
    if !is_intact(name) {
        publish(&unpacked, &folder, &work)?;
    }
    let installed = find(name)?;
    check(&installed)?;
    Ok(installed)
}

/// Whether another process has installed the plugin meanwhile.
fn is_intact(name: &str) -> bool {
    find(name).is_ok_and(|found| check(&found).is_ok())
}

/// Renames `unpacked` to `folder`.
fn publish(unpacked: &Path, folder: &Path, work: &WorkFolder) -> Result<(), PluginError> {
    // What is there now is what `install` found corrupt, or another process' fresh installation: both are the pinned wheel, so
    // replacing either is right.
    let old = work.0.join("old");
    match fs::rename(folder, &old) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(PluginError::io("replace", folder)(error));
        }
        _ => {}
    }
    match fs::rename(unpacked, folder) {
        Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => Ok(()),
        other => other.map_err(PluginError::io("create", folder)),
    }
}

fn download(spec: &PluginSpec, into: &Path) -> Result<PathBuf, PluginError> {
    let failed = |problem: String| PluginError::Pip {
        package: spec.package,
        version: spec.version,
        problem,
    };
    let output = Command::new("python3")
        .args([
            "-m",
            "pip",
            "download",
            "--quiet",
            "--disable-pip-version-check",
            "--no-deps",
            "--only-binary=:all:",
        ])
        .args(spec.pip_tags)
        .arg("--dest")
        .arg(into)
        .arg(format!("{}=={}", spec.package, spec.version))
        .output()
        .map_err(|error| match error.kind() {
            ErrorKind::NotFound => {
                failed("`python3` is not in PATH: install Python 3 with pip".to_owned())
            }
            _ => failed(format!("`python3` cannot be run: {error}")),
        })?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(failed(if said.contains("No module named pip") {
            "this `python3` has no pip: install it (`python3 -m ensurepip`, or your system's package `python3-pip`)".to_owned()
        } else {
            format!("pip failed ({}):\n{}", output.status, said.trim())
        }));
    }
    let mut entries = fs::read_dir(into)
        .map_err(PluginError::io("read", into))?
        .filter_map(Result::ok);
    let wheel = entries.find(|entry| {
        entry
            .path()
            .extension()
            .is_some_and(|extension| extension == "whl")
    });
    wheel
        .map(|entry| entry.path())
        .ok_or_else(|| failed("pip succeeded and left no wheel".to_owned()))
}

fn unpack(wheel: &Path, into: &Path) -> Result<(), PluginError> {
    let failed = |source| PluginError::Unpack {
        wheel: wheel.to_owned(),
        source,
    };
    let file = File::open(wheel).map_err(PluginError::io("open", wheel))?;
    zip::ZipArchive::new(file)
        .and_then(|mut archive| archive.extract(into))
        .map_err(failed)
}

/// A folder beside the final one (renaming works only within a file system), removed when dropped.
struct WorkFolder(PathBuf);

const WORK_PREFIX: &str = ".installing-";

impl WorkFolder {
    fn create(plugins: &Path, spec: &PluginSpec) -> Result<Self, PluginError> {
        let path = plugins.join(format!("{WORK_PREFIX}{}-{}", spec.folder(), process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).map_err(PluginError::io("create", &path))?;
        Ok(Self(path))
    }
}

impl Drop for WorkFolder {
    fn drop(&mut self) {
        // Left-overs cost disk space only, and the next installation removes them.
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn remove_abandoned(plugins: &Path) {
    let Ok(entries) = fs::read_dir(plugins) else {
        return;
    };
    for entry in entries.filter_map(Result::ok) {
        let ours = entry.file_name().to_string_lossy().starts_with(WORK_PREFIX);
        let age = entry
            .metadata()
            .and_then(|metadata| metadata.modified())
            .ok()
            .and_then(|time| time.elapsed().ok());
        if ours && age.is_some_and(|age| age > ABANDONED_AFTER) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}
