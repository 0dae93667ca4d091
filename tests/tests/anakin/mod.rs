//! The training loop on devices: its transfers, its costs, and equal results on every device.

mod checkpoints;
mod determinism;
mod errors;
mod iterations;
mod log;
mod memory;
mod reference;
mod replay;
mod replicas;
mod transfers;

use std::process::Command;

/// Set in the processes that a test starts of this binary.
const CHILD: &str = "PODRACER_TEST_CHILD";

/// Runs a test of this binary alone in a separate process, and returns its output. The test checks
/// [`is_child`].
pub fn run_alone(test: &str, environment: &[(&str, &str)]) -> String {
    let binary = std::env::current_exe().expect("the test has a file");
    let output = Command::new(binary)
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(CHILD, "1")
        .envs(environment.iter().copied())
        .output()
        .expect("the test starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{test}:\n{stdout}\n{stderr}");
    eprint!("{stderr}");
    stdout
}

/// True if this is a process of [`run_alone`].
pub fn is_child() -> bool {
    std::env::var_os(CHILD).is_some()
}
