//! Rematerialization: the backward pass computes values again instead of keeping them.

use crate::control::body::run_once;
use crate::tensor::emit_as;
use crate::tree::{IntoTree, Tree};
use podracer_compiler::OpRef;
use podracer_compiler::ops::{Checkpoint, Named, Save};

/// Runs `f` on `arguments`. Its backward pass keeps only the values that `save` selects, and
/// computes the other values it needs again, from the arguments and the captures of `f`. Values and
/// gradients equal those without the checkpoint. `jax.checkpoint`, also called `jax.remat`.
///
/// It is useful in the body of a `scan`, which would otherwise keep the intermediate values of
/// every step: memory for time.
///
/// ```
/// # use podracer_dsl::prelude::*;
/// # trace((f32([8, 8]), f32([8])), |(w, x)| {
/// let slope = grad(w, |w| {
///     let step = |x: Tensor| checkpoint(Save::Nothing, x, |x| dot(w, x.tanh()).sin());
///     scan(x, 0..100, |x, _| (step(x), ())).0.sum()
/// });
/// # slope })?;
/// # Ok::<(), TraceErrors>(())
/// ```
///
/// A loop in `f` is kept or repeated as a whole: to keep a part of each step, checkpoint the step.
#[doc(alias = "remat")]
#[track_caller]
pub fn checkpoint<A: IntoTree, Y: IntoTree>(
    save: Save,
    arguments: A,
    f: impl FnOnce(A::Tree) -> Y,
) -> Y::Tree {
    run_once("checkpoint", "checkpoint", arguments, f, |body| {
        OpRef::new(Checkpoint { body, save, again: false })
    })
}

/// Names the values of a tree, which stay the same, for [`Save::Names`]. `jax.ad_checkpoint.checkpoint_name`.
///
/// ```
/// # use podracer_dsl::prelude::*;
/// # trace((f32([8, 8]), f32([8])), |(w, x)| {
/// let save = Save::Names(vec!["hidden".to_string()]);
/// let loss = |w| checkpoint(save, w, |w| checkpoint_name("hidden", dot(w, x)).sin().exp().sum());
/// # grad(w, loss) })?;
/// # Ok::<(), TraceErrors>(())
/// ```
#[track_caller]
pub fn checkpoint_name<T: IntoTree>(name: &str, tree: T) -> T::Tree {
    let tree = tree.into_tree();
    let mut leaves = Vec::new();
    for leaf in tree.leaves() {
        let name = name.to_string();
        leaves.extend(emit_as(Named { name }, &[leaf], &[leaf.ty()]));
    }
    tree.with_leaves(&leaves)
}
