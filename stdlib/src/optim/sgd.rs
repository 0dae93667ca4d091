//! Stochastic gradient descent.

use super::{Optimizer, Schedule, no_updates, times, zeros_like};
use crate::Number;
use crate::counter::next_count;
use podracer_dsl::prelude::*;

/// Gradient descent: `update_t = -learning_rate m_t` with `m_t = g_t + momentum m_{t-1}`, or Nesterov's `g_t + momentum m_t`:
/// Sutskever et al., "On the importance of initialization and momentum in deep learning", 2013.
#[derive(Clone, Debug)]
pub struct Sgd {
    /// Learning rate as a function of the number of earlier updates.
    pub learning_rate: Schedule,
    /// Share of the last step that is added to the next; 0 for plain descent.
    pub momentum: Number,
    /// True for Nesterov's form.
    pub nesterov: bool,
}

/// State of [`Sgd`]: the count of updates, and the trace of gradients.
#[derive(Tree, Clone)]
pub struct SgdState<P: Tree> {
    /// Number of updates made, `i32[]`.
    pub count: Tensor,
    /// Trace of gradients, with momentum.
    pub trace: Option<P>,
}

/// Gradient descent without momentum.
pub fn sgd(learning_rate: impl Into<Schedule>) -> Sgd {
    Sgd { learning_rate: learning_rate.into(), momentum: 0.0.into(), nesterov: false }
}

setters!(Sgd: momentum);

impl Sgd {
    /// Turns on [`Sgd::nesterov`].
    pub fn nesterov(self) -> Self {
        Sgd { nesterov: true, ..self }
    }
}

/// One step of momentum: the direction of the update, and the next trace.
#[track_caller]
pub(super) fn follow<P: Tree>(direction: P, trace: &P, momentum: Number, nesterov: bool) -> (P, P) {
    let next = direction.zip_with(trace, |d, trace| d + momentum * trace);
    let go = if nesterov {
        direction.zip_with(&next, |d, next| d + momentum * next)
    } else {
        next.clone()
    };
    (go, next)
}

impl Optimizer for Sgd {
    type State<P: Tree> = SgdState<P>;

    #[track_caller]
    fn init<P: Tree>(&self, params: &P) -> SgdState<P> {
        let trace = (!self.momentum.is(0.0)).then(|| zeros_like(params));
        SgdState { count: no_updates(), trace }
    }

    #[track_caller]
    fn update<P: Tree>(&self, grads: P, state: SgdState<P>, _params: &P) -> (P, SgdState<P>) {
        let learning_rate = self.learning_rate.value(state.count);
        let (go, trace) = match &state.trace {
            Some(trace) => {
                let (go, next) = follow(grads, trace, self.momentum, self.nesterov);
                (go, Some(next))
            }
            None => (grads, None),
        };
        let count = next_count(state.count);
        (tree_map(&go, |go| times(-learning_rate, go)), SgdState { count, trace })
    }
}
