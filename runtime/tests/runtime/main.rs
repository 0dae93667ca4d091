//! The runtime against the installed `cpu` plugin, with StableHLO written by hand.
#![allow(clippy::print_stdout, reason = "child processes print what they found")]

mod bindings;
mod cache;
mod checkpoints;
mod compile;
mod cuda;
mod execute;
mod fences;
mod jit;
mod memory;
mod options;
mod plugin;
mod programs;
mod tiles;
mod topology;
mod transfers;
