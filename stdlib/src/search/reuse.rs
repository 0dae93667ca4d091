//! Subtrees below an action, kept for the search of the next step.

use super::rows::{Head, Row, write_all};
use super::selection::{Selection, Visit};
use super::simulate::{Forest, Roots, Search};
use super::tree::{SearchSummary, SearchTree};
use podracer_dsl::any_example;
use podracer_dsl::prelude::*;

/// The slices of each tree at these nodes: `x` is `[B, N, ..]`, `order` i32 `[B, n]`.
#[track_caller]
fn at_nodes(x: Tensor, order: Tensor) -> Tensor {
    vmap((x, order), |(x, order)| x.take(order, 0))
}

impl<E: Tree> SearchTree<E> {
    /// The trees below actions, i32 `[B]`, such as the actions taken, with at most `nodes` nodes
    /// each. [`muzero_policy_from`](super::muzero_policy_from) continues with them.
    ///
    /// A tree is empty if the action was never taken, or if `keep`, bool `[B]`, is false. `keep`
    /// must be false if an episode has ended.
    #[must_use]
    #[track_caller]
    pub fn subtree(&self, action: Tensor, keep: Tensor, nodes: usize) -> SearchTree<E> {
        let children = self.children_index.index_axis(1, 0);
        let child = children.take_along_axis(action.expand_dims(1), 1).index_axis(1, 0);
        self.below(select(keep, child, -1), nodes)
    }

    /// The trees below nodes, i32 `[B]`, -1 for none.
    #[track_caller]
    fn below(&self, first: Tensor, nodes: usize) -> SearchTree<E> {
        let (batch, all, actions) = (first.len(), self.node_visits.dim(1), self.num_actions());
        let places = iota(I32, [batch, all], 1);
        let is_first = places.eq(first.expand_dims(1));
        // A node is kept if its parent is: level by level, starting at the first node.
        let (kept, _) = while_loop(
            (is_first, true),
            |(_, more)| any_example(more),
            |(kept, _)| {
                let of_parent = kept.take_along_axis(self.parents.maximum(0), 1);
                let next = kept | (of_parent & self.parents.ge(0));
                (next, (next ^ kept).any())
            },
        );
        // The first node, then the other kept nodes in order, then the nodes that are dropped.
        let rank = select(is_first, -1, select(kept, places, places + all as i32));
        let order = rank.argsort(1);
        let numbers = order.argsort(1);
        let count = nodes.clamp(1, all);
        let order = order.slice((.., ..count));
        let there = kept.take_along_axis(order, 1);
        let number = |old: Tensor| {
            let flat = old.reshape([batch, old.elements() / batch]);
            let new = numbers.take_along_axis(flat.maximum(0), 1).reshape(old.shape());
            select(old.ge(0) & new.lt(count as i32), new, -1)
        };
        let moved = |x: Tensor, none: i32| {
            let x = at_nodes(x, order);
            let there = if x.rank() == 3 { there.expand_dims(2) } else { there };
            select(there, x, none)
        };
        let parents = number(moved(self.parents, -1));
        let children = number(moved(self.children_index, -1));
        let tree = SearchTree {
            node_visits: moved(self.node_visits, 0),
            raw_values: moved(self.raw_values, 0),
            node_values: moved(self.node_values, 0),
            parents: select(iota(I32, [batch, count], 1).eq(0), -1, parents),
            action_from_parent: moved(self.action_from_parent, -1),
            children_index: children,
            children_prior_logits: moved(self.children_prior_logits, 0),
            children_visits: moved(self.children_visits, 0),
            children_rewards: moved(self.children_rewards, 0),
            children_discounts: moved(self.children_discounts, 0),
            children_values: moved(self.children_values, 0),
            embeddings: tree_map(&self.embeddings, |x| at_nodes(x, order)),
            root_invalid_actions: zeros(BOOL, [batch, actions]),
            root: self.root,
        };
        let root = |x: Tensor| x.index_axis(1, 0);
        let visits = root(tree.children_visits).astype(F32);
        let root = SearchSummary::new(visits, root(tree.node_values), root(tree.qvalues()));
        SearchTree { root, ..tree }
    }
}

