//! Checks of the arguments of library functions. Each records an error at the caller's line and then gives a stand-in for
//! the function's result, from which no other error follows; `None` if the arguments are right.

use crate::Number;
use podracer_dsl::fail;
use podracer_dsl::prelude::*;

/// Checks that named tensors have one shape of `rank` axes, such as the arrays `[T]` of a trajectory. Without it, arrays of
/// different lengths may broadcast to something that nobody meant.
#[track_caller]
pub(crate) fn one_shape(op: &str, rank: usize, tensors: &[(&str, Tensor)]) -> Option<Tensor> {
    let (first, expected) = tensors.first().map(|(_, tensor)| (*tensor, tensor.shape()))?;
    let fits = |tensor: Tensor| tensor.rank() == rank && tensor.shape() == expected;
    if tensors.iter().all(|(_, tensor)| fits(*tensor)) {
        return None;
    }
    let axes = match rank {
        0 => "that are scalars",
        1 => "of one shape `[n]`",
        _ => "of one shape with two axes",
    };
    let given: Vec<String> =
        tensors.iter().map(|(name, tensor)| format!("{name} {}", tensor.ty())).collect();
    let about: Vec<Tensor> = tensors.iter().map(|(_, tensor)| *tensor).collect();
    let message =
        format!("expected tensors {axes}, got {}: a batch goes through `vmap`", given.join(", "));
    Some(fail(op, message, &about, first.ty()))
}

/// Checks that a tensor has this shape; `meaning` says what its axes are.
#[track_caller]
pub(crate) fn shape(
    op: &str,
    name: &str,
    tensor: Tensor,
    shape: &[usize],
    meaning: &str,
) -> Option<Tensor> {
    if tensor.shape() == shape {
        return None;
    }
    let message = format!("expected {name} of shape {shape:?} ({meaning}), got {}", tensor.ty());
    Some(fail(op, message, &[tensor], tensor.ty()))
}

/// Checks that a constant fulfils a condition, which `wanted` says in words. Numbers of the program are not known.
#[track_caller]
pub(crate) fn constant_is(
    op: &str,
    name: &str,
    value: Number,
    wanted: &str,
    holds: impl Fn(f64) -> bool,
) -> Option<Tensor> {
    let value = value.constant()?;
    if holds(value) {
        return None;
    }
    let message = format!("expected {name} {wanted}, got {value}");
    Some(fail(op, message, &[], TensorType::scalar(F32)))
}
