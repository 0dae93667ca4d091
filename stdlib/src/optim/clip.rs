//! Gradients of bounded size.

use super::{Optimizer, global_norm, times};
use crate::Number;
use podracer_dsl::prelude::*;

/// Scales all gradients together so that their global norm is at most `max_norm`: Pascanu, Mikolov and Bengio, "On the
/// difficulty of training recurrent neural networks", 2013, algorithm 1.
#[derive(Clone, Copy, Debug)]
pub struct ClipByGlobalNorm {
    /// The greatest norm that passes unchanged.
    pub max_norm: Number,
}

/// Keeps each element of the gradients in `[-max_delta, max_delta]`.
#[derive(Clone, Copy, Debug)]
pub struct Clip {
    /// Greatest magnitude of an element.
    pub max_delta: Number,
}

/// A [`ClipByGlobalNorm`] to at most `max_norm`.
pub fn clip_by_global_norm(max_norm: impl Into<Number>) -> ClipByGlobalNorm {
    ClipByGlobalNorm { max_norm: max_norm.into() }
}

/// A [`Clip`] to magnitudes of at most `max_delta`.
pub fn clip(max_delta: impl Into<Number>) -> Clip {
    Clip { max_delta: max_delta.into() }
}

impl Optimizer for ClipByGlobalNorm {
    type State<P: Tree> = ();

    fn init<P: Tree>(&self, _params: &P) {}

    #[track_caller]
    fn update<P: Tree>(&self, grads: P, _state: (), _params: &P) -> (P, ()) {
        // 1 where the norm is small enough, and then without a derivative.
        let factor = self.max_norm / global_norm(&grads).maximum(self.max_norm);
        (tree_map(&grads, |g| times(factor, g)), ())
    }
}

impl Optimizer for Clip {
    type State<P: Tree> = ();

    fn init<P: Tree>(&self, _params: &P) {}

    #[track_caller]
    fn update<P: Tree>(&self, grads: P, _state: (), _params: &P) -> (P, ()) {
        (tree_map(&grads, |g| g.clamp(-self.max_delta, self.max_delta)), ())
    }
}
