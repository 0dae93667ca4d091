//! A sum tree: draws leaves with probabilities in proportion to their values, and updates values,
//! both in `O(log n)`.

use podracer_dsl::prelude::*;

/// Children per node. They are read together: on a CPU, drawing and updating were fastest with 8 of
/// 2 to 64 children.
const ARITY: usize = 8;

/// Non-negative values of leaves, with the sums over the leaves below each node (Schaul et al.
/// 2016, "Prioritized experience replay", appendix B.2.1).
///
/// # Invariants
/// - A node is the sum of its children's current values: sums are recomputed and never adjusted,
///   so that no rounding accumulates.
/// - Leaves with value 0 are not drawn, as long as another leaf has a greater value.
#[derive(Tree, Clone, Copy)]
pub struct SumTree {
    /// The leaves, the sums of eight of them, and so on, up to a level with eight nodes. Each level
    /// is padded with zeros to a multiple of eight. f32 `[..]`
    pub nodes: Tensor,
}

/// A level of a tree: the position of its first node, and the number of its nodes.
#[derive(Clone, Copy)]
struct Level {
    first: usize,
    nodes: usize,
}

/// The levels of a tree with `leaves` leaves, the leaves first.
fn levels(leaves: usize) -> Vec<Level> {
    let mut level = Level { first: 0, nodes: leaves.max(1).next_multiple_of(ARITY) };
    let mut levels = vec![level];
    while level.nodes > ARITY {
        let nodes = (level.nodes / ARITY).next_multiple_of(ARITY);
        level = Level { first: level.first + level.nodes, nodes };
        levels.push(level);
    }
    levels
}

impl SumTree {
    /// A tree with at least `leaves` leaves, all 0.
    pub fn zeros(leaves: usize) -> SumTree {
        SumTree { nodes: zeros(F32, [SumTree::count(leaves)]) }
    }

    /// All leaves, with the padding. f32 `[n]`
    #[track_caller]
    pub fn values(self) -> Tensor {
        self.nodes.slice_axis(0, 0..self.levels()[0].nodes)
    }

    /// The sum of all leaves. f32 `[]`
    #[track_caller]
    pub fn total(self) -> Tensor {
        self.nodes.slice_axis(0, self.nodes.len() - ARITY..).sum()
    }

    /// The values of leaves. `indices` are i32 `[B]`; f32 `[B]`
    #[track_caller]
    pub fn get(self, indices: Tensor) -> Tensor {
        self.nodes.take(indices, 0)
    }

    /// The leaves where the running sum of values exceeds `sums`, f32 `[B]` from 0 to
    /// [`SumTree::total`]. i32 `[B]`
    #[track_caller]
    pub fn find(self, sums: Tensor) -> Tensor {
        let firsts: Vec<i32> = self.levels().iter().rev().map(|level| level.first as i32).collect();
        let root = (zeros(I32, sums.shape()), sums);
        // A loop. If the levels were unrolled, XLA would recompute the results of the earlier
        // levels for every child.
        let ((leaf, _), ()) = scan(root, constant(&firsts[..]), |(node, rest), first| {
            let children = self.blocks(first, node);
            let child = |i: usize| children.index_axis(1, i);
            let (mut sum, mut before, mut found) = (scalar(0.0), scalar(0.0), scalar(0));
            for i in 0..ARITY {
                // Only a child with a positive value is selected: rounding may leave a rest beyond
                // the last of them.
                let here = child(i).gt(0.0) & sum.le(rest);
                before = select(here, sum, before);
                found = select(here, i as i32, found);
                sum += child(i);
            }
            ((node * ARITY as i32 + found, rest - before), ())
        });
        leaf
    }

    /// Sets leaves. `indices` are i32 `[B]`, `values` f32 `[B]`. An index outside the tree is
    /// ignored. If several indices are equal, one of the values is set.
    #[must_use]
    #[track_caller]
    pub fn set(self, indices: Tensor, values: Tensor) -> SumTree {
        let levels = self.levels();
        let inside = indices.ge(0) & indices.lt(levels[0].nodes as i32);
        // Divided by the number of leaves below a node of any level, this index is still outside
        // the tree.
        let indices = select(inside, indices, i32::MAX);
        let leaves = SumTree { nodes: self.nodes.set(indices, values) };
        let firsts: Vec<i32> = levels.iter().map(|level| level.first as i32).collect();
        if levels.len() == 1 {
            return leaves;
        }
        let firsts = (constant(&firsts[..levels.len() - 1]), constant(&firsts[1..]));
        let ((tree, _), ()) = scan((leaves, indices), firsts, |(tree, indices), (below, first)| {
            let parents = indices / ARITY as i32;
            let sums = tree.blocks(below, parents).sum_axis(1);
            (((SumTree { nodes: tree.nodes.set(first + parents, sums) }), parents), ())
        });
        tree
    }

    /// Updates ranges of leaves: for each of `starts`, i32 `[]`, the `count` leaves from that start
    /// on are replaced by the result of `change`. `change` gets the number of the range and its
    /// values, f32 `[count]`.
    #[must_use]
    #[track_caller]
    pub fn change_ranges(
        self,
        starts: &[Tensor],
        count: usize,
        mut change: impl FnMut(usize, Tensor) -> Tensor,
    ) -> SumTree {
        let levels = self.levels();
        let mut nodes = self.nodes;
        for (range, &start) in starts.iter().enumerate() {
            let changed = change(range, dynamic_slice(nodes, &[start], &[count]));
            nodes = dynamic_update_slice(nodes, changed, &[start]);
        }
        let (mut starts, mut count) = (starts.to_vec(), count);
        for pair in levels.windows(2) {
            let parents = pair[0].nodes / ARITY;
            // A range lies below at most this number of parents, wherever it starts.
            count = (count.div_ceil(ARITY) + 1).min(parents);
            for start in &mut starts {
                *start = (*start / ARITY as i32).minimum((parents - count) as i32);
                let children = *start * ARITY as i32 + pair[0].first as i32;
                let children = dynamic_slice(nodes, &[children], &[count * ARITY]);
                let sums = children.reshape([count, ARITY]).sum_axis(1);
                nodes = dynamic_update_slice(nodes, sums, &[*start + pair[1].first as i32]);
            }
        }
        SumTree { nodes }
    }

    /// The children, `[B, 8]`, of the nodes with these numbers, i32 `[B]`. The children's level
    /// begins at `first`.
    #[track_caller]
    fn blocks(self, first: Tensor, parents: Tensor) -> Tensor {
        let blocks = self.nodes.reshape([self.nodes.len() / ARITY, ARITY]);
        blocks.take(first / ARITY as i32 + parents, 0)
    }

    fn levels(self) -> Vec<Level> {
        // More leaves never need fewer nodes.
        let (mut fewest, mut most) = (0, self.nodes.len());
        while fewest < most {
            let middle = fewest.midpoint(most + 1);
            match SumTree::count(middle) > self.nodes.len() {
                true => most = middle - 1,
                false => fewest = middle,
            }
        }
        levels(fewest)
    }

    /// The number of nodes of a tree with `leaves` leaves.
    fn count(leaves: usize) -> usize {
        levels(leaves).iter().map(|level| level.nodes).sum()
    }
}
