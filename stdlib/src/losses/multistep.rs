//! Errors of values along a trajectory: returns of several steps minus values. Everything is `[T]`, and no gradient flows
//! into a target.

use super::pick;
use crate::expect;
use crate::returns::{
    TxPair, general_off_policy_returns_from_action_values, general_off_policy_returns_from_q_and_v,
    lambda_returns, n_step_bootstrapped_returns,
};
use podracer_dsl::prelude::*;

/// The values of the actions taken, `f32[T]`, from values `f32[T, A]` and actions `i32[T]`, after a
/// check of the trajectory's arrays.
#[track_caller]
fn taken(op: &str, q: Tensor, a: Tensor, steps: &[(&str, Tensor)]) -> Tensor {
    let all: Vec<(&str, Tensor)> = [steps, &[("the actions", a)]].concat();
    match expect::one_shape(op, 1, &all) {
        Some(wrong) => wrong,
        None => pick(q, a),
    }
}

/// Errors of TD(lambda), Sutton and Barto, "Reinforcement Learning", 2018, section 12.1:
/// [`lambda_returns`] minus `v_tm1`. `v_tm1`, `r_t`, `discount_t`, `v_t` are `f32[T]`; `lambda` is
/// a number or `f32[T]`, 0 if an episode was truncated.
#[track_caller]
pub fn td_lambda(
    v_tm1: Tensor,
    r_t: Tensor,
    discount_t: Tensor,
    v_t: Tensor,
    lambda: impl IntoTensor,
) -> Tensor {
    let op = "td_lambda";
    let _scope = scope(op);
    let steps = [("v_tm1", v_tm1), ("r_t", r_t), ("discount_t", discount_t), ("v_t", v_t)];
    if let Some(wrong) = expect::one_shape(op, 1, &steps) {
        return wrong;
    }
    stop_gradient(lambda_returns(r_t, discount_t, v_t, lambda)) - v_tm1
}

/// Errors of Sarsa(lambda), Sutton and Barto, 2018, section 12.7: the lambda returns of `q_t[a_t]`, minus `q_tm1[a_tm1]`.
/// `q_tm1` and `q_t` are `f32[T, A]`, `a_tm1` and `a_t` `i32[T]`, `r_t` and `discount_t` `f32[T]`; `lambda` is a number or
/// `f32[T]`.
#[track_caller]
pub fn sarsa_lambda(
    q_tm1: Tensor,
    a_tm1: Tensor,
    r_t: Tensor,
    discount_t: Tensor,
    q_t: Tensor,
    a_t: Tensor,
    lambda: impl IntoTensor,
) -> Tensor {
    let op = "sarsa_lambda";
    let _scope = scope(op);
    let steps = [("r_t", r_t), ("discount_t", discount_t)];
    let (q_a_tm1, q_a_t) = (taken(op, q_tm1, a_tm1, &steps), taken(op, q_t, a_t, &steps));
    stop_gradient(lambda_returns(r_t, discount_t, q_a_t, lambda)) - q_a_tm1
}

/// Errors of Peng's Q(lambda), Peng and Williams, "Incremental Multi-Step Q-Learning", 1994: the lambda returns of
/// `max_a q_t[a]`, minus `q_tm1[a_tm1]`:
///
/// ```text
/// G_t = r_t + discount_t ((1 - lambda_t) max_a q_t[a] + lambda_t G_{t+1})
/// ```
///
/// `q_tm1` and `q_t` are `f32[T, A]`, `a_tm1` `i32[T]`, `r_t` and `discount_t` `f32[T]`; `lambda`
/// is a number or `f32[T]`. If `lambda` is 0 where the next action is not greedy, it is Watkins's
/// Q(lambda): [`watkins_q_lambda`].
#[track_caller]
pub fn q_lambda(
    q_tm1: Tensor,
    a_tm1: Tensor,
    r_t: Tensor,
    discount_t: Tensor,
    q_t: Tensor,
    lambda: impl IntoTensor,
) -> Tensor {
    transformed_q_lambda(q_tm1, a_tm1, r_t, discount_t, q_t, lambda, TxPair::Identity)
}

