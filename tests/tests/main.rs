//! Tests that need more than one crate, in one binary, since each binary links LLVM.

mod constants;
mod golden_ops;
mod replicas;
mod tidy;
mod xla;
