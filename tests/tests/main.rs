//! Tests that need more than one crate, in one binary, since each binary links LLVM with the feature `mlir`.

mod activations;
#[cfg_attr(not(feature = "mlir"), path = "no_agreement.rs")]
mod agreement;
mod anakin;
mod central;
mod constants;
mod draws;
mod evaluation;
mod golden_coverage;
mod golden_ops;
mod gradients;
mod loops;
mod meta;
mod pages;
mod population;
mod portable;
mod programs;
mod public_items;
mod recompute;
mod replay;
mod replicas;
mod search;
mod sebulba;
mod servers;
mod snapshots;
mod summary;
mod tidy;
mod trajectories;
mod typed_programs;
mod user_programs;
mod verifier;
mod xla;
