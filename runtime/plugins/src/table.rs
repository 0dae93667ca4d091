//! The pinned plugins. Changing a version means changing its sha256, only in this file.

use std::env::consts;
use std::ffi::OsStr;
use std::path::Path;

use crate::PluginError;

/// One plugin: the wheels that carry it and the files of interest inside.
#[derive(Debug, PartialEq, Eq)]
pub struct PluginSpec {
    /// The name that users write: `cpu`, `cuda13`, `tpu`.
    pub name: &'static str,
    /// The Python package with the wheels that contain it.
    pub package: &'static str,
    /// The pinned version of the package.
    pub version: &'static str,
    /// The wheels, one for each kind of machine.
    pub wheels: &'static [Wheel],
    /// The shared library's path inside the wheel.
    pub library: &'static str,
    /// The path of `pjrt_c_api.h` inside the wheel, where the wheel ships it.
    pub header: Option<&'static str>,
    /// The name of the same plugin when built from XLA's sources.
    pub source_build_library: &'static str,
}

/// The wheel of a plugin for one kind of machine.
#[derive(Debug, PartialEq, Eq)]
pub struct Wheel {
    /// The machine's system and architecture, as in [`std::env::consts`].
    pub system: (&'static str, &'static str),
    /// sha256 of the wheel file, in lower-case hexadecimal.
    pub sha256: &'static str,
    /// Options that select the wheel for pip, so that the same file is downloaded by every Python
    /// that runs pip.
    pub(crate) pip_tags: &'static [&'static str],
}

const LINUX_X86_64: (&str, &str) = ("linux", "x86_64");
const LINUX_AARCH64: (&str, &str) = ("linux", "aarch64");

/// All plugins that podracer knows.
pub static PLUGINS: [PluginSpec; 3] = [
    PluginSpec {
        name: "cpu",
        package: "xla-cpu-pjrt",
        version: "0.0.1",
        wheels: &[
            Wheel {
                system: LINUX_X86_64,
                sha256: "55837b6b7b47daa717f2d9a5a03563ea0ceaa338d06a81a1e2d3f060d960decc",
                pip_tags: &["--platform", "manylinux_2_27_x86_64"],
            },
            Wheel {
                system: LINUX_AARCH64,
                sha256: "8f613be6e891858f40d64f9799319502fff42689661944fc18a6ffd8210b30c9",
                pip_tags: &["--platform", "manylinux_2_27_aarch64"],
            },
        ],
        library: "xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so",
        header: Some("xla_plugins/xla_cpu_pjrt/include/pjrt_c_api.h"),
        source_build_library: "pjrt_c_api_cpu_plugin.so",
    },
    PluginSpec {
        name: "cuda13",
        package: "jax-cuda13-pjrt",
        version: "0.12.0.1",
        wheels: &[
            Wheel {
                system: LINUX_X86_64,
                sha256: "5899bb6177eda86ea532afb9a26794f2bdd04966f6a01f9028266b16c2b6cf90",
                pip_tags: &["--platform", "manylinux_2_27_x86_64"],
            },
            Wheel {
                system: LINUX_AARCH64,
                sha256: "40758d042df8c06991b6a1a8016b56e9cefb1ed4c677c062125c3eb71c3dab97",
                pip_tags: &["--platform", "manylinux_2_27_aarch64"],
            },
        ],
        library: "jax_plugins/xla_cuda13/xla_cuda_plugin.so",
        header: None,
        source_build_library: "pjrt_c_api_gpu_plugin.so",
    },
    PluginSpec {
        name: "tpu",
        package: "libtpu",
        version: "0.0.51",
        wheels: &[Wheel {
            system: LINUX_X86_64,
            // libtpu has one wheel per Python version, each with its own hash: ask for one of them, always the same.
            sha256: "ba67ddbfdbac61c8da1fafc26cd51b93e9fe4d298016e2882eb986b1718cba34",
            pip_tags: &[
                "--platform",
                "manylinux_2_31_x86_64",
                "--implementation",
                "cp",
                "--python-version",
                "3.11",
                "--abi",
                "cp311",
            ],
        }],
        library: "libtpu/libtpu.so",
        header: None,
        source_build_library: "pjrt_c_api_tpu_plugin.so",
    },
];

/// The plugin called `name`.
///
/// # Errors
/// [`PluginError::UnknownName`] lists the known names.
pub fn spec(name: &str) -> Result<&'static PluginSpec, PluginError> {
    PLUGINS.iter().find(|plugin| plugin.name == name).ok_or_else(|| PluginError::UnknownName {
        name: name.to_owned(),
        known: PLUGINS.iter().map(|plugin| plugin.name).collect::<Vec<_>>().join(", "),
    })
}

impl PluginSpec {
    /// The folder of the cache that holds it: `cpu-0.0.1`.
    #[must_use]
    pub fn folder(&self) -> String {
        format!("{}-{}", self.name, self.version)
    }

    /// The library's file name, as the wheel has it.
    #[must_use]
    pub fn library_file(&self) -> &'static str {
        self.library.rsplit('/').next().unwrap_or(self.library)
    }

    /// The wheel for this kind of machine.
    ///
    /// # Errors
    /// [`PluginError::Unsupported`].
    pub fn wheel(&self) -> Result<&'static Wheel, PluginError> {
        let system = (consts::OS, consts::ARCH);
        self.wheels.iter().find(|wheel| wheel.system == system).ok_or_else(|| {
            let name = |(os, arch): (&str, &str)| format!("{os} on {arch}");
            let there = self.wheels.iter().map(|wheel| name(wheel.system)).collect::<Vec<_>>();
            PluginError::Unsupported {
                name: self.name,
                there: there.join(", "),
                system: name(system),
            }
        })
    }

    /// Returns true if the file's name is a wheel name of the package.
    pub(crate) fn is_wheel(&self, file: &Path) -> bool {
        let name = file.file_name().and_then(OsStr::to_str).unwrap_or_default();
        let version = name.strip_prefix(&self.package.replace('-', "_"));
        version.is_some_and(|version| version.starts_with('-') && version.ends_with(".whl"))
    }

    /// The file names that identify this plugin.
    #[must_use]
    pub fn library_names(&self) -> [&'static str; 2] {
        [self.library_file(), self.source_build_library]
    }
}
