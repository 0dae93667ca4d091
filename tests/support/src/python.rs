//! Pythons with packages: with jaxlib, which `make test` installs, with the peers of the benches, with those that read records, and with mujoco.

use std::io::Write;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};

use crate::skip::skip;

/// A Python that tests use: the variable that names it, a package that it has, and why a test without it is skipped.
struct Named {
    variable: &'static str,
    package: &'static str,
    missing: &'static str,
}

const JAXLIB: Named = Named {
    variable: "PODRACER_PYTHON",
    package: "jaxlib",
    missing: "no jaxlib: `make test` installs it, and PODRACER_PYTHON names a Python that has it",
};

const PEERS: Named = Named {
    variable: "PODRACER_PEER_PYTHON",
    package: "flashbax",
    missing: "no flashbax: `make test-all` installs it, and PODRACER_PEER_PYTHON names a Python that has it",
};

const RECORDS: Named = Named {
    variable: "PODRACER_RECORDS_PYTHON",
    package: "wandb",
    missing: "no wandb: `make test-all` installs it, and PODRACER_RECORDS_PYTHON names a Python that has the packages of `tests/records.txt`",
};

const MUJOCO: Named = Named {
    variable: "PODRACER_MUJOCO_PYTHON",
    package: "mujoco, gymnasium",
    missing: "no mujoco: `make test-all` installs it, and PODRACER_MUJOCO_PYTHON names a Python that has the packages of `tests/mujoco.txt`",
};

/// Runs a Python script with arguments and input, and gives what it printed. `None`, and the running test counts as
/// skipped, where there is no Python with jaxlib (`PODRACER_PYTHON` names one).
///
/// # Errors
/// An error if the script fails, with its output.
pub fn run(script: &str, arguments: &[&str], input: &str) -> Result<Option<String>> {
    run_with(&JAXLIB, script, arguments, input)
}

/// [`run`] with the packages of `benches/peer/requirements.txt` (`PODRACER_PEER_PYTHON` names a Python that has them).
///
/// # Errors
/// An error if the script fails, with its output.
pub fn run_peer(script: &str, arguments: &[&str], input: &str) -> Result<Option<String>> {
    run_with(&PEERS, script, arguments, input)
}

/// [`run`] with the packages of `tests/records.txt` (`PODRACER_RECORDS_PYTHON` names a Python that has them).
///
/// # Errors
/// An error if the script fails, with its output.
pub fn run_records(script: &str, arguments: &[&str], input: &str) -> Result<Option<String>> {
    run_with(&RECORDS, script, arguments, input)
}

/// [`run`] with the packages of `tests/mujoco.txt` (`PODRACER_MUJOCO_PYTHON` names a Python that has them).
///
/// # Errors
/// An error if the script fails, with its output.
pub fn run_mujoco(script: &str, arguments: &[&str], input: &str) -> Result<Option<String>> {
    run_with(&MUJOCO, script, arguments, input)
}

fn run_with(
    named: &Named,
    script: &str,
    arguments: &[&str],
    input: &str,
) -> Result<Option<String>> {
    let python = std::env::var(named.variable).unwrap_or_else(|_| "python3".to_owned());
    let import = format!("import {}", named.package);
    let probe = Command::new(&python).args(["-P", "-c", &import]).output();
    if !probe.is_ok_and(|output| output.status.success()) {
        skip(named.missing);
        return Ok(None);
    }
    let mut child = Command::new(&python)
        .args(["-P", "-c", script])
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("starting {python}"))?;
    let mut pipe = child.stdin.take().context("the input is piped")?;
    let input = input.to_owned();
    // A script that ends early closes its input; its exit status says why.
    let writer = std::thread::spawn(move || pipe.write_all(input.as_bytes()));
    let output = child.wait_with_output()?;
    let _ = writer.join();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    ensure!(output.status.success(), "the Python script failed:\n{out}\n{err}");
    Ok(Some(out))
}
