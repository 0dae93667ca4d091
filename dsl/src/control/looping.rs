//! Loops without items: a fixed number of rounds, or as long as a condition holds.

use super::body::{Param, captures_first, chain, emit_at, trace_body};
use super::scan::{check_carry, run};
use crate::tensor::Tensor;
use crate::trace::TraceError;
use crate::trace::state::{self, FrameKind};
use crate::tree::{IntoTree, Over, Tree, typed_paths};
use podracer_compiler::ops::While;
use podracer_compiler::{DType, Loc, OpRef, TensorType};
use std::sync::Arc;

/// Runs `f(i, carry) -> carry` for each `i` of a range, an i32 scalar. The number of rounds is fixed, so gradients flow
/// back through it.
#[track_caller]
pub fn fori_loop<R: Over<Item = Tensor>, C: IntoTree>(
    range: R,
    carry: C,
    f: impl FnOnce(Tensor, C::Tree) -> C::Tree,
) -> C::Tree {
    run("fori_loop", carry.into_tree(), range, false, |carry, i| {
        (f(i, carry), ())
    })
    .0
}

/// Runs `f(carry) -> carry` as long as `condition(carry)`, a bool scalar, holds. How often is known only when it runs:
/// there is a forward derivative ([`jvp`](crate::jvp)) and no reverse one.
#[track_caller]
pub fn while_loop<C: IntoTree>(
    carry: C,
    condition: impl FnOnce(C::Tree) -> Tensor,
    f: impl FnOnce(C::Tree) -> C::Tree,
) -> C::Tree {
    let loc = Loc::caller();
    let carry = carry.into_tree();
    let before = typed_paths(&carry);
    let carries = carry.leaves();
    let params = || carries.iter().map(|&leaf| Param::like(leaf)).collect();
    let test = trace_body(
        "condition",
        FrameKind::Repeats("while_loop"),
        None,
        params(),
        |items| condition(carry.with_leaves(items)),
    );
    let step = trace_body(
        "body",
        FrameKind::Repeats("while_loop"),
        None,
        params(),
        |items| f(carry.with_leaves(items)),
    );
    let after = step.tree.paths();
    let mut fits = check_carry("while_loop", &before, &after, &step, loc);
    let test_type = TensorType::scalar(DType::Bool);
    if !test.broken && test.results[0].ty != test_type {
        fits = false;
        let message = format!(
            "the condition must be {test_type}, got {}",
            test.results[0].ty
        );
        let error = TraceError::new("while_loop", message, test.results[0].made)
            .note("the loop is at", loc);
        state::with(|trace| trace.error(error));
    }
    let guess: Vec<TensorType> = before.into_iter().map(|(_, ty)| ty).collect();
    let results = if !fits || step.broken || test.broken {
        step.poisoned(guess)
    } else {
        let (condition_consts, body_consts) = (test.captures.len(), step.captures.len());
        let op = While {
            condition: Arc::new(captures_first(test.func, condition_consts)),
            body: Arc::new(captures_first(step.func, body_consts)),
            condition_consts,
            body_consts,
        };
        let operands = chain(&test.captures, &chain(&step.captures, &carries));
        emit_at(loc, OpRef::new(op), &operands, &guess)
    };
    carry.with_leaves(&results)
}
