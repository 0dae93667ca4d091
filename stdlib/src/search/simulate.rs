//! The search: simulations that descend the trees, expand one node each, and back up its value.
//!
//! # Invariants
//! - The action that a node takes next is computed when the node changes, in the backup, and read
//!   once before it changes again. So the descent is one small read per level.
//! - All roots change in every simulation, so they are dense arrays instead of rows.
//! - The loops down and up continue until the last tree of their block has ended, over all
//!   surrounding batches. Trees that have ended write to rows that are never read. So no loop
//!   selects between whole trees.

use super::base::{RecurrentFnOutput, RootFnOutput};
use super::fold;
use super::node::{Node, chosen, pick};
use super::noise::{Noise, ties};
use super::rows::{Block, Head, Row, Rows, places, write_all};
use super::selection::{Selection, Visit};
use super::tree::{SearchSummary, SearchTree};
use podracer_dsl::prelude::*;
use std::ops::Range;

/// The value of a child that was not expanded yet.
pub(super) const UNVISITED: f64 = -1.0;

/// Statistics of the roots that simulations change, all f32.
#[derive(Tree, Clone)]
pub(super) struct Roots {
    /// Value of each root. `[B]`
    pub(super) value: Tensor,
    /// Number of visits of each root. `[B]`
    pub(super) visits: Tensor,
    /// `[B, A]`, like the fields below.
    pub(super) qvalues: Tensor,
    pub(super) visit_counts: Tensor,
    pub(super) children: Tensor,
}

/// Trees that are being searched.
#[derive(Tree, Clone)]
pub(super) struct Forest<E: Tree> {
    pub(super) roots: Roots,
    pub(super) rows: Rows,
    /// `[(S + 1) * B, ..]`
    pub(super) embeddings: E,
    /// f32 `[(S + 1) * B, A]`
    pub(super) prior_logits: Tensor,
}

/// The state of a search between two simulations: the carry of [`search`](super::search)'s
/// `loop_fn`.
#[derive(Tree, Clone)]
pub struct SearchState<E: Tree = Tensor> {
    /// The key of later simulations.
    key: Key,
    forest: Forest<E>,
}

impl<E: Tree> SearchState<E> {
    /// Statistics of the roots after the simulations so far.
    #[track_caller]
    pub fn summary(&self) -> SearchSummary {
        let Roots { value, qvalues, visit_counts, .. } = self.forest.roots;
        SearchSummary::new(visit_counts, value, qvalues)
    }

    /// Number of visits of each root, one more than the simulations so far. f32 `[B]`
    pub(super) fn visits(&self) -> Tensor {
        self.forest.roots.visits
    }
}

/// One simulation: from its number, i32 `[]`, and the state before it to the state after it.
pub type LoopBody<'a, E = Tensor> = Box<dyn FnOnce(Tensor, SearchState<E>) -> SearchState<E> + 'a>;

/// The extents and limits of a search.
#[derive(Clone, Copy)]
pub(super) struct Extents {
    pub(super) batch: usize,
    pub(super) actions: usize,
    pub(super) num_simulations: usize,
    pub(super) max_depth: usize,
    /// Number of nodes of earlier trees, without the roots.
    pub(super) kept: usize,
}

impl Extents {
    /// The number of nodes of a tree.
    pub(super) fn nodes(&self) -> usize {
        self.num_simulations + 1 + self.kept
    }
}

/// The leaf of a simulation's descent. i32 `[B]` each
#[derive(Tree, Clone)]
pub(super) struct Leaf {
    pub(super) parent: Tensor,
    pub(super) action: Tensor,
    /// The node after the action, -1 if there is none yet. It exists if the way was cut off.
    pub(super) next: Tensor,
    pub(super) depth: Tensor,
}

/// A step up: the child that has changed, and the edge to it.
#[derive(Tree, Clone, Copy)]
pub(super) struct Up {
    /// The node to change, i32 `[B]`; 0 is the root, the end of the way.
    pub(super) node: Tensor,
    /// The action to the child. i32 `[B]`
    pub(super) action: Tensor,
    /// f32 `[B]`, like the fields below.
    pub(super) child: Tensor,
    pub(super) child_value: Tensor,
    pub(super) reward: Tensor,
    pub(super) discount: Tensor,
    /// The discounted return from the child.
    pub(super) leaf_value: Tensor,
}

impl Up {
    /// The discounted return from the node to change.
    #[track_caller]
    pub(super) fn return_here(&self) -> Tensor {
        self.reward + self.discount * self.leaf_value
    }
}

/// The mean value over a node's visits, including one more visit.
#[track_caller]
pub(super) fn mean_with(node: &Node, visit: Tensor) -> Tensor {
    (node.value * node.visits + visit) / (node.visits + 1.0)
}

/// A node's numbers that a visit changes.
struct Visited {
    value: Tensor,
    visits: Tensor,
    /// Value of the action that was selected. `[B]`
    qvalue: Tensor,
    qvalues: Tensor,
    visit_counts: Tensor,
    children: Tensor,
}

pub(super) struct Search<'a, S: Selection> {
    pub(super) extents: Extents,
    pub(super) selection: &'a S,
}

