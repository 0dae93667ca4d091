//! `scan`: the loop of known length, with a carry, items in and items out. It runs backward for gradients.

use super::body::{Body, Param, captures_first, chain, emit_at, trace_body};
use crate::tensor::report;
use crate::trace::TraceError;
use crate::trace::state::{self, FrameKind};
use crate::tree::{IntoTree, Items, Over, Path, Sources, Tree, difference, typed_paths};
use podracer_compiler::ops::Scan;
use podracer_compiler::{Loc, OpRef, TensorType};
use std::sync::Arc;

/// Runs `f` for each item of `xs` in turn: `(carry, x) -> (carry, y)`. Gives the last carry, and all `y` stacked along a
/// new leading axis.
///
/// `xs` is a tree (its leaves' leading axes run together), a range `0..n`, [`Keys`](crate::Keys), `axis(tree, 1)`, or a
/// tuple of these; `rev(xs)` begins with the last. Numbers in the carry are f32, i32 or bool tensors.
///
/// Errors: a carry that comes out with another type than it went in, items of different counts.
#[track_caller]
pub fn scan<C: IntoTree, X: Over, Y: IntoTree>(
    carry: C,
    xs: X,
    f: impl FnOnce(C::Tree, X::Item) -> (C::Tree, Y),
) -> (C::Tree, Y::Tree) {
    run("scan", carry.into_tree(), xs, false, f)
}

/// [`scan`] from the last item to the first. The output of item `i` stands at `i`.
#[track_caller]
pub fn scan_reverse<C: IntoTree, X: Over, Y: IntoTree>(
    carry: C,
    xs: X,
    f: impl FnOnce(C::Tree, X::Item) -> (C::Tree, Y),
) -> (C::Tree, Y::Tree) {
    run("scan", carry.into_tree(), xs, true, f)
}

/// Runs `f` for each item of `xs`, one after another, and stacks the results: `vmap` with the memory of one example.
#[track_caller]
pub fn map<X: Over, Y: IntoTree>(xs: X, f: impl FnOnce(X::Item) -> Y) -> Y::Tree {
    run("map", (), xs, false, |(), x| ((), f(x))).1
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
    let mut sources = Sources::default();
    xs.sources(&mut sources);
    let tensors = sources.tensors();
    let length = match sources.length() {
        Ok(length) => Some(length),
        Err(message) => {
            report(op, message, &tensors);
            None
        }
    };
    let before = typed_paths(&carry);
    let carries = carry.leaves();
    let params = carries
        .iter()
        .map(|&leaf| Param::like(leaf))
        .chain(tensors.iter().map(|&tensor| Param::slice(tensor)));
    let body = trace_body(
        "body",
        FrameKind::Repeats(op),
        None,
        params.collect(),
        |items| {
            let (carry_items, items) = items.split_at(carries.len());
            let (next, y) = f(
                carry.with_leaves(carry_items),
                xs.item(&mut Items::new(items)),
            );
            (next, y.into_tree())
        },
    );
    let after = body.tree.0.paths();
    let fits = check_carry(op, &before, &after, &body, loc);
    let steps = length.unwrap_or(1);
    let y_types: Vec<TensorType> = body.types()[after.len()..]
        .iter()
        .map(|ty| ty.stacked(steps))
        .collect();
    let guess: Vec<TensorType> = before
        .iter()
        .map(|(_, ty)| ty.clone())
        .chain(y_types)
        .collect();
    let results = if !fits || body.broken || length.is_none() {
        body.poisoned(guess)
    } else {
        let consts = body.captures.len();
        let func = Arc::new(captures_first(body.func, consts));
        let scan = Scan {
            body: func,
            length: steps,
            reverse: reverse != sources.is_reversed(),
            consts,
            carries: carries.len(),
        };
        let operands = chain(&body.captures, &chain(&carries, &tensors));
        emit_at(loc, OpRef::new(scan), &operands, &guess)
    };
    let (carry_results, y_results) = results.split_at(carries.len().min(results.len()));
    (
        carry.with_leaves(carry_results),
        body.tree.1.with_leaves(y_results),
    )
}

/// Whether a loop's carry comes out as it went in; if not, that is an error at the place that made it differ. The
/// carry's leaves are the first of the body's results.
pub(super) fn check_carry<Y: Tree>(
    op: &str,
    before: &[(Path, TensorType)],
    after: &[Path],
    body: &Body<Y>,
    began: Loc,
) -> bool {
    let typed: Vec<(Path, TensorType)> = after.iter().cloned().zip(body.types()).collect();
    let Some((leaf, message)) = difference("carry", before, &typed) else {
        return true;
    };
    let made = body.results[..after.len()]
        .get(leaf)
        .map_or(began, |leaf| leaf.made);
    let error = TraceError::new(op, format!("carry {message}"), made)
        .label("body")
        .note("carry began at", began);
    state::with(|trace| {
        if body.results[..after.len()]
            .get(leaf)
            .is_none_or(|leaf| !leaf.poison)
        {
            trace.error(error);
        }
    });
    false
}
