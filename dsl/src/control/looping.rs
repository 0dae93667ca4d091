//! Loops without items: a fixed number of rounds, or as long as a condition holds.

use super::body::{Body, Param, captures_first, chain, emit_at, inline_at, trace_body};
use super::scan::{check_carry, run};
use crate::tensor::{Tensor, create};
use crate::trace::TraceError;
use crate::trace::entry::Entry;
use crate::trace::state::{self, FrameKind};
use crate::tree::{IntoTree, Over, Tree, typed_paths};
use podracer_compiler::ops::While;
use podracer_compiler::{DType, Func, Loc, OpRef, TensorType};
use std::sync::Arc;

/// Runs `f(i, carry) -> carry` for each `i` of a range, an i32 scalar. The number of rounds is fixed, so gradients flow
/// back through it.
/// `jax.lax.fori_loop`.
///
/// ```
/// # use podracer_dsl::prelude::*;
/// # trace(f32([]), |x| {
/// let power = fori_loop(0..5, 1.0, |_, y| y * x);
/// # power
/// # })?;
/// # Ok::<(), TraceErrors>(())
/// ```
#[track_caller]
pub fn fori_loop<R: Over<Item = Tensor>, C: IntoTree>(
    range: R,
    carry: C,
    f: impl FnOnce(Tensor, C::Tree) -> C::Tree,
) -> C::Tree {
    run("fori_loop", carry.into_tree(), range, false, |carry, i| (f(i, carry), ())).0
}

/// Runs `f(carry) -> carry` as long as `condition(carry)`, a bool scalar, holds. The number of
/// rounds is known only when the program runs, so the loop has a forward derivative
/// ([`jvp`](crate::jvp)) and no reverse derivative. `jax.lax.while_loop`. Under `vmap` each example
/// ends when its own condition is false.
///
/// ```
/// # use podracer_dsl::prelude::*;
/// # trace(f32([]), |x| {
/// let (rounds, x) = while_loop((0, x), |(_, x)| x.lt(100.0), |(n, x)| (n + 1, x * 2.0));
/// # (rounds, x)
/// # })?;
/// # Ok::<(), TraceErrors>(())
/// ```
#[track_caller]
pub fn while_loop<C: IntoTree>(
    carry: C,
    condition: impl FnOnce(C::Tree) -> Tensor,
    f: impl FnOnce(C::Tree) -> C::Tree,
) -> C::Tree {
    let loc = Loc::caller();
    let carry = carry.into_tree();
    let before = typed_paths(&carry);
    let before_count = before.len();
    let carries = carry.leaves();
    let params = || carries.iter().map(|&leaf| Param::like(leaf)).collect();
    let test = trace_body("condition", FrameKind::Repeats("while_loop"), None, params(), |items| {
        condition(carry.with_leaves(items))
    })
    .without_log();
    let step = trace_body("body", FrameKind::Repeats("while_loop"), None, params(), |items| {
        f(carry.with_leaves(items))
    });
    let mut fits = check_carry("while_loop", (&carry, &before), &step.tree, &step, loc);
    let test_type = TensorType::scalar(DType::Bool);
    if !test.broken && test.results[0].ty != test_type {
        fits = false;
        let message = format!("the condition must be {test_type}, got {}", test.results[0].ty);
        let error = TraceError::new("while_loop", message, test.results[0].made)
            .note("the loop is at", loc);
        state::with(|trace| trace.error(error));
    }
    let guess: Vec<TensorType> = before.into_iter().map(|(_, ty)| ty).collect();
    let results = if !fits || step.broken || test.broken {
        step.poisoned(guess)
    } else {
        let (condition_consts, body_consts) = (test.captures.len(), step.captures.len());
        let (condition, body, begin) = carry_log(test.func, &step);
        let op = While {
            condition: Arc::new(captures_first(condition, condition_consts)),
            body: Arc::new(captures_first(body, body_consts)),
            condition_consts,
            body_consts,
        };
        let carries = chain(&carries, &begin);
        let operands = chain(&test.captures, &chain(&step.captures, &carries));
        let guess = [guess, begin.iter().map(|leaf| leaf.ty()).collect()].concat();
        emit_at(loc, OpRef::new(op), &operands, &guess)
    };
    let (results, log) = results.split_at(before_count.min(results.len()));
    step.relog(log);
    carry.with_leaves(results)
}

/// The condition and the body with the body's log in the carry, and the initial values of this log.
/// A loop of unknown length cannot stack its log: it keeps the first failure and the last print.
#[track_caller]
fn carry_log<C: Tree>(condition: Func, step: &Body<C>) -> (Func, Func, Vec<Tensor>) {
    let count = step.results.len();
    let types = step.log_types();
    let mut begin = Vec::new();
    for ty in &types {
        begin.push(create::zeros(ty.dtype, &ty.shape));
    }
    if types.is_empty() {
        return (condition, step.func.clone(), begin);
    }
    // carry ++ log ++ captures -> the same, with the log updated.
    let inlined = |func: &Func, arguments: &[Tensor], captures: usize| {
        let carried = &arguments[..count];
        let captured = &arguments[arguments.len() - captures..];
        inline_at(Loc::NONE, func, &chain(carried, captured))
    };
    let params = |func: &Func| {
        let all = func.param_types();
        let (carry, captures) = all.split_at(count);
        let params = [carry, &types, captures].concat();
        params.into_iter().map(|ty| Param { ty, poison: false }).collect::<Vec<_>>()
    };
    let kind = FrameKind::Repeats("while_loop");
    let captures = condition.params.len() - count;
    let test = trace_body("condition", kind, None, params(&condition), |arguments| {
        inlined(&condition, arguments, captures)
    });
    let captures = step.captures.len();
    let body = trace_body("body", kind, None, params(&step.func), |arguments| {
        let mut results = inlined(&step.func, arguments, captures);
        let next = step.log.with_leaves(&results.split_off(count));
        let log = step.log.with_leaves(&arguments[count..count + types.len()]);
        let log: Vec<Entry> = log.into_iter().zip(&next).map(|(old, new)| old.after(new)).collect();
        chain(&results, &log.leaves())
    });
    (test.func, body.func, begin)
}
