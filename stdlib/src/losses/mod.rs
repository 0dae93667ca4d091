//! Losses, with the names and values of rlax where it has them. A loss over a trajectory or minibatch takes `[T]` and
//! gives `f32[]`, to be minimised; an error takes one transition, and `vmap` batches it.

mod classification;
mod policy;
mod value;

pub use classification::{
    sigmoid_binary_cross_entropy, softmax_cross_entropy, softmax_cross_entropy_with_integer_labels,
};
pub use policy::{
    clipped_surrogate_pg_loss, entropy_loss, normalize_advantages, policy_gradient_loss,
};
pub use value::{
    clipped_value_loss, double_q_learning, expected_sarsa, huber_loss, l2_loss, q_learning, sarsa,
    td_learning,
};

use podracer_dsl::prelude::*;

/// The elements `values[.., index[..]]` of the last axis, by select and sum: no gather, and no scatter in its gradient.
#[track_caller]
fn pick(values: Tensor, index: Tensor) -> Tensor {
    let here = iota(I32, values.shape(), -1).eq(index.expand_dims(-1));
    select(here, values, 0.0).sum_axis(-1)
}
