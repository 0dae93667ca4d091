//! Parts that the builders [`Anakin`](crate::anakin::Anakin) and [`Sebulba`](crate::sebulba::Sebulba) share.

use podracer_runtime::{OptionValue, XlaOptions};

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
const ONE_THREAD: usize = 32;

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
