//! A program with its commands, and the exit codes of the commands.

use anyhow::Result;

use crate::registry::Registry;
use crate::settings::Settings;
use crate::training::Training;

/// A program's agents, environments and experiments, and the function that makes a training from
/// settings.
#[derive(Clone, Copy)]
pub struct Program<'a> {
    /// The agents, environments and experiments.
    pub registry: &'a Registry,
    /// Makes the training loop from settings.
    pub build: &'a dyn Fn(&Settings) -> Result<Box<dyn Training>>,
}

/// Exit code of a failure.
pub(super) const FAILURE: u8 = 1;
/// Exit code of a mistake in the command, a file or the settings.
pub(super) const USAGE: u8 = 2;
/// Exit code of a command that a signal stopped.
pub(super) const INTERRUPTED: u8 = 130;
