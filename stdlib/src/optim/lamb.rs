//! LAMB: Adam with steps scaled by the norms of the parameters, for large batches.

use super::adam::{Adam, AdamState, adam};
use super::{Optimizer, Schedule, times};
use crate::Number;
use podracer_dsl::prelude::*;

/// LAMB: You et al., "Large Batch Optimization for Deep Learning: Training BERT in 76 minutes",
/// 2020, algorithm 2. For each leaf separately
/// leaf by itself
///
/// ```text
/// update_t = -learning_rate (|param| / |u_t|) u_t        u_t = Adam's direction + weight_decay param
/// ```
///
/// where the ratio of norms is 1 if one of them is 0. Inside [`super::flatten`] the norms would
/// span all parameters.
#[derive(Clone, Debug)]
pub struct Lamb {
    /// Adam, which gives the direction before scaling, with LAMB's learning rate and weight decay.
    pub adam: Adam,
}

/// LAMB with `b1` 0.9, `b2` 0.999, `eps` 1e-6 and no weight decay, optax's defaults.
pub fn lamb(learning_rate: impl Into<Schedule>) -> Lamb {
    Lamb { adam: adam(learning_rate).eps(1e-6) }
}

impl Lamb {
    /// Sets [`Adam::weight_decay`].
    pub fn weight_decay(self, weight_decay: impl Into<Number>) -> Self {
        Lamb { adam: self.adam.weight_decay(weight_decay) }
    }
}

impl Optimizer for Lamb {
    type State<P: Tree> = AdamState<P>;

    #[track_caller]
    fn init<P: Tree>(&self, params: &P) -> AdamState<P> {
        self.adam.init(params)
    }

    #[track_caller]
    fn update<P: Tree>(&self, grads: P, state: AdamState<P>, params: &P) -> (P, AdamState<P>) {
        let learning_rate = self.adam.learning_rate.value(state.count);
        let (direction, state) = self.adam.direction(grads, state, params);
        let updates = direction.zip_with(params, |u, param| {
            let (of_param, of_u) = (param.norm(), u.norm());
            let zero = of_param.eq(0) | of_u.eq(0);
            let ratio = select(zero, 1.0, of_param / select(zero, 1.0, of_u));
            times(-learning_rate, u * ratio)
        });
        (updates, state)
    }
}
