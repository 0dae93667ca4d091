//! Tests that need more than one crate, in one binary, since each binary links LLVM.

mod activations;
mod anakin;
mod constants;
mod draws;
mod evaluation;
mod golden_coverage;
mod golden_ops;
mod gradients;
mod loops;
mod portable;
mod programs;
mod recompute;
mod replay;
mod replicas;
mod search;
mod sebulba;
mod seed;
mod servers;
mod snapshots;
mod summary;
mod tidy;
mod trajectories;
mod typed_programs;
mod user_programs;
mod verifier;
mod xla;
