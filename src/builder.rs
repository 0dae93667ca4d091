//! Parts that the builders [`Anakin`](crate::anakin::Anakin) and [`Sebulba`](crate::sebulba::Sebulba) share.

use podracer_runtime::{CompileOptions, OptionValue, ProgramOptions, XlaOptions};

use crate::UsageError;

/// Methods of a builder that set the field of their name.
macro_rules! setters {
    ($($(#[$doc:meta])* $name:ident: $type:ty;)*) => {$(
        $(#[$doc])*
        #[must_use]
        pub fn $name(mut self, $name: $type) -> Self {
            self.$name = $name.into();
            self
        }
    )*};
}
pub(crate) use setters;

/// Greatest number of environments whose products are so small that handing them to other threads costs more than it gains.
pub(crate) const ONE_THREAD: usize = 32;

/// XLA's options by podracer's rule. `platform` is `cpu`, `cuda` or `tpu`. Where several devices share the cores, threads
/// of their own would stand in each other's way.
pub(crate) fn xla_options(
    platform: &str,
    environments: usize,
    several_devices: bool,
) -> Vec<(String, OptionValue)> {
    let mut options = XlaOptions::for_platform(platform).pairs();
    if platform == "cpu" && (environments <= ONE_THREAD || several_devices) {
        let name = "xla_cpu_multi_thread_eigen".to_owned();
        options.push((name, OptionValue::Bool(false)));
    }
    options
}

/// The name of a module: `name` with `_` for all but letters and digits of ASCII.
pub(crate) fn module_name(name: &str) -> String {
    name.replace(|c: char| !c.is_ascii_alphanumeric(), "_")
}

/// Checks that each of some counts is at least 1.
pub(crate) fn at_least_one(counts: &[(&str, usize)]) -> Result<(), UsageError> {
    match counts.iter().find(|(_, count)| *count == 0) {
        Some((what, _)) => Err(UsageError::new(format!("{what} must be at least 1 and is 0"))),
        None => Ok(()),
    }
}

/// Options of a program for one device, by its index.
pub(crate) fn on_device(device: usize) -> ProgramOptions {
    let compile =
        CompileOptions { device_assignment: Some(vec![device]), ..CompileOptions::default() };
    ProgramOptions { compile, ..ProgramOptions::default() }
}
