//! Output streams of the commands.

use std::io::{self, Write};
use std::mem::replace;

use anyhow::Result;
use podracer_envs::host::printable;

use crate::run_directory::{Folder, Message, MessageKind};

/// Greatest number of messages that are kept until the run directory exists.
const WAITING: usize = 100;

/// Output streams of a command.
pub struct Console<'a> {
    /// Standard output.
    pub out: &'a mut dyn Write,
    /// Standard error.
    pub err: &'a mut dyn Write,
    /// True if standard error is a terminal: progress bars and colours are printed only in
    /// terminals.
    pub terminal: bool,
    /// True in a process that follows another process, which prints the warnings.
    pub(super) follows: bool,
    recorded: Recorded,
}

/// The messages of a run.
enum Recorded {
    /// The messages wait for the run to begin.
    Waiting(Vec<Message>),
    /// The messages are added to the file of this run directory.
    In(Folder),
}

/// An error in writing to standard output.
#[derive(Debug, thiserror::Error)]
#[error("cannot write to standard output: {0}")]
pub(super) struct OutputError(pub(super) io::Error);

impl<'a> Console<'a> {
    /// A console with messages that belong to no run yet.
    pub fn new(out: &'a mut dyn Write, err: &'a mut dyn Write, terminal: bool) -> Self {
        Console { out, err, terminal, follows: false, recorded: Recorded::Waiting(Vec::new()) }
    }
}

impl Console<'_> {
    /// Prints to standard output.
    pub(super) fn print(&mut self, text: &str) -> Result<()> {
        self.out
            .write_all(text.as_bytes())
            .and_then(|()| self.out.flush())
            .map_err(|error| OutputError(error).into())
    }

    /// Prints a line to standard error. A closed standard error is not an error.
    pub(super) fn say(&mut self, text: &str) {
        // Names of workers, runs and files are untrusted text.
        let _ = writeln!(self.err, "{}", printable(text));
    }

    /// Prints a warning, and records it in the run.
    pub(super) fn warn(&mut self, warning: &str) {
        if self.follows {
            return;
        }
        self.say(&format!("warning: {warning}"));
        self.keep(MessageKind::Warning, warning);
    }

    /// Records a message in the run. A failed write does not stop the run: the message was printed
    /// as well.
    pub(super) fn keep(&mut self, kind: MessageKind, text: &str) {
        let message = Message::now(kind, text);
        match &mut self.recorded {
            Recorded::Waiting(messages) if messages.len() < WAITING => messages.push(message),
            Recorded::Waiting(_) => {}
            Recorded::In(run) => drop(message.add_to(&run.inside())),
        }
    }

    /// Writes the messages so far, and later messages, into a run directory.
    pub(super) fn keep_in(&mut self, run: &Folder) {
        let recorded = replace(&mut self.recorded, Recorded::In(run.clone()));
        if let Recorded::Waiting(messages) = recorded {
            messages.iter().for_each(|message| drop(message.add_to(&run.inside())));
        }
    }

    /// Runs `f`, and writes its messages into the run directory of one of several runs.
    pub(super) fn of_run<R>(&mut self, run: &Folder, f: impl FnOnce(&mut Self) -> R) -> R {
        let before = replace(&mut self.recorded, Recorded::In(run.clone()));
        let result = f(self);
        self.recorded = before;
        result
    }
}
