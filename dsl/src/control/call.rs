//! Subroutines: functions that stay functions in the compiled module.

use super::body::run_once;
use crate::tree::IntoTree;
use podracer_compiler::OpRef;
use podracer_compiler::ops::Call;

/// Runs `f` on `arguments` as a separate function. Calls of the same code with the same types are
/// emitted once, which keeps large programs small and quick to compile. The result equals
/// `f(arguments)`. An inner `jax.jit`.
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
    run_once(name, "subroutine", arguments, f, |body| OpRef::new(Call { body }))
}
