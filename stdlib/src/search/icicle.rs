//! A tree as a picture drawn by the program itself, for [`View`](crate::learn::View).

use super::tree::SearchTree;
use podracer_dsl::prelude::*;
use podracer_envs::render::Colour;

/// Share of brightness that every second action's node keeps, so that neighbours are
/// distinguishable.
const SHADE: f64 = 0.75;

impl<E: Tree> SearchTree<E> {
    /// The trees as pictures, u8 `[B, levels, N, 3]`. A row is a level of the tree with the root at
    /// the top, and the width of a node is its number of visits. Below a node are its children, in
    /// the order of their actions. Colours range from blue for the tree's least value to yellow for
    /// its greatest.
    #[track_caller]
    pub fn picture(&self, levels: usize) -> Tensor {
        let &SearchTree { parents, action_from_parent, node_visits, node_values, .. } = self;
        vmap(
            (parents, action_from_parent, node_visits.astype(F32), node_values),
            |(parents, actions, visits, values)| draw(levels, parents, actions, visits, values),
        )
    }
}

/// The picture of one tree, u8 `[levels, N, 3]`; arguments are `[N]`.
#[track_caller]
fn draw(levels: usize, parents: Tensor, actions: Tensor, visits: Tensor, values: Tensor) -> Tensor {
    let nodes = parents.len();
    let added = visits.gt(0.0);
    let column = |x: Tensor| x.expand_dims(1);
    let has_parent = parents.ge(0);
    // Visits of the siblings to the left.
    let siblings = column(parents).eq(parents) & actions.lt(column(actions));
    let mut left = select(has_parent, select(siblings, visits, 0.0).sum_axis(1), 0.0);
    let mut depth = has_parent.astype(I32);
    // Each round adds the offsets of the ancestors so far, and doubles the distance.
    let mut up = select(has_parent, parents, arange(nodes));
    for _ in 0..nodes.next_power_of_two().ilog2() {
        (left, depth) = (left + left.take(up, 0), depth + depth.take(up, 0));
        up = up.take(up, 0);
    }
    // [levels, N, N]: true if a pixel belongs to a node. The width of a pixel in visits is such
    // that the root's visits fit.
    let [level, place] = [0, 1].map(|axis| iota(F32, [levels, nodes], axis).expand_dims(2));
    let place = (place + 0.5) * (visits.index(0) / nodes as f64);
    let of_node = added & level.eq(depth.astype(F32)) & place.ge(left) & place.lt(left + visits);
    let least = select(added, values, f64::INFINITY).min();
    let greatest = select(added, values, f64::NEG_INFINITY).max();
    let high = (values - least) / maximum(greatest - least, 1e-6);
    let [low, top, black] = [Colour::BLUE, Colour::YELLOW, Colour::BLACK]
        .map(|Colour(rgb)| constant(rgb.map(f32::from)).expand_dims(0));
    let shade = select(actions.rem(2).eq(0), 1.0, SHADE);
    // [N, 3]
    let colours = (low + (top - low) * column(high)) * column(shade);
    let painted = select(of_node.any_axis(2).expand_dims(2), 0.0, black);
    let shares = of_node.astype(F32).reshape([levels * nodes, nodes]);
    (painted + shares.matmul(colours).reshape([levels, nodes, 3])).astype(U8)
}
