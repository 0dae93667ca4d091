//! The tree of a finished search, with the fields of mctx.

use super::base::RootFnOutput;
use super::rows::{Block, Head, Rows};
use super::simulate::{Extents, Forest};
use podracer_dsl::prelude::*;

/// `B` search trees with `N = num_simulations + 1` nodes. Node 0 is the root; node `i` was added by
/// simulation `i - 1`. A node that was never added, because `max_depth` cut a simulation off, has
/// no visits.
#[derive(Tree, Clone)]
pub struct SearchTree<E: Tree = Tensor> {
    /// Number of visits of each node, including its expansion. i32 `[B, N]`
    pub node_visits: Tensor,
    /// The model's value of each node. f32 `[B, N]`
    pub raw_values: Tensor,
    /// The mean value over all visits. f32 `[B, N]`
    pub node_values: Tensor,
    /// The parent of each node, -1 for the root. i32 `[B, N]`
    pub parents: Tensor,
    /// The action that leads from the parent to each node, -1 for the root. i32 `[B, N]`
    pub action_from_parent: Tensor,
    /// The node after each action, -1 for none. i32 `[B, N, A]`
    pub children_index: Tensor,
    /// Prior logits. f32 `[B, N, A]`
    pub children_prior_logits: Tensor,
    /// Number of visits of each action. i32 `[B, N, A]`
    pub children_visits: Tensor,
    /// Rewards of actions that were taken, 0 for other actions. f32 `[B, N, A]`
    pub children_rewards: Tensor,
    /// Discounts of actions that were taken, 0 for other actions. f32 `[B, N, A]`
    pub children_discounts: Tensor,
    /// Values of the nodes after actions, 0 for none. f32 `[B, N, A]`
    pub children_values: Tensor,
    /// Embeddings that the recurrent function returned for the nodes: a tree of `[B, N, ..]`.
    pub embeddings: E,
    /// Actions that the root must not take. bool `[B, A]`
    pub root_invalid_actions: Tensor,
    /// [`SearchTree::summary`], which depends on no node except the root.
    pub(super) root: SearchSummary,
}

/// Statistics of the roots.
#[derive(Tree, Clone, Copy)]
pub struct SearchSummary {
    /// Number of visits of the root's actions. f32 `[B, A]`
    pub visit_counts: Tensor,
    /// Shares of the visits, which sum to 1. f32 `[B, A]`
    pub visit_probs: Tensor,
    /// The root's value according to the search. f32 `[B]`
    pub value: Tensor,
    /// Reward plus discounted value of each of the root's actions, 0 for actions that were never
    /// taken. f32 `[B, A]`
    pub qvalues: Tensor,
}

impl<E: Tree> SearchTree<E> {
    /// The tree of a search. Parts that are not read are not computed: they are not in the program.
    #[track_caller]
    pub(super) fn new(
        extents: Extents,
        root: &RootFnOutput<E>,
        forest: Forest<E>,
        invalid_actions: Option<Tensor>,
    ) -> SearchTree<E> {
        let Extents { batch, actions, .. } = extents;
        let Forest { roots, rows, embeddings, prior_logits } = forest;
        let first_row = |all: Tensor, first: Tensor| {
            concatenate(&[first.expand_dims(1), all.slice((.., 1..))], 1)
        };
        let nodes = extents.nodes();
        // [(S + 1) * B, ..] -> [B, S + 1, ..]
        let by_tree = |all: Tensor| {
            all.reshape([&[nodes, batch], &all.shape()[1..]].concat()).swap_axes(0, 1)
        };
        let data = by_tree(rows.data);
        let head =
            |name: Head, first: Tensor| first_row(data.index_axis(2, name as usize as i32), first);
        let block = |block: Block, first: Tensor| {
            let columns = Rows::block(actions, block);
            first_row(data.slice_axis(2, columns), first)
        };
        let each = |x: f64| full([batch], x);
        let node_values = head(Head::Value, roots.value);
        let children_index = block(Block::Children, roots.children).astype(I32);
        // Data in a child's row about the edge to the child, at its parent's action.
        let of_child = |by_node: Tensor| {
            let flat = children_index.reshape([batch, nodes * actions]);
            let there = by_node.take_along_axis(flat.maximum(0), 1);
            select(flat.ge(0), there, 0.0).reshape([batch, nodes, actions])
        };
        let invalid = invalid_actions.unwrap_or_else(|| zeros(BOOL, [batch, actions]));
        SearchTree {
            node_visits: head(Head::Visits, roots.visits).astype(I32),
            raw_values: head(Head::RawValue, root.value),
            node_values,
            parents: unless_added(head(Head::Parent, each(-1.0)), head(Head::Visits, roots.visits)),
            action_from_parent: unless_added(
                head(Head::Action, each(-1.0)),
                head(Head::Visits, roots.visits),
            ),
            children_index: unless_added_each(children_index, head(Head::Visits, roots.visits)),
            children_prior_logits: by_tree(prior_logits),
            children_visits: block(Block::Visits, roots.visit_counts).astype(I32),
            children_rewards: of_child(head(Head::Reward, each(0.0))),
            children_discounts: of_child(head(Head::Discount, each(0.0))),
            children_values: of_child(node_values),
            embeddings: tree_map(&embeddings, by_tree),
            root_invalid_actions: invalid,
            root: SearchSummary::new(roots.visit_counts, roots.value, roots.qvalues),
        }
    }

