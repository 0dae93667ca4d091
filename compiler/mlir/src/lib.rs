//! StableHLO modules by MLIR itself, for tests: nothing that trains links this crate.
//!
//! [`stablehlo`] is a second implementation of `podracer_compiler::stablehlo`, for comparison in
//! tests, and [`normalized`] parses a text with MLIR. StableHLO is not part of LLVM's MLIR, so its
//! ops are built in the generic form and its attributes from the compiler's typed attributes. This
//! is the only crate that knows MLIR.
//!
//! # Invariants
//! - Nothing of melior leaves this crate: a [`Module`] is text. The MLIR context lives and dies within a call, so that no
//!   handle can outlive it.
//! - The text is a function of the program and the specification: no address, hash order or clock shapes it.
//! - Mistakes of the caller or of an op are returned as [`MlirError`], never as a panic or on the
//!   standard error stream.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod agreement;
mod attribute;
mod backend;
mod context;
mod error;
mod module;
mod types;

pub use error::MlirError;
pub use module::{normalized, stablehlo};
pub use podracer_compiler::stablehlo::Module;