/// Errors of Watkins's Q(lambda), Watkins, "Learning from Delayed Rewards", 1989: [`q_lambda`] with
/// traces that end before an action that is not greedy. `a_t` is `i32[T]`, the action taken after
/// step `t`. `lambda_t` is kept if `q_t[a_t] = max_a q_t[a]`, and is 0 otherwise.
#[track_caller]
pub fn watkins_q_lambda(
    q_tm1: Tensor,
    a_tm1: Tensor,
    r_t: Tensor,
    discount_t: Tensor,
    q_t: Tensor,
    a_t: Tensor,
    lambda: impl IntoTensor,
) -> Tensor {
    let op = "watkins_q_lambda";
    let _scope = scope(op);
    let greedy = taken(op, q_t, a_t, &[("r_t", r_t)]).ge(q_t.max_axis(-1));
    let lambda_t = select(greedy, lambda.into_tensor(), 0.0);
    q_lambda(q_tm1, a_tm1, r_t, discount_t, q_t, lambda_t)
}

/// Errors of Retrace, Munos et al., "Safe and Efficient Off-Policy Reinforcement Learning", 2016, eq. 4 and table 1:
/// [`general_off_policy_returns_from_action_values`] minus `q_tm1[a_tm1]`, with the trace coefficients
///
/// ```text
/// c_t = lambda min(1, pi_t[a_t] / (mu_t + 1e-8))
/// ```
///
/// `q_tm1`, `q_t` and the evaluated policy's probabilities `pi_t` are `f32[T, A]`, `a_tm1` and
/// `a_t` `i32[T]`, `r_t` and `discount_t` `f32[T]`. `mu_t` is `f32[T]`, the acting policy's
/// probability of `a_t`. `lambda` is a number or `f32[T]`, 0 if an episode was truncated.
#[track_caller]
#[allow(clippy::too_many_arguments, reason = "the arguments and order of rlax")]
pub fn retrace(
    q_tm1: Tensor,
    q_t: Tensor,
    a_tm1: Tensor,
    a_t: Tensor,
    r_t: Tensor,
    discount_t: Tensor,
    pi_t: Tensor,
    mu_t: Tensor,
    lambda: impl IntoTensor,
) -> Tensor {
    let tx = TxPair::Identity;
    transformed_retrace(q_tm1, q_t, a_tm1, a_t, r_t, discount_t, pi_t, mu_t, lambda, tx)
}

/// Errors of Retrace for continuous actions, with known values of only some actions:
/// [`general_off_policy_returns_from_q_and_v`] minus `q_tm1`, with `c_t = lambda_t min(1,
/// e^log_rhos_t)`. `q_tm1`, `v_t`, `r_t`, `discount_t` are `f32[T]`. `q_t` and `log_rhos` are
/// `f32[T - 1]`, for the actions after each step except the last; `log_rhos` is the log-ratio of
/// evaluated and acting policy. `lambda` is a number or `f32[T - 1]`.
#[track_caller]
pub fn retrace_continuous(
    q_tm1: Tensor,
    q_t: Tensor,
    v_t: Tensor,
    r_t: Tensor,
    discount_t: Tensor,
    log_rhos: Tensor,
    lambda: impl IntoTensor,
) -> Tensor {
    let op = "retrace_continuous";
    let _scope = scope(op);
    if let Some(wrong) = expect::one_shape(op, 1, &[("q_tm1", q_tm1), ("r_t", r_t)]) {
        return wrong;
    }
    let c_t = log_rhos.exp().minimum(1.0) * lambda;
    let returns = general_off_policy_returns_from_q_and_v(q_t, v_t, r_t, discount_t, c_t);
    stop_gradient(returns) - q_tm1
}

