//! Functions with user-defined derivatives: `custom_jvp` for both modes, `custom_vjp` for reverse
//! mode alone.
//!
//! # Invariants
//! - Operands are the arguments, then the captures of the user's closures. Differentiating by a
//!   captured tensor is an error: the user's rule does not cover it.
//! - A finished program contains none of these ops: [`Op::settled`](super::Op::settled) replaces
//!   them by the plain function.

mod jvp;
mod vjp;

pub use jvp::CustomJvp;
pub use vjp::CustomVjp;

use super::TypeError;
use crate::ir::Func;
use crate::types::TensorType;

/// The error if a captured tensor is differentiated.
const CAPTURED: &str = "a tensor that its closures capture is differentiated, and the rule says nothing of it; pass it among the arguments";

/// The types of the float tensors in a list.
fn floats(types: &[TensorType]) -> Vec<TensorType> {
    types.iter().filter(|ty| ty.dtype.is_float()).cloned().collect()
}

/// Checks the parameters or results of one of an op's functions.
fn check(what: &str, got: &[TensorType], expected: &[TensorType]) -> Result<(), TypeError> {
    let show = |types: &[TensorType]| {
        let types: Vec<String> = types.iter().map(ToString::to_string).collect();
        types.join(", ")
    };
    if got == expected {
        return Ok(());
    }
    Err(TypeError::new(format!("{what} must be ({}), got ({})", show(expected), show(got))))
}

/// Checks a count of operands or results in an op's attributes.
fn at_most(what: &str, count: usize, of: &str, all: usize) -> Result<(), TypeError> {
    if count <= all {
        return Ok(());
    }
    Err(TypeError::new(format!(
        "{what} must be at most the {all} {of} of the function, got {count}"
    )))
}

/// The function with only its first `count` results.
fn first_results(func: &Func, count: usize) -> Func {
    let mut func = func.clone();
    func.results.truncate(count);
    crate::transform::dce(&func)
}
