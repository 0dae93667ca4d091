//! The CUDA plugin on a machine without a GPU: it loads, says that there is none, and compiles for one that is described to it.

use std::path::Path;

use podracer_runtime::{
    Client, ClientOptions, CompileOptions, NamedValue, OptionValue, Plugin, RuntimeError, Topology,
};

use crate::options::looped;
use podracer_test_support::skip::skip;

/// An H100 as XLA describes it.
const H100: &str = include_str!("../h100.txt");

/// The plugin, or a record that the running test is skipped.
fn plugin() -> Option<Plugin> {
    if podracer_plugins::find("cuda13").is_err() {
        skip("no plugin `cuda13`: `podracer plugins install cuda13`");
        return None;
    }
    Some(Plugin::load("cuda13").unwrap())
}

#[test]
fn without_a_gpu_the_error_says_so() {
    let Some(plugin) = plugin() else {
        return;
    };
    if Path::new("/dev/nvidia0").exists() {
        return skip("this machine has a GPU");
    }
    let error = Client::new(plugin, ClientOptions::default()).unwrap_err();
    assert!(matches!(error, RuntimeError::Xla { .. }), "{error}");
    assert!(error.to_string().contains("No visible GPU devices"), "{error}");
}

/// Needs NVIDIA's assembler and library of device functions, in the folder of a toolkit that `PODRACER_CUDA` names.
#[test]
fn a_loop_of_known_length_is_compiled_for_a_gpu_that_is_not_there() {
    let Some(plugin) = plugin() else {
        return;
    };
    let Ok(toolkit) = std::env::var("PODRACER_CUDA") else {
        return skip(
            "no CUDA toolkit: `make test-all` installs it, or PODRACER_CUDA names its folder",
        );
    };
    let text = |name: &str, value: &str| (name.to_owned(), NamedValue::String(value.to_owned()));
    let options = [text("target_config", H100), text("topology", "1x1x1")];
    let topology = Topology::new(plugin, "h100", &options).unwrap();
    assert_eq!(topology.platform().unwrap(), "cuda");
    let xla = vec![("xla_gpu_cuda_data_dir".to_owned(), OptionValue::String(toolkit))];
    let options = CompileOptions { xla, ..CompileOptions::default() };
    let compiled = topology.compile(&looped(1 << 16), &options).unwrap();
    let optimized = compiled.optimized().unwrap();
    let loops: Vec<_> = optimized.loops().into_iter().map(|one| one.iterations).collect();
    assert_eq!(loops, [Some(100)], "{optimized}");
    // The product and the counter in each iteration; copies of both before the loop.
    assert_eq!(optimized.kernels(), 202, "{optimized}");
}