/// Errors of [`q_lambda`] for transformed values: `h(G_t) - q_tm1[a_tm1]`, where `G_t` are the
/// returns of `h^-1(q_t)`.
#[track_caller]
pub fn transformed_q_lambda(
    q_tm1: Tensor,
    a_tm1: Tensor,
    r_t: Tensor,
    discount_t: Tensor,
    q_t: Tensor,
    lambda: impl IntoTensor,
    tx_pair: TxPair,
) -> Tensor {
    let op = "q_lambda";
    let _scope = scope(op);
    let q_a_tm1 = taken(op, q_tm1, a_tm1, &[("r_t", r_t), ("discount_t", discount_t)]);
    let v_t = tx_pair.apply_inv(q_t.max_axis(-1));
    let returns = lambda_returns(r_t, discount_t, v_t, lambda);
    stop_gradient(tx_pair.apply(returns)) - q_a_tm1
}

/// Errors of [`retrace`] for transformed values: `h(G_t) - q_tm1[a_tm1]`, where `G_t` are the
/// returns of `h^-1(q_t)`.
#[track_caller]
#[allow(clippy::too_many_arguments, reason = "the arguments and order of rlax")]
pub fn transformed_retrace(
    q_tm1: Tensor,
    q_t: Tensor,
    a_tm1: Tensor,
    a_t: Tensor,
    r_t: Tensor,
    discount_t: Tensor,
    pi_t: Tensor,
    mu_t: Tensor,
    lambda: impl IntoTensor,
    tx_pair: TxPair,
) -> Tensor {
    let op = "retrace";
    let _scope = scope(op);
    let steps = [("r_t", r_t), ("discount_t", discount_t), ("mu_t", mu_t)];
    let q_a_tm1 = taken(op, q_tm1, a_tm1, &steps);
    let c_t = (taken(op, pi_t, a_t, &steps) / (mu_t + 1e-8)).minimum(1.0) * lambda;
    let q_t = tx_pair.apply_inv(q_t);
    let returns =
        general_off_policy_returns_from_action_values(q_t, a_t, r_t, discount_t, c_t, pi_t);
    stop_gradient(tx_pair.apply(returns)) - q_a_tm1
}

/// Errors of n-step Q-learning for transformed values: `h(G_t) - q_tm1[a_tm1]`, where `G_t` are the
/// `n`-step returns that [`n_step_bootstrapped_returns`] computes from `h^-1(target_q_t[a_t])`.
/// R2D2 (Kapturowski et al., "Recurrent Experience Replay in Distributed Reinforcement Learning",
/// 2019, eq. 1) uses double Q-learning with `n` 5: `target_q_t` has the target network's values,
/// and `a_t` are the actions that the online network prefers.
///
/// `q_tm1` and `target_q_t` are `f32[T, A]`, `a_tm1` and `a_t` `i32[T]`, `r_t` and `discount_t` `f32[T]`.
#[track_caller]
#[allow(clippy::too_many_arguments, reason = "the arguments and order of rlax")]
pub fn transformed_n_step_q_learning(
    q_tm1: Tensor,
    a_tm1: Tensor,
    target_q_t: Tensor,
    a_t: Tensor,
    r_t: Tensor,
    discount_t: Tensor,
    n: usize,
    tx_pair: TxPair,
) -> Tensor {
    let op = "n_step_q_learning";
    let _scope = scope(op);
    let steps = [("r_t", r_t), ("discount_t", discount_t)];
    let q_a_tm1 = taken(op, q_tm1, a_tm1, &steps);
    let v_t = tx_pair.apply_inv(taken(op, target_q_t, a_t, &steps));
    let returns = n_step_bootstrapped_returns(r_t, discount_t, v_t, n, 1.0);
    stop_gradient(tx_pair.apply(returns)) - q_a_tm1
}
