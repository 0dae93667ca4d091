//! Reverse mode: one backward pass gives the derivatives by all parameters.

use super::{check_alike, check_floats, derived, wrt, zeros_of};
use crate::control::body::{chain, emit_at, inline_at, trace_once};
use crate::tensor::{Tensor, create};
use crate::trace::TraceError;
use crate::trace::state;
use crate::tree::{IntoTree, Path, Tree, typed_paths};
use podracer_compiler::ops::StopGradient;
use podracer_compiler::transform;
use podracer_compiler::{Loc, OpRef, TensorType};

/// The result of a function under [`grad`]: the loss, a float scalar, or a pair of the loss and an auxiliary tree.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a loss",
    label = "expected a scalar `Tensor`, or `(Tensor, auxiliary)` with a tree of other results"
)]
pub trait Loss: Tree {
    /// The loss, a float scalar.
    fn loss(&self) -> Tensor;
}

impl Loss for Tensor {
    fn loss(&self) -> Tensor {
        *self
    }
}

impl<A: Tree> Loss for (Tensor, A) {
    fn loss(&self) -> Tensor {
        self.0
    }
}

/// The gradient of `f` at `params`, a tree of the same structure. An auxiliary result of `f` is dropped: use
/// [`value_and_grad`] to get it.
/// `jax.grad`.
///
/// ```
/// # use podracer_dsl::prelude::*;
/// # trace(f32([4]), |x| {
/// let slope = grad(x, |x| x.square().sum());
/// # slope
/// # })?;
/// # Ok::<(), TraceErrors>(())
/// ```
#[track_caller]
pub fn grad<P: IntoTree, V: Loss>(params: P, f: impl FnOnce(P::Tree) -> V) -> P::Tree {
    differentiate("grad", Loc::caller(), params.into_tree(), f).1
}

/// The result of `f` at `params`, and the gradient of its loss at `params`:
///
/// ```
/// # use podracer_dsl::prelude::*;
/// # trace((f32([]), f32([4])), |(weight, x)| {
/// let ((loss, y), grads) = value_and_grad(weight, |weight| {
///     let y = weight * x;
///     (y.square().mean(), y)
/// });
/// # (loss, y, grads) }).unwrap();
/// ```
///
/// Captured tensors count as constants. Errors: a loss that is no float scalar, leaves of `params`
/// that are no floats, ops without a reverse rule.
#[track_caller]
pub fn value_and_grad<P: IntoTree, V: Loss>(
    params: P,
    f: impl FnOnce(P::Tree) -> V,
) -> (V, P::Tree) {
    differentiate("value_and_grad", Loc::caller(), params.into_tree(), f)
}

/// The result of `f`, and the gradient of its loss. Errors name `op` and the user's line.
pub(super) fn differentiate<P: Tree, V: Loss>(
    op: &'static str,
    loc: Loc,
    params: P,
    f: impl FnOnce(P) -> V,
) -> (V, P) {
    let before = typed_paths(&params);
    let leaves = params.leaves();
    let mut fine = check_floats(op, &before, &leaves, loc);
    // The auxiliary result sends no gradient: stopping its gradient here keeps the backward pass
    // small.
    let body = trace_once("differentiated", op, &params, |params| {
        let value = f(params);
        let mut first = true;
        value.map(&mut |leaf| {
            if std::mem::take(&mut first) || !leaf.dtype().is_float() {
                leaf
            } else {
                stop_one(leaf, loc)
            }
        })
    });
    let loss = &body.results[0];
    let is_loss = loss.ty.rank() == 0 && loss.ty.dtype.is_float();
    if !is_loss && !loss.poison {
        let message =
            format!("the loss must be a float scalar, got {}: take its mean or sum", loss.ty);
        state::with(|trace| {
            trace.error(TraceError::new(op, message, loss.made).note(format!("`{op}` at"), loc))
        });
        fine = false;
    }
    let types = body.types();
    let parts = derived(op, loc, fine && !body.broken, || {
        transform::vjp(&body.func, &wrt(&body, leaves.len()))
    });
    let Some(parts) = parts else {
        let values = body.poisoned(types);
        let grads = body.poisoned(before.into_iter().map(|(_, ty)| ty));
        return (body.tree.with_leaves(&values), params.with_leaves(&grads));
    };
    let (values, residuals) = body.run_primal(loc, &parts.primal, &chain(&leaves, &body.captures));
    let log_types = body.log_types();
    let mut cotangents = vec![create::ones(types[0].dtype, [])];
    cotangents
        .extend(types[1..].iter().chain(&log_types).filter(|ty| ty.dtype.is_float()).map(zeros_of));
    let grads = inline_at(loc, &parts.pullback, &chain(&residuals, &cotangents));
    (body.tree.with_leaves(&values), params.with_leaves(&grads))
}

