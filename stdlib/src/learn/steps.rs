//! Computations on the steps of rollouts that agents share: values and advantages, and the steps
//! that count.

use super::{Axes, Input, RolloutOf};
use crate::Number;
use crate::returns::gae_with_ends;
use podracer_dsl::prelude::*;

impl<M: Tree, X: Tree> RolloutOf<Tensor, M, X> {
    /// Generalized advantages, f32 `[T, N]`. `value` has the values of the inputs, f32 `[T, N]`.
    /// `value_after` returns the value of another input of one lane, and `memory` has the memory
    /// before that input (`[T, N, ..]` after each step). If an episode was cut off, the next value
    /// is the value of the episode's last observation, not of the next episode's first.
    #[track_caller]
    pub(crate) fn advantages<N: Tree>(
        &self,
        value: Tensor,
        memory: N,
        value_after: impl Fn((N, Input)) -> Tensor,
        discount: Number,
        lambda: Number,
    ) -> Tensor {
        let values = |after: (N, Input)| vmap(after, &value_after);
        let memory_at_end = tree_map(&memory, |leaf| leaf.index(-1));
        let v_last = values((memory_at_end, self.next_input.clone())).expand_dims(0);
        let v_next = concatenate(&[value.slice_axis(0, 1..value.dim(0)), v_last], 0);
        let v_t = match self.inputs_after() {
            Some(next) => select(self.truncated, vmap((memory, next), values), v_next),
            None => v_next,
        };
        let discount_t = select(self.terminated, 0.0, discount) + zeros(F32, value.shape());
        let done = self.done();
        let lanes = (self.reward.axis(1), discount_t.axis(1), value.axis(1), v_t.axis(1));
        vmap((lanes, done.axis(1)), |((r_t, discount_t, v_tm1, v_t), done)| {
            gae_with_ends(r_t, discount_t, v_tm1, v_t, done, lambda)
        })
        .swap_axes(0, 1)
    }

    /// Inputs after each step, as if no episode had ended, `[T, N, ..]`: the inputs to bootstrap
    /// from if an episode was cut off. `None` if the environment never truncates.
    #[track_caller]
    pub(crate) fn inputs_after(&self) -> Option<Input> {
        self.next_observation.map(|observation| Input {
            observation,
            // Only values are computed from these inputs, no policy.
            legal_actions: None,
            last_action: self.action,
            last_reward: self.reward,
            first: zeros(BOOL, self.reward.shape()),
        })
    }

    /// The number of this device's steps that count: steps that were not skipped. f32 `[]`
    #[track_caller]
    pub(crate) fn steps_that_count(&self) -> Tensor {
        match self.skipped {
            Some(skipped) => (!skipped).astype(F32).sum(),
            None => full([], self.reward.elements() as f64),
        }
    }
}

/// Weights for means over the steps that `count` (bool of any shape), on all members of the axes:
/// f32 of the same shape. Their mean is 1 unless no step counts.
#[track_caller]
pub fn step_weights(count: Tensor, axes: &Axes) -> Tensor {
    let count = count.astype(F32);
    // The bound avoids a division by 0 if no device has a step.
    count / axes.mean(count.mean()).maximum(1e-9)
}

/// Values of actions, or their logits, `[.., A]`, with -inf for actions that are not `legal` (bool
/// of the same shape; `None` if all are).
#[track_caller]
pub(crate) fn of_legal(values: Tensor, legal: Option<Tensor>) -> Tensor {
    match legal {
        Some(legal) => select(legal, values, f64::NEG_INFINITY),
        None => values,
    }
}

/// Numbers times their weights, if there are any; 0 if the weight is 0, even if the number is
/// infinite or NaN.
#[track_caller]
pub(crate) fn weighted(numbers: Tensor, weights: Option<Tensor>) -> Tensor {
    match weights {
        Some(weights) => select(weights.eq(0.0), 0.0, numbers * weights),
        None => numbers,
    }
}
