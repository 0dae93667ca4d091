//! Monotonic transformations of action values to the scale of the policy.

use super::fold;
use super::node::{Columns, Node};
use crate::Number;
use podracer_dsl::prelude::*;

/// Transforms of a node's action values to the scale of the prior policy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum QTransform {
    /// [`qtransform_by_min_max`].
    ByMinMax {
        /// The least value that an action may have.
        min_value: Number,
        /// The greatest value that an action may have.
        max_value: Number,
    },
    /// [`qtransform_by_parent_and_siblings`].
    ByParentAndSiblings {
        /// The least divisor.
        epsilon: Number,
    },
    /// [`qtransform_completed_by_mix_value`].
    CompletedByMixValue {
        /// Scale of the values.
        value_scale: Number,
        /// Number added to the visits of the most visited action, for the scale.
        maxvisit_init: Number,
        /// True to rescale the values to [0, 1] first.
        rescale_values: bool,
        /// True if actions that were never taken have the mixed value; otherwise they have the
        /// model's value of the node.
        use_mixed_value: bool,
        /// The least divisor.
        epsilon: Number,
    },
}

/// `(q - min_value) / (max_value - min_value)`, and 0 for actions that were never taken.
pub fn qtransform_by_min_max(
    min_value: impl Into<Number>,
    max_value: impl Into<Number>,
) -> QTransform {
    QTransform::ByMinMax { min_value: min_value.into(), max_value: max_value.into() }
}

/// Values normalised by the range of the node's value and its actions' values, and 0 for actions
/// that were never taken. This is equation 5 of Schrittwieser et al. 2020, "Mastering Atari, Go,
/// Chess and Shogi by planning with a learned model", over the node and its children instead of the
/// whole tree.
pub fn qtransform_by_parent_and_siblings() -> QTransform {
    QTransform::ByParentAndSiblings { epsilon: 1e-8.into() }
}

/// `(maxvisit_init + max(visit_counts)) * value_scale * q`, with the mixed value for actions that
/// were never taken (Danihelka et al. 2022, "Policy improvement by planning with Gumbel", equation
/// 8 and appendix D). `value_scale` is 0.1 and `maxvisit_init` 50; values are rescaled and mixed.
pub fn qtransform_completed_by_mix_value() -> QTransform {
    QTransform::CompletedByMixValue {
        value_scale: 0.1.into(),
        maxvisit_init: 50.0.into(),
        rescale_values: true,
        use_mixed_value: true,
        epsilon: 1e-8.into(),
    }
}

impl QTransform {
    /// The transformed values of all actions, f32 `[B, A]`.
    #[track_caller]
    pub fn apply(&self, node: &Node) -> Tensor {
        self.of(&node.columns()).swap_axes(0, 1)
    }

    /// The transformed values of all actions, f32 `[A, B]`.
    #[track_caller]
    pub(super) fn of(&self, node: &Columns) -> Tensor {
        match *self {
            QTransform::ByMinMax { min_value, max_value } => {
                let q = select(node.visited(), node.qvalues, min_value);
                (q - min_value) / (max_value - min_value)
            }
            QTransform::ByParentAndSiblings { epsilon } => by_parent_and_siblings(node, epsilon),
            QTransform::CompletedByMixValue {
                value_scale,
                maxvisit_init,
                rescale_values,
                use_mixed_value,
                epsilon,
            } => {
                let value = if use_mixed_value { mixed_value(node) } else { node.raw_value };
                let mut q = select(node.visited(), node.qvalues, value);
                if rescale_values {
                    let (low, high) = (fold::min(q), fold::max(q));
                    q = (q - low) / maximum(high - low, epsilon);
                }
                let scale = maxvisit_init.into_tensor() + fold::max(node.visit_counts);
                scale * value_scale * q
            }
        }
    }
}

#[track_caller]
fn by_parent_and_siblings(node: &Columns, epsilon: Number) -> Tensor {
    let q = select(node.visited(), node.qvalues, node.value);
    let low = minimum(node.value, fold::min(q));
    let high = maximum(node.value, fold::max(q));
    let q = select(node.visited(), node.qvalues, low);
    (q - low) / maximum(high - low, epsilon)
}

/// The model's value, mixed with the values of the actions taken, which are weighted by their prior
/// probabilities. f32 `[1, B]`
#[track_caller]
fn mixed_value(node: &Columns) -> Tensor {
    let count = fold::count(node.visit_counts);
    // An action that was taken counts, even if its prior probability is 0.
    let probs = maximum(node.prior_probs, f64::from(f32::MIN_POSITIVE));
    let probs = select(node.visited(), probs, 0.0);
    let total = fold::sum(probs);
    let weighted =
        select(node.visited(), probs * node.qvalues / select(node.visited(), total, 1.0), 0.0);
    (node.raw_value + count * fold::sum(weighted)) / (count + 1.0)
}
