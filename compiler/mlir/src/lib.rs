//! Turns a function of the IR into a StableHLO module, as text that every PJRT plugin takes.
//!
//! This is the only crate that knows MLIR. Ops lower themselves through the compiler's trait `Hlo`; the emitter here
//! implements it with melior: StableHLO is not part of LLVM's MLIR, so its ops are built in the generic form and its
//! attributes from the compiler's typed ones.
//!
//! # Invariants
//! - Nothing of melior leaves this crate: a [`Module`] is text. The MLIR context lives and dies within [`stablehlo`],
//!   so that no handle can outlive it.
//! - The text is a function of the program and the [`ModuleSpec`]: no address, hash order or clock shapes it.
//! - What the caller or an op did wrong comes back as [`MlirError`], never as a panic or on the standard error stream.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod attribute;
mod constant;
mod emitter;
mod error;
mod module;
mod spec;
mod types;

pub use error::MlirError;
pub use module::{Module, stablehlo};
pub use spec::{ArgumentSpec, Donation, ModuleSpec};
