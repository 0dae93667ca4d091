//! The player's view: blocks and creatures.

use super::map::block;
use super::turn::same;
use super::{COWS, Place, SKELETONS, State, VIEW, ZOMBIES};
use podracer_dsl::prelude::*;
use std::ops::Range;

/// Rows and columns of positions within the view, `i32` of any shape.
#[track_caller]
pub(super) fn in_view(state: &State, (rows, columns): Place) -> Place {
    let (top, left) =
        (state.player.row - VIEW.0 as i32 / 2, state.player.column - VIEW.1 as i32 / 2);
    (rows - top, columns - left)
}

/// The index of each row and column in the view. `i32[7, 9]` each
#[track_caller]
pub(super) fn view_cells() -> Place {
    let shape = [VIEW.0, VIEW.1];
    (iota(I32, shape, 0), iota(I32, shape, 1))
}

/// Blocks in the view, with [`block::RIPE_PLANT`] for ripe plants. `i32[7, 9]`
#[track_caller]
pub(super) fn seen_blocks(state: &State) -> Tensor {
    let (rows, columns) = in_view(state, state.plants.places());
    let rows = select(state.plants.ripe(), rows, -1).unstack();
    let plants = rows.into_iter().zip(columns.unstack());
    plants.fold(state.seen.astype(I32), |seen, plant| {
        select(same(view_cells(), plant), block::RIPE_PLANT, seen)
    })
}

/// Cells of the view with zombies, cows, skeletons and arrows. `bool[7, 9]` each
///
/// As in the package, an absent creature hides an earlier creature in its cell. A creature up to
/// one view's extent above or to the left of the view also does: it hides an earlier creature in
/// the cell that its position wraps around to.
#[track_caller]
pub(super) fn moving(state: &State) -> [Tensor; 4] {
    let planes = |(rows, columns): Place, present: Tensor| {
        let (rows, columns) = in_view(state, (rows, columns));
        let present = present & rows.ge(0) & columns.ge(0);
        let around = |i: Tensor, extent: usize| select(i.lt(0), i + extent as i32, i).unstack();
        let places = around(rows, VIEW.0).into_iter().zip(around(columns, VIEW.1));
        let none = full([VIEW.0, VIEW.1], false);
        places
            .zip(present.unstack())
            .fold(none, |plane, (place, present)| select(same(view_cells(), place), present, plane))
    };
    let creatures = |kind: Range<usize>| {
        let part = |all: Tensor| all.slice(kind.clone());
        let (rows, columns) = state.creatures.places();
        planes((part(rows), part(columns)), part(state.creatures.alive))
    };
    let arrows = (state.arrows.rows, state.arrows.columns);
    let arrows = planes(arrows, state.arrows.flying);
    [creatures(ZOMBIES), creatures(COWS), creatures(SKELETONS), arrows]
}