    /// The tree with only the first `actions` actions of each node.
    #[track_caller]
    pub(super) fn first_actions(self, actions: usize) -> SearchTree<E> {
        let first = |x: Tensor| x.slice_axis(-1, ..actions);
        SearchTree {
            children_index: first(self.children_index),
            children_prior_logits: first(self.children_prior_logits),
            children_visits: first(self.children_visits),
            children_rewards: first(self.children_rewards),
            children_discounts: first(self.children_discounts),
            children_values: first(self.children_values),
            root_invalid_actions: first(self.root_invalid_actions),
            root: SearchSummary::new(
                first(self.root.visit_counts),
                self.root.value,
                first(self.root.qvalues),
            ),
            ..self
        }
    }

    /// The tree without the embeddings of the nodes.
    pub(super) fn without_embeddings(self) -> SearchTree<()> {
        SearchTree {
            node_visits: self.node_visits,
            raw_values: self.raw_values,
            node_values: self.node_values,
            parents: self.parents,
            action_from_parent: self.action_from_parent,
            children_index: self.children_index,
            children_prior_logits: self.children_prior_logits,
            children_visits: self.children_visits,
            children_rewards: self.children_rewards,
            children_discounts: self.children_discounts,
            children_values: self.children_values,
            embeddings: (),
            root_invalid_actions: self.root_invalid_actions,
            root: self.root,
        }
    }

    /// Number of actions of each node.
    pub fn num_actions(&self) -> usize {
        self.children_index.dim(2)
    }

    /// Number of simulations of the search: nodes except the root, including the nodes that a
    /// search continued with.
    pub fn num_simulations(&self) -> usize {
        self.node_visits.dim(1) - 1
    }

    /// Reward plus discounted value of every action of every node. f32 `[B, N, A]`
    #[track_caller]
    pub fn qvalues(&self) -> Tensor {
        self.children_rewards + self.children_discounts * self.children_values
    }

    /// Statistics of the roots.
    pub fn summary(&self) -> SearchSummary {
        self.root
    }
}

impl SearchSummary {
    /// Makes the summary from the roots' visits, values and action values.
    #[track_caller]
    pub(super) fn new(visit_counts: Tensor, value: Tensor, qvalues: Tensor) -> SearchSummary {
        let total = visit_counts.sum_axis(keepdims(-1));
        let even = 1.0 / visit_counts.dim(1) as f64;
        let visit_probs = select(total.gt(0.0), visit_counts / maximum(total, 1.0), even);
        SearchSummary { visit_counts, visit_probs, value, qvalues }
    }
}

/// -1 for nodes that were never added.
#[track_caller]
fn unless_added(x: Tensor, visits: Tensor) -> Tensor {
    select(visits.gt(0.0), x, -1.0).astype(I32)
}

#[track_caller]
fn unless_added_each(x: Tensor, visits: Tensor) -> Tensor {
    select(visits.gt(0.0).expand_dims(2), x, -1)
}
