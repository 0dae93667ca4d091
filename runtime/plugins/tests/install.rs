//! Installing, with a `python3` that stands in for the real one: no network.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::UNIX_EPOCH;

use podracer_plugins::spec;
use sha2::{Digest, Sha256};
use tempfile::TempDir;

/// An empty cache, and a PATH with nothing but `python3` made of this shell script.
struct Machine {
    folder: TempDir,
    /// `PODRACER_PLUGIN_PATH`.
    plugin_path: Option<PathBuf>,
}

impl Machine {
    fn new(python: Option<&str>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bin");
        fs::create_dir(&path).unwrap();
        let machine = Self { folder, plugin_path: None };
        if let Some(script) = python {
            machine.program("python3", script);
        }
        machine
    }

    /// Puts a shell script into PATH.
    fn program(&self, name: &str, script: &str) {
        let file = self.folder.path().join("bin").join(name);
        fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
        set_mode(&file, 0o755);
    }

    fn with_path(self, plugin_path: &Path) -> Self {
        Self { plugin_path: Some(plugin_path.to_owned()), ..self }
    }

    fn cache(&self) -> PathBuf {
        self.folder.path().join("cache")
    }

    /// Runs `podracer-plugins`: whether it succeeded, and all it said.
    fn run(&self, arguments: &[&str]) -> (bool, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_podracer-plugins"));
        match &self.plugin_path {
            Some(path) => command.env("PODRACER_PLUGIN_PATH", path),
            None => command.env_remove("PODRACER_PLUGIN_PATH"),
        };
        command.args(arguments).env("XDG_CACHE_HOME", self.cache());
        let output = command.env("PATH", self.folder.path().join("bin")).output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8(said).unwrap())
    }

    fn fails(&self, arguments: &[&str], fragments: &[&str]) {
        let (success, said) = self.run(arguments);
        assert!(!success, "{said}");
        for fragment in fragments {
            assert!(said.contains(fragment), "`{fragment}` is not in: {said}");
        }
        // Nothing half-done is left behind.
        for folder in ["podracer/plugins", "podracer/environments"] {
            let left: Vec<_> = fs::read_dir(self.cache().join(folder))
                .map(|entries| entries.map(|entry| entry.unwrap().file_name()).collect())
                .unwrap_or_default();
            assert!(left.is_empty(), "{left:?}");
        }
    }
}

/// The last argument but one of `pip download ... --dest FOLDER PACKAGE` is the folder.
const TO_DEST: &str = r#"while [ "$1" != --dest ]; do shift; done; /bin/mkdir -p "$2""#;

#[test]
fn no_python_is_an_error() {
    Machine::new(None).fails(&["install", "cpu"], &["`python3` is not in PATH"]);
}

#[test]
fn no_pip_is_an_error() {
    let script = "echo \"/usr/bin/python3: No module named pip\" >&2; exit 1";
    Machine::new(Some(script)).fails(&["install", "cpu"], &["has no pip", "ensurepip"]);
}

/// `uv` that runs as pip does, and leaves a file that is no wheel of ours.
#[test]
fn uv_will_do_where_there_is_no_pip() {
    let machine = Machine::new(None);
    let script = format!("[ $3 = pip ] || exit 1\n{TO_DEST}; echo forged > \"$2/x.whl\"");
    machine.program("uv", &script);
    machine.fails(&["install", "cpu"], &["sha256", "is pinned"]);
}

/// No pip is needed then.
#[test]
fn a_wheel_that_is_there_is_not_downloaded() {
    let machine = Machine::new(None);
    let wheel = machine.folder.path().join("xla_cpu_pjrt-0.0.1-py3-none-any.whl");
    fs::write(&wheel, "forged").unwrap();
    let fragments = ["xla_cpu_pjrt-0.0.1-py3-none-any.whl", "sha256", "is pinned"];
    machine.with_path(&wheel).fails(&["install", "cpu"], &fragments);
}

#[test]
fn what_pip_says_is_passed_on() {
    let script = "echo \"ERROR: No matching distribution found\" >&2; exit 1";
    Machine::new(Some(script))
        .fails(&["install", "cpu"], &["xla-cpu-pjrt", "No matching distribution"]);
    Machine::new(Some(TO_DEST)).fails(&["install", "cpu"], &["left no wheel"]);
}

#[test]
fn a_wheel_with_another_hash_is_refused() {
    let script = format!("{TO_DEST}; echo forged > \"$2/x.whl\"");
    let pinned = spec("cpu").unwrap().wheel().unwrap().sha256;
    Machine::new(Some(&script)).fails(&["install", "cpu"], &["sha256", pinned, "is pinned"]);
}

