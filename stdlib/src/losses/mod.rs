//! Losses, with the names and values of rlax where rlax has them. A loss over a trajectory or
//! minibatch takes `[T]` and returns `f32[]`, to be minimised; an error takes one transition, and
//! `vmap` batches it.

mod categorical;
mod classification;
mod continuous;
mod multistep;
mod munchausen;
mod policy;
mod quantile;
mod regularization;
mod soft;
mod value;

pub use categorical::{
    categorical_double_q_learning, categorical_l2_project, categorical_q_learning,
    categorical_td_learning,
};
pub use classification::{
    sigmoid_binary_cross_entropy, softmax_cross_entropy, softmax_cross_entropy_with_integer_labels,
};
pub use continuous::{
    awr_weights, clipped_double_q, clipped_double_q_learning, dpg_loss, target_policy_smoothing,
};
pub use multistep::{
    q_lambda, retrace, retrace_continuous, sarsa_lambda, td_lambda, transformed_n_step_q_learning,
    transformed_q_lambda, transformed_retrace, watkins_q_lambda,
};
pub use munchausen::munchausen_q_learning;
pub use policy::{
    clipped_surrogate_pg_loss, entropy_loss, normalize_advantages, policy_gradient_loss, qpg_loss,
};
pub use quantile::{quantile_expected_sarsa, quantile_q_learning, quantile_regression_loss};
pub use regularization::{entropy_regularizer, kl_regularizer};
pub use soft::{
    discrete_soft_actor_loss, discrete_soft_q_learning, discrete_temperature_loss, soft_actor_loss,
    soft_q_learning, temperature_loss,
};
pub use value::{
    clipped_value_loss, double_q_learning, expected_sarsa, huber_loss, l2_loss, q_learning, sarsa,
    td_learning,
};

use podracer_dsl::prelude::*;

/// True for valid indices `i32[..]` of the last axis of `values`: at least 0, and below its extent.
#[track_caller]
pub(crate) fn is_index(index: Tensor, values: Tensor) -> Tensor {
    index.ge(0) & index.lt(values.dim(-1) as i32)
}

/// The elements `values[.., index[..]]` of the last axis, by select and sum: no gather, and no
/// scatter in the gradient. 0 for an index that does not exist.
#[track_caller]
pub(crate) fn pick(values: Tensor, index: Tensor) -> Tensor {
    let here = iota(I32, values.shape(), -1).eq(index.expand_dims(-1));
    select(here, values, 0.0).sum_axis(-1)
}