impl<S: Selection> Search<'_, S> {
    /// Trees that begin with the nodes of earlier trees, placed behind the nodes of future
    /// simulations.
    #[track_caller]
    pub(super) fn regrow<E: Tree>(
        &self,
        planted: Forest<E>,
        kept: &SearchTree<E>,
        key: &Key,
    ) -> Forest<E> {
        let (batch, simulations) = (self.extents.batch, self.extents.num_simulations);
        let count = kept.node_visits.dim(1) - 1;
        if count == 0 {
            return self.with_kept_roots(planted, kept);
        }
        // [B, N, ..] without the root -> [(N - 1) * B, ..]
        let by_node = |x: Tensor| {
            let x = x.slice((.., 1..)).swap_axes(0, 1);
            x.reshape([&[count * batch], &x.shape()[2..]].concat())
        };
        let number = |x: Tensor| by_node(x).astype(F32);
        let shifted = |x: Tensor| {
            let x = by_node(x);
            select(x.gt(0), x + simulations as i32, x).astype(F32)
        };
        let edge = |of: Tensor| {
            let parents = kept.parents.maximum(0) * kept.num_actions() as i32;
            let places = parents + kept.action_from_parent.maximum(0);
            let flat = of.reshape([batch, of.elements() / batch]);
            by_node(flat.take_along_axis(places, 1))
        };
        let logits = by_node(kept.children_prior_logits);
        let mut row = Row {
            read: None,
            head: [zeros(F32, [count * batch]); super::rows::HEAD],
            prior_logits: self.selection.reads_logits().then_some(logits),
            prior_probs: self.selection.prior_probs(logits),
            qvalues: by_node(kept.qvalues()),
            visit_counts: number(kept.children_visits),
            children: shifted(kept.children_index),
        };
        row.set(Head::Value, by_node(kept.node_values));
        row.set(Head::RawValue, by_node(kept.raw_values));
        row.set(Head::Visits, number(kept.node_visits));
        row.set(Head::Parent, shifted(kept.parents));
        row.set(Head::Action, number(kept.action_from_parent));
        row.set(Head::Reward, edge(kept.children_rewards));
        row.set(Head::Discount, edge(kept.children_discounts));
        let live = Some(row.get(Head::Visits).gt(0.0));
        self.select_next(&mut row, &Visit { key: &|| key.fold_in(0), live });

        let behind = scalar(simulations as i32 + 1);
        let mut forest = self.with_kept_roots(planted, kept);
        let put = |all: Tensor, x: Tensor| write_all(all, behind, x, batch);
        forest.rows.data = put(forest.rows.data, row.packed());
        forest.prior_logits = put(forest.prior_logits, logits);
        forest.embeddings =
            forest.embeddings.zip_with(&kept.embeddings, |all, x| put(all, by_node(x)));
        forest
    }

    /// The statistics of kept roots, if there are any.
    #[track_caller]
    fn with_kept_roots<E: Tree>(&self, mut forest: Forest<E>, kept: &SearchTree<E>) -> Forest<E> {
        let root = |x: Tensor| x.index_axis(1, 0);
        let visits = root(kept.node_visits).astype(F32);
        let there = visits.gt(0.0);
        let children = root(kept.children_index);
        let children = select(children.gt(0), children + self.extents.num_simulations as i32, -1);
        let SearchSummary { visit_counts, value, qvalues, .. } = kept.summary();
        forest.roots = Roots {
            value: select(there, value, forest.roots.value),
            visits: select(there, visits, forest.roots.visits),
            qvalues,
            visit_counts,
            children: children.astype(F32),
        };
        forest
    }
}
