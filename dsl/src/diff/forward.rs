//! Forward mode: the value and a derivative in one direction.

use super::{check_alike, derived, wrt, zeros_of};
use crate::control::body::{Body, chain, inline_at, trace_once};
use crate::tensor::Tensor;
use crate::tree::{IntoTree, Tree, typed_paths};
use podracer_compiler::transform;
use podracer_compiler::{Loc, TensorType};

/// The value of `f` at `primals`, and its derivative in the direction `tangents`, which has the
/// structure and types of `primals`. Tangents of leaves that are no floats are ignored in the input
/// and zero in the result. `jax.jvp`.
///
/// ```
/// # use podracer_dsl::prelude::*;
/// # trace(f32([4]), |x| {
/// let (y, slope) = jvp(x, x.ones_like(), |x| x.sin());
/// # (y, slope)
/// # })?;
/// # Ok::<(), TraceErrors>(())
/// ```
#[track_caller]
pub fn jvp<P: IntoTree, Y: IntoTree>(
    primals: P,
    tangents: P::Tree,
    f: impl FnOnce(P::Tree) -> Y,
) -> (Y::Tree, Y::Tree) {
    let loc = Loc::caller();
    let primals = primals.into_tree();
    let leaves = primals.leaves();
    let alike = check_tangents("jvp", &primals, &tangents, loc);
    let body = trace_once("differentiated", "jvp", &primals, f);
    let types = body.types();
    let split = derived("jvp", loc, alike && !body.broken, || {
        transform::jvp_with(&body.func, &wrt(&body, leaves.len()), &floats(&body))
    });
    let Some((func, marks)) = split else {
        let values = body.poisoned(types.clone());
        let slopes = body.poisoned(types);
        return (body.tree.with_leaves(&values), body.tree.with_leaves(&slopes));
    };
    let tangents: Vec<Tensor> = float_leaves(&tangents);
    let arguments = chain(&chain(&leaves, &body.captures), &tangents);
    let (values, slopes) = body.run_primal(loc, &func, &arguments);
    let slopes = fill(&types, &marks, &slopes);
    (body.tree.with_leaves(&values), body.tree.with_leaves(&slopes))
}

/// The value of `f` at `primals`, and its derivative at `primals` as a function of the direction.
/// The function may be called several times, and under `vmap`; the values that it needs are
/// computed once. `jax.linearize`.
///
/// ```
/// # use podracer_dsl::prelude::*;
/// # trace(f32([4]), |x| {
/// let (y, derivative) = linearize(x, |x| x.sin());
/// let slopes = vmap(eye(F32, 4), derivative);
/// # (y, slopes)
/// # })?;
/// # Ok::<(), TraceErrors>(())
/// ```
#[track_caller]
pub fn linearize<P: IntoTree, Y: IntoTree>(
    primals: P,
    f: impl FnOnce(P::Tree) -> Y,
) -> (Y::Tree, impl Fn(P::Tree) -> Y::Tree) {
    let loc = Loc::caller();
    let primals = primals.into_tree();
    let leaves = primals.leaves();
    let body = trace_once("differentiated", "linearize", &primals, f);
    let types = body.types();
    let split = derived("linearize", loc, !body.broken, || {
        let parts =
            transform::linearize_with(&body.func, &wrt(&body, leaves.len()), &floats(&body))?;
        transform::runs(&parts.linear).map(|()| parts)
    });
    let (values, linear) = match split {
        Some(parts) => {
            let (values, residuals) =
                body.run_primal(loc, &parts.primal, &chain(&leaves, &body.captures));
            (values, Some((parts.linear, parts.tangent_results, residuals)))
        }
        None => (body.poisoned(types.clone()), None),
    };
    let value = body.tree.with_leaves(&values);
    let structure = value.clone();
    let apply = move |tangents: P::Tree| {
        let alike = check_tangents("linearize", &primals, &tangents, loc);
        let slopes = match &linear {
            Some((func, marks, residuals)) if alike => fill(
                &types,
                marks,
                &inline_at(loc, func, &chain(residuals, &float_leaves(&tangents))),
            ),
            _ => types.iter().map(|ty| crate::tensor::poison(ty.clone())).collect(),
        };
        structure.with_leaves(&slopes)
    };
    (value, apply)
}

fn float_leaves<T: Tree>(tree: &T) -> Vec<Tensor> {
    tree.leaves().into_iter().filter(|leaf| leaf.dtype().is_float()).collect()
}

fn floats<Y: Tree>(body: &Body<Y>) -> Vec<bool> {
    body.results
        .iter()
        .map(|leaf| leaf.ty.dtype.is_float())
        .chain(body.log_types().iter().map(|_| false))
        .collect()
}

/// The tangent of each result: those marked were computed, the others are zero.
fn fill(types: &[TensorType], marks: &[bool], computed: &[Tensor]) -> Vec<Tensor> {
    let mut computed = computed.iter();
    let mut next = |is: bool| if is { computed.next().copied() } else { None };
    types.iter().zip(marks).map(|(ty, &is)| next(is).unwrap_or_else(|| zeros_of(ty))).collect()
}

fn check_tangents<P: Tree>(op: &str, primals: &P, tangents: &P, loc: Loc) -> bool {
    let (expected, given) = (typed_paths(primals), typed_paths(tangents));
    check_alike(op, ("tangent", "argument"), &expected, &given, loc)
}
