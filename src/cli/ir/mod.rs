//! The commands that print, transform, compile and export programs, and train nothing.

pub(super) mod check;
mod emit;
pub(super) mod export;
mod opt;
mod target;

use anyhow::Result;
use clap::Subcommand;

use super::console::Console;
use super::program::Program;
use emit::EmitArguments;
use opt::{DiffArguments, OptArguments};

/// A command about a program as text.
#[derive(Debug, Subcommand)]
pub(crate) enum IrCommand {
    /// Print the training loop on its way from the source to the device
    Emit(EmitArguments),
    /// Run passes over a program given as the text of the IR, as `podracer ir emit --stage trace` prints it
    #[command(after_help = opt::passes_help())]
    Opt(OptArguments),
    /// Compare two programs given as the text of the IR; the exit code is 1 if they differ
    Diff(DiffArguments),
}

pub(super) fn run(
    command: &IrCommand,
    console: &mut Console<'_>,
    program: Program<'_>,
) -> Result<u8> {
    match command {
        IrCommand::Emit(args) => emit::emit(args, console, program),
        IrCommand::Opt(args) => opt::opt(args, console),
        IrCommand::Diff(args) => opt::diff(args, console),
    }
}
