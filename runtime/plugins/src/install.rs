//! Installing a plugin: download by pip, check, unpack, rename.

use std::env::consts;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use crate::python::python3;
use crate::record::{Record, sha256};
use crate::work::WorkFolder;
use crate::{Located, PluginError, PluginSpec, check, find, install_folder, spec};

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
    let work = WorkFolder::create(plugins, &spec.folder())?;
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
        work.publish(&unpacked, &folder)?;
    }
    let installed = find(name)?;
    check(&installed)?;
    Ok(installed)
}

/// Tells if another process has installed the plugin meanwhile.
fn is_intact(name: &str) -> bool {
    find(name).is_ok_and(|found| check(&found).is_ok())
}

fn download(spec: &PluginSpec, into: &Path) -> Result<PathBuf, PluginError> {
    let failed = |problem: String| PluginError::Pip {
        package: spec.package,
        version: spec.version,
        problem,
    };
    let mut download = vec!["-m", "pip", "download", "--quiet", "--disable-pip-version-check"];
    download.extend(["--no-deps", "--only-binary=:all:"]);
    download.extend(spec.pip_tags);
    let wheel = format!("{}=={}", spec.package, spec.version);
    let into_and_wheel = ["--dest".as_ref(), into.as_os_str(), wheel.as_ref()];
    python3(download.iter().map(AsRef::as_ref).chain(into_and_wheel)).map_err(failed)?;
    let mut entries =
        fs::read_dir(into).map_err(PluginError::io("read", into))?.filter_map(Result::ok);
    let wheel =
        entries.find(|entry| entry.path().extension().is_some_and(|extension| extension == "whl"));
    wheel
        .map(|entry| entry.path())
        .ok_or_else(|| failed("pip succeeded and left no wheel".to_owned()))
}

fn unpack(wheel: &Path, into: &Path) -> Result<(), PluginError> {
    let failed = |source| PluginError::Unpack { wheel: wheel.to_owned(), source };
    let file = File::open(wheel).map_err(PluginError::io("open", wheel))?;
    zip::ZipArchive::new(file).and_then(|mut archive| archive.extract(into)).map_err(failed)
}
