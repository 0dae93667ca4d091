//! Gradient clipping.

use super::{Optimizer, global_norm, times};
use crate::Number;
use podracer_dsl::prelude::*;

/// Scales all gradients together so that their global norm is at most `max_norm`: Pascanu, Mikolov
/// and Bengio, "On the difficulty of training recurrent neural networks", 2013, algorithm 1. A
/// `max_norm` of 0 gives zeros, and an infinite `max_norm` leaves finite gradients unchanged.
#[derive(Clone, Copy, Debug)]
pub struct ClipByGlobalNorm {
    /// The greatest norm that is not scaled down.
    pub max_norm: Number,
}

/// Clips each element of the gradients to `[-max_delta, max_delta]`.
#[derive(Clone, Copy, Debug)]
pub struct Clip {
    /// Greatest magnitude of an element.
    pub max_delta: Number,
}

/// A [`ClipByGlobalNorm`] with this `max_norm`.
pub fn clip_by_global_norm(max_norm: impl Into<Number>) -> ClipByGlobalNorm {
    ClipByGlobalNorm { max_norm: max_norm.into() }
}

/// A [`Clip`] with this `max_delta`.
pub fn clip(max_delta: impl Into<Number>) -> Clip {
    Clip { max_delta: max_delta.into() }
}

impl Optimizer for ClipByGlobalNorm {
    type State<P: Tree> = ();

    fn init<P: Tree>(&self, _params: &P) {}

    #[track_caller]
    fn update<P: Tree>(&self, grads: P, _state: (), _params: &P) -> (P, ()) {
        let norm = global_norm(&grads);
        // 1, without a derivative, if the norm is small enough. A quotient would be NaN for two
        // zeros or infinities.
        let within = norm.le(self.max_norm);
        let factor = select(within, 1.0, self.max_norm / select(within, 1.0, norm));
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
