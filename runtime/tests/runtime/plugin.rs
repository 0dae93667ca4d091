//! Plugin files that are missing, corrupt, or something else. Each case runs in a process of its own: the environment and the
//! loaded plugins belong to the whole process.

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

use podracer_runtime::{Client, ClientOptions};

use podracer_test_support::skip::skip;

/// Not a test of itself: opens the CPU client when called by [`opened`], and prints how it went.
#[test]
fn child() {
    if env::var_os("PODRACER_TEST_CHILD").is_none() {
        skip("no test of itself: a process that another test starts");
        return;
    }
    match Client::cpu(ClientOptions::default()) {
        Ok(client) => println!("RESULT {client:?}"),
        Err(error) => println!("RESULT error: {error}"),
    }
}

/// Result of opening the CPU client in a fresh process with these variables.
fn opened(variables: &[(&str, &Path)]) -> String {
    let mut command = Command::new(env::current_exe().unwrap());
    command
        .args(["--exact", "plugin::child", "--nocapture", "--test-threads=1"])
        .env("PODRACER_TEST_CHILD", "1");
    command.env_remove("PODRACER_PLUGIN_PATH").env_remove("XLA_FLAGS");
    command.envs(variables.iter().copied());
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    text.split_once("RESULT ")
        .unwrap_or_else(|| panic!("{text}"))
        .1
        .lines()
        .next()
        .unwrap()
        .to_owned()
}

fn expect_error(variables: &[(&str, &Path)], fragments: &[&str]) {
    let result = opened(variables);
    assert!(result.starts_with("error: "), "{result}");
    for fragment in fragments {
        assert!(result.contains(fragment), "`{fragment}` is not in: {result}");
    }
}

#[test]
fn nonsense_in_the_plugin_path_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing");
    expect_error(
        &[("PODRACER_PLUGIN_PATH", &missing)],
        &["PODRACER_PLUGIN_PATH", "missing", "does not exist"],
    );

    let other = folder.path().join("other.so");
    fs::write(&other, "x").unwrap();
    expect_error(
        &[("PODRACER_PLUGIN_PATH", &other)],
        &["other.so", "expected one of", "xla_cpu_pjrt.so"],
    );

    let garbage = folder.path().join("xla_cpu_pjrt.so");
    fs::write(&garbage, "this is no library").unwrap();
    expect_error(&[("PODRACER_PLUGIN_PATH", &garbage)], &["xla_cpu_pjrt.so", "no shared library"]);

    // A real plugin, cut off: the loader itself would crash on some such files.
    let real = podracer_plugins::find("cpu").unwrap().library;
    let start = fs::read(&real).unwrap();
    fs::write(&garbage, &start[..start.len() / 2]).unwrap();
    expect_error(&[("PODRACER_PLUGIN_PATH", &garbage)], &["xla_cpu_pjrt.so", "cut off"]);
}

#[test]
fn a_library_that_is_no_plugin_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let libraries = ["/lib/x86_64-linux-gnu/libm.so.6", "/lib64/libm.so.6", "/usr/lib/libm.so.6"];
    let Some(library) = libraries.iter().map(Path::new).find(|path| path.exists()) else {
        skip("no libm.so.6 in the usual folders");
        return;
    };
    let copy = folder.path().join("xla_cpu_pjrt.so");
    fs::copy(library, &copy).unwrap();
    expect_error(&[("PODRACER_PLUGIN_PATH", &copy)], &["GetPjrtApi", "no PJRT plugin"]);
}

#[test]
fn a_missing_plugin_says_how_to_get_it() {
    let empty = tempfile::tempdir().unwrap();
    expect_error(&[("XDG_CACHE_HOME", empty.path())], &["`cpu` is not installed", "make setup"]);
}

#[test]
fn a_folder_in_the_plugin_path_serves() {
    let empty = tempfile::tempdir().unwrap();
    let library = podracer_plugins::find("cpu").unwrap().library;
    let variables =
        [("XDG_CACHE_HOME", empty.path()), ("PODRACER_PLUGIN_PATH", library.parent().unwrap())];
    assert!(opened(&variables).starts_with("Client("));
}

#[test]
fn a_changed_plugin_file_is_found_corrupt() {
    let cache = tempfile::tempdir().unwrap();
    let spec = podracer_plugins::spec("cpu").unwrap();
    let installed = podracer_plugins::find("cpu").unwrap().library;
    let record = installed.with_extension("so.podracer");
    if !record.exists() {
        skip("the plugin `cpu` was not installed by podracer: `podracer plugins install cpu`");
        return;
    }
    let library = cache.path().join("podracer/plugins").join(spec.folder()).join(spec.library);
    fs::create_dir_all(library.parent().unwrap()).unwrap();
    let variables = [("XDG_CACHE_HOME", cache.path())];

    fs::write(&library, "short").unwrap();
    expect_error(&variables, &["corrupt", "record of its installation is missing"]);
    fs::copy(&record, library.with_extension("so.podracer")).unwrap();
    expect_error(&variables, &["corrupt", "5 bytes where", "podracer plugins install cpu"]);

    // As long as the right one, and of another content.
    fs::File::options()
        .write(true)
        .open(&library)
        .unwrap()
        .set_len(fs::metadata(&installed).unwrap().len())
        .unwrap();
    expect_error(&variables, &["corrupt", "sha256", "podracer plugins install cpu"]);
}

#[test]
fn bad_xla_flags_are_an_error_and_good_ones_pass() {
    for bad in ["--xla_no_such_flag=1", "--xla_cpu_prefer_vector_width=wide", "file-of-flags"] {
        expect_error(&[("XLA_FLAGS", Path::new(bad))], &["XLA_FLAGS has", bad]);
    }
    let good = "--xla_cpu_prefer_vector_width=256 --xla_dump_hlo_as_text --xla_dump_max_hlo_modules=3 \
                --xla_cpu_enable_fast_math=false --xla_dump_hlo_pass_re=nothing --xla_dump_hlo_module_re=nothing \
                --xla_dump_hlo_as_proto=true --xla_dump_hlo_as_dot=false --xla_dump_hlo_as_html=0 \
                --xla_gpu_cuda_data_dir=/nowhere --xla_embed_ir_in_executable=1";
    assert!(opened(&[("XLA_FLAGS", Path::new(good))]).starts_with("Client("));
}
