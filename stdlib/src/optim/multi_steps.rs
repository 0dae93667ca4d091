//! Gradients accumulated over several steps, for batches that do not fit into memory at once.

use super::{Optimizer, no_updates, zeros_like};
use crate::counter::next_count;
use podracer_dsl::fail;
use podracer_dsl::prelude::*;

/// Passes the mean of `every` gradients to the inner optimizer, once per `every` steps; the updates
/// in between are 0, as in `optax.MultiSteps`. With batches of equal size it equals one step on all
/// batches together. The mean is kept in f32, or in f64 for f64 parameters.
#[derive(Clone, Copy, Debug)]
pub struct MultiSteps<O> {
    /// Optimizer of the means.
    pub inner: O,
    /// Number of gradients in a mean, at least 1.
    pub every: usize,
}

/// State of [`MultiSteps`]: the mean so far and the inner optimizer's state.
#[derive(Tree, Clone)]
pub struct MultiStepsState<P: Tree, S: Tree> {
    /// Number of gradients in the mean, `i32[]`, below `every`.
    pub mini_step: Tensor,
    /// Number of updates that the inner optimizer has made, `i32[]`.
    pub gradient_step: Tensor,
    /// State of the inner optimizer.
    pub inner: S,
    /// Mean of the gradients so far, in f32, or in f64 for f64 parameters.
    pub mean: P,
}

/// A [`MultiSteps`] around an optimizer.
pub fn multi_steps<O: Optimizer>(inner: O, every: usize) -> MultiSteps<O> {
    MultiSteps { inner, every }
}

/// The dtype of a parameter's mean.
fn wide(param: Tensor) -> DType {
    if param.dtype() == F64 { F64 } else { F32 }
}

impl<O: Optimizer> Optimizer for MultiSteps<O> {
    type State<P: Tree> = MultiStepsState<P, O::State<P>>;

    #[track_caller]
    fn init<P: Tree>(&self, params: &P) -> Self::State<P> {
        let mut mini_step = no_updates();
        if self.every == 0 {
            let message = "a mean of 0 gradients: `every` is at least 1";
            mini_step = fail("multi_steps", message, &[], mini_step.ty());
        }
        MultiStepsState {
            mini_step,
            gradient_step: no_updates(),
            inner: self.inner.init(params),
            mean: tree_map(params, |param| zeros(wide(param), param.shape())),
        }
    }

    #[track_caller]
    fn update<P: Tree>(&self, grads: P, state: Self::State<P>, params: &P) -> (P, Self::State<P>) {
        let MultiStepsState { mini_step, gradient_step, inner, mean } = state;
        let count = (mini_step + 1).astype(F32);
        let mean = grads.zip_with(&mean, |g, mean| {
            mean + (g.astype(mean.dtype()) - mean) / count.astype(mean.dtype())
        });
        // Under a vmap over members both branches run, because each member has its own count.
        let due = (mini_step + 1).ge(self.every as i32).both();
        cond(
            due,
            || {
                let cast = mean.zip_with(params, |mean, param| mean.astype(param.dtype()));
                let (updates, inner) = self.inner.update(cast, inner.clone(), params);
                let state = MultiStepsState {
                    mini_step: no_updates(),
                    gradient_step: next_count(gradient_step),
                    inner,
                    mean: zeros_like(&mean),
                };
                (updates, state)
            },
            || {
                let state = MultiStepsState {
                    mini_step: mini_step + 1,
                    gradient_step,
                    inner: inner.clone(),
                    mean: mean.clone(),
                };
                (zeros_like(params), state)
            },
        )
    }
}
