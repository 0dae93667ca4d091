//! Data of a run for a report, in addition to its [`RunOverview`].

use std::io::ErrorKind;

use anyhow::{Context, Result};
use serde_json::Value;
use sha2::{Digest, Sha256};
use toml::Table;

use super::reading::{cannot_read, read_text, tail};
use super::{CONFIG, MESSAGES, Message, RunOverview};

/// Number of bytes at the end of `messages.jsonl` that are read.
const TAIL: u64 = 4 << 20;

impl RunOverview {
    /// The run's configuration, as TOML: an experiment.
    ///
    /// # Errors
    /// An error if the file cannot be read.
    pub fn config(&self) -> Result<String> {
        read_text(&self.run, CONFIG)?.with_context(|| cannot_read(&self.run, CONFIG))
    }

    /// The JSON of a profile in the run's folder, such as `profile.json`; `None` if there is none,
    /// or if it is damaged.
    ///
    /// # Errors
    /// An error if the file exists but cannot be read.
    pub(crate) fn profile(&self, name: &str) -> Result<Option<Value>> {
        let text = read_text(&self.run, name)?;
        Ok(text.and_then(|text| serde_json::from_str(&text).ok()))
    }

    /// The table `[recorded]` of the configuration: devices and versions, for readers.
    ///
    /// # Errors
    /// An error if the configuration cannot be read.
    pub fn recorded(&self) -> Result<Table> {
        let config: Table = self.config()?.parse()?;
        let recorded = config.get("recorded").and_then(toml::Value::as_table);
        Ok(recorded.cloned().unwrap_or_default())
    }

    /// The first digits of a hash over all settings except the seed.
    #[must_use]
    pub fn settings_hash(&self) -> String {
        let mut hash = Sha256::new();
        for (key, value) in &self.settings {
            hash.update(format!("{key} = {value}\n"));
        }
        format!("{:x}", hash.finalize())[..16].to_owned()
    }

    /// The last messages of the run, the oldest first. An incomplete line, such as the last line
    /// after a crash, is left out.
    ///
    /// # Errors
    /// An error if the file exists but cannot be read.
    pub(crate) fn messages(&self, most: usize) -> Result<Vec<Message>> {
        let tail = match tail(&self.run, MESSAGES, TAIL) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            tail => tail.with_context(|| cannot_read(&self.run, MESSAGES))?,
        };
        let lines = tail.rsplit(|byte| *byte == b'\n');
        let last = lines.filter_map(|line| serde_json::from_slice(line).ok());
        let mut messages: Vec<Message> = last.take(most).collect();
        messages.reverse();
        Ok(messages)
    }
}
