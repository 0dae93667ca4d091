//! Losses and errors of values.

use super::pick;
use crate::Number;
use podracer_dsl::prelude::*;

/// Half of the square, `x^2 / 2`, elementwise.
#[track_caller]
pub fn l2_loss(x: Tensor) -> Tensor {
    0.5 * x.square()
}

/// The Huber loss: `x^2 / 2` up to `delta`, and linear with a continuous slope beyond. Huber,
/// "Robust Estimation of a Location Parameter", 1964.
#[track_caller]
pub fn huber_loss(x: Tensor, delta: impl Into<Number>) -> Tensor {
    let (size, delta) = (x.abs(), delta.into());
    let quadratic = size.minimum(delta);
    0.5 * quadratic.square() + delta * (size - quadratic)
}

/// PPO's clipped value loss, as in the paper's code:
///
/// ```text
/// mean_t(max((v - target)^2, (v_old + clip(v - v_old, -epsilon, epsilon) - target)^2)) / 2
/// ```
///
/// All are `f32[T]`. No gradient flows into `old_values` and `targets`.
#[track_caller]
pub fn clipped_value_loss(
    values: Tensor,
    old_values: Tensor,
    targets: Tensor,
    epsilon: impl Into<Number>,
) -> Tensor {
    let _scope = scope("clipped_value_loss");
    let (old_values, targets) = (stop_gradient(old_values), stop_gradient(targets));
    let epsilon = epsilon.into();
    let clipped = old_values + (values - old_values).clamp(-epsilon, epsilon);
    0.5 * (values - targets).square().maximum((clipped - targets).square()).mean()
}

/// The error of TD(0), Sutton, "Learning to Predict by the Methods of Temporal Differences", 1988:
/// `r_t + discount_t v_t - v_tm1`. All are `f32[]`. No gradient flows into the target, here and below.
#[track_caller]
pub fn td_learning(v_tm1: Tensor, r_t: Tensor, discount_t: Tensor, v_t: Tensor) -> Tensor {
    stop_gradient(r_t + discount_t * v_t) - v_tm1
}

/// The error of Q-learning, Watkins and Dayan, "Q-learning", 1992: `r_t + discount_t max_a q_t[a] - q_tm1[a_tm1]`.
/// `q_tm1` and `q_t` are `f32[A]`, `a_tm1` `i32[]`.
#[track_caller]
pub fn q_learning(
    q_tm1: Tensor,
    a_tm1: Tensor,
    r_t: Tensor,
    discount_t: Tensor,
    q_t: Tensor,
) -> Tensor {
    let _scope = scope("q_learning");
    stop_gradient(r_t + discount_t * q_t.max_axis(-1)) - pick(q_tm1, a_tm1)
}

/// The error of double Q-learning, van Hasselt, Guez and Silver, "Deep Reinforcement Learning with
/// Double Q-learning", 2016, eq. 4: one network selects the action, the other evaluates it.
#[track_caller]
pub fn double_q_learning(
    q_tm1: Tensor,
    a_tm1: Tensor,
    r_t: Tensor,
    discount_t: Tensor,
    q_t_value: Tensor,
    q_t_selector: Tensor,
) -> Tensor {
    let _scope = scope("double_q_learning");
    let value = pick(q_t_value, q_t_selector.argmax(-1));
    stop_gradient(r_t + discount_t * value) - pick(q_tm1, a_tm1)
}

/// The error of Sarsa, Rummery and Niranjan, 1994: `r_t + discount_t q_t[a_t] - q_tm1[a_tm1]`.
#[track_caller]
pub fn sarsa(
    q_tm1: Tensor,
    a_tm1: Tensor,
    r_t: Tensor,
    discount_t: Tensor,
    q_t: Tensor,
    a_t: Tensor,
) -> Tensor {
    let _scope = scope("sarsa");
    stop_gradient(r_t + discount_t * pick(q_t, a_t)) - pick(q_tm1, a_tm1)
}

/// The error of expected Sarsa, van Seijen et al., "A Theoretical and Empirical Analysis of Expected Sarsa", 2009:
/// `r_t + discount_t sum_a probs_a_t[a] q_t[a] - q_tm1[a_tm1]`.
#[track_caller]
pub fn expected_sarsa(
    q_tm1: Tensor,
    a_tm1: Tensor,
    r_t: Tensor,
    discount_t: Tensor,
    q_t: Tensor,
    probs_a_t: Tensor,
) -> Tensor {
    let _scope = scope("expected_sarsa");
    stop_gradient(r_t + discount_t * (q_t * probs_a_t).sum_axis(-1)) - pick(q_tm1, a_tm1)
}
