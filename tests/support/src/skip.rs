//! Tests that cannot run here, counted as skipped.
//!
//! libtest has no test that skips itself: it returns, and the runner reports success. So a test
//! that cannot run calls [`skip`] first, which records the reason in a file, and `scripts/test`
//! counts by that file.

use std::fs::OpenOptions;
use std::io::Write;
use std::{env, thread};

/// Records the reason why the running test is skipped: the missing part, and the command that
/// installs it. The test returns after that. Tests with equal reasons are counted together.
///
/// `PODRACER_SKIPPED`, which `make test` sets, names a file. It gets a line: test binary, test, reason, with tabs between.
#[track_caller]
pub fn skip(reason: &str) {
    let reason = reason.split_whitespace().collect::<Vec<_>>().join(" ");
    eprintln!("SKIPPED: {reason}");
    let Some(path) = env::var_os("PODRACER_SKIPPED") else {
        return;
    };
    let line = format!("{}\t{}\t{reason}\n", binary(), test());
    // One write of a short line: tests of many processes append to the file.
    let file = OpenOptions::new().append(true).create(true).open(&path);
    let written = file.and_then(|mut file| file.write_all(line.as_bytes()));
    written.unwrap_or_else(|error| panic!("cannot append to {}: {error}", path.display()));
}

/// True if an expensive test (time, memory, disk) is to be left out, which is then counted as
/// skipped. `make test-all` sets `PODRACER_ALL`, so that every test runs.
#[track_caller]
pub fn skip_heavy(takes: &str) -> bool {
    let left_out = env::var_os("PODRACER_ALL").is_none();
    if left_out {
        skip(&format!("takes {takes}: `make test-all` or PODRACER_ALL=1 runs it"));
    }
    left_out
}

/// The test binary: nextest's name, or with `cargo test` the file's name.
fn binary() -> String {
    let file = || env::current_exe().unwrap_or_default();
    let name = || file().file_name().unwrap_or_default().to_string_lossy().into_owned();
    env::var("NEXTEST_BINARY_ID").unwrap_or_else(|_| name())
}

/// The test's path in its binary. libtest names the thread after it, unless there is but one thread.
#[track_caller]
fn test() -> String {
    let place = std::panic::Location::caller();
    let of_thread = || match thread::current().name() {
        Some(name) if name != "main" => name.to_owned(),
        _ => format!("{}:{}", place.file(), place.line()),
    };
    env::var("NEXTEST_TEST_NAME").unwrap_or_else(|_| of_thread())
}
