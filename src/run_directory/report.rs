//! What a report says of a run beside its [`RunOverview`].

use std::fs;

use anyhow::{Context, Result};
use podracer_plugins::read_regular_text;
use sha2::{Digest, Sha256};
use toml::Table;

use super::{CONFIG, MESSAGES, Message, RunOverview};

/// Most bytes of messages that are read.
const LARGEST: u64 = 64 << 20;

impl RunOverview {
    /// The run's configuration, as TOML: an experiment.
    ///
    /// # Errors
    /// Where the file cannot be read.
    pub fn config(&self) -> Result<String> {
        let path = self.run.join(CONFIG);
        fs::read_to_string(&path).with_context(|| format!("cannot read `{}`", path.display()))
    }

    /// The table `[recorded]` of the configuration: devices and versions, for readers.
    ///
    /// # Errors
    /// Where the configuration cannot be read.
    pub fn recorded(&self) -> Result<Table> {
        let config: Table = self.config()?.parse()?;
        let recorded = config.get("recorded").and_then(toml::Value::as_table);
        Ok(recorded.cloned().unwrap_or_default())
    }

    /// The first digits of a hash of all settings but the seed.
    #[must_use]
    pub fn settings_hash(&self) -> String {
        let mut hash = Sha256::new();
        for (key, value) in &self.settings {
            hash.update(format!("{key} = {value}\n"));
        }
        format!("{:x}", hash.finalize())[..16].to_owned()
    }

    /// The last messages of the run, the oldest first. A line that is not whole, as the last one may be after a crash, is left out.
    ///
    /// # Errors
    /// Where the file is there and cannot be read.
    pub(crate) fn messages(&self, most: usize) -> Result<Vec<Message>> {
        let path = self.run.join(MESSAGES);
        if !path.exists() {
            return Ok(Vec::new());
        }
        let text = read_regular_text(&path, LARGEST)?;
        let last = text.lines().rev().filter_map(|line| serde_json::from_str(line).ok());
        let mut messages: Vec<Message> = last.take(most).collect();
        messages.reverse();
        Ok(messages)
    }
}
