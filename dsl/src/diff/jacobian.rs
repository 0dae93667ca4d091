//! Whole matrices of derivatives, by a vmap over directions.

use super::auxiliary::{grad_with_aux, linearize_with_aux, vjp_with_aux};
use super::grad;
use crate::control::vmap;
use crate::tensor::{Tensor, create};
use crate::tree::{IntoTree, Tree};
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
///
/// ```
/// # use podracer_dsl::prelude::*;
/// let matrix = trace(f32([3]), |x| jacfwd(x, |x| stack(&[x.sum(), x.prod()], 0)))?;
/// assert_eq!(matrix.results().to_string(), "f32[2,3]");
/// # Ok::<(), TraceErrors>(())
/// ```
#[track_caller]
pub fn jacfwd(x: Tensor, f: impl FnOnce(Tensor) -> Tensor) -> Tensor {
    jacfwd_with_aux(x, |x| (f(x), ())).0
}

/// [`jacfwd`] of a function with something beside its value, and that. `jax.jacfwd(f, has_aux=True)`.
#[track_caller]
pub fn jacfwd_with_aux<A: IntoTree>(
    x: Tensor,
    f: impl FnOnce(Tensor) -> (Tensor, A),
) -> (Tensor, A::Tree) {
    let (y, derivative, aux) = linearize_with_aux(x, f);
    let (x_ty, y_ty) = (x.ty(), y.ty());
    let columns = vmap(basis(&x_ty), derivative);
    let shape = [&y_ty.shape[..], &x_ty.shape[..]].concat();
    (columns.move_axis(0, -1).reshape(shape), aux)
}

/// The Jacobian of `f` at `x`, of shape `y ++ x`, by reverse mode: one pass for each element of `y`, all at once.
///
/// ```
/// # use podracer_dsl::prelude::*;
/// let matrix = trace(f32([3]), |x| jacrev(x, |x| stack(&[x.sum(), x.prod()], 0)))?;
/// assert_eq!(matrix.results().to_string(), "f32[2,3]");
/// # Ok::<(), TraceErrors>(())
/// ```
#[track_caller]
pub fn jacrev(x: Tensor, f: impl FnOnce(Tensor) -> Tensor) -> Tensor {
    jacrev_with_aux(x, |x| (f(x), ())).0
}

/// [`jacrev`] of a function with something beside its value, and that. `jax.jacrev(f, has_aux=True)`.
#[track_caller]
pub fn jacrev_with_aux<A: IntoTree>(
    x: Tensor,
    f: impl FnOnce(Tensor) -> (Tensor, A),
) -> (Tensor, A::Tree) {
    let (y, pullback, aux) = vjp_with_aux(x, f);
    let (x_ty, y_ty) = (x.ty(), y.ty());
    let rows = vmap(basis(&y_ty), pullback);
    let shape = [&y_ty.shape[..], &x_ty.shape[..]].concat();
    (rows.reshape(shape), aux)
}

/// The second derivatives of a scalar function of `x`, of shape `x ++ x`: forward over reverse.
///
/// ```
/// # use podracer_dsl::prelude::*;
/// let matrix = trace(f32([3]), |x| hessian(x, |x| x.prod()))?;
/// assert_eq!(matrix.results().to_string(), "f32[3,3]");
/// # Ok::<(), TraceErrors>(())
/// ```
#[track_caller]
pub fn hessian(x: Tensor, f: impl FnOnce(Tensor) -> Tensor) -> Tensor {
    jacfwd(x, |x| grad(x, f))
}

/// [`hessian`] of a function with something beside its value, and that. `jax.hessian(f, has_aux=True)`.
#[track_caller]
pub fn hessian_with_aux<A: Tree>(x: Tensor, f: impl FnOnce(Tensor) -> (Tensor, A)) -> (Tensor, A) {
    jacfwd_with_aux(x, |x| grad_with_aux(x, f))
}
