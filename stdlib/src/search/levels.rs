//! Descent and backup by loops over levels, in blocks of trees with scores that fit into a core's
//! cache.

use super::node::pick;
use super::noise::Noise;
use super::rows::{Head, Rows};
use super::selection::{Selection, Visit};
use super::simulate::{Extents, Leaf, Search, Up};
use podracer_dsl::any_example;
use podracer_dsl::prelude::*;

/// Greatest number of a block's scores, without noise and with noise. Noise is drawn for all trees
/// of a block if it decides for one tree.
const MOST: [usize; 2] = [1 << 15, 1 << 14];
/// Least number of trees in a block: vectors of CPU loops span this many trees.
const LEAST: usize = 16;

impl<S: Selection> Search<'_, S> {
    /// Indices of the trees of each block, i32 `[n, K]`; `None` if all trees are one block.
    #[track_caller]
    fn blocks(&self) -> Option<Tensor> {
        let Extents { batch, actions, .. } = self.extents;
        let most = MOST[usize::from(self.selection.noisy_actions().is_some())];
        let fits = |trees: &usize| batch.is_multiple_of(*trees) && trees * actions <= most;
        let trees = (LEAST..=batch).rev().find(fits).filter(|trees| *trees < batch)?;
        Some(arange(batch).reshape([batch / trees, trees]))
    }

    /// A way for all trees, block by block. `way` gets a state, the block's trees (`None` for all),
    /// and the trees' part of `starts`, with leaves `[B]`.
    #[track_caller]
    pub(super) fn by_block<C: Tree, X: Tree, Y: Tree>(
        &self,
        state: C,
        starts: X,
        way: impl FnOnce(C, Option<Tensor>, X) -> (C, Y),
    ) -> (C, Y) {
        let Some(blocks) = self.blocks() else { return way(state, None, starts) };
        let starts = tree_map(&starts, |x| x.reshape(blocks.shape()));
        let each = |state, (trees, starts)| way(state, Some(trees), starts);
        let (state, ends) = scan(state, (blocks, starts), each);
        (state, tree_map(&ends, Tensor::flatten))
    }

    /// Descends from the roots' actions and the nodes after them, i32 `[B]`, one level per round.
    #[track_caller]
    pub(super) fn descend_by_level(
        &self,
        rows: &Rows,
        noise: &Noise,
        action: Tensor,
        next: Tensor,
    ) -> Leaf {
        let (trees, max_depth) = (action.len(), self.extents.max_depth);
        let goes_on = |next: Tensor, depth: Tensor| next.ge(0) & depth.lt(max_depth as i32);
        let going = goes_on(next, scalar(1));
        let begin = (1, zeros(I32, [trees]), action, next, ones(I32, [trees]), going);
        let (_, parent, action, next, depth, _) = while_loop(
            begin,
            |(.., going)| any_example(going.any()),
            |(level, parent, action, next, depth, going)| {
                let node = select(going, next, 0);
                let [best, child, tie] = rows.heads(node, Head::Best);
                let (best, child) = (best.astype(I32), child.astype(I32));
                let (best, child) = match noise.actions {
                    None => (best, child),
                    Some(_) => {
                        let tie = tie.gt(0.0) & going;
                        let draw = || {
                            let row = rows.read(node);
                            let visit = Visit { key: &|| noise.key.again(), live: Some(tie) };
                            let scores = self.selection.interior(&row.node().columns(), &visit);
                            let drawn = noise.always(rows.trees, scores, level);
                            let there = pick(row.children, drawn).astype(I32);
                            (select(tie, drawn, best), select(tie, there, child))
                        };
                        cond(any_example(tie.any()), draw, || (best, child))
                    }
                };
                (
                    level + 1,
                    select(going, node, parent),
                    select(going, best, action),
                    select(going, child, next),
                    select(going, depth + 1, depth),
                    going & goes_on(child, level + 1),
                )
            },
        );
        Leaf { parent, action, next, depth }
    }

    /// Carries values up to the roots' children, one level per round; returns the step to the
    /// roots.
    #[track_caller]
    pub(super) fn back_up_by_level(&self, rows: Rows, up: &Up, key: &Key) -> (Rows, Up) {
        // Rounds are counted for keys: 0 is the root's, 1 the new node's. No backup is longer,
        // unless a `loop_fn` runs more simulations than there are nodes: then a node may be its own
        // parent.
        let last = self.extents.max_depth as i32 + 1;
        let (_, rows, up) = while_loop(
            (2, rows, *up),
            |(round, _, up)| any_example(up.node.gt(0).any()) & round.le(last),
            |(round, rows, up)| {
                let mut row = rows.read(up.node);
                let live = Some(up.node.gt(0));
                let visit = Visit { key: &|| key.fold_in(round), live };
                // A tree that is at its root writes to row 0 and stays.
                let rows = rows.write(up.node, self.pass(&mut row, &up, &visit));
                let [value, _, _, _, parent, action, reward, discount] = match self.extents.batch {
                    // Reads the tree as it is now. If anything read its earlier state, XLA would
                    // copy the whole tree in each round.
                    1 => rows.heads(up.node, Head::Value),
                    _ => row.heads(Head::Value),
                };
                let above = Up {
                    node: parent.astype(I32),
                    action: action.astype(I32),
                    child: up.node.astype(F32),
                    child_value: value,
                    reward,
                    discount,
                    leaf_value: up.return_here(),
                };
                (round + 1, rows, tree_select(up.node.gt(0), &above, &up))
            },
        );
        (rows, up)
    }
}
