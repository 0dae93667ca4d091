//! Inputs and results of a search.

use super::SearchTree;
use podracer_dsl::prelude::*;

/// A root: the output of a representation network for observations. `B` roots are searched side by
/// side.
#[derive(Tree, Clone)]
pub struct RootFnOutput<E: Tree = Tensor> {
    /// Logits of a policy network, f32 `[B, A]`; they may be unnormalised.
    pub prior_logits: Tensor,
    /// Values of the roots, f32 `[B]`.
    pub value: Tensor,
    /// Embeddings of the roots, which are passed to the recurrent function: a tree of `[B, ..]`.
    pub embedding: E,
}

/// A step of the model: the output of a recurrent function for an action and the embedding of the
/// state before.
#[derive(Tree, Clone)]
pub struct RecurrentFnOutput {
    /// Rewards of the steps, f32 `[B]`.
    pub reward: Tensor,
    /// Discounts between the rewards and the values after them, f32 `[B]`: 0 if the episode ends,
    /// negative if the other player is to move.
    pub discount: Tensor,
    /// Logits of a policy network at the states after the steps, f32 `[B, A]`.
    pub prior_logits: Tensor,
    /// Values of the states after the steps, f32 `[B]`.
    pub value: Tensor,
}

/// Result of a search: the proposed actions, and the policy target.
#[derive(Tree, Clone)]
pub struct PolicyOutput<E: Tree = Tensor> {
    /// The proposed actions, i32 `[B]`.
    pub action: Tensor,
    /// Target of a policy network, by cross-entropy: probabilities, f32 `[B, A]`.
    pub action_weights: Tensor,
    /// The tree of the finished search. Parts that the program does not use are not computed.
    pub search_tree: SearchTree<E>,
}

impl<E: Tree> PolicyOutput<E> {
    /// The same result without the embeddings of the nodes, which no agent reads.
    pub(crate) fn without_embeddings(self) -> PolicyOutput<()> {
        let PolicyOutput { action, action_weights, search_tree } = self;
        PolicyOutput { action, action_weights, search_tree: search_tree.without_embeddings() }
    }
}
