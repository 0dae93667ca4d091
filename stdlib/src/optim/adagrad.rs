//! Adagrad: steps that shrink with the sum of all squared gradients.

use super::{Optimizer, Schedule, no_updates, times};
use crate::Number;
use crate::counter::next_count;
use podracer_dsl::prelude::*;

/// Adagrad: Duchi, Hazan and Singer, "Adaptive Subgradient Methods for Online Learning and Stochastic Optimization", 2011,
/// with the values of optax:
///
/// ```text
/// sum_t = sum_{t-1} + g_t^2            update_t = -learning_rate g_t / sqrt(sum_t + eps)        0 where sum_t is 0
/// ```
#[derive(Clone, Debug)]
pub struct Adagrad {
    /// Learning rate as a function of the number of earlier updates.
    pub learning_rate: Schedule,
    /// Initial value of the sums.
    pub initial_accumulator_value: Number,
    /// Number added inside the square root.
    pub eps: Number,
}

/// State of [`Adagrad`]: the sums of squared gradients.
#[derive(Tree, Clone)]
pub struct AdagradState<P: Tree> {
    /// Number of updates made, `i32[]`.
    pub count: Tensor,
    /// Sums of squared gradients.
    pub sum_of_squares: P,
}

/// Adagrad with `initial_accumulator_value` 0.1 and `eps` 1e-7.
pub fn adagrad(learning_rate: impl Into<Schedule>) -> Adagrad {
    Adagrad {
        learning_rate: learning_rate.into(),
        initial_accumulator_value: 0.1.into(),
        eps: 1e-7.into(),
    }
}

setters!(Adagrad: initial_accumulator_value, eps);

impl Optimizer for Adagrad {
    type State<P: Tree> = AdagradState<P>;

    #[track_caller]
    fn init<P: Tree>(&self, params: &P) -> AdagradState<P> {
        let first = |param: Tensor| param.zeros_like() + self.initial_accumulator_value;
        AdagradState { count: no_updates(), sum_of_squares: tree_map(params, first) }
    }

    #[track_caller]
    fn update<P: Tree>(
        &self,
        grads: P,
        state: AdagradState<P>,
        _params: &P,
    ) -> (P, AdagradState<P>) {
        let learning_rate = self.learning_rate.value(state.count);
        let sum_of_squares = grads.zip_with(&state.sum_of_squares, |g, sum| g.square() + sum);
        let updates = grads.zip_with(&sum_of_squares, |g, sum| {
            let positive = sum.gt(0);
            let root = (select(positive, sum, 1.0) + self.eps).rsqrt();
            times(-learning_rate, select(positive, root, 0.0) * g)
        });
        (updates, AdagradState { count: next_count(state.count), sum_of_squares })
    }
}