/// The value of `f` at `primals`, and the pullback: the function from cotangents of its results to
/// cotangents of `primals`. The pullback may be called several times, and under `vmap`. Cotangents
/// of non-float results are ignored, and cotangents of non-float primals are zero. `jax.vjp`.
///
/// ```
/// # use podracer_dsl::prelude::*;
/// # trace(f32([4]), |x| {
/// let (y, pull_back) = vjp(x, |x| x.sin());
/// let slope = pull_back(y.ones_like());
/// # (y, slope)
/// # })?;
/// # Ok::<(), TraceErrors>(())
/// ```
#[track_caller]
pub fn vjp<P: IntoTree, Y: IntoTree>(
    primals: P,
    f: impl FnOnce(P::Tree) -> Y,
) -> (Y::Tree, impl Fn(Y::Tree) -> P::Tree) {
    let loc = Loc::caller();
    let primals = primals.into_tree();
    let leaves = primals.leaves();
    let body = trace_once("differentiated", "vjp", &primals, f);
    let types = body.types();
    let parts =
        derived("vjp", loc, !body.broken, || transform::vjp(&body.func, &wrt(&body, leaves.len())));
    let (values, pullback) = match parts {
        Some(parts) => {
            let (values, residuals) =
                body.run_primal(loc, &parts.primal, &chain(&leaves, &body.captures));
            (values, Some((parts.pullback, residuals)))
        }
        None => (body.poisoned(types.clone()), None),
    };
    let value = body.tree.with_leaves(&values);
    let expected: Vec<(Path, TensorType)> = body.typed();
    let wanted: Vec<TensorType> = leaves.iter().map(|leaf| leaf.ty()).collect();
    let of_log: Vec<TensorType> = body.log_types();
    let apply = move |cotangents: Y::Tree| {
        let given = typed_paths(&cotangents);
        let what = ("cotangent", "result");
        let mut results = match &pullback {
            Some((pullback, residuals)) if check_alike("vjp", what, &expected, &given, loc) => {
                let of_log = of_log.iter().map(zeros_of);
                let floats: Vec<Tensor> = (cotangents.leaves().into_iter().chain(of_log))
                    .filter(|leaf| leaf.dtype().is_float())
                    .collect();
                Some(inline_at(loc, pullback, &chain(residuals, &floats)).into_iter())
            }
            _ => None,
        };
        let leaves: Vec<Tensor> = wanted
            .iter()
            .map(|ty| match &mut results {
                Some(results) if ty.dtype.is_float() => {
                    results.next().unwrap_or_else(|| zeros_of(ty))
                }
                Some(_) => zeros_of(ty),
                None => crate::tensor::poison(ty.clone()),
            })
            .collect();
        primals.with_leaves(&leaves)
    };
    (value, apply)
}

/// Stops the gradient: the same values, with all derivatives zero. `jax.lax.stop_gradient`.
///
/// ```
/// # use podracer_dsl::prelude::*;
/// # trace(f32([4]), |x| {
/// let loss = (x - stop_gradient(x.mean())).square().sum();
/// # loss
/// # })?;
/// # Ok::<(), TraceErrors>(())
/// ```
#[track_caller]
pub fn stop_gradient<T: Tree>(tree: T) -> T {
    let loc = Loc::caller();
    tree.map(&mut |leaf| {
        if leaf.dtype().is_float() { stop_one(leaf, loc) } else { leaf }
    })
}

fn stop_one(leaf: Tensor, loc: Loc) -> Tensor {
    match emit_at(loc, OpRef::new(StopGradient {}), &[leaf], &[leaf.ty()])[..] {
        [stopped] => stopped,
        _ => leaf,
    }
}
