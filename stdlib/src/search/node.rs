//! One node of each tree: what action selection reads.

use std::ops::Deref;

use podracer_dsl::prelude::*;

/// Statistics of one node of each of `B` trees. Everything is f32; counts are whole numbers.
#[derive(Tree, Clone)]
pub struct Node {
    /// Logits of the actions as the model gave them, `[B, A]`.
    pub prior_logits: Tensor,
    /// Their softmax, `[B, A]`.
    pub prior_probs: Tensor,
    /// Reward plus discounted value of each action, 0 for an action that was never taken. `[B, A]`
    pub qvalues: Tensor,
    /// Visits of each action. `[B, A]`
    pub visit_counts: Tensor,
    /// The mean of the values of all visits, the model's own among them. `[B]`
    pub value: Tensor,
    /// The model's value. `[B]`
    pub raw_value: Tensor,
    /// Visits of the node itself, its expansion among them. `[B]`
    pub visits: Tensor,
    /// Edges between the root and the node. `[B]`
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

/// A [`Node`] with the actions along the first axis, `[A, B]`. What is computed of a node is computed of it: loops of a CPU go
/// along the trees, sixteen at a time, and a value of each node, `[B]`, stands beside those of its actions as it is.
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

/// A value of each node, `[B]`, beside values of its actions: `[B, 1]`.
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
