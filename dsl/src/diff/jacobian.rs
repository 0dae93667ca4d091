//! Whole matrices of derivatives, by a vmap over directions.

use super::{grad, linearize, vjp};
use crate::control::vmap;
use crate::tensor::{Tensor, create};
use podracer_compiler::TensorType;

/// All directions of a tensor's type, stacked: `[n] ++ shape` with one 1 in each.
#[track_caller]
fn basis(ty: &TensorType) -> Tensor {
    let n = ty.elements();
    let mut shape = vec![n];
    shape.extend(&ty.shape);
    create::eye(ty.dtype, n).reshape(shape)
}

/// The Jacobian of `f` at `x`, of shape `y ++ x`, by forward mode: one pass for each element of `x`, all at once.
#[track_caller]
pub fn jacfwd(x: Tensor, f: impl FnOnce(Tensor) -> Tensor) -> Tensor {
    let (y, derivative) = linearize(x, f);
    let (x_ty, y_ty) = (x.ty(), y.ty());
    let columns = vmap(basis(&x_ty), derivative);
    let shape = [&y_ty.shape[..], &x_ty.shape[..]].concat();
    columns.move_axis(0, -1).reshape(shape)
}

/// The Jacobian of `f` at `x`, of shape `y ++ x`, by reverse mode: one pass for each element of `y`, all at once.
#[track_caller]
pub fn jacrev(x: Tensor, f: impl FnOnce(Tensor) -> Tensor) -> Tensor {
    let (y, pullback) = vjp(x, f);
    let (x_ty, y_ty) = (x.ty(), y.ty());
    let rows = vmap(basis(&y_ty), pullback);
    let shape = [&y_ty.shape[..], &x_ty.shape[..]].concat();
    rows.reshape(shape)
}

/// The second derivatives of a scalar function of `x`, of shape `x ++ x`: forward over reverse.
#[track_caller]
pub fn hessian(x: Tensor, f: impl FnOnce(Tensor) -> Tensor) -> Tensor {
    jacfwd(x, |x| grad(x, f))
}
