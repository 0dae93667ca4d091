//! Functions that run once: subroutines, fences and tiles.

use super::body::run_once;
use crate::tensor::report;
use crate::tree::IntoTree;
use podracer_compiler::OpRef;
use podracer_compiler::ops::{Call, CallForm, Tile};

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
    run_once(name, "subroutine", arguments, f, |body| {
        OpRef::new(Call { body, form: CallForm::Inlined })
    })
}

/// Runs `f` on `arguments` behind a fence: XLA's CPU compiler computes the results once, and their
/// readers read them from memory. The result equals `f(arguments)`.
///
/// Without a fence, XLA's CPU compiler copies cheap operations into each of their readers. A value
/// that is expensive to compute, such as random noise, and that many operations read is then
/// computed once for each of them. Fences between the stages of a long computation also shorten
/// compilation. A derivative of a fenced function is fenced too. A fence has no effect if the setting
/// `program.launches` is true, as it is by default on GPUs.
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
    run_once("fenced", "fence", arguments, f, |body| {
        OpRef::new(Call { body, form: CallForm::Fenced })
    })
}

/// Runs `f` on `arguments` as one kernel on one thread of a CPU, loops included. The result equals `f(arguments)`.
///
/// XLA otherwise starts each operation of a loop by itself, which takes longer than an operation on few numbers. The
/// setting `program.whole_loops` makes a kernel of each loop; a kernel is for a part of a program. It may contain
/// elementwise operations, reductions, products of matrices, slices and loops; XLA's compiler refuses a sort, a scatter or
/// a convolution inside. If the setting `program.launches` is true, as it is by default on GPUs, nothing changes.
///
/// ```
/// # use podracer_dsl::prelude::*;
/// # trace(f32([4]), |x| {
/// let y = kernel(x, |x| fori_loop(0..8, x, |_, x| x.sin() * 2.0));
/// # y
/// # })?;
/// # Ok::<(), TraceErrors>(())
/// ```
#[track_caller]
pub fn kernel<A: IntoTree, Y: IntoTree>(arguments: A, f: impl FnOnce(A::Tree) -> Y) -> Y::Tree {
    let op = |body| OpRef::new(Call { body, form: CallForm::Kernel });
    run_once("kernel", "kernel", arguments, f, op)
}

/// Runs `f` on `arguments`. Under [`vmap`](crate::vmap), a CPU runs `f` for tiles of at most
/// `lanes` examples, one tile after another. The result equals `f(arguments)`.
///
/// The intermediate values of a long computation over a thousand examples leave the cache; the
/// values of 64 examples stay in it. [`map_batched`](crate::map_batched) divides a batch that a program
/// has itself; a tile divides the batch of the `vmap` around it. Captured tensors belong to the
/// batch if they depend on the example. A gradient of `f` is computed in tiles, too. If the setting
/// `program.launches` is true, as it is by default on GPUs, all examples run at once.
///
/// If `f` has a collective, it runs for the whole batch. In `f`,
/// [`any_example`](crate::any_example) is true if it holds in any example of the tile. A batch that
/// is not a multiple of the tile is filled with copies of its last example.
///
/// With `vmap` around `vmap`, a batch of at least `lanes` examples is divided for each outer example
/// alone. For a smaller inner batch, a tile has several outer examples, and at most `lanes`
/// examples of both together.
///
/// Errors: `lanes` of 0.
///
/// ```
/// # use podracer_dsl::prelude::*;
/// # trace((f32([1024, 3]), f32([3, 3])), |(states, w)| {
/// let next = vmap(states, |state| tile(64, state, |state| state.matmul(w).tanh() + state));
/// # next
/// # })?;
/// # Ok::<(), TraceErrors>(())
/// ```
#[track_caller]
pub fn tile<A: IntoTree, Y: IntoTree>(
    lanes: usize,
    arguments: A,
    f: impl FnOnce(A::Tree) -> Y,
) -> Y::Tree {
    if lanes == 0 {
        report("tile", "a tile must have at least one lane, got 0".to_string(), &[]);
    }
    run_once("tile", "tile", arguments, f, |body| OpRef::new(Tile::new(body, lanes.max(1))))
}
