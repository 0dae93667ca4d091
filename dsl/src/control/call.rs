//! Subroutines: functions that stay functions in the compiled module.

use super::body::{Param, chain, emit_at, trace_body};
use crate::trace::state::FrameKind;
use crate::tree::{IntoTree, Tree};
use podracer_compiler::ops::Call;
use podracer_compiler::{Loc, OpRef};
use std::sync::Arc;

/// Runs `f` on `arguments` as a function of its own: calls of the same code with the same types are emitted once, which
/// keeps large programs small and quick to compile. The result is the same as that of `f(arguments)`.
/// An inner `jax.jit`.
///
/// ```
/// # use podracer_dsl::prelude::*;
/// # trace(f32([4]), |x| {
/// let layer = |x: Tensor| subroutine("layer", x, |x| x.tanh() * 2.0);
/// let y = layer(layer(x));
/// # y
/// # })?;
/// # Ok::<(), TraceErrors>(())
/// ```
#[track_caller]
pub fn subroutine<A: IntoTree, Y: IntoTree>(
    name: &str,
    arguments: A,
    f: impl FnOnce(A::Tree) -> Y,
) -> Y::Tree {
    let loc = Loc::caller();
    let arguments = arguments.into_tree();
    let operands = arguments.leaves();
    let params = operands.iter().map(|&leaf| Param::like(leaf)).collect();
    let body = trace_body(name, FrameKind::Once("subroutine"), None, params, |items| {
        f(arguments.with_leaves(items))
    });
    let guess = [body.types(), body.log_types()].concat();
    let results = if body.broken {
        body.poisoned(guess)
    } else {
        emit_at(
            loc,
            OpRef::new(Call {
                body: Arc::new(body.func.clone()),
            }),
            &chain(&operands, &body.captures),
            &guess,
        )
    };
    let (results, log) = results.split_at(body.results.len());
    body.relog(log);
    body.tree.with_leaves(results)
}
