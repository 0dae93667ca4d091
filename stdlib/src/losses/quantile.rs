//! Distributional values by quantiles: Dabney et al., "Distributional Reinforcement Learning with
//! Quantile Regression", 2018 (QR-DQN). A loss takes one transition; no gradient flows into the
//! target.

use super::huber_loss;
use crate::expect;
use podracer_dsl::fail;
use podracer_dsl::prelude::*;

/// The loss of quantile regression, Dabney et al., 2018, eq. 10, `f32[]`:
///
/// ```text
/// sum_i mean_j |tau_i - [delta_ij < 0]| L(delta_ij)        delta_ij = dist_target_j - dist_src_i
/// ```
///
/// `dist_src` are quantiles `f32[n]` at the probabilities `tau_src` `f32[n]`, `dist_target` are samples or quantiles `f32[m]`.
/// `L` is [`huber_loss`] with `delta` `huber_param`, not divided by it; with 0 it is the absolute value.
#[track_caller]
pub fn quantile_regression_loss(
    dist_src: Tensor,
    tau_src: Tensor,
    dist_target: Tensor,
    huber_param: f64,
) -> Tensor {
    let op = "quantile_regression_loss";
    let _scope = scope(op);
    if let Some(wrong) = expect::one_shape(op, 1, &[("dist_src", dist_src), ("tau_src", tau_src)]) {
        return wrong.sum();
    }
    let holds = |x: f64| x >= 0.0;
    if let Some(wrong) =
        expect::constant_is(op, "huber_param", huber_param.into(), "of at least 0", holds)
    {
        return wrong;
    }
    let delta = dist_target.expand_dims(0) - dist_src.expand_dims(1);
    let negative = select(delta.lt(0), 1.0, delta.zeros_like());
    let weight = (tau_src.expand_dims(1) - negative).abs();
    let loss = if huber_param > 0.0 { huber_loss(delta, huber_param) } else { delta.abs() };
    (weight * loss).mean_axis(-1).sum()
}

/// Selects the quantiles of an action, `f32[n]`, from every action's quantiles, `f32[n, A]`; the
/// action is `i32[]`.
#[track_caller]
fn of_action(op: &str, name: &str, quantiles: Tensor, action: Tensor) -> Tensor {
    if quantiles.rank() != 2 {
        let ty = quantiles.ty();
        let message = format!("expected {name} `[n, A]`, got {ty}: a batch goes through `vmap`");
        return fail(op, message, &[quantiles], TensorType::new(F32, [1]));
    }
    super::pick(quantiles, action.broadcast_to([quantiles.dim(0)]))
}

/// Quantile Q-learning, Dabney et al., 2018, algorithm 1: the loss, `f32[]`, of the quantiles of
/// `a_tm1` against the target `r_t + discount_t dist_q_t[.., a]`, where `a` is the action with the
/// greatest mean of `dist_q_t_selector`.
///
/// `dist_q_tm1`, `dist_q_t_selector` and `dist_q_t` are `f32[n, A]`, `tau_q_tm1` is `f32[n]`, `a_tm1` `i32[]`, `r_t` and
/// `discount_t` `f32[]`. `huber_param` as in [`quantile_regression_loss`].
#[track_caller]
#[allow(clippy::too_many_arguments, reason = "the arguments and order of rlax")]
pub fn quantile_q_learning(
    dist_q_tm1: Tensor,
    tau_q_tm1: Tensor,
    a_tm1: Tensor,
    r_t: Tensor,
    discount_t: Tensor,
    dist_q_t_selector: Tensor,
    dist_q_t: Tensor,
    huber_param: f64,
) -> Tensor {
    let op = "quantile_q_learning";
    let _scope = scope(op);
    if let Some(wrong) = expect::one_shape(op, 0, &[("r_t", r_t), ("discount_t", discount_t)]) {
        return wrong.sum();
    }
    let best = dist_q_t_selector.mean_axis(0).argmax(-1);
    let target = r_t + discount_t * of_action(op, "dist_q_t", dist_q_t, best);
    let source = of_action(op, "dist_q_tm1", dist_q_tm1, a_tm1);
    quantile_regression_loss(source, tau_q_tm1, stop_gradient(target), huber_param)
}

/// Quantile expected Sarsa: [`quantile_q_learning`] with every action's quantiles as targets,
/// weighted by the actions' probabilities `probs_a_t`, `f32[A]`.
#[track_caller]
#[allow(clippy::too_many_arguments, reason = "the arguments and order of rlax")]
pub fn quantile_expected_sarsa(
    dist_q_tm1: Tensor,
    tau_q_tm1: Tensor,
    a_tm1: Tensor,
    r_t: Tensor,
    discount_t: Tensor,
    dist_q_t: Tensor,
    probs_a_t: Tensor,
    huber_param: f64,
) -> Tensor {
    let op = "quantile_expected_sarsa";
    let _scope = scope(op);
    if let Some(wrong) = expect::one_shape(op, 0, &[("r_t", r_t), ("discount_t", discount_t)]) {
        return wrong.sum();
    }
    let source = of_action(op, "dist_q_tm1", dist_q_tm1, a_tm1);
    let target = stop_gradient(r_t + discount_t * dist_q_t);
    let losses = vmap(target.axis(1), |target| {
        quantile_regression_loss(source, tau_q_tm1, target, huber_param)
    });
    (losses * stop_gradient(probs_a_t)).sum()
}
