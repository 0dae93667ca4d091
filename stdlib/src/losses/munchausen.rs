//! Munchausen reinforcement learning: Q-learning with a bonus for the log-probability of the action
//! taken.

use super::pick;
use crate::{Number, expect};
use podracer_dsl::prelude::*;

/// The error of Munchausen DQN, Vieillard, Pietquin and Geist, "Munchausen Reinforcement Learning", 2020, eq. 5:
///
/// ```text
/// r_t + munchausen_coefficient clip(tau log pi_tm1[a_tm1], clip_value_min, 0)
///     + discount_t sum_a pi_t[a] (q_t[a] - tau log pi_t[a]) - q_tm1[a_tm1]
/// pi = softmax(q / tau), of `target_q_tm1` where the step began and of `q_t` where it led
/// ```
///
/// `q_tm1` is `f32[A]`, from the online network; `target_q_tm1` and `q_t` are `f32[A]`, from the
/// target network; `a_tm1` is `i32[]`, `r_t` and `discount_t` are `f32[]`. In the paper `tau` is
/// 0.03, `munchausen_coefficient` 0.9 and `clip_value_min` -1. No gradient flows into the target.
#[track_caller]
#[allow(clippy::too_many_arguments, reason = "the equation has as many")]
pub fn munchausen_q_learning(
    q_tm1: Tensor,
    a_tm1: Tensor,
    r_t: Tensor,
    discount_t: Tensor,
    target_q_tm1: Tensor,
    q_t: Tensor,
    tau: impl Into<Number>,
    munchausen_coefficient: impl Into<Number>,
    clip_value_min: impl Into<Number>,
) -> Tensor {
    let op = "munchausen_q_learning";
    let _scope = scope(op);
    let (tau, coefficient, low) =
        (tau.into(), munchausen_coefficient.into(), clip_value_min.into());
    let wrong = expect::constant_is(op, "tau", tau, "above 0", |x| x > 0.0)
        .or_else(|| expect::constant_is(op, "clip_value_min", low, "of at most 0", |x| x <= 0.0));
    if let Some(wrong) = wrong {
        return wrong;
    }
    // `tau log pi`, where `pi` is `softmax(q / tau)`.
    let scaled_log_pi = |q: Tensor| tau * (q / tau).log_softmax(-1);
    let bonus = pick(scaled_log_pi(target_q_tm1), a_tm1).clamp(low, 0.0);
    let log_pi = scaled_log_pi(q_t);
    let value = ((log_pi / tau).exp() * (q_t - log_pi)).sum_axis(-1);
    stop_gradient(r_t + coefficient * bonus + discount_t * value) - pick(q_tm1, a_tm1)
}
