//! `scan`: the loop of known length, with a carry, items in and items out. It runs backward for gradients.

use super::body::{
    Body, Param, captures_first, chain, emit_at, inline_at, known_length, trace_body,
};
use super::vectorize::vmap_func;
use crate::tensor::{Tensor, concatenate};
use crate::trace::TraceError;
use crate::trace::state::{self, FrameKind};
use crate::tree::{
    IntoTree, Items, Over, Path, Sources, Tree, changed_choice, difference, typed_paths,
};
use podracer_compiler::ops::Scan;
use podracer_compiler::transform::VmapContext;
use podracer_compiler::{Loc, OpRef, TensorType};
use std::sync::Arc;

/// Runs `f` for each item of `xs` in turn: `(carry, x) -> (carry, y)`. Returns the last carry, and
/// all `y` stacked along a new leading axis.
///
/// `xs` is a tree (its leaves' leading axes run together), a range `0..n`, [`Keys`](crate::Keys), `axis(tree, 1)`, or a
/// tuple of these; `rev(xs)` begins with the last. Numbers in the carry are f32, i32 or bool tensors.
///
/// Errors: a carry that changes its type in a round, items of different counts. `jax.lax.scan`.
///
/// ```
/// # use podracer_dsl::prelude::*;
/// # trace(f32([4]), |x| {
/// let (total, partial_sums) = scan(0.0, x, |sum, x| (sum + x, sum));
/// # (total, partial_sums)
/// # })?;
/// # Ok::<(), TraceErrors>(())
/// ```
#[track_caller]
pub fn scan<C: IntoTree, X: Over, Y: IntoTree>(
    carry: C,
    xs: X,
    f: impl FnOnce(C::Tree, X::Item) -> (C::Tree, Y),
) -> (C::Tree, Y::Tree) {
    run("scan", carry.into_tree(), xs, false, f)
}

/// [`scan`] from the last item to the first. The output of item `i` stands at `i`.
/// `jax.lax.scan(.., reverse=True)`.
///
/// ```
/// # use podracer_dsl::prelude::*;
/// # trace(f32([4]), |x| {
/// let (_, rewards_to_go) = scan_reverse(0.0, x, |sum, x| (sum + x, sum + x));
/// # rewards_to_go
/// # })?;
/// # Ok::<(), TraceErrors>(())
/// ```
#[track_caller]
pub fn scan_reverse<C: IntoTree, X: Over, Y: IntoTree>(
    carry: C,
    xs: X,
    f: impl FnOnce(C::Tree, X::Item) -> (C::Tree, Y),
) -> (C::Tree, Y::Tree) {
    run("scan", carry.into_tree(), xs, true, f)
}

/// Runs `f` for each item of `xs`, one after another, and stacks the results: `vmap` with the memory of one example.
/// `jax.lax.map`.
///
/// ```
/// # use podracer_dsl::prelude::*;
/// # trace(f32([4]), |x| {
/// let squares = map(x, |x| x * x);
/// # squares
/// # })?;
/// # Ok::<(), TraceErrors>(())
/// ```
#[track_caller]
pub fn map<X: Over, Y: IntoTree>(xs: X, f: impl FnOnce(X::Item) -> Y) -> Y::Tree {
    run("map", (), xs, false, |(), x| ((), f(x))).1
}

