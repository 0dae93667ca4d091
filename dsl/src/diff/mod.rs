//! Derivatives: reverse mode, forward mode, and transformations built from both. They nest in any
//! order.

mod auxiliary;
mod checkpoint;
mod custom;
mod forward;
mod jacobian;
mod reverse;

pub use auxiliary::{grad_with_aux, jvp_with_aux, linearize_with_aux, vjp_with_aux};
pub use checkpoint::{checkpoint, checkpoint_name};
pub use custom::{custom_jvp, custom_vjp};
pub use forward::{jvp, linearize};
pub use jacobian::{
    By, Derivatives, hessian, hessian_with_aux, jacfwd, jacfwd_with_aux, jacrev, jacrev_with_aux,
};
pub use reverse::{Loss, grad, stop_gradient, value_and_grad, vjp};

use crate::control::body::Body;
use crate::tensor::Tensor;
use crate::trace::TraceError;
use crate::trace::state;
use crate::tree::{Path, Tree, difference};
use podracer_compiler::transform::TransformError;
use podracer_compiler::{Loc, TensorType};

/// True for each parameter that a traced function is differentiated with respect to: the explicit
/// parameters, not the captures.
fn wrt<Y: Tree>(body: &Body<Y>, explicit: usize) -> Vec<bool> {
    (0..body.func.params.len()).map(|i| i < explicit).collect()
}

/// Reports an op without the requested rule: at the user's call, with the op's line.
fn refuse(op: &str, error: &TransformError, loc: Loc) {
    let message = format!("`{}` cannot be differentiated so: {}", error.op, error.reason);
    state::with(|trace| {
        trace.error(TraceError::new(op, message, loc).note(format!("`{}` at", error.op), error.loc))
    });
}

/// The function that `derive` makes, if `fine` holds. `None`, with an error, if an op has no rule.
fn derived<T>(
    op: &str,
    loc: Loc,
    fine: bool,
    derive: impl FnOnce() -> Result<T, TransformError>,
) -> Option<T> {
    if !fine {
        return None;
    }
    derive().map_err(|error| refuse(op, &error, loc)).ok()
}

/// True if a tree (`what`, such as "tangent") has the structure and types `expected`, which belong
/// to `of` (such as "argument"). Otherwise it reports an error.
fn check_alike(
    op: &str,
    (what, of): (&str, &str),
    expected: &[(Path, TensorType)],
    given: &[(Path, TensorType)],
    loc: Loc,
) -> bool {
    let Some((_, message)) = difference(what, expected, given) else {
        return true;
    };
    let message = format!("the {what} must be like the {of}; it {message}");
    state::with(|trace| trace.error(TraceError::new(op, message, loc)));
    false
}

/// Reports a non-float leaf where floats are required.
fn check_floats(op: &str, leaves: &[(Path, TensorType)], tensors: &[Tensor], loc: Loc) -> bool {
    let mut fine = true;
    for ((path, ty), &tensor) in leaves.iter().zip(tensors) {
        if ty.dtype.is_float() || state::with(|trace| trace.is_poison(tensor)).unwrap_or(true) {
            continue;
        }
        fine = false;
        let name = path.under("argument");
        let message = format!(
            "`{name}` is {ty}: only floats have gradients; capture it, or return it with the loss"
        );
        state::with(|trace| trace.error(TraceError::new(op, message, loc)));
    }
    fine
}

/// Zeros of a type, in the current frame.
#[track_caller]
fn zeros_of(ty: &TensorType) -> Tensor {
    crate::tensor::create::zeros(ty.dtype, &ty.shape)
}
