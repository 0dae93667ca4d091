//! A Python with jaxlib, which `make test` installs.

use std::io::Write;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};

use crate::skip::skip;

/// Why a test without a Python with jaxlib is skipped.
const NO_JAXLIB: &str =
    "no jaxlib: `make test` installs it, and PODRACER_PYTHON names a Python that has it";

/// Runs a Python script with arguments and input, and gives what it printed. `None`, and the running test counts as
/// skipped, where there is no Python with jaxlib (`PODRACER_PYTHON` names one).
///
/// # Errors
/// Where the script fails, with what it said.
pub fn run(script: &str, arguments: &[&str], input: &str) -> Result<Option<String>> {
    let named = std::env::var("PODRACER_PYTHON").ok();
    let python = named.unwrap_or_else(|| "python3".to_owned());
    let probe = Command::new(&python).args(["-P", "-c", "import jaxlib"]).output();
    if !probe.is_ok_and(|output| output.status.success()) {
        skip(NO_JAXLIB);
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
