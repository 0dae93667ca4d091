//! Cross entropies of classes, with optax's names.

use super::{is_index, pick};
use podracer_dsl::prelude::*;

/// The cross entropy between soft labels, probabilities `f32[.., A]`, and logits `f32[.., A]`:
/// `-sum_a labels_a log softmax_a`, `f32[..]`. A label of 0 with a logit of -inf gives NaN, as in
/// optax.
#[track_caller]
pub fn softmax_cross_entropy(logits: Tensor, labels: Tensor) -> Tensor {
    let _scope = scope("softmax_cross_entropy");
    -(labels * logits.log_softmax(-1)).sum_axis(-1)
}

/// The cross entropy of logits `f32[.., A]` for the right class of each, `i32[..]`: `-log
/// softmax_label`, `f32[..]`. NaN for a class that does not exist, as in optax.
/// class that does not exist, as in optax.
#[track_caller]
pub fn softmax_cross_entropy_with_integer_labels(logits: Tensor, labels: Tensor) -> Tensor {
    let _scope = scope("softmax_cross_entropy_with_integer_labels");
    let loss = logits.logsumexp(-1) - pick(logits, labels);
    select(is_index(labels, logits), loss, f64::NAN)
}

/// The cross entropy of binary labels, element by element. Logits and labels, which are
/// probabilities of true, have the same shape; 0 and 1 are hard labels. `-labels log
/// sigmoid(logits) - (1 - labels) log sigmoid(-logits)`.
#[track_caller]
pub fn sigmoid_binary_cross_entropy(logits: Tensor, labels: Tensor) -> Tensor {
    let _scope = scope("sigmoid_binary_cross_entropy");
    -labels * logits.log_sigmoid() - (1.0 - labels) * (-logits).log_sigmoid()
}
