//! One node of each tree, as action selection reads it.

use std::ops::Deref;

use podracer_dsl::prelude::*;

/// Statistics of one node of each of `B` trees. Everything is f32; counts are integers.
#[derive(Tree, Clone)]
pub struct Node {
    /// Logits of the actions from the model, `[B, A]`.
    pub prior_logits: Tensor,
    /// Their softmax, `[B, A]`.
    pub prior_probs: Tensor,
    /// Reward plus discounted value of each action, 0 for an action that was never taken. `[B, A]`
    pub qvalues: Tensor,
    /// Number of visits of each action. `[B, A]`
    pub visit_counts: Tensor,
    /// The mean value over all visits, including the model's value. `[B]`
    pub value: Tensor,
    /// The model's value. `[B]`
    pub raw_value: Tensor,
    /// Number of visits of the node itself, including its expansion. `[B]`
    pub visits: Tensor,
    /// Number of edges between the root and the node. `[B]`
    pub depth: Tensor,
}

impl Node {
    /// True for actions that were taken at least once, bool `[B, A]`.
    #[track_caller]
    pub fn visited(&self) -> Tensor {
        self.visit_counts.gt(0.0)
    }

    #[track_caller]
    pub(super) fn columns(&self) -> Columns {
        Columns(self.turned())
    }

    #[track_caller]
    fn turned(&self) -> Node {
        let turn = |x: Tensor| x.swap_axes(0, 1);
        Node {
            prior_logits: turn(self.prior_logits),
            prior_probs: turn(self.prior_probs),
            qvalues: turn(self.qvalues),
            visit_counts: turn(self.visit_counts),
            ..self.clone()
        }
    }
}

/// A [`Node`] with the actions along the first axis, `[A, B]`. Computations on nodes use this form:
/// CPU loops process sixteen trees at a time, and a value of each node, `[B]`, broadcasts against
/// the values of its actions.
pub(super) struct Columns(pub(super) Node);

impl Columns {
    #[track_caller]
    pub(super) fn node(&self) -> Node {
        self.0.turned()
    }
}

impl Deref for Columns {
    type Target = Node;

    fn deref(&self) -> &Node {
        &self.0
    }
}

/// A value of each node, `[B]`, as a column to broadcast against its actions: `[B, 1]`.
#[track_caller]
pub(super) fn column(x: Tensor) -> Tensor {
    x.expand_dims(-1)
}

/// The element of each row at `index`: `x` is `[B, A]`, `index` i32 `[B]`.
#[track_caller]
pub(super) fn pick(x: Tensor, index: Tensor) -> Tensor {
    x.take_along_axis(column(index), -1).index_axis(1, 0)
}

/// True at `index` in each row: bool `[B, A]`.
#[track_caller]
pub(super) fn chosen(index: Tensor, actions: usize) -> Tensor {
    let batch = index.len();
    iota(I32, [batch, actions], 1).eq(column(index))
}
