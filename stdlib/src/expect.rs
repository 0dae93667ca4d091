//! Checks of the arguments of library functions. Each check records an error at the caller's line
//! and then returns a substitute for the function's result that causes no further errors. It
//! returns `None` if the arguments are right.

use crate::Number;
use podracer_dsl::fail;
use podracer_dsl::prelude::*;

/// Checks that named tensors have the same shape with `rank` axes, such as the arrays `[T]` of a
/// trajectory. Without the check, arrays of different lengths may broadcast to an unintended shape.
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

/// Checks that a tensor has this shape; `meaning` describes its axes.
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

/// Checks that a constant fulfils a condition, which `wanted` describes. Values of tensors are
/// unknown and not checked.
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