#[test]
fn an_unknown_name_is_an_error() {
    Machine::new(None).fails(&["install", "gpu"], &["no plugin `gpu`", "cpu, cuda13, tpu"]);
    Machine::new(None).fails(&["remove", "cpu"], &["usage:"]);
}

#[test]
fn packages_that_pip_cannot_install_are_an_error() {
    let environments = ["environments", "gymnasium"];
    Machine::new(None).fails(&environments, &["`gymnasium`", "`python3` is not in PATH"]);
    let script =
        "[ $2 = venv ] && exit; echo \"ERROR: No matching distribution found\" >&2; exit 1";
    let fragments = ["cannot install the Python packages `gymnasium`", "No matching distribution"];
    Machine::new(Some(script)).fails(&environments, &fragments);
    let unknown = ["no packages `gym`", "gymnasium, atari, box2d, mujoco, envpool"];
    Machine::new(None).fails(&["environments", "gym"], &unknown);
}

#[test]
fn packages_are_installed_once_and_again_in_other_versions() {
    // Where pip would install, the interpreter's folder appears.
    let script = "[ $2 = venv ] && /bin/mkdir -p $4/bin && > $4/bin/python; exit 0";
    let machine = Machine::new(Some(script));
    let environments = ["environments", "atari"];
    let (success, said) = machine.run(&environments);
    assert!(success && said.starts_with("atari ") && said.contains("atari/bin/python"), "{said}");
    let folder = machine.cache().join("podracer/environments");
    let record = folder.join("atari/packages.txt");
    assert!(fs::read_to_string(&record).unwrap().starts_with("ale-py=="));

    let python = machine.folder.path().join("bin/python3");
    let working = fs::read(&python).unwrap();
    fs::write(&python, "#!/bin/sh\nexit 1\n").unwrap();
    assert!(machine.run(&environments).0, "nothing is to be done");
    fs::write(&record, "ale-py==0.1\n").unwrap();
    assert!(!machine.run(&environments).0, "another version is to be installed");
    fs::write(&python, working).unwrap();
    assert!(machine.run(&environments).0);
    assert!(fs::read_to_string(&record).unwrap().contains("gymnasium=="));
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
}

/// With the `python3` of this machine, which is not to look for packages anywhere.
#[test]
fn a_module_in_the_current_folder_is_not_executed_by_pip() {
    let folder = tempfile::tempdir().unwrap();
    for module in ["pip", "venv", "json", "logging"] {
        let text = format!("open('{module} was executed', 'w')\nraise SystemExit('{module}')\n");
        fs::write(folder.path().join(module).with_extension("py"), text).unwrap();
    }
    for arguments in [["install", "cpu"], ["environments", "gymnasium"]] {
        let output = Command::new(env!("CARGO_BIN_EXE_podracer-plugins"))
            .args(arguments)
            .env_remove("PODRACER_PLUGIN_PATH")
            .env("XDG_CACHE_HOME", folder.path().join("cache"))
            .env("PIP_NO_INDEX", "1")
            .current_dir(folder.path())
            .output()
            .unwrap();
        assert!(!output.status.success(), "there is nothing to install from");
        let names = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
        let executed: Vec<_> =
            names.filter(|name| name.to_string_lossy().contains("executed")).collect();
        assert!(executed.is_empty(), "{executed:?}");
    }
}

#[test]
fn an_installed_plugin_needs_no_python() {
    let Some(machine) = with_cpu() else { return };
    let (success, said) = machine.run(&["install", "cpu"]);
    assert!(success, "{said}");
    assert!(said.starts_with("cpu ") && said.contains("xla_cpu_pjrt.so"), "{said}");
}

#[test]
fn a_change_that_keeps_size_and_time_is_found_by_hash() {
    let Some(machine) = with_cpu() else { return };
    let library = machine.cache().join("podracer/plugins").join(spec("cpu").unwrap().folder());
    let library = library.join(spec("cpu").unwrap().library);
    let modified = fs::metadata(&library).unwrap().modified().unwrap();
    // Not through the link that shares the content with the real one.
    let size = fs::metadata(&library).unwrap().len();
    fs::remove_file(&library).unwrap();
    let file = fs::File::create(&library).unwrap();
    file.set_len(size).unwrap();
    file.set_modified(modified).unwrap();
    drop(file);
    let (success, said) = machine.run(&["list"]);
    assert!(success && !said.contains("corrupt"), "{said}");
    let (success, said) = machine.run(&["list", "--verify"]);
    assert!(!success && said.contains("corrupt (sha256"), "{said}");
}

