//! Subroutines and fences: functions that stay functions in the compiled module.

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
    run_once(name, "subroutine", arguments, f, |body| OpRef::new(Call { body, fenced: false }))
}

/// Runs `f` on `arguments` behind a fence: XLA's CPU compiler computes the results once, and their
/// readers read them from memory. The result equals `f(arguments)`.
///
/// Without a fence, XLA's CPU compiler copies cheap operations into each of their readers. A value
/// that is expensive to compute, such as random noise, and that many operations read is then
/// computed once for each of them. Fences between the stages of a long computation also shorten
/// compilation. A derivative of a fenced function is fenced too. A fence has no effect if the setting
/// `program.launches` is true, as it is on GPUs and TPUs.
///
/// ```
/// # use podracer_dsl::prelude::*;
/// # trace(f32([4, 4]), |x| {
/// let noise = fence(x, |x| x.sin().exp().tanh());
/// let scores = (noise.sum_axis(0), noise.max_axis(1), x.matmul(noise));
/// # scores
/// # })?;
/// # Ok::<(), TraceErrors>(())
/// ```
#[track_caller]
pub fn fence<A: IntoTree, Y: IntoTree>(arguments: A, f: impl FnOnce(A::Tree) -> Y) -> Y::Tree {
    run_once("fenced", "fence", arguments, f, |body| OpRef::new(Call { body, fenced: true }))
}