/// [`map`] in batches: runs `batch` items at once, and the remaining items after the last full
/// batch. Its memory and time lie between `map` and `vmap`. `jax.lax.map(f, xs, batch_size=batch)`.
///
/// ```
/// # use podracer_dsl::prelude::*;
/// # trace(f32([100, 3]), |xs| {
/// let norms = map_batched(xs, 32, |x| x.norm());
/// # norms })?;
/// # Ok::<(), TraceErrors>(())
/// ```
#[track_caller]
pub fn map_batched<X: Over, Y: IntoTree>(
    xs: X,
    batch: usize,
    f: impl FnOnce(X::Item) -> Y,
) -> Y::Tree {
    const OP: &str = "map_batched";
    let loc = Loc::caller();
    let sources = Sources::of(&xs);
    let tensors = sources.tensors();
    let length = if batch == 0 {
        Err("a batch must have at least one item, got 0".to_string())
    } else {
        sources.length()
    };
    let length = known_length(OP, length, &tensors);
    let params = tensors.iter().map(|&tensor| Param::slice(tensor)).collect();
    let body = trace_body("map_body", FrameKind::Repeats(OP), None, params, |items| {
        f(xs.item(&mut Items::new(items)))
    })
    .without_log();
    let extent = length.unwrap_or(1);
    let types: Vec<TensorType> = body.types().iter().map(|ty| ty.stacked(extent)).collect();
    if length.is_none() || body.broken {
        return body.tree.with_leaves(&body.poisoned(types));
    }
    let of_size = |size: usize| vmap_func(&body.func, &VmapContext::new(size), tensors.len());
    let part = |from: usize, to: usize| {
        let rows = |tensor: &Tensor| tensor.slice_axis(0, from..to);
        tensors.iter().map(rows).collect::<Vec<_>>()
    };
    let (rounds, rest) = (extent / batch, extent % batch);
    let mut parts: Vec<Vec<Tensor>> = Vec::new();
    if rounds > 0 {
        let shaped = |tensor: Tensor, leading: &[usize], taken: usize| {
            tensor.reshape([leading, &tensor.shape()[taken..]].concat())
        };
        let rows = part(0, rounds * batch);
        let rows: Vec<Tensor> =
            rows.into_iter().map(|rows| shaped(rows, &[rounds, batch], 1)).collect();
        let consts = body.captures.len();
        let scan = Scan {
            body: Arc::new(captures_first(of_size(batch), consts)),
            length: rounds,
            reverse: false,
            consts,
            carries: 0,
        };
        let guess: Vec<TensorType> =
            body.types().iter().map(|ty| ty.stacked(batch).stacked(rounds)).collect();
        let outputs = emit_at(loc, OpRef::new(scan), &chain(&body.captures, &rows), &guess);
        parts.push(outputs.into_iter().map(|y| shaped(y, &[rounds * batch], 2)).collect());
    }
    if rest > 0 || rounds == 0 {
        let operands = chain(&part(rounds * batch, extent), &body.captures);
        parts.push(inline_at(loc, &of_size(rest), &operands));
    }
    let joined: Vec<Tensor> = (0..types.len())
        .map(|i| match &parts[..] {
            [only] => only[i],
            parts => concatenate(&parts.iter().map(|part| part[i]).collect::<Vec<_>>(), 0),
        })
        .collect();
    body.tree.with_leaves(&joined)
}

#[track_caller]
pub(super) fn run<C: Tree, X: Over, Y: IntoTree>(
    op: &'static str,
    carry: C,
    xs: X,
    reverse: bool,
    f: impl FnOnce(C, X::Item) -> (C, Y),
) -> (C, Y::Tree) {
    let loc = Loc::caller();
    let sources = Sources::of(&xs);
    let tensors = sources.tensors();
    let length = known_length(op, sources.length(), &tensors);
    let before = typed_paths(&carry);
    let carries = carry.leaves();
    let params = carries
        .iter()
        .map(|&leaf| Param::like(leaf))
        .chain(tensors.iter().map(|&tensor| Param::slice(tensor)));
    let body = trace_body("body", FrameKind::Repeats(op), None, params.collect(), |items| {
        let (carry_items, items) = items.split_at(carries.len());
        let (next, y) = f(carry.with_leaves(carry_items), xs.item(&mut Items::new(items)));
        (next, y.into_tree())
    });
    let after = body.tree.0.paths().len();
    let fits = check_carry(op, (&carry, &before), &body.tree.0, &body, loc);
    let steps = length.unwrap_or(1);
    let y_types: Vec<TensorType> =
        body.types()[after..].iter().chain(&body.log_types()).map(|ty| ty.stacked(steps)).collect();
    let guess: Vec<TensorType> = before.iter().map(|(_, ty)| ty.clone()).chain(y_types).collect();
    let results = if !fits || body.broken || length.is_none() {
        body.poisoned(guess)
    } else {
        let consts = body.captures.len();
        let scan = Scan {
            body: Arc::new(captures_first(body.func.clone(), consts)),
            length: steps,
            reverse: reverse != sources.is_reversed(),
            consts,
            carries: carries.len(),
        };
        let operands = chain(&body.captures, &chain(&carries, &tensors));
        emit_at(loc, OpRef::new(scan), &operands, &guess)
    };
    let (results, log) = results.split_at(body.results.len().min(results.len()));
    body.relog_rounds(log);
    let (carry_results, y_results) = results.split_at(carries.len().min(results.len()));
    (carry.with_leaves(carry_results), body.tree.1.with_leaves(y_results))
}

/// True if a loop's carry has the same structure and types after a round. If not, an error is
/// recorded at the line that changed it. The carry's leaves are the first of the body's results.
pub(super) fn check_carry<C: Tree, Y: Tree>(
    op: &str,
    (carry, before): (&C, &[(Path, TensorType)]),
    next: &C,
    body: &Body<Y>,
    began: Loc,
) -> bool {
    let typed: Vec<(Path, TensorType)> = next.paths().into_iter().zip(body.types()).collect();
    let results = &body.results[..typed.len()];
    let other_choice = changed_choice("carry", carry, next);
    let Some((leaf, message)) = other_choice.or_else(|| difference("carry", before, &typed)) else {
        return true;
    };
    let made = results.get(leaf).map_or(began, |leaf| leaf.made);
    let error = TraceError::new(op, format!("carry {message}"), made)
        .label("body")
        .note("carry began at", began);
    state::with(|trace| {
        if results.get(leaf).is_none_or(|leaf| !leaf.poison) {
            trace.error(error);
        }
    });
    false
}
