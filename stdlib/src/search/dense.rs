//! Descent and backup without loops, for platforms on which launching a kernel takes longer than
//! running it: all nodes look ahead at once.
//!
//! A node's successor is the child of its next action, or its parent in a backup. Doubling the
//! successors six times covers 64 steps. So a path of any length needs a few gathers, and changes
//! along it are computed for all its nodes side by side. The loops in [`simulate`](super::simulate)
//! touch fewer bytes, but in each round they ask the host whether the last tree has ended.

use super::noise::Noise;
use super::rows::{Head, Rows, width};
use super::selection::{Selection, Visit};
use super::simulate::{Extents, Leaf, Search, Up, mean_with};
use podracer_dsl::any_example;
use podracer_dsl::prelude::*;

/// Number of elements in all nodes' rows; above it loops are faster: a simulation reads and writes
/// about as many.
const MOST: usize = 1 << 26;

impl<S: Selection> Search<'_, S> {
    /// A descent or backup. It goes by level if selection draws in each round. Otherwise it goes by
    /// block, or, on platforms that launch each kernel separately, without loops, unless the trees
    /// are too large for that.
    #[track_caller]
    pub(super) fn traverse<T: Tree>(
        &self,
        at_once: impl FnOnce() -> T,
        by_block: impl FnOnce() -> T,
        by_level: impl FnOnce() -> T,
    ) -> T {
        let width = width(self.extents.actions, self.selection.reads_logits());
        let is_large = self.places().saturating_mul(width) > MOST;
        match (self.selection.draws(), is_large) {
            (true, _) => by_level(),
            (false, true) => if_launched(by_level, by_block),
            (false, false) => if_launched(at_once, by_block),
        }
    }

    /// Number of rows over all trees.
    fn places(&self) -> usize {
        self.extents.nodes().saturating_mul(self.extents.batch)
    }

    /// The greatest number of nodes between a root and a new node.
    fn levels(&self) -> usize {
        (self.extents.max_depth - 1).max(1)
    }

    /// The rows of the next nodes, one for each row, f32 `[(S + 1) * B]`, as i32. A row that does
    /// not lead on is its own successor, and so is a root's row.
    #[track_caller]
    fn successors(&self, nodes: Tensor, leads_on: Option<Tensor>) -> Tensor {
        let batch = self.extents.batch as i32;
        let own = arange(self.places());
        let there = nodes.astype(I32) * batch + own.rem(batch);
        let below_roots = own.ge(batch);
        select(leads_on.map_or(below_roots, |leads| leads & below_roots), there, own)
    }

    /// Descends from the roots' actions and the nodes after them, i32 `[B]`; `by_level` does it if
    /// noise decides between actions.
    #[track_caller]
    pub(super) fn descend_at_once(
        &self,
        rows: &Rows,
        noise: &Noise,
        action: Tensor,
        next: Tensor,
        by_level: impl FnOnce() -> Leaf,
    ) -> Leaf {
        let Extents { batch, max_depth, .. } = self.extents;
        let deepest = max_depth as i32;
        let child = rows.column(Head::Next);
        let leads_on = child.ge(0.0) & (rows.column(Head::Depth) + 1.0).lt(f64::from(deepest));
        let mut ahead = self.successors(child, Some(leads_on));
        // If noise decides at a node of any path, all trees descend again.
        let mut ties = rows.column(Head::Tie).gt(0.0);
        for _ in 0..self.levels().next_power_of_two().ilog2() {
            ties = ties | ties.take(ahead, 0);
            ahead = ahead.take(ahead, 0);
        }
        let going = next.ge(0) & scalar(1).lt(deepest);
        let first = select(going, next, 0) * batch as i32 + arange(batch);
        let place = ahead.take(first, 0);
        let last = rows.row(rows.data.take(place, 0));
        let of_last = |name: Head| last.get(name).astype(I32);
        let leaf = Leaf {
            parent: place / batch as i32,
            action: select(going, of_last(Head::Best), action),
            next: select(going, of_last(Head::Next), next),
            depth: select(going, of_last(Head::Depth) + 1, 1),
        };
        match noise.actions {
            None => leaf,
            Some(_) => {
                let tie = (ties.take(first, 0) & going).any();
                cond(any_example(tie), by_level, || leaf)
            }
        }
    }

    /// Carries values up to the roots' children; returns the step to the roots.
    #[track_caller]
    pub(super) fn back_up_at_once(&self, rows: Rows, up: &Up, key: &Key) -> (Rows, Up) {
        let (batch, levels) = (self.extents.batch, self.levels());
        // The rows from each new node's parent to its root, i32 [L, B]; the root's row fills the
        // remaining entries.
        let mut way = (up.node * batch as i32 + arange(batch)).expand_dims(0);
        let mut ahead = self.successors(rows.column(Head::Parent), None);
        while way.dim(0) < levels {
            let more = way.slice(..way.dim(0).min(levels - way.dim(0)));
            way = concatenate(&[way, ahead.take(more, 0)], 0);
            ahead = ahead.take(ahead, 0);
        }
        let flat = way.flatten();
        let mut row = rows.row(rows.data.take(flat, 0));
        let along = |x: Tensor| x.reshape([levels, batch]);
        // The value that arrives at each node of the path, and at the root after them.
        let coming = |new: Tensor, old: Tensor| concatenate(&[new.expand_dims(0), along(old)], 0);
        let reward = coming(up.reward, row.get(Head::Reward));
        let discount = coming(up.discount, row.get(Head::Discount));
        let returns = returns(reward.slice(..levels), discount.slice(..levels), up.leaf_value);
        let leaf_value = coming(up.leaf_value, returns.flatten());
        let all = Up {
            node: concatenate(&[way, way.slice(levels - 1..)], 0) / batch as i32,
            action: coming(up.action, row.get(Head::Action).astype(I32)),
            child: coming(up.child, (flat / batch as i32).astype(F32)),
            child_value: coming(up.child_value, mean_with(&row.node(), returns.flatten())),
            reward,
            discount,
            leaf_value,
        };
        let of_way = tree_map(&all, |x| x.slice(..levels).flatten());
        let live = Some(of_way.node.gt(0));
        let changed = self.pass(&mut row, &of_way, &Visit { key: &|| key.again(), live });
        let length = way.ge(batch as i32).astype(I32).sum_axis(0);
        let at_root = iota(I32, [levels + 1, batch], 0).eq(length);
        let to_root = tree_map(&all, |x| select(at_root, x, x.zeros_like()).sum_axis(0));
        (Rows { data: rows.data.set(flat, changed), ..rows }, to_root)
    }
}

/// Returns at each node of upward paths, `reward + discount * below`. `below` is the return at the
/// node before, and `first` is the return before the first node. `[L, B]`, `first` `[B]`
#[track_caller]
fn returns(mut reward: Tensor, mut discount: Tensor, first: Tensor) -> Tensor {
    let levels = reward.dim(0);
    let below = |x: Tensor, by: usize, empty: f64| {
        x.slice(..levels - by).pad(&[(by as i64, 0), (0, 0)], empty)
    };
    // Each round doubles the distance.
    let mut by = 1;
    while by < levels {
        reward = reward + discount * below(reward, by, 0.0);
        discount = discount * below(discount, by, 1.0);
        by *= 2;
    }
    reward + discount * first
}
