//! The messages of a run: everything that was printed about it, except progress.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// The file, with one JSON object per line.
pub(crate) const MESSAGES: &str = "messages.jsonl";

/// A message of a run.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct Message {
    /// Seconds since 1970.
    pub(crate) time: f64,
    pub(crate) kind: MessageKind,
    pub(crate) text: String,
}

/// The kind of a message.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum MessageKind {
    /// The run begins, resumes or stops.
    Run,
    /// A print of the program, or a failed check.
    Print,
    Warning,
    Error,
}

impl Message {
    pub(crate) fn now(kind: MessageKind, text: &str) -> Self {
        let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Message { time: time.as_secs_f64(), kind, text: text.to_owned() }
    }

    /// Appends the message to the run's messages, in one write.
    pub(crate) fn add_to(&self, run: &Path) -> io::Result<()> {
        let mut file = File::options().create(true).append(true).open(run.join(MESSAGES))?;
        file.write_all(format!("{}\n", serde_json::to_string(self)?).as_bytes())
    }
}
