//! Generalized advantage estimation.

use super::{linear_recurrence, per_step};
use podracer_dsl::prelude::*;

/// Generalized advantage estimation, Schulman et al., "High-Dimensional Continuous Control Using Generalized Advantage
/// Estimation", 2016, eq. 16:
///
/// ```text
/// delta_t = r_t + discount_t v_t - v_tm1
/// A_t = delta_t + discount_t lambda A_{t+1}        with A_T = 0
/// ```
///
/// All are `f32[T]`; `lambda` is a number or `f32[T]`. `discount_t` is 0 at a step that
/// terminates its episode, so that nothing flows across. If episodes may be truncated, use [`gae_with_ends`]. Targets of
/// the value are `A_t + v_tm1`.
#[track_caller]
pub fn gae(
    r_t: Tensor,
    discount_t: Tensor,
    v_tm1: Tensor,
    v_t: Tensor,
    lambda: impl IntoTensor,
) -> Tensor {
    let _scope = scope("gae");
    let delta_t = r_t + discount_t * v_t - v_tm1;
    linear_recurrence(
        delta_t,
        discount_t * per_step(lambda, discount_t),
        delta_t.zeros_like().index(0),
    )
}

/// [`gae`] for episodes that may be truncated. A truncated step bootstraps from the value of its
/// final observation, but the advantage of the next episode does not flow into this episode:
///
/// ```text
/// A_t = delta_t + discount_t lambda (1 - ended_t) A_{t+1}
/// ```
///
/// `ended_t` is `bool[T]`: `truncated`, or equivalently `terminated | truncated`, because
/// `discount_t` is 0 at a step that terminates its episode. `v_t` is the value of the step's own final
/// observation, before any reset. It differs from the next step's `v_tm1` at a step that truncates
/// an episode.
#[track_caller]
pub fn gae_with_ends(
    r_t: Tensor,
    discount_t: Tensor,
    v_tm1: Tensor,
    v_t: Tensor,
    ended_t: Tensor,
    lambda: impl IntoTensor,
) -> Tensor {
    let _scope = scope("gae_with_ends");
    let delta_t = r_t + discount_t * v_t - v_tm1;
    let flow = select(ended_t, 0.0, discount_t * per_step(lambda, discount_t));
    linear_recurrence(delta_t, flow, delta_t.zeros_like().index(0))
}

/// [`gae`] with rlax's name and arguments: `values` is `f32[T + 1]`, the values of the states in
/// order. It is correct if no episode is truncated.
#[track_caller]
pub fn truncated_generalized_advantage_estimation(
    r_t: Tensor,
    discount_t: Tensor,
    lambda: impl IntoTensor,
    values: Tensor,
) -> Tensor {
    let _scope = scope("truncated_generalized_advantage_estimation");
    gae(r_t, discount_t, values.slice(..-1), values.slice(1..), lambda)
}
