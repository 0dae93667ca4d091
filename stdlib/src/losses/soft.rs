//! Soft actor-critic: Haarnoja et al., "Soft Actor-Critic Algorithms and Applications", 2018. For
//! discrete actions: Christodoulou, "Soft Actor-Critic for Discrete Action Settings", 2019. Values
//! include future entropy, weighted by a `temperature`. Every function takes one transition or
//! state; `K` is the number of critics, usually two.

use super::{clipped_double_q, pick};
use crate::distributions::weighted;
use crate::expect;
use podracer_dsl::prelude::*;

/// The errors of the critics, `f32[K]`, Haarnoja et al., 2018, eq. 5:
///
/// ```text
/// r_t + discount_t (min_k q_t[k] - temperature log_prob_t) - q_tm1
/// ```
///
/// `q_tm1` is `f32[K]`, the critics' values of the action taken. `q_t` is `f32[K]`, the target
/// critics' values of an action drawn from the policy after the step, and `log_prob_t` `f32[]` is
/// that action's log-probability. `r_t` and `discount_t` are `f32[]`, `temperature` is a number or
/// `f32[]`. No gradient flows into the target.
#[track_caller]
pub fn soft_q_learning(
    q_tm1: Tensor,
    r_t: Tensor,
    discount_t: Tensor,
    q_t: Tensor,
    log_prob_t: Tensor,
    temperature: impl IntoTensor,
) -> Tensor {
    let op = "soft_q_learning";
    let _scope = scope(op);
    let scalars = [("r_t", r_t), ("discount_t", discount_t), ("log_prob_t", log_prob_t)];
    let wrong = expect::one_shape(op, 1, &[("q_tm1", q_tm1), ("q_t", q_t)])
        .or_else(|| expect::one_shape(op, 0, &scalars));
    if let Some(wrong) = wrong {
        return q_tm1 + wrong;
    }
    let v_t = clipped_double_q(q_t) - log_prob_t * temperature;
    stop_gradient(r_t + discount_t * v_t) - q_tm1
}

/// The actor's loss, `f32[]`, Haarnoja et al., 2018, eq. 9: `temperature log_prob - min_k q[k]`.
/// The action is a reparametrized draw from the policy (`TanhNormal::sample_and_log_prob`). The
/// gradient flows into `log_prob`, `f32[]`, and through `q`, `f32[K]`, into the action, but not
/// into `temperature`.
#[track_caller]
pub fn soft_actor_loss(log_prob: Tensor, q: Tensor, temperature: impl IntoTensor) -> Tensor {
    let op = "soft_actor_loss";
    let _scope = scope(op);
    if let Some(wrong) = expect::one_shape(op, 0, &[("log_prob", log_prob)]) {
        return wrong;
    }
    let temperature = stop_gradient(temperature.into_tensor().astype(log_prob.dtype()));
    temperature * log_prob - clipped_double_q(q)
}

/// The temperature's loss, `f32[]`, Haarnoja et al., 2018, eq. 18: `-e^log_temperature (log_prob +
/// target_entropy)`. The gradient flows only into `log_temperature`, `f32[]`, which rises while the
/// entropy is below the target. In the paper `target_entropy` is minus the number of the action's
/// elements.
#[track_caller]
pub fn temperature_loss(
    log_temperature: Tensor,
    log_prob: Tensor,
    target_entropy: impl IntoTensor,
) -> Tensor {
    let op = "temperature_loss";
    let _scope = scope(op);
    let both = [("log_temperature", log_temperature), ("log_prob", log_prob)];
    if let Some(wrong) = expect::one_shape(op, 0, &both) {
        return wrong;
    }
    -log_temperature.exp() * stop_gradient(log_prob + target_entropy)
}

/// `sum_a pi[a] x[a]`. An action of probability 0 adds nothing, even if its `x` is infinite.
#[track_caller]
fn expected(log_pi: Tensor, x: Tensor) -> Tensor {
    weighted(log_pi.exp(), x).sum_axis(-1)
}

/// The errors of the critics with discrete actions, `f32[K]`, Christodoulou, 2019, eq. 3 and 10:
///
/// ```text
/// r_t + discount_t sum_a pi_t[a] (min_k q_t[k, a] - temperature log pi_t[a]) - q_tm1[k, a_tm1]
/// ```
///
/// `q_tm1` and `q_t` are `f32[K, A]`, `a_tm1` is `i32[]`. `logits_t` `f32[A]` are the policy's
/// logits after the step. `r_t` and `discount_t` are `f32[]`. No gradient flows into the target.
#[track_caller]
#[allow(clippy::too_many_arguments, reason = "the equation has as many")]
pub fn discrete_soft_q_learning(
    q_tm1: Tensor,
    a_tm1: Tensor,
    r_t: Tensor,
    discount_t: Tensor,
    q_t: Tensor,
    logits_t: Tensor,
    temperature: impl IntoTensor,
) -> Tensor {
    let op = "discrete_soft_q_learning";
    let _scope = scope(op);
    let wrong = expect::one_shape(op, 2, &[("q_tm1", q_tm1), ("q_t", q_t)])
        .or_else(|| expect::one_shape(op, 0, &[("r_t", r_t), ("discount_t", discount_t)]));
    if let Some(wrong) = wrong {
        return q_tm1.sum_axis(-1) + wrong.sum();
    }
    let log_pi = logits_t.log_softmax(-1);
    let v_t = expected(log_pi, clipped_double_q(q_t) - log_pi * temperature);
    let q_a_tm1 = pick(q_tm1, a_tm1.broadcast_to([q_tm1.dim(0)]));
    stop_gradient(r_t + discount_t * v_t) - q_a_tm1
}

/// The actor's loss with discrete actions, `f32[]`, Christodoulou, 2019, eq. 12:
///
/// ```text
/// sum_a pi[a] (temperature log pi[a] - min_k q[k, a])
/// ```
///
/// `logits` is `f32[A]`, `q` `f32[K, A]`. The gradient flows only into `logits`.
#[track_caller]
pub fn discrete_soft_actor_loss(logits: Tensor, q: Tensor, temperature: impl IntoTensor) -> Tensor {
    let op = "discrete_soft_actor_loss";
    let _scope = scope(op);
    if let Some(wrong) =
        expect::shape(op, "logits", logits, q.shape().get(1..).unwrap_or_default(), "actions of q")
    {
        return wrong.sum();
    }
    let log_pi = logits.log_softmax(-1);
    let temperature = temperature.into_tensor().astype(log_pi.dtype());
    let (temperature, q) = stop_gradient((temperature, clipped_double_q(q)));
    expected(log_pi, temperature * log_pi - q)
}

/// The temperature's loss with discrete actions, `f32[]`, Christodoulou, 2019, eq. 11:
///
/// ```text
/// -e^log_temperature sum_a pi[a] (log pi[a] + target_entropy)
/// ```
///
/// `logits` is `f32[A]`. The gradient flows only into `log_temperature`, `f32[]`.
#[track_caller]
pub fn discrete_temperature_loss(
    log_temperature: Tensor,
    logits: Tensor,
    target_entropy: impl IntoTensor,
) -> Tensor {
    let op = "discrete_temperature_loss";
    let _scope = scope(op);
    if let Some(wrong) = expect::one_shape(op, 1, &[("logits", logits)]) {
        return wrong.sum();
    }
    let log_pi = logits.log_softmax(-1);
    temperature_loss(log_temperature, expected(log_pi, log_pi), target_entropy)
}
