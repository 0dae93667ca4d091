//! States of hundreds of megabytes: their checkpoints are written and read in pieces. Each
//! measurement runs in a separate process, because the peak of its memory belongs to the whole
//! process.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

use podracer_dsl::prelude::*;
use podracer_runtime::{
    AnakinLoop, AnakinProgram, AnakinState, Checkpoint, Checkpoints, CompileOptions,
    ExecutableCache, ProgramOptions,
};

use crate::programs::client;
use podracer_test_support::skip::skip_heavy;

/// The variables that tell the child process what to do.
const MODE: &str = "PODRACER_TEST_CHECKPOINT";
const FOLDER: &str = "PODRACER_TEST_FOLDER";
const MEBIBYTES: &str = "PODRACER_TEST_MEBIBYTES";

const MIB: usize = 1 << 20;

type Store = AnakinProgram<Tensor, Tensor, (), ()>;

/// A counter, and a store of different numbers with `bytes` bytes over two devices. An iteration
/// changes one number.
fn store(bytes: usize) -> Store {
    // Its parts do not end where pieces do.
    let numbers = bytes / 8 + 1;
    let traced = AnakinLoop::trace(
        "store",
        2,
        1,
        |_| Placed {
            replicated: scalar(0),
            sharded: arange(numbers) + axis_index(Replicas) * numbers as i32,
        },
        |Placed { replicated, sharded }| {
            let sharded = dynamic_update_slice(sharded, replicated.reshape([1]), &[replicated]);
            let metrics = Placed { replicated: (), sharded: () };
            (Placed { replicated: replicated + 1, sharded }, metrics)
        },
    );
    let options = ProgramOptions {
        compile: CompileOptions { replicas: 2, ..CompileOptions::default() },
        cache: ExecutableCache::disabled(),
        ..ProgramOptions::default()
    };
    traced.unwrap().compile(client(), &options).unwrap()
}

fn checkpoint(state: &AnakinState<Tensor, Tensor>) -> Checkpoint<'_> {
    let mut checkpoint = Checkpoint { iterations: 1, ..Checkpoint::default() };
    checkpoint.insert("state.", state.named_sources());
    checkpoint
}

/// A line of `/proc/self/status`, in bytes.
fn status(name: &str) -> usize {
    let text = fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.split_whitespace().next().unwrap().parse::<usize>().unwrap() * 1024
}

/// Memory in use now; the peak is counted from here.
fn resident() -> usize {
    fs::write("/proc/self/clear_refs", "5").unwrap();
    status("VmRSS:")
}

/// Not a test of itself: writes or reads a checkpoint when called by [`extra`], and prints by how many mebibytes the peak of
/// its memory was above the state's.
#[test]
fn child() {
    let Some(mode) = env::var_os(MODE) else { return };
    let folder = env::var(FOLDER).unwrap();
    let bytes = env::var(MEBIBYTES).unwrap().parse::<usize>().unwrap() * MIB;
    let checkpoints = |name: &str| Checkpoints::new(Path::new(&folder).join(name), 1);
    let store = store(bytes);
    let extra = if mode == "write" {
        let (state, _) = store.run(store.init(0).unwrap()).unwrap();
        let before = resident();
        checkpoints("first").save(&checkpoint(&state)).unwrap();
        status("VmHWM:") - before
    } else {
        let before = resident();
        let found = checkpoints("first").latest().unwrap();
        let state = store.restore(&found.checkpoint, "state.").unwrap();
        checkpoints("second").save(&checkpoint(&state)).unwrap();
        // A restored state is like any other: the program takes over its memory.
        let address =
            |state: &AnakinState<Tensor, Tensor>| state.sharded.buffers()[1].address().unwrap();
        let lies = address(&state);
        let (state, _) = store.run(state).unwrap();
        assert_eq!(address(&state), lies);
        assert_eq!(state.replicated.to_host().unwrap().item::<i32>().unwrap(), 2);
        (status("VmHWM:") - before).saturating_sub(bytes)
    };
    println!("RESULT {}", extra / MIB);
}

/// Mebibytes in addition to the state's at the peak of writing its checkpoint, or of reading it and
/// resuming.
fn extra(mode: &str, folder: &Path, mebibytes: usize) -> usize {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", "checkpoints::child", "--nocapture", "--test-threads=1"]);
    command.env(MODE, mode).env(FOLDER, folder).env(MEBIBYTES, mebibytes.to_string());
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    let result = text.split_once("RESULT ").and_then(|(_, rest)| rest.lines().next());
    result.unwrap_or_else(|| panic!("{text}")).parse().unwrap()
}

fn check(mebibytes: usize, most: usize) {
    let folder = tempfile::tempdir().unwrap();
    let wrote = extra("write", folder.path(), mebibytes);
    let read = extra("read", folder.path(), mebibytes);
    println!("{mebibytes} MiB: {wrote} MiB more to write, {read} MiB more to read");
    assert!(wrote < most && read < most, "{wrote} MiB to write, {read} MiB to read");
    let arrays = |name: &str| {
        let manifest = folder.path().join(name).join("1-1/manifest.json");
        let manifest: serde_json::Value =
            serde_json::from_slice(&fs::read(manifest).unwrap()).unwrap();
        manifest["sha256"].clone()
    };
    assert_eq!(arrays("second"), arrays("first"));
}

#[test]
fn a_checkpoint_never_takes_the_memory_of_its_state_again() {
    check(256, 64);
}

#[test]
fn two_gigabytes_are_checkpointed_within_200_megabytes() {
    if skip_heavy("2 GB of memory and 4 GB of disk") {
        return;
    }
    check(2048, 190);
}

/// Uploads in progress are aborted, and no reader waits for the rest of their bytes.
#[test]
fn a_file_that_is_cut_off_while_it_is_read_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let checkpoints = Checkpoints::new(folder.path(), 1);
    let store = store(48 * MIB);
    let state = store.init(0).unwrap();
    let path = checkpoints.save(&checkpoint(&state)).unwrap().join("arrays.safetensors");
    let found = checkpoints.latest().unwrap();
    fs::File::options().write(true).open(&path).unwrap().set_len(36 * MIB as u64).unwrap();
    let error = store.restore(&found.checkpoint, "state.").err().unwrap().to_string();
    assert_eq!(error, format!("cannot read `{}`", path.display()));
    // Nothing is left of it: the same devices take the same state.
    checkpoints.save(&checkpoint(&state)).unwrap();
    let found = checkpoints.latest().unwrap();
    let restored = store.restore(&found.checkpoint, "state.").unwrap();
    let arrays = |state| checkpoint(state).to_host().unwrap();
    assert_eq!(arrays(&restored), arrays(&state));
}
