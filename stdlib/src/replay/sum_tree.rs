//! A sum tree: draws leaves with probabilities in proportion to their values, and changes values, both in `O(log n)`.

use podracer_dsl::prelude::*;

/// Children of a node. Eight are read at once: on a CPU, drawing and updating with 8 was the fastest of 2 to 64.
const ARITY: usize = 8;

/// Values of `n` leaves that are not negative, with the sums over the leaves below each node (Schaul et al. 2016,
/// "Prioritized experience replay", appendix B.2.1).
///
/// # Invariants
/// - A node is the sum of its children as they are: sums are computed anew and never adjusted, so that no rounding adds up.
/// - Leaves of value 0 are not drawn, as long as one other leaf has a greater value.
#[derive(Tree, Clone)]
pub struct SumTree {
    /// The leaves, the sums of eight of them, and so on, up to a level of eight nodes. Each is padded with zeros to a
    /// multiple of eight. f32 `[..]`
    pub levels: Vec<Tensor>,
}

impl SumTree {
    /// A tree whose `leaves` are all 0.
    pub fn zeros(leaves: usize) -> SumTree {
        let mut sizes = vec![leaves.max(1).next_multiple_of(ARITY)];
        while let Some(&below) = sizes.last().filter(|&&below| below > ARITY) {
            sizes.push((below / ARITY).next_multiple_of(ARITY));
        }
        SumTree { levels: sizes.into_iter().map(|size| zeros(F32, [size])).collect() }
    }

    /// The sum of all leaves. f32 `[]`
    #[track_caller]
    pub fn total(&self) -> Tensor {
        self.top().sum()
    }

    /// The values of leaves. `indices` are i32 `[B]`; f32 `[B]`
    #[track_caller]
    pub fn get(&self, indices: Tensor) -> Tensor {
        self.levels[0].take(indices, 0)
    }

    /// The leaves at which the running sum of values passes `sums`, f32 `[B]` from 0 to [`SumTree::total`]. i32 `[B]`
    #[track_caller]
    pub fn find(&self, sums: Tensor) -> Tensor {
        let start = (zeros(I32, sums.shape()), sums);
        self.levels.iter().rev().fold(start, |(node, rest), level| child(*level, node, rest)).0
    }

    /// Changes leaves. `indices` are i32 `[B]`, `values` f32 `[B]`. An index outside of the tree is left out. Of several
    /// equal indices one wins.
    #[must_use]
    #[track_caller]
    pub fn set(self, indices: Tensor, values: Tensor) -> SumTree {
        let leaves = self.levels[0].len() as i32;
        let inside = indices.ge(0) & indices.lt(leaves);
        // Far outside: no padding of a level is at this index divided by the leaves below a node.
        let mut indices = select(inside, indices, i32::MAX);
        let mut levels = self.levels;
        levels[0] = levels[0].set(indices, values);
        for above in 1..levels.len() {
            indices = indices / ARITY as i32;
            let sums = blocks(levels[above - 1]).take(indices, 0).sum_axis(1);
            levels[above] = levels[above].set(indices, sums);
        }
        SumTree { levels }
    }

    /// Changes `values.len()` leaves side by side, from `start` on, an i32 `[]`.
    #[must_use]
    #[track_caller]
    pub fn set_range(self, start: Tensor, values: Tensor) -> SumTree {
        let mut levels = self.levels;
        let (mut start, mut count) = (start, values.len());
        levels[0] = dynamic_update_slice(levels[0], values, &[start]);
        for above in 1..levels.len() {
            let nodes = levels[above - 1].len() / ARITY;
            // So many nodes have all leaves of the range below them, wherever it starts.
            count = (count.div_ceil(ARITY) + 1).min(nodes);
            start = (start / ARITY as i32).minimum((nodes - count) as i32);
            let below = [start * ARITY as i32];
            let children = dynamic_slice(levels[above - 1], &below, &[count * ARITY]);
            let sums = blocks(children).sum_axis(1);
            levels[above] = dynamic_update_slice(levels[above], sums, &[start]);
        }
        SumTree { levels }
    }

    fn top(&self) -> Tensor {
        *self.levels.last().expect("a tree has a level")
    }
}

/// The children of each node. `[n / 8, 8]`
#[track_caller]
fn blocks(level: Tensor) -> Tensor {
    level.reshape([level.len() / ARITY, ARITY])
}

/// The child of each node in which the running sum passes `rest`, and what is left of the sum there.
#[track_caller]
fn child(level: Tensor, node: Tensor, rest: Tensor) -> (Tensor, Tensor) {
    let children = blocks(level).take(node, 0);
    let child = |i: usize| children.index_axis(-1, i);
    let (mut sum, mut before, mut found) = (scalar(0.0), scalar(0.0), scalar(0));
    for i in 0..ARITY {
        // Only a child with a value can be the one: rounding may leave a rest beyond the last of them.
        let here = child(i).gt(0.0) & sum.le(rest);
        before = select(here, sum, before);
        found = select(here, i as i32, found);
        sum = sum + child(i);
    }
    (node * ARITY as i32 + found, rest - before)
}
