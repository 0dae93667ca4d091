//! Returns and advantages along a trajectory, with the names and values of rlax.
//!
//! Everything is `[T]`, f32, and `vmap` batches it. Names contain the time: step `t` of the arrays
//! `v_tm1, r_t, discount_t, v_t` is one transition. They have the value of its first state, its
//! reward, its discount (0 if terminated), and the value of its next state. Recurrences run
//! backwards in a reverse scan with a scalar carry; a batch turns the carry into one vector.

mod action_values;
mod advantage;
mod off_policy;
mod simple;
mod transform;

pub use action_values::{
    general_off_policy_returns_from_action_values, general_off_policy_returns_from_q_and_v,
};
pub use advantage::{gae, gae_with_ends, truncated_generalized_advantage_estimation};
pub use off_policy::{
    PgAdvantage, Vtrace, VtraceOutput, impala_vtrace_td_error_and_advantage, leaky_vtrace, vtrace,
    vtrace_td_error_and_advantage,
};
pub use simple::{discounted_returns, lambda_returns, n_step_bootstrapped_returns};
pub use transform::{
    TxPair, signed_expm1, signed_hyperbolic, signed_logp1, signed_parabolic, transform_from_2hot,
    transform_to_2hot,
};

use podracer_dsl::prelude::*;

/// The recurrence `x_t = a_t + b_t x_{t+1}`, backwards from `last` after the end. All returns have
/// this form.
#[track_caller]
fn linear_recurrence(a: Tensor, b: Tensor, last: Tensor) -> Tensor {
    let (_, x) = scan_reverse(last, (a, b), |next, (a, b)| {
        let x = a + b * next;
        (x, x)
    });
    x
}

/// A number, or one number per step, as `[T]`.
#[track_caller]
fn per_step(value: impl IntoTensor, like: Tensor) -> Tensor {
    value.into_tensor().astype(like.dtype()).broadcast_to(like.shape())
}
