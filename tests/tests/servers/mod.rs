//! Environments of Python packages, through servers and stepped directly. These tests need what `podracer envs install`
//! makes, and are skipped where it is missing.

mod atari;
mod envpool;
mod gymnasium;
mod odd;
mod pictures;

use std::path::{Path, PathBuf};
use std::process::Command;

use podracer_envs::host::{HostEnvironment, Random, StepMemory};
use podracer_test_support::skip::skip;
use serde_json::Value;

/// The interpreter with these packages. None, and the running test counts as skipped, where they are not installed.
fn python(packages: &str) -> Option<PathBuf> {
    let set = podracer_plugins::package_set(packages).expect("the set is known");
    let found = set.find();
    if let Err(error) = &found {
        skip(&error.to_string());
    }
    found.ok()
}

/// Answer of a Python program to an order, in JSON.
fn direct(python: &Path, program: &str, order: &Value) -> Value {
    let output =
        Command::new(python).args(["-P", "-c", program, &order.to_string()]).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The seed that a server gives to the environment of a global index.
fn seed(run: u64, index: usize) -> u64 {
    Random::of_environment(run, index).bits() >> 33
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    let floats = bytes.as_chunks().0.iter();
    floats.map(|bytes| f32::from_le_bytes(*bytes)).collect()
}

fn begun(
    mut batch: impl HostEnvironment,
    run: u64,
    first: usize,
) -> (impl HostEnvironment, StepMemory) {
    let mut memory = StepMemory::new(batch.spec());
    batch.reset(run, first, &mut memory.step()).unwrap();
    (batch, memory)
}
