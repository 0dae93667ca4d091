//! Installation of a plugin: download by pip (or use a wheel that is present), check, unpack,
//! rename.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use crate::files::restrict;
use crate::locate::wheel;
use crate::python::pip;
use crate::record::{Record, record_path, sha256};
use crate::work::WorkFolder;
use crate::{
    Located, Origin, PluginError, PluginSpec, Wheel, check, find, install_folder, others_can_write,
    spec,
};

/// Installs the pinned wheel of `name` into the cache folder, and returns its location. If an
/// intact plugin is found already, it does nothing and needs no network. It replaces a corrupt
/// plugin, and removes other users' permission to write it. If `PODRACER_PLUGIN_PATH` names the
/// wheel's file, nothing is downloaded.
///
/// Safe against interruption (the final folder appears by one rename) and against several processes at once (the first wins).
///
/// # Errors
/// [`PluginError::Pip`] (neither pip nor uv, no such wheel), [`PluginError::WheelHash`],
/// [`PluginError::Unpack`], [`PluginError::Io`], and the errors of [`find`].
pub fn install(name: &str) -> Result<Located, PluginError> {
    let spec = spec(name)?;
    match find(name) {
        Ok(found) => match check(&found) {
            Ok(()) => return Ok(found),
            Err(error @ PluginError::OthersCanWrite { .. }) if found.origin != Origin::Cache => {
                return Err(error);
            }
            Err(PluginError::OthersCanWrite { .. }) if mend(&found)? => return Ok(found),
            Err(_) => {}
        },
        Err(PluginError::NotInstalled { .. }) => {}
        Err(error) => return Err(error),
    }
    let pinned = spec.wheel()?;
    let folder = install_folder(spec)?;
    let plugins = folder.parent().ok_or(PluginError::NoCacheFolder)?;
    let work = WorkFolder::create(plugins, &spec.folder())?;
    let wheel = match wheel(spec) {
        Some(wheel) => wheel,
        None => download(spec, pinned, &work.0.join("wheel"))?,
    };
    let got = sha256(&wheel)?;
    if got != pinned.sha256 {
        return Err(PluginError::WheelHash {
            package: spec.package,
            expected: pinned.sha256,
            got,
            wheel,
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

/// Removes other users' permission to write an installed plugin, if it is unchanged since the
/// installation. False if that cannot be determined: then it must be reinstalled.
fn mend(plugin: &Located) -> Result<bool, PluginError> {
    let library = &plugin.library;
    if others_can_write(&record_path(library)).is_some() {
        return Ok(false);
    }
    let Some(record) = Record::read(library) else { return Ok(false) };
    let folder = install_folder(plugin.spec)?;
    restrict(&folder).map_err(PluginError::io("set the permissions of", &folder))?;
    // A copy: others may have the file open still.
    let copy = library.with_extension("so.copy");
    let copied = || {
        fs::copy(library, &copy)?;
        File::options().write(true).open(&copy)?.set_modified(fs::metadata(library)?.modified()?)
    };
    copied().map_err(PluginError::io("write", &copy))?;
    if sha256(&copy)? != record.sha256 {
        let _ = fs::remove_file(&copy);
        return Ok(false);
    }
    fs::rename(&copy, library).map_err(PluginError::io("write", library))?;
    Ok(true)
}

/// Tells if another process has installed the plugin meanwhile.
fn is_intact(name: &str) -> bool {
    find(name).is_ok_and(|found| check(&found).is_ok())
}

fn download(spec: &PluginSpec, pinned: &Wheel, into: &Path) -> Result<PathBuf, PluginError> {
    let failed = |problem: String| PluginError::Pip {
        package: spec.package,
        version: spec.version,
        problem,
    };
    let download = ["download", "--quiet", "--no-deps", "--only-binary=:all:"];
    let wheel = format!("{}=={}", spec.package, spec.version);
    let into_and_wheel = ["--dest".as_ref(), into.as_os_str(), wheel.as_ref()];
    let options = download.iter().chain(pinned.pip_tags).map(AsRef::as_ref);
    pip(options.chain(into_and_wheel)).map_err(failed)?;
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

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// A wheel like pip's wheel of the CPU plugin, with a library of mode 0777.
    #[test]
    fn an_unpacked_wheel_has_no_mode_that_lets_others_write() {
        let folder = tempfile::tempdir().unwrap();
        let wheel = folder.path().join("x.whl");
        let mut archive = zip::ZipWriter::new(File::create(&wheel).unwrap());
        let stored = zip::write::SimpleFileOptions::default()
            .compression_method(zip::CompressionMethod::Stored)
            .unix_permissions(0o777);
        archive.start_file("a/b/library.so", stored).unwrap();
        archive.write_all(b"code").unwrap();
        archive.finish().unwrap();
        let work = WorkFolder::create(folder.path(), "x").unwrap();
        let (unpacked, published) = (work.0.join("unpacked"), folder.path().join("x"));
        unpack(&wheel, &unpacked).unwrap();
        work.publish(&unpacked, &published).unwrap();
        for path in ["", "a", "a/b", "a/b/library.so"] {
            let path = published.join(path);
            let mode = fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(mode & 0o022, 0, "{mode:o} {}", path.display());
        }
    }
}
