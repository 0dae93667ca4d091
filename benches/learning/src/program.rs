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
    /// True of a loop that is one program.
    pub one_program: bool,
    /// The beginning of the sha256 of all settings but the seed: another default is another hash.
    pub settings: String,
    parts: Parts,
}

/// An experiment as `podracer describe` shows it.
#[derive(Clone, Debug, PartialEq)]
struct Parts {
    /// The entry that each table has, such as `ppo` for `agent`.
    chosen: BTreeMap<String, String>,
    /// Each setting but the seed, such as `agent.clip`.
    values: Changes,
    /// XLA's options have no schema, and are kept as they are.
    xla: Value,
}

/// Values of settings by their keys, such as `train.steps`.
pub type Changes = BTreeMap<String, Value>;

impl Described {
    /// These settings with some of them changed.
    ///
    /// # Errors
    /// A key that is no setting of the experiment, and a value that it has already.
    pub fn with(&self, changes: &Changes) -> Result<Described> {
        let mut parts = self.parts.clone();
        for (key, value) in changes {
            let present = parts.values.get_mut(key).with_context(|| format!("no setting {key}"))?;
            ensure!(present != value, "{key} is {value} already");
            *present = value.clone();
        }
        parts.described()
    }

    /// The value of a setting; `None` of an unknown one.
    pub fn value(&self, key: &str) -> Option<&Value> {
        self.parts.values.get(key)
    }
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
                // An error means that it has ended meanwhile.
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

    /// The beginning of the sha256 of the StableHLO of an experiment's training on one device.
    ///
    /// # Errors
    /// A program that cannot be emitted.
    pub fn emitted(&self, experiment: &str, set: &Changes) -> Result<String> {
        let set = set_arguments(set);
        let mut arguments =
            vec!["ir", "emit", experiment, "--stage", "stablehlo", "--devices", "1"];
        arguments.extend(set.iter().map(String::as_str));
        // Warnings about a single device are about no training.
        let output = self.command(&arguments).stderr(Stdio::piped()).output();
        let output = output.with_context(|| format!("cannot start `{}`", self.path.display()))?;
        let line = arguments.join(" ");
        let error = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "`podracer {line}` failed: {}", error.trim());
        let mut hash = Sha256::new();
        hash.update(&output.stdout);
        Ok(beginning(hash))
    }

    /// The state of a set of Python packages: `None` if it is installed, otherwise the problem.
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

/// The arguments that change settings.
pub fn set_arguments(set: &Changes) -> Vec<String> {
    set.iter().map(|(key, value)| format!("--set={key}={value}")).collect()
}

/// The first 16 digits of a hash.
fn beginning(hash: Sha256) -> String {
    hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// The settings that `podracer describe --json` has printed.
///
/// # Errors
/// Where something is missing.
pub fn described(json: &Value) -> Result<Described> {
    let (mut chosen, mut values) = (BTreeMap::new(), BTreeMap::new());
    for part in json["parts"].as_array().context("no parts")? {
        let table = part["table"].as_str().context("a part has no table")?;
        let name = part["name"].as_str().context("a part has no name")?;
        chosen.insert(table.to_owned(), name.to_owned());
        for setting in part["settings"].as_array().context("a part has no settings")? {
            let key = setting["key"].as_str().context("a setting has no key")?;
            values.insert(format!("{table}.{key}"), setting["value"].clone());
        }
    }
    values.remove("train.seed").context("no seed")?;
    Parts { chosen, values, xla: json["xla"].clone() }.described()
}

impl Parts {
    fn described(self) -> Result<Described> {
        let Parts { chosen, values, xla } = &self;
        let mut hash = Sha256::new();
        for (table, name) in chosen {
            hash.update(format!("{table} {name}\n"));
        }
        // A new setting that is absent changes nothing.
        for (key, value) in values.iter().filter(|(_, value)| !value.is_null()) {
            hash.update(format!("{key} = {value}\n"));
        }
        hash.update(format!("xla = {xla}\n"));
        let name = |table: &str| chosen.get(table).cloned().context("no such table");
        let text = |key: &str| values.get(key).and_then(|value| value.as_str());
        let which = text("environment.game").or_else(|| text("environment.id"));
        let environment = [Some(name("environment")?), which.map(str::to_owned)];
        Ok(Described {
            agent: name("agent")?,
            environment: environment.into_iter().flatten().collect::<Vec<_>>().join(" "),
            steps: values.get("train.steps").and_then(Value::as_u64).context("no steps")?,
            one_program: chosen.contains_key("anakin"),
            settings: beginning(hash),
            parts: self,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn example(seed: u64, clip: f64, xla: Value) -> Described {
        described(&json!({ "xla": xla, "parts": [
            { "table": "train", "name": "train", "settings": [
                { "key": "seed", "value": seed }, { "key": "steps", "value": 9 }] },
            { "table": "agent", "name": "ppo", "settings": [{ "key": "clip", "value": clip }] },
            { "table": "environment", "name": "atari",
              "settings": [{ "key": "game", "value": "pong" }] },
        ]}))
        .expect("it is described")
    }

    #[test]
    fn every_setting_but_the_seed_is_in_the_hash() {
        let one = example(0, 0.1, Value::Null);
        assert_eq!(
            (one.agent.as_str(), one.environment.as_str(), one.steps),
            ("ppo", "atari pong", 9)
        );
        assert_eq!(one.settings.len(), 16);
        assert_eq!(example(7, 0.1, Value::Null), one);
        assert_ne!(example(0, 0.2, Value::Null).settings, one.settings);
        assert_ne!(example(0, 0.1, json!({ "xla_cpu_use_onednn": true })).settings, one.settings);
    }

    #[test]
    fn changed_settings_have_the_hash_of_an_experiment_that_has_them() {
        let (one, other) = (example(0, 0.1, Value::Null), example(0, 0.25, Value::Null));
        let changes = |text: &str| toml::from_str::<Changes>(text).expect("it is a table");
        assert_eq!(one.with(&changes("'agent.clip' = 0.25")).expect("it is a setting"), other);
        let steps = one.with(&changes("'train.steps' = 30")).expect("it is a setting");
        assert_eq!((steps.steps, steps.value("train.steps")), (30, Some(&json!(30))));
        for (wrong, expected) in [
            ("'agent.clop' = 0.25", "no setting agent.clop"),
            ("'agent.clip' = 0.1", "agent.clip is 0.1 already"),
        ] {
            let error = one.with(&changes(wrong)).expect_err("it is wrong").to_string();
            assert_eq!(error, expected);
        }
    }
}
