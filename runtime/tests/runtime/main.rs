//! The runtime against the installed `cpu` plugin, with StableHLO written by hand.
#![allow(clippy::print_stdout, reason = "skipped tests and child processes say so")]

mod cache;
mod checkpoints;
mod compile;
mod execute;
mod jit;
mod memory;
mod options;
mod plugin;
mod programs;
mod topology;
mod transfers;