/// A machine that has this machine's `cpu` plugin in its cache, if this machine has it.
fn with_cpu() -> Option<Machine> {
    let machine = Machine::new(None);
    let spec = spec("cpu").unwrap();
    let installed = podracer_plugins::find("cpu").ok()?.library;
    let library = machine.cache().join("podracer/plugins").join(spec.folder()).join(spec.library);
    fs::create_dir_all(library.parent().unwrap()).unwrap();
    for extension in ["so", "so.podracer"] {
        link_or_copy(&installed.with_extension(extension), &library.with_extension(extension))?;
    }
    Some(machine)
}

fn link_or_copy(from: &Path, to: &Path) -> Option<()> {
    fs::hard_link(from, to).or_else(|_| fs::copy(from, to).map(drop)).ok()
}

/// A machine with a small file in its cache as the library of the plugin `cpu`, with the record of
/// its installation.
fn with_small_library() -> (Machine, PathBuf) {
    let machine = Machine::new(None);
    let spec = spec("cpu").unwrap();
    let library = machine.cache().join("podracer/plugins").join(spec.folder()).join(spec.library);
    fs::create_dir_all(library.parent().unwrap()).unwrap();
    fs::write(&library, "code").unwrap();
    let modified = fs::metadata(&library).unwrap().modified().unwrap();
    let modified = modified.duration_since(UNIX_EPOCH).unwrap().as_nanos();
    let sha256 = format!("{:x}", Sha256::digest("code"));
    let record = format!("sha256 {sha256}\nsize 4\nmodified_ns {modified}\n");
    fs::write(library.with_extension("so.podracer"), record).unwrap();
    (machine, library)
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_plugin_that_others_can_write_is_refused_until_it_is_mended() {
    let (machine, library) = with_small_library();
    assert!(machine.run(&["list"]).0);
    set_mode(&library, 0o777);
    let (success, said) = machine.run(&["list"]);
    assert!(!success, "{said}");
    for part in [
        &format!("other users can write `{}` (mode 0777)", library.display()),
        &format!("`chmod go-w {}`", library.display()),
        "`podracer plugins install cpu`",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let (success, said) = machine.run(&["install", "cpu"]);
    assert!(success, "{said}");
    assert_eq!(fs::metadata(&library).unwrap().permissions().mode() & 0o777, 0o755);
    assert!(machine.run(&["list", "--verify"]).0);
    let left = fs::read_dir(library.parent().unwrap()).unwrap().count();
    assert_eq!(left, 2, "the library and its record");

    // Its record counts as much: who writes both is believed.
    let record = library.with_extension("so.podracer");
    set_mode(&record, 0o666);
    let (success, said) = machine.run(&["list"]);
    assert!(!success && said.contains(&format!("`chmod go-w {}`", record.display())), "{said}");
    let (success, said) = machine.run(&["install", "cpu"]);
    assert!(!success && said.contains("`python3` is not in PATH"), "it is to be replaced: {said}");
}

#[test]
fn a_plugin_that_others_have_changed_is_not_mended_but_replaced() {
    let (machine, library) = with_small_library();
    let modified = fs::metadata(&library).unwrap().modified().unwrap();
    fs::write(&library, "evil").unwrap();
    fs::File::options().write(true).open(&library).unwrap().set_modified(modified).unwrap();
    set_mode(&library, 0o777);
    let (success, said) = machine.run(&["install", "cpu"]);
    assert!(!success && said.contains("`python3` is not in PATH"), "{said}");
}

#[test]
fn packages_that_others_can_write_are_installed_anew() {
    let script = "umask 0; [ $2 = venv ] && /bin/mkdir -p $4/bin && > $4/bin/python; exit 0";
    let machine = Machine::new(Some(script));
    let environments = ["environments", "atari"];
    assert!(machine.run(&environments).0);
    let folder = machine.cache().join("podracer/environments/atari");
    let mode = |path: &str| fs::metadata(folder.join(path)).unwrap().permissions().mode() & 0o777;
    let safe = [("", 0o755), ("bin", 0o755), ("bin/python", 0o644), ("packages.txt", 0o644)];
    assert_eq!(safe.map(|(path, _)| (path, mode(path))), safe);

    let python = machine.folder.path().join("bin/python3");
    fs::write(&python, "#!/bin/sh\necho 'no network' >&2; exit 1\n").unwrap();
    assert!(machine.run(&environments).0, "nothing is to be done");
    set_mode(&folder.join("packages.txt"), 0o666);
    let (success, said) = machine.run(&environments);
    assert!(!success && said.contains("no network"), "{said}");
}
