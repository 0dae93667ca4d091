//! Losses of policies.

use crate::distributions::{Categorical, Distribution};
use crate::{Number, expect};
use podracer_dsl::prelude::*;

/// The policy gradient as a loss, Williams, "Simple Statistical Gradient-Following Algorithms", 1992:
///
/// ```text
/// -mean_t(w_t adv_t log pi(a_t))
/// ```
///
/// `logits_t` is `f32[T, A]`, `a_t` `i32[T]`, `adv_t` and `w_t` `f32[T]`. No gradient flows into `adv_t`.
#[track_caller]
pub fn policy_gradient_loss(
    logits_t: Tensor,
    a_t: Tensor,
    adv_t: Tensor,
    w_t: impl IntoTensor,
) -> Tensor {
    let _scope = scope("policy_gradient_loss");
    let log_prob = Categorical::new(logits_t).log_prob(a_t);
    -(log_prob * stop_gradient(adv_t) * w_t).mean()
}

/// The policy gradient with the values of all actions, Sutton et al., "Policy Gradient Methods for Reinforcement Learning with
/// Function Approximation", 2000, theorem 1, with the baseline `sum_a pi(a) q_t[a]`:
///
/// ```text
/// -mean_t(sum_a pi(a) (q_t[a] - sum_b pi(b) q_t[b]))
/// ```
///
/// `logits_t` and `q_t` are `f32[T, A]`. The gradient flows through the first `pi` only.
#[track_caller]
pub fn qpg_loss(logits_t: Tensor, q_t: Tensor) -> Tensor {
    let op = "qpg_loss";
    let _scope = scope(op);
    if let Some(wrong) = expect::one_shape(op, 2, &[("logits_t", logits_t), ("q_t", q_t)]) {
        return wrong.sum();
    }
    let pi = logits_t.softmax(-1);
    let adv_t = q_t - (pi * q_t).sum_axis(keepdims(-1));
    -(pi * stop_gradient(adv_t)).sum_axis(-1).mean()
}

/// The negative entropy of a policy, which prevents early convergence: `-mean_t(w_t entropy_t)`.
/// `logits_t` is `f32[T, A]`, `w_t` a number or `f32[T]`.
#[track_caller]
pub fn entropy_loss(logits_t: Tensor, w_t: impl IntoTensor) -> Tensor {
    let _scope = scope("entropy_loss");
    -(Categorical::new(logits_t).entropy() * w_t).mean()
}

/// PPO's clipped surrogate, Schulman et al., "Proximal Policy Optimization Algorithms", 2017, eq. 7:
///
/// ```text
/// -mean_t(min(ratio_t adv_t, clip(ratio_t, 1 - epsilon, 1 + epsilon) adv_t))
/// ```
///
/// `prob_ratios_t` is pi(a_t) / pi_old(a_t), `exp(log_prob - old_log_prob)`; both are `f32[T]`. No gradient flows into
/// `adv_t`.
#[track_caller]
pub fn clipped_surrogate_pg_loss(
    prob_ratios_t: Tensor,
    adv_t: Tensor,
    epsilon: impl Into<Number>,
) -> Tensor {
    let _scope = scope("clipped_surrogate_pg_loss");
    let (adv_t, epsilon) = (stop_gradient(adv_t), epsilon.into());
    let clipped = prob_ratios_t.clamp(1.0 - epsilon, 1.0 + epsilon);
    -(prob_ratios_t * adv_t).minimum(clipped * adv_t).mean()
}

/// Advantages with mean 0 and standard deviation 1 over all their axes: `(adv - mean) / (std +
/// 1e-8)`, with the population's standard deviation. Applied to a minibatch, before
/// [`clipped_surrogate_pg_loss`].
#[track_caller]
pub fn normalize_advantages(adv: Tensor) -> Tensor {
    let _scope = scope("normalize_advantages");
    (adv - adv.mean()) / (adv.std() + 1e-8)
}
