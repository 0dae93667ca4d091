//! The program `podracer`, called as a process: settings, trainings, evaluations.

use std::collections::BTreeMap;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use sha2::{Digest, Sha256};

/// The environment variable with the number of the process that `podracer` is to end with.
const ENDS_WITH: &str = "PODRACER_ENDS_WITH";

/// The program `podracer`.
#[derive(Clone, Debug)]
pub struct Program {
    path: PathBuf,
}

/// The settings of an experiment, complete.
#[derive(Clone, Debug, PartialEq)]
pub struct Described {
    /// Name of the agent, `agent.kind`.
    pub agent: String,
    /// Name of the environment, with the game or id of those that have one.
    pub environment: String,
    /// Environment steps that are asked for.
    pub steps: u64,
    /// The beginning of the sha256 of all settings but the seed: another default is another hash.
    pub settings: String,
}

/// A process that has ended.
#[derive(Debug)]
pub struct Output {
    pub status: ExitStatus,
    pub stdout: String,
}

impl Program {
    /// The program of this path.
    pub fn new(path: PathBuf) -> Self {
        Program { path }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.path);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped());
        // Ctrl-C reaches this program alone, which then stops the child: once, and again if it is pressed again.
        command.process_group(0).env(ENDS_WITH, std::process::id().to_string());
        command
    }

    /// Runs a command to its end, with its standard error shown. Each signal that `signals` has counted stops the child like a
    /// Ctrl-C of its own.
    ///
    /// # Errors
    /// Where the program cannot be started or its output is not text.
    pub fn run(&self, arguments: &[&str], signals: &AtomicUsize) -> Result<Output> {
        let path = self.path.display();
        let mut child =
            self.command(arguments).spawn().with_context(|| format!("cannot start `{path}`"))?;
        let pid = Pid::from_child(&child);
        let mut pipe = child.stdout.take().context("standard output is a pipe")?;
        let reader = thread::spawn(move || {
            let mut text = String::new();
            pipe.read_to_string(&mut text).map(|_| text)
        });
        let mut passed_on = 0;
        let status = loop {
            if let Some(status) = child.try_wait().context("cannot wait for podracer")? {
                break status;
            }
            if signals.load(Ordering::SeqCst) > passed_on {
                passed_on += 1;
                // An error says that it has ended meanwhile.
                let _ = kill_process(pid, Signal::TERM);
            }
            thread::sleep(Duration::from_millis(20));
        };
        let stdout = reader.join().ok().context("the reader of the output ends")?;
        let stdout =
            stdout.with_context(|| format!("`{path}` printed something that is not text"))?;
        Ok(Output { status, stdout })
    }

    fn printed(&self, arguments: &[&str]) -> Result<String> {
        let Output { status, stdout } = self.run(arguments, &AtomicUsize::new(0))?;
        let line = arguments.join(" ");
        ensure!(status.success(), "`podracer {line}` failed: {status}");
        Ok(stdout)
    }

    /// The settings of an experiment.
    ///
    /// # Errors
    /// An unknown experiment, or another program than `podracer`.
    pub fn describe(&self, experiment: &str) -> Result<Described> {
        let text = self.printed(&["describe", experiment, "--json"])?;
        let problem = || format!("`podracer describe {experiment} --json` printed something else");
        let json = serde_json::from_str(&text).with_context(problem)?;
        described(&json).with_context(problem)
    }

    /// The state of a set of Python packages: `None` if it is installed, or else what is wrong.
    ///
    /// # Errors
    /// An unknown set.
    pub fn packages(&self, name: &str) -> Result<Option<String>> {
        let text = self.printed(&["envs", "list"])?;
        let line = text.lines().find(|line| line.split_whitespace().next() == Some(name));
        let line =
            line.with_context(|| format!("`podracer envs list` has no packages `{name}`"))?;
        let installed = line.trim_end().ends_with("/bin/python");
        Ok((!installed).then(|| {
            format!("it needs packages that are not ready ({line}): `podracer envs install {name}`")
        }))
    }
}

fn described(json: &Value) -> Result<Described> {
    let mut settings: BTreeMap<String, &Value> = BTreeMap::new();
    let mut chosen = BTreeMap::new();
    for part in json["parts"].as_array().context("no parts")? {
        let table = part["table"].as_str().context("a part has no table")?;
        chosen.insert(table, part["name"].as_str().context("a part has no name")?);
        for setting in part["settings"].as_array().context("a part has no settings")? {
            let key = setting["key"].as_str().context("a setting has no key")?;
            settings.insert(format!("{table}.{key}"), &setting["value"]);
        }
    }
    let steps = settings.get("train.steps").and_then(|steps| steps.as_u64()).context("no steps")?;
    settings.remove("train.seed").context("no seed")?;
    let mut hash = Sha256::new();
    for (table, name) in &chosen {
        hash.update(format!("{table} {name}\n"));
    }
    for (key, value) in &settings {
        hash.update(format!("{key} = {value}\n"));
    }
    // Options of XLA's are described by nobody, and are as they stand.
    hash.update(format!("xla = {}\n", json["xla"]));
    let name = |table: &str| chosen.get(table).map(ToString::to_string).context("no such table");
    let text = |key: &str| settings.get(key).and_then(|value| value.as_str());
    let which = text("environment.game").or_else(|| text("environment.id"));
    let environment = [Some(name("environment")?), which.map(str::to_owned)];
    Ok(Described {
        agent: name("agent")?,
        environment: environment.into_iter().flatten().collect::<Vec<_>>().join(" "),
        steps,
        settings: hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_setting_but_the_seed_is_in_the_hash() {
        let with = |seed: u64, clip: f64, xla: Value| {
            described(&json!({ "xla": xla, "parts": [
                { "table": "train", "name": "train", "settings": [
                    { "key": "seed", "value": seed }, { "key": "steps", "value": 9 }] },
                { "table": "agent", "name": "ppo", "settings": [{ "key": "clip", "value": clip }] },
                { "table": "environment", "name": "atari",
                  "settings": [{ "key": "game", "value": "pong" }] },
            ]}))
            .expect("it is described")
        };
        let one = with(0, 0.1, Value::Null);
        assert_eq!(
            (one.agent.as_str(), one.environment.as_str(), one.steps),
            ("ppo", "atari pong", 9)
        );
        assert_eq!(one.settings.len(), 16);
        assert_eq!(with(7, 0.1, Value::Null), one);
        assert_ne!(with(0, 0.2, Value::Null).settings, one.settings);
        assert_ne!(with(0, 0.1, json!({ "xla_cpu_use_onednn": true })).settings, one.settings);
    }
}
