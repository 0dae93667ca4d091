//! StableHLO modules: a function of the IR and a [`ModuleSpec`] become text that every PJRT plugin takes.
//!
//! [`emit`] turns ops into whatever a [`Backend`](emit::Backend) builds, and `text` is the backend that programs are
//! compiled from. `podracer-mlir` has another one, of MLIR's own objects, with which tests compare this one.
//!
//! # Invariants
//! - The text is a function of the program and the [`ModuleSpec`]: no address, hash order or clock shapes it.
//! - The text is what MLIR prints of the same module where it does not know StableHLO's dialect: MLIR reads it and prints
//!   it again as it was, numbers of values and digits of floats included. Only the aliases of locations differ.
//! - Constants are exact to the bit, except that a NaN may lose its payload.
//! - What the caller or an op did wrong comes back as [`EmitError`], never as a panic.

pub mod constant;
pub mod emit;
mod error;
mod spec;
mod text;

pub use error::EmitError;
pub use spec::{ArgumentSpec, Donation, ModuleSpec, Processes};
pub use text::opaque;

use crate::ir::Func;

/// A StableHLO module as text. Both texts are of one build and differ in locations only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    /// The text without locations: for snapshots, and for keys of the executable cache.
    pub text: String,
    /// The text with the user's source lines: for the compiler, whose errors and profiles show them.
    pub text_with_locations: String,
}

/// Builds the module whose public function `main` is `func`, with the functions it calls as private ones.
///
/// # Errors
/// [`EmitError`] where the specification does not fit the function, or an op cannot be lowered.
pub fn stablehlo(func: &Func, spec: &ModuleSpec) -> Result<Module, EmitError> {
    let mut backend = text::TextBackend::default();
    emit::emit(&mut backend, func, spec)?;
    Ok(backend.print(spec))
}
