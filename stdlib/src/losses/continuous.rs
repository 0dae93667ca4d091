//! Continuous actions: deterministic policy gradients, twin critics, weighted regression.

use crate::{Number, expect};
use podracer_dsl::prelude::*;

/// The deterministic policy gradient as a loss, Silver et al., "Deterministic Policy Gradient Algorithms", 2014, eq. 9, for
/// DDPG (Lillicrap et al., "Continuous control with deep reinforcement learning", 2016):
///
/// ```text
/// |sg(a_t + dqda_t) - a_t|^2 / 2        element by element
/// ```
///
/// Its gradient for the action is `-dqda_t`, minus the slope of the action's value. `a_t` and
/// `dqda_t` are `f32[n]`: one action and `grad(a_t, |a| critic(a))`. `dqda_clipping` is the
/// greatest norm of the slope; `None` does not clip. The result is `f32[n]`.
#[track_caller]
pub fn dpg_loss(a_t: Tensor, dqda_t: Tensor, dqda_clipping: Option<f64>) -> Tensor {
    let op = "dpg_loss";
    let _scope = scope(op);
    if let Some(wrong) = expect::one_shape(op, 1, &[("a_t", a_t), ("dqda_t", dqda_t)]) {
        return wrong;
    }
    let slope = match dqda_clipping {
        None => dqda_t,
        Some(max_norm) => {
            let holds = |x: f64| x > 0.0;
            if let Some(wrong) =
                expect::constant_is(op, "dqda_clipping", max_norm.into(), "above 0", holds)
            {
                return a_t + wrong;
            }
            dqda_t * (max_norm / dqda_t.norm().maximum(max_norm))
        }
    };
    super::l2_loss(stop_gradient(slope + a_t) - a_t)
}

/// The least of the critics' values, `f32[K]` to `f32[]`, used by actors and targets as the value
/// of an action. Fujimoto, van Hoof and Meger, "Addressing Function Approximation Error in
/// Actor-Critic Methods", 2018 (TD3), eq. 10.
#[track_caller]
pub fn clipped_double_q(q: Tensor) -> Tensor {
    let _scope = scope("clipped_double_q");
    q.min_axis(0)
}

/// The errors of the critics of TD3, Fujimoto et al., 2018, algorithm 1: `r_t + discount_t min_k q_t[k] - q_tm1`.
///
/// `q_tm1` and `q_t` are `f32[K]`: the critics' values of the action taken, and the target critics'
/// values of the smoothed action of the target policy ([`target_policy_smoothing`]). `r_t` and
/// `discount_t` are `f32[]`. The result is `f32[K]`. With one critic it is DDPG's error. No
/// gradient flows into the target.
#[track_caller]
pub fn clipped_double_q_learning(
    q_tm1: Tensor,
    r_t: Tensor,
    discount_t: Tensor,
    q_t: Tensor,
) -> Tensor {
    let op = "clipped_double_q_learning";
    let _scope = scope(op);
    let wrong = expect::one_shape(op, 1, &[("q_tm1", q_tm1), ("q_t", q_t)])
        .or_else(|| expect::one_shape(op, 0, &[("r_t", r_t), ("discount_t", discount_t)]));
    if let Some(wrong) = wrong {
        return q_tm1 + wrong;
    }
    stop_gradient(r_t + discount_t * clipped_double_q(q_t)) - q_tm1
}

/// The target policy's action with clipped noise, Fujimoto et al., 2018, eq. 14, so that a critic's narrow peak is not
/// exploited:
///
/// ```text
/// clip(a_t + clip(sigma e, -noise_clip, noise_clip), low, high)        e ~ Normal(0, 1)
/// ```
///
/// `a_t` is `f32[n]`; `low` and `high` are the bounds of actions, numbers or `f32[n]`. In TD3
/// `sigma` is 0.2 and `noise_clip` 0.5 for actions in [-1, 1].
#[track_caller]
pub fn target_policy_smoothing(
    key: Key,
    a_t: Tensor,
    sigma: impl Into<Number>,
    noise_clip: impl Into<Number>,
    low: impl IntoTensor,
    high: impl IntoTensor,
) -> Tensor {
    let op = "target_policy_smoothing";
    let _scope = scope(op);
    let (sigma, noise_clip) = (sigma.into(), noise_clip.into());
    let holds = |x: f64| x >= 0.0;
    let wrong = expect::constant_is(op, "sigma", sigma, "of at least 0", holds)
        .or_else(|| expect::constant_is(op, "noise_clip", noise_clip, "of at least 0", holds));
    if let Some(wrong) = wrong {
        return a_t + wrong;
    }
    let noise = (sigma * key.normal(a_t.shape())).clamp(-noise_clip, noise_clip);
    (a_t + noise).clamp(low, high)
}

/// Weights of advantage-weighted regression, Peng et al., "Advantage-Weighted Regression: Simple
/// and Scalable Off-Policy Reinforcement Learning", 2019, eq. 12: `min(e^(adv_t / beta),
/// max_weight)`, element by element. The policy's loss is `-mean_t(weight_t log pi(a_t))`. In the
/// paper `beta` is 0.05 and `max_weight` 20. No gradient flows.
#[track_caller]
pub fn awr_weights(
    adv_t: Tensor,
    beta: impl Into<Number>,
    max_weight: impl Into<Number>,
) -> Tensor {
    let op = "awr_weights";
    let _scope = scope(op);
    let (beta, max_weight) = (beta.into(), max_weight.into());
    let wrong = expect::constant_is(op, "beta", beta, "above 0", |x| x > 0.0)
        .or_else(|| expect::constant_is(op, "max_weight", max_weight, "above 0", |x| x > 0.0));
    if let Some(wrong) = wrong {
        return adv_t + wrong;
    }
    stop_gradient((adv_t / beta).exp().minimum(max_weight))
}
