//! The player's view: blocks and creatures, and a picture of them.

use super::map::block;
use super::turn::same;
use super::{COWS, Place, Player, SKELETONS, State, VIEW, ZOMBIES};
use crate::render::Colour;
use podracer_dsl::prelude::*;
use std::ops::Range;

/// Rows and columns of positions within the view, `i32` of any shape.
#[track_caller]
fn in_view(state: &State, (rows, columns): Place) -> Place {
    let (top, left) =
        (state.player.row - VIEW.0 as i32 / 2, state.player.column - VIEW.1 as i32 / 2);
    (rows - top, columns - left)
}

/// The index of each row and column in the view. `i32[7, 9]` each
#[track_caller]
fn view_cells() -> Place {
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

/// The cells in the player's view, darker at night, and below them bars of health, food, drink and
/// energy. u8 `[11, 9, 3]`
#[track_caller]
pub(super) fn picture(state: &State) -> Tensor {
    let brown = Colour([140, 100, 60]);
    let colours = [
        Colour::BLACK,
        Colour::BLACK,
        Colour([90, 160, 70]),
        Colour::BLUE,
        Colour::GREY,
        Colour([30, 90, 40]),
        brown,
        Colour([180, 170, 150]),
        Colour([50, 50, 50]),
        Colour([220, 170, 130]),
        Colour::CYAN,
        Colour([170, 110, 50]),
        Colour([90, 90, 100]),
        Colour([230, 210, 150]),
        Colour::ORANGE,
        Colour([150, 220, 90]),
        Colour::MAGENTA,
    ];
    let table: Vec<u8> = colours.iter().flat_map(|colour| colour.0).collect();
    let table = constant(table).reshape([block::COUNT, 3]);
    let cells = table.take(seen_blocks(state), 0);
    let [zombies, cows, skeletons, arrows] = moving(state);
    let player = same(view_cells(), in_view(state, state.player.place()));
    let shown = [
        (zombies, Colour::GREEN),
        (cows, brown),
        (skeletons, Colour([210, 210, 210])),
        (arrows, Colour::YELLOW),
        (player, Colour::RED),
    ];
    let shape = [VIEW.0, VIEW.1, 3];
    let paint = |cells: Tensor, (mask, Colour(colour)): (Tensor, Colour)| {
        let mask = mask.expand_dims(2).broadcast_to(shape);
        select(mask, constant(colour).broadcast_to(shape), cells)
    };
    let cells = shown.into_iter().fold(cells, paint);
    let lit = state.light * 0.7 + 0.3;
    let cells = (cells.astype(F32) * lit).astype(U8);
    let Player { health, food, drink, energy, .. } = state.player;
    let bars = [
        (health, Colour::RED),
        (food, Colour::ORANGE),
        (drink, Colour::SKY),
        (energy, Colour::YELLOW),
    ];
    let bar = |(points, Colour(colour)): (Tensor, Colour)| {
        let full = arange(VIEW.1).lt(points).expand_dims(1).broadcast_to([VIEW.1, 3]);
        select(full, constant(colour).broadcast_to([VIEW.1, 3]), 0u8)
    };
    concatenate(&[cells, stack(&bars.map(bar), 0)], 0)
}
