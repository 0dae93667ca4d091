//! Lion: updates by the sign of the gradients' mean.

use super::{Optimizer, Schedule, no_updates, times, zeros_like};
use crate::counter::next_count;
use podracer_dsl::prelude::*;

/// Lion: Chen et al., "Symbolic Discovery of Optimization Algorithms", 2023, algorithm 2:
///
/// ```text
/// update_t = -learning_rate (sign(b1 mu_{t-1} + (1 - b1) g_t) + weight_decay param)
/// mu_t = b2 mu_{t-1} + (1 - b2) g_t
/// ```
#[derive(Clone, Debug)]
pub struct Lion {
    /// Learning rate as a function of the number of earlier updates.
    pub learning_rate: Schedule,
    /// Weight of the mean in the direction.
    pub b1: f64,
    /// Decay of the mean.
    pub b2: f64,
    /// Share of the parameters that each update subtracts, times the learning rate.
    pub weight_decay: f64,
}

/// State of [`Lion`]: the mean of the gradients.
#[derive(Tree, Clone)]
pub struct LionState<P: Tree> {
    /// Number of updates made, `i32[]`.
    pub count: Tensor,
    /// Mean of the gradients.
    pub mu: P,
}

/// Lion with `b1` 0.9, `b2` 0.99 and a weight decay of 1e-3, optax's defaults.
pub fn lion(learning_rate: impl Into<Schedule>) -> Lion {
    Lion { learning_rate: learning_rate.into(), b1: 0.9, b2: 0.99, weight_decay: 1e-3 }
}

impl Lion {
    /// Sets [`Lion::weight_decay`].
    pub fn weight_decay(self, weight_decay: f64) -> Self {
        Lion { weight_decay, ..self }
    }
}

impl Optimizer for Lion {
    type State<P: Tree> = LionState<P>;

    #[track_caller]
    fn init<P: Tree>(&self, params: &P) -> LionState<P> {
        LionState { count: no_updates(), mu: zeros_like(params) }
    }

    #[track_caller]
    fn update<P: Tree>(&self, grads: P, state: LionState<P>, params: &P) -> (P, LionState<P>) {
        let &Lion { b1, b2, weight_decay, .. } = self;
        let learning_rate = self.learning_rate.value(state.count);
        let direction = grads.zip_with(&state.mu, |g, mu| ((1.0 - b1) * g + b1 * mu).sign());
        let updates = direction.zip_with(params, |direction, param| {
            times(-learning_rate, direction + weight_decay * param)
        });
        let mu = grads.zip_with(&state.mu, |g, mu| (1.0 - b2) * g + b2 * mu);
        (updates, LionState { count: next_count(state.count), mu })
    }
}