impl<S: Selection> Search<'_, S> {
    /// Runs the simulations from the roots by `loop_fn`.
    #[track_caller]
    pub(super) fn run<E: Tree>(
        &self,
        key: Key,
        root: &RootFnOutput<E>,
        kept: Option<&SearchTree<E>>,
        recurrent_fn: impl FnOnce(Key, Tensor, E) -> (RecurrentFnOutput, E),
        loop_fn: impl FnOnce(Range<usize>, SearchState<E>, LoopBody<'_, E>) -> SearchState<E>,
    ) -> Forest<E> {
        let simulations = self.extents.num_simulations;
        let forest = self.plant(root);
        let forest = match kept {
            Some(kept) => self.regrow(forest, kept, &key),
            None => forest,
        };
        let simulate = |simulation: Tensor, SearchState { key, forest }: SearchState<E>| {
            let [key, simulate_key, expand_key] = key.split_into();
            let noise = Noise {
                key: simulate_key,
                batch: self.extents.batch,
                actions: self.selection.noisy_actions(),
            };
            let leaf = self.descend(root, &forest, simulation, &noise);
            let model = |action, embedding| recurrent_fn(expand_key, action, embedding);
            let (forest, up) = self.expand(forest, simulation, leaf, &noise.key, model);
            SearchState { key, forest: self.back_up(root, forest, up, &noise.key) }
        };
        loop_fn(0..simulations, SearchState { key, forest }, Box::new(simulate)).forest
    }

    /// Trees that consist of their roots.
    #[track_caller]
    fn plant<E: Tree>(&self, root: &RootFnOutput<E>) -> Forest<E> {
        let Extents { batch, actions, .. } = self.extents;
        let nodes = self.extents.nodes();
        let all = |first: Tensor| {
            let rest = &first.shape()[1..];
            let empty = zeros(first.dtype(), [&[nodes * batch], rest].concat());
            write_all(empty, scalar(0), first, batch)
        };
        let none = || zeros(F32, [batch, actions]);
        Forest {
            roots: Roots {
                value: root.value,
                visits: ones(F32, [batch]),
                qvalues: none(),
                visit_counts: none(),
                children: full([batch, actions], UNVISITED),
            },
            rows: Rows::zeros(nodes, batch, actions, self.selection.reads_logits()),
            embeddings: tree_map(&root.embedding, all),
            prior_logits: all(root.prior_logits),
        }
    }

    #[track_caller]
    pub(super) fn root_node<E: Tree>(&self, root: &RootFnOutput<E>, roots: &Roots) -> Node {
        Node {
            prior_logits: root.prior_logits,
            prior_probs: self.selection.prior_probs(root.prior_logits),
            qvalues: roots.qvalues,
            visit_counts: roots.visit_counts,
            value: roots.value,
            raw_value: root.value,
            visits: roots.visits,
            depth: zeros(F32, [self.extents.batch]),
        }
    }

    /// Descends from the roots to actions that were never taken, or to the greatest depth.
    #[track_caller]
    fn descend<E: Tree>(
        &self,
        root: &RootFnOutput<E>,
        forest: &Forest<E>,
        simulation: Tensor,
        noise: &Noise,
    ) -> Leaf {
        let rows = &forest.rows;
        let action =
            self.selection.root(&self.root_node(root, &forest.roots).columns(), simulation, noise);
        let next = pick(forest.roots.children, action).astype(I32);
        let by_level = || self.descend_by_level(rows, noise, action, next);
        self.traverse(
            || self.descend_at_once(rows, noise, action, next, by_level),
            || {
                let descend = |(), trees, (action, next)| {
                    ((), self.descend_by_level(&rows.of(trees), noise, action, next))
                };
                self.by_block((), (action, next), descend).1
            },
            by_level,
        )
    }

    /// Adds a node to each tree, or evaluates a node again if the descent was cut off.
    #[track_caller]
    fn expand<E: Tree>(
        &self,
        mut forest: Forest<E>,
        simulation: Tensor,
        leaf: Leaf,
        key: &Key,
        recurrent_fn: impl FnOnce(Tensor, E) -> (RecurrentFnOutput, E),
    ) -> (Forest<E>, Up) {
        let Extents { batch, actions, num_simulations, max_depth, kept } = self.extents;
        let before = places(leaf.parent, batch);
        let embedding = tree_map(&forest.embeddings, |all| {
            all.take(before, 0).reshape([&[batch], &all.shape()[1..]].concat())
        });
        let (output, embedding) = recurrent_fn(leaf.action, embedding);
        let RecurrentFnOutput { reward, discount, prior_logits, value } = output;

        let none = || zeros(F32, [batch, actions]);
        let number = |x: Tensor| x.astype(F32);
        let reaches_depth = max_depth < num_simulations + kept;
        // Only a node at the greatest depth is evaluated twice, and it has no children.
        let again = leaf.next.ge(0);
        let new = simulation + 1;
        let node =
            if reaches_depth { select(again, leaf.next, new) } else { new.broadcast_to([batch]) };
        let mut visits = ones(F32, [batch]);
        if reaches_depth {
            let earlier = forest.rows.read(select(again, leaf.next, 0)).get(Head::Visits);
            visits = select(again, earlier + 1.0, 1.0);
        }
        let mut row = Row {
            read: None,
            head: [zeros(F32, [batch]); super::rows::HEAD],
            prior_logits: self.selection.reads_logits().then_some(prior_logits),
            prior_probs: self.selection.prior_probs(prior_logits),
            qvalues: none(),
            visit_counts: none(),
            children: full([batch, actions], UNVISITED),
        };
        row.set(Head::Value, value);
        row.set(Head::RawValue, value);
        row.set(Head::Visits, visits);
        row.set(Head::Depth, number(leaf.depth));
        row.set(Head::Parent, number(leaf.parent));
        row.set(Head::Action, number(leaf.action));
        row.set(Head::Reward, reward);
        row.set(Head::Discount, discount);
        self.select_next(&mut row, &Visit { key: &|| key.fold_in(1), live: None });
        if reaches_depth {
            let at = places(node, batch);
            let put = |all: Tensor, x: Tensor| all.set(at, if batch == 1 { x.index(0) } else { x });
            forest.rows = forest.rows.write(node, row.packed());
            forest.embeddings = forest.embeddings.zip_with(&embedding, put);
            forest.prior_logits = put(forest.prior_logits, prior_logits);
        } else {
            let put = |all: Tensor, x: Tensor| write_all(all, new, x, batch);
            forest.rows = forest.rows.write_all(new, &row);
            forest.embeddings = forest.embeddings.zip_with(&embedding, put);
            forest.prior_logits = put(forest.prior_logits, prior_logits);
        }
        let up = Up {
            node: leaf.parent,
            action: leaf.action,
            child: number(node),
            child_value: value,
            reward,
            discount,
            leaf_value: value,
        };
        (forest, up)
    }

    /// Carries values from the new nodes to the roots.
    #[track_caller]
    fn back_up<E: Tree>(
        &self,
        root: &RootFnOutput<E>,
        forest: Forest<E>,
        up: Up,
        key: &Key,
    ) -> Forest<E> {
        let Forest { roots, rows, embeddings, prior_logits } = forest;
        let (rows, up) = self.traverse(
            || self.back_up_at_once(rows.clone(), &up, key),
            || {
                self.by_block(rows.clone(), up, |rows: Rows, trees, up| {
                    let (rows, up) = self.back_up_by_level(rows.of(trees), &up, key);
                    (rows.of(None), up)
                })
            },
            || self.back_up_by_level(rows.clone(), &up, key),
        );
        let after = self.visited(&self.root_node(root, &roots), roots.children, &up);
        let roots = Roots {
            value: after.value,
            visits: after.visits,
            qvalues: after.qvalues,
            visit_counts: after.visit_counts,
            children: after.children,
        };
        Forest { roots, rows, embeddings, prior_logits }
    }

    /// Updates the rows of nodes for a visit that passes through them. f32 `[B, W]`
    #[track_caller]
    pub(super) fn pass(&self, row: &mut Row, up: &Up, visit: &Visit<'_>) -> Tensor {
        let after = self.visited(&row.node(), row.children, up);
        row.set(Head::Value, after.value);
        row.set(Head::Visits, after.visits);
        (row.qvalues, row.visit_counts) = (after.qvalues, after.visit_counts);
        row.children = after.children;
        self.select_next(row, visit);
        let changed = [Head::Best, Head::Next, Head::Tie, Head::Value, Head::Visits];
        let mut changes: Vec<(Tensor, Tensor)> =
            changed.map(|name| (up.action.full_like(name as i32), row.get(name))).to_vec();
        let count = pick(row.visit_counts, up.action);
        let of_action = [after.qvalue, count, up.child];
        for (block, value) in
            [Block::Qvalues, Block::Visits, Block::Children].into_iter().zip(of_action)
        {
            let first = Rows::block(self.extents.actions, block).start as i32;
            changes.push((up.action + first, value));
        }
        row.with_changes(&changes)
    }

    /// A node after a visit that passed through one of its actions.
    #[track_caller]
    fn visited(&self, node: &Node, children: Tensor, up: &Up) -> Visited {
        let here = chosen(up.action, self.extents.actions);
        let each = |x: Tensor| x.expand_dims(-1);
        let q = up.reward + up.discount * up.child_value;
        Visited {
            value: mean_with(node, up.return_here()),
            visits: node.visits + 1.0,
            qvalue: q,
            qvalues: select(here, each(q), node.qvalues),
            visit_counts: node.visit_counts + here.astype(F32),
            children: select(here, each(up.child), children),
        }
    }

    /// Computes the action that the node takes next.
    #[track_caller]
    pub(super) fn select_next(&self, row: &mut Row, visit: &Visit<'_>) {
        let scores = self.selection.interior(&row.node().columns(), visit);
        let best = fold::argmax(scores);
        row.set(Head::Best, best.astype(F32));
        row.set(Head::Next, pick(row.children, best));
        if self.selection.noisy_actions().is_some() {
            row.set(Head::Tie, ties(scores).astype(F32));
        }
    }
}
