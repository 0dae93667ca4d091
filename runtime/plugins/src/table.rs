//! The pinned plugins. Changing a version means changing its sha256, here and nowhere else.

use crate::PluginError;

/// One plugin: the wheel that carries it and the files of interest inside.
#[derive(Debug, PartialEq, Eq)]
pub struct PluginSpec {
    /// The name that users write: `cpu`, `cuda13`, `tpu`.
    pub name: &'static str,
    /// The Python package whose wheel carries it.
    pub package: &'static str,
    /// The pinned version of the package.
    pub version: &'static str,
    /// sha256 of the wheel file, in lower-case hexadecimal.
    pub sha256: &'static str,
    /// The shared library's path inside the wheel.
    pub library: &'static str,
    /// The path of `pjrt_c_api.h` inside the wheel, where the wheel ships it.
    pub header: Option<&'static str>,
    /// The name of the same plugin when built from XLA's sources.
    pub source_build_library: &'static str,
    /// Options that tell pip which wheel is wanted, so that the same file comes whatever the Python that runs pip.
    pub(crate) pip_tags: &'static [&'static str],
}

/// All plugins that podracer knows.
pub static PLUGINS: [PluginSpec; 3] = [
    PluginSpec {
        name: "cpu",
        package: "xla-cpu-pjrt",
        version: "0.0.1",
        sha256: "55837b6b7b47daa717f2d9a5a03563ea0ceaa338d06a81a1e2d3f060d960decc",
        library: "xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so",
        header: Some("xla_plugins/xla_cpu_pjrt/include/pjrt_c_api.h"),
        source_build_library: "pjrt_c_api_cpu_plugin.so",
        pip_tags: &["--platform", "manylinux_2_27_x86_64"],
    },
    PluginSpec {
        name: "cuda13",
        package: "jax-cuda13-pjrt",
        version: "0.12.0.1",
        sha256: "5899bb6177eda86ea532afb9a26794f2bdd04966f6a01f9028266b16c2b6cf90",
        library: "jax_plugins/xla_cuda13/xla_cuda_plugin.so",
        header: None,
        source_build_library: "pjrt_c_api_gpu_plugin.so",
        pip_tags: &["--platform", "manylinux_2_27_x86_64"],
    },
    PluginSpec {
        name: "tpu",
        package: "libtpu",
        version: "0.0.51",
        // libtpu has one wheel per Python version, each with its own hash: ask for one of them, always the same.
        sha256: "ba67ddbfdbac61c8da1fafc26cd51b93e9fe4d298016e2882eb986b1718cba34",
        library: "libtpu/libtpu.so",
        header: None,
        source_build_library: "pjrt_c_api_tpu_plugin.so",
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

    /// The file names by which this plugin is recognised.
    #[must_use]
    pub fn library_names(&self) -> [&'static str; 2] {
        [self.library_file(), self.source_build_library]
    }
}
