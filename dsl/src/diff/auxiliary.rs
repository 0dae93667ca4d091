//! Derivatives of functions that return an auxiliary result, which is not differentiated: jax's `has_aux=True`.

use super::{jvp, linearize, stop_gradient, value_and_grad, vjp};
use crate::tensor::Tensor;
use crate::tree::{IntoTree, Tree, tree_map};

/// [`grad`](crate::grad) of a loss with an auxiliary result: `(gradient, auxiliary)`. `jax.grad(f, has_aux=True)`.
///
/// ```
/// # use podracer_dsl::prelude::*;
/// # trace((f32([3]), f32([3])), |(w, x)| {
/// let (slope, output) = grad_with_aux(w, |w| {
///     let output = w * x;
///     (output.square().sum(), output)
/// });
/// # (slope, output) })?;
/// # Ok::<(), TraceErrors>(())
/// ```
#[track_caller]
pub fn grad_with_aux<P: IntoTree, A: Tree>(
    params: P,
    f: impl FnOnce(P::Tree) -> (Tensor, A),
) -> (P::Tree, A) {
    let ((_, aux), grads) = value_and_grad(params, f);
    (grads, aux)
}

/// [`jvp`] of a function with an auxiliary result: `(value, tangent, auxiliary)`. `jax.jvp(.., has_aux=True)`.
///
/// ```
/// # use podracer_dsl::prelude::*;
/// # trace(f32([3]), |x| {
/// let (y, dy, hidden) = jvp_with_aux(x, x.ones_like(), |x| { let hidden = x.tanh(); (hidden.sum(), hidden) });
/// # (y, dy, hidden) })?;
/// # Ok::<(), TraceErrors>(())
/// ```
#[track_caller]
pub fn jvp_with_aux<P: IntoTree, Y: IntoTree, A: IntoTree>(
    primals: P,
    tangents: P::Tree,
    f: impl FnOnce(P::Tree) -> (Y, A),
) -> (Y::Tree, Y::Tree, A::Tree) {
    let ((value, aux), (tangent, _)) = jvp(primals, tangents, apart(f));
    (value, tangent, aux)
}

/// [`linearize`] of a function with an auxiliary result: `(value, derivative, auxiliary)`.
/// `jax.linearize(.., has_aux=True)`.
///
/// ```
/// # use podracer_dsl::prelude::*;
/// # trace(f32([3]), |x| {
/// let (y, derivative, hidden) = linearize_with_aux(x, |x| { let hidden = x.tanh(); (hidden.sum(), hidden) });
/// # (y, derivative(x), hidden) })?;
/// # Ok::<(), TraceErrors>(())
/// ```
#[track_caller]
pub fn linearize_with_aux<P: IntoTree, Y: IntoTree, A: IntoTree>(
    primals: P,
    f: impl FnOnce(P::Tree) -> (Y, A),
) -> (Y::Tree, impl Fn(P::Tree) -> Y::Tree, A::Tree) {
    let ((value, aux), apply) = linearize(primals, apart(f));
    (value, move |tangents| apply(tangents).0, aux)
}

/// [`vjp`] of a function with an auxiliary result: `(value, pullback, auxiliary)`. `jax.vjp(.., has_aux=True)`.
///
/// ```
/// # use podracer_dsl::prelude::*;
/// # trace(f32([3]), |x| {
/// let (y, back, hidden) = vjp_with_aux(x, |x| { let hidden = x.tanh(); (hidden.sum(), hidden) });
/// # (y, back(scalar(1.0)), hidden) })?;
/// # Ok::<(), TraceErrors>(())
/// ```
#[track_caller]
pub fn vjp_with_aux<P: IntoTree, Y: IntoTree, A: IntoTree>(
    primals: P,
    f: impl FnOnce(P::Tree) -> (Y, A),
) -> (Y::Tree, impl Fn(Y::Tree) -> P::Tree, A::Tree) {
    let ((value, aux), apply) = vjp(primals, apart(f));
    let beside = aux.clone();
    let apply = move |cotangents| apply((cotangents, tree_map(&beside, Tensor::zeros_like)));
    (value, apply, aux)
}

/// The function with no gradient through its second result.
fn apart<P, Y: IntoTree, A: IntoTree>(
    f: impl FnOnce(P) -> (Y, A),
) -> impl FnOnce(P) -> (Y, A::Tree) {
    |at| {
        let (value, aux) = f(at);
        (value, stop_gradient(aux.into_tree()))
    }
}
