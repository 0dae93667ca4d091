//! The program `podracer`.

use std::process::ExitCode;

fn main() -> ExitCode {
    podracer::cli::main(&podracer::experiments::build)
}
