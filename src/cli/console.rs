//! Streams that the commands write to.

use std::io::{self, Write};

use anyhow::Result;

/// Streams that the commands write to.
pub struct Console<'a> {
    /// Standard output.
    pub out: &'a mut dyn Write,
    /// Standard error.
    pub err: &'a mut dyn Write,
    /// True if standard error is a terminal: progress bars and colours belong only there.
    pub terminal: bool,
}

/// An error in writing to standard output.
#[derive(Debug, thiserror::Error)]
#[error("cannot write to standard output: {0}")]
pub(super) struct OutputError(pub(super) io::Error);

impl Console<'_> {
    /// Prints to standard output.
    pub(super) fn print(&mut self, text: &str) -> Result<()> {
        self.out
            .write_all(text.as_bytes())
            .and_then(|()| self.out.flush())
            .map_err(|error| OutputError(error).into())
    }

    /// Prints a line to standard error. It is no error if standard error is closed.
    pub(super) fn say(&mut self, text: &str) {
        let _ = writeln!(self.err, "{text}");
    }

    /// Prints a warning.
    pub(super) fn warn(&mut self, warning: &str) {
        self.say(&format!("warning: {warning}"));
    }
}
