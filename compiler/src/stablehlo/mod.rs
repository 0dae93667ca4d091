//! StableHLO modules: a function of the IR and a [`ModuleSpec`] become text that every PJRT plugin
//! accepts.
//!
//! [`emit`] passes ops to a [`Backend`](emit::Backend). Programs are compiled from the backend
//! `text`. `podracer-mlir` has another backend, made of MLIR's own objects; tests compare the two.
//!
//! # Invariants
//! - The text is a function of the program and the [`ModuleSpec`]: no address, hash order or clock
//!   affects it.
//! - The text equals MLIR's output for the same module without StableHLO's dialect. MLIR reads the
//!   text and prints it again unchanged, including numbers of values and digits of floats. Only the
//!   aliases of locations differ.
//! - Constants are bit-exact, except that a NaN may lose its payload.
//! - Mistakes of the caller or of an op are returned as [`EmitError`], never as a panic.

pub mod constant;
pub mod emit;
mod error;
mod spec;
mod text;

pub use error::EmitError;
pub use spec::{ArgumentSpec, Donation, ModuleSpec, Processes};
pub use text::opaque;

use crate::ir::Func;

/// A StableHLO module as text. Both texts come from one build and differ only in locations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    /// The text without locations: for snapshots, and for keys of the executable cache.
    pub text: String,
    /// The text with the user's source lines: for the compiler, because its errors and profiles
    /// show them.
    pub text_with_locations: String,
}

/// Builds the module with `func` as its public function `main`, and the called functions as private
/// functions.
///
/// # Errors
/// [`EmitError`] if the specification does not fit the function, or an op cannot be lowered.
pub fn stablehlo(func: &Func, spec: &ModuleSpec) -> Result<Module, EmitError> {
    let mut backend = text::TextBackend::default();
    emit::emit(&mut backend, func, spec)?;
    Ok(backend.print(spec))
}
