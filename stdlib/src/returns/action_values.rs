//! Returns from action values, along trajectories of a different policy.

use super::linear_recurrence;
use crate::expect;
use podracer_dsl::prelude::*;

/// Off-policy returns, Munos et al., "Safe and Efficient Off-Policy Reinforcement Learning", 2016, eq. 4:
///
/// ```text
/// G_t = r_t + discount_t (v_t - c_t q_t + c_t G_{t+1})        and at the end r_t + discount_t v_t
/// ```
///
/// `r_t`, `discount_t` and `v_t` are `f32[T]`: `v_t` is the expected action value after step `t`.
/// `q_t` is the value of the next action and `c_t` the coefficient of its trace; both are `f32[T -
/// 1]`, as the last step has no successor. A `c_t` of 0 cuts the trace. This is also needed if an
/// episode was truncated, with the value of its final observation in `v_t`.
#[track_caller]
pub fn general_off_policy_returns_from_q_and_v(
    q_t: Tensor,
    v_t: Tensor,
    r_t: Tensor,
    discount_t: Tensor,
    c_t: Tensor,
) -> Tensor {
    let op = "general_off_policy_returns_from_q_and_v";
    let _scope = scope(op);
    let trajectory = [("v_t", v_t), ("r_t", r_t), ("discount_t", discount_t)];
    if let Some(wrong) = expect::one_shape(op, 1, &trajectory) {
        return wrong;
    }
    let inner = [v_t.len().saturating_sub(1)];
    for (name, tensor) in [("q_t", q_t), ("c_t", c_t)] {
        let meaning = "a step less than the trajectory";
        if let Some(wrong) = expect::shape(op, name, tensor, &inner, meaning) {
            return r_t + wrong.sum();
        }
    }
    // The last step's trace coefficient is 0, so that its return is `r_t + discount_t v_t`.
    let after = |x: Tensor| x.pad(&[(0, 1)], 0.0);
    let (q_t, c_t) = (after(q_t), after(c_t));
    let last = v_t.zeros_like().index(0);
    linear_recurrence(r_t + discount_t * (v_t - c_t * q_t), discount_t * c_t, last)
}

/// [`general_off_policy_returns_from_q_and_v`] with all action values: `q_t` and the probabilities
/// `pi_t` are `f32[T, A]`, the actions `a_t` `i32[T]`, `r_t`, `discount_t` and `c_t` `f32[T]`.
/// `v_t` is `sum_a pi_t[a] q_t[a]`; the last elements of `a_t` and `c_t` are not used.
#[track_caller]
pub fn general_off_policy_returns_from_action_values(
    q_t: Tensor,
    a_t: Tensor,
    r_t: Tensor,
    discount_t: Tensor,
    c_t: Tensor,
    pi_t: Tensor,
) -> Tensor {
    let op = "general_off_policy_returns_from_action_values";
    let _scope = scope(op);
    let steps = [("a_t", a_t), ("r_t", r_t), ("discount_t", discount_t), ("c_t", c_t)];
    if let Some(wrong) = expect::one_shape(op, 1, &steps) {
        return wrong;
    }
    let v_t = (pi_t * q_t).sum_axis(-1);
    let q_a_t = crate::losses::pick(q_t, a_t).slice(..-1);
    general_off_policy_returns_from_q_and_v(q_a_t, v_t, r_t, discount_t, c_t.slice(..-1))
}
