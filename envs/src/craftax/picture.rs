//! The picture of a state: the player's view and inventory.

use super::map::block;
use super::turn::same;
use super::view::{in_view, moving, seen_blocks, view_cells};
use super::{Player, State, VIEW, item};
use crate::render::{Canvas, Colour, Shape, scenery};
use podracer_dsl::prelude::*;

/// Rows below the view: two with items, each above a row with their numbers.
const BELOW: usize = 4;

const GRASS: Colour = Colour([122, 168, 92]);
const STONE: Colour = Colour([150, 150, 156]);
const IRON: Colour = Colour([214, 168, 136]);
const DIAMOND: Colour = Colour([225, 245, 250]);

/// The cells in the player's view, darker at night, and below them the player's health, food, drink and energy, and the numbers of the
/// items in the inventory.
#[track_caller]
pub(super) fn picture(state: &State) -> Tensor {
    let (rows, columns) = VIEW;
    let canvas = Canvas::board(rows + BELOW, columns, Colour::BOARD);
    let mut tiles: Vec<Canvas> =
        (0..block::COUNT as i32).map(|of| block_tile(&canvas, of)).collect();
    let first_item = tiles.len() as i32;
    tiles.extend(item_tiles(&canvas));
    let blank = tiles.len() as i32;
    tiles.push(canvas.tile(Colour::BOARD));
    // Needs, and then items.
    let Player { health, food, drink, energy, .. } = state.player;
    let needs = stack(&[health, food, drink, energy], 0);
    let numbers = concatenate(&[needs, state.inventory], 0);
    let count = numbers.len();
    let none = |n: usize, value: i32| full([n], value);
    let in_rows = |row: usize| row * columns..((row + 1) * columns).min(count);
    let line = |values: Tensor, row: usize, other: i32| {
        let these = values.slice(in_rows(row));
        concatenate(&[these, none(columns - these.len(), other)], 0)
    };
    let icons = arange(count) + first_item;
    let below =
        [line(icons, 0, blank), none(columns, blank), line(icons, 1, blank), none(columns, blank)];
    let which = concatenate(&[seen_blocks(state), stack(&below, 0)], 0);
    let written =
        [none(columns, -1), line(numbers, 0, -1), none(columns, -1), line(numbers, 1, -1)];
    let written = concatenate(&[full([rows, columns], -1), stack(&written, 0)], 0);
    let whole = |cells: Tensor, other: Tensor| {
        concatenate(&[cells, other.broadcast_to([BELOW, columns])], 0)
    };
    let mask = |cells: Tensor| whole(cells, constant(false));
    let [zombies, cows, skeletons, arrows] = moving(state).map(mask);
    let player = mask(same(view_cells(), in_view(state, state.player.place())));
    let eyes = Shape::disc(0.4, 0.3, 0.05).union(Shape::disc(0.6, 0.3, 0.05));
    let cow = Shape::rounded(0.5, 0.5, 0.76, 0.44, 0.14)
        .union(Shape::rectangle(0.28, 0.76, 0.1, 0.24))
        .union(Shape::rectangle(0.7, 0.76, 0.1, 0.24));
    let spots = Shape::disc(0.36, 0.48, 0.1).union(Shape::disc(0.62, 0.54, 0.12));
    let ribs = Shape::rectangle(0.5, 0.64, 0.3, 0.05).union(Shape::rectangle(0.5, 0.76, 0.3, 0.05));
    let arrow = Shape::line((0.25, 0.75), (0.75, 0.25), 0.07).union(Shape::polygon(&[
        (0.85, 0.15),
        (0.78, 0.42),
        (0.58, 0.22),
    ]));
    // The player looks in a direction: left, right, up or down.
    let facing = |way: i32| state.player.facing.eq(way).astype(F32) * 0.12;
    let (aside, down) = (facing(2) - facing(1), facing(4) - facing(3));
    let look = Shape::disc(0.5 + aside, 0.32 + down, 0.06);
    let walker = scenery::walker();
    let night = whole(full([rows, columns], 0.7).astype(F32) * (1.0 - state.light), scalar(0.0));
    let asleep = state.player.asleep;
    canvas
        .tiles(which, &tiles)
        .fill_cells(zombies, &walker, Colour([70, 120, 70]))
        .fill_cells(cows, &cow, Colour::WOOD.dark(0.3))
        .fill_cells(cows, &spots, Colour::BOARD)
        .fill_cells(skeletons, &walker, Colour::WHITE)
        .fill_cells(skeletons, &ribs, Colour::GREY)
        .fill_cells(zombies | skeletons, &eyes, Colour::BLACK)
        .fill_cells(arrows, &arrow, Colour::TEXT)
        .fill_cells(night, &Shape::rectangle(0.5, 0.5, 2.0, 2.0), Colour([14, 16, 44]))
        .fill_cells(player, &walker, Colour::BLUE)
        .fill_cells(player & !asleep, &look, Colour::WHITE)
        .numbers(written, 1, 0.5, Colour::TEXT)
        .finish()
}

/// The tile of a block.
#[track_caller]
fn block_tile(canvas: &Canvas, of: i32) -> Canvas {
    let plain = |colour: Colour| canvas.tile(colour);
    let discs = |places: &[(f64, f64)], radius: f64| {
        let discs = places.iter().map(|&(x, y)| Shape::disc(x, y, radius));
        discs.reduce(Shape::union).expect("some places")
    };
    let five = [(0.25, 0.3), (0.65, 0.22), (0.48, 0.55), (0.8, 0.66), (0.25, 0.78)];
    let grass = || {
        let blade = |(x, y): (f64, f64)| Shape::line((x, y), (x + 0.04, y - 0.14), 0.05);
        let places = [(0.2, 0.35), (0.7, 0.25), (0.5, 0.75)];
        let blades = places.map(blade).into_iter().reduce(Shape::union).expect("three blades");
        plain(GRASS).fill(&blades, GRASS.dark(0.2))
    };
    let stone = || plain(STONE).fill(&discs(&[(0.2, 0.7), (0.75, 0.35)], 0.13), STONE.dark(0.12));
    let waves = |tile: Canvas, colour: Colour| {
        let waves = Shape::arc((0.3, 0.42), 0.16, 0.5, 2.6, 0.06).union(Shape::arc(
            (0.68, 0.7),
            0.16,
            0.5,
            2.6,
            0.06,
        ));
        tile.fill(&waves, colour)
    };
    match of {
        block::GRASS => grass(),
        block::WATER => waves(plain(Colour::BLUE.light(0.15)), Colour::CYAN),
        block::STONE => stone(),
        block::TREE => grass()
            .fill(&Shape::rectangle(0.5, 0.8, 0.14, 0.36), Colour::WOOD.dark(0.2))
            .fill(&Shape::disc(0.5, 0.4, 0.34), Colour([40, 100, 60]))
            .fill(&Shape::disc(0.42, 0.32, 0.12), Colour([60, 125, 75])),
        block::PATH => plain(Colour([206, 190, 164])),
        block::COAL => stone().fill(&discs(&five, 0.1), Colour::BLACK),
        block::IRON => stone().fill(&discs(&five, 0.1), IRON),
        block::DIAMOND => stone().fill(&gem(), DIAMOND),
        block::TABLE => plain(Colour::WOOD)
            .fill(&Shape::rectangle(0.5, 0.5, 0.05, 1.0), Colour::WOOD.dark(0.35))
            .fill(&Shape::rectangle(0.5, 0.5, 1.0, 0.05), Colour::WOOD.dark(0.35)),
        block::FURNACE => plain(STONE.dark(0.35))
            .fill(&Shape::rounded(0.5, 0.62, 0.56, 0.44, 0.1), Colour::BLACK)
            .fill(&Shape::disc(0.5, 0.7, 0.13), Colour::ORANGE),
        block::SAND => {
            plain(Colour([230, 214, 164])).fill(&discs(&five, 0.03), Colour([200, 180, 130]))
        }
        block::LAVA => waves(plain(Colour::RED), Colour::YELLOW),
        block::PLANT => grass().fill(&sapling(), Colour([40, 100, 60])),
        block::RIPE_PLANT => grass()
            .fill(&sapling(), Colour([40, 100, 60]))
            .fill(&Shape::disc(0.5, 0.3, 0.16), Colour::RED),
        _ => plain(Colour::BLACK),
    }
}

/// The outline of a cut stone.
#[track_caller]
fn gem() -> Shape {
    Shape::polygon(&[(0.3, 0.25), (0.7, 0.25), (0.84, 0.46), (0.5, 0.84), (0.16, 0.46)])
}

/// A stalk with two leaves.
#[track_caller]
fn sapling() -> Shape {
    Shape::line((0.5, 0.85), (0.5, 0.35), 0.08)
        .union(Shape::line((0.5, 0.62), (0.26, 0.44), 0.12))
        .union(Shape::line((0.5, 0.56), (0.74, 0.38), 0.12))
}

/// The tiles of health, food, drink and energy, and of the items in the order of [`item`].
#[track_caller]
fn item_tiles(canvas: &Canvas) -> Vec<Canvas> {
    let blank = canvas.tile(Colour::BOARD);
    let heart = Shape::disc(0.35, 0.4, 0.19)
        .union(Shape::disc(0.65, 0.4, 0.19))
        .union(Shape::polygon(&[(0.19, 0.5), (0.81, 0.5), (0.5, 0.86)]))
        .union(Shape::rectangle(0.5, 0.46, 0.4, 0.2));
    let drop = Shape::disc(0.5, 0.6, 0.25).union(Shape::polygon(&[
        (0.29, 0.48),
        (0.71, 0.48),
        (0.5, 0.12),
    ]));
    let lightning = Shape::polygon(&[(0.6, 0.1), (0.28, 0.56), (0.56, 0.56)])
        .union(Shape::polygon(&[(0.44, 0.46), (0.72, 0.46), (0.4, 0.92)]));
    let needs = [
        blank.fill(&heart, Colour::RED),
        blank
            .fill(&Shape::line((0.3, 0.75), (0.45, 0.58), 0.1), Colour::LINE)
            .fill(&Shape::disc(0.58, 0.42, 0.25), Colour::WOOD),
        blank.fill(&drop, Colour::BLUE),
        blank.fill(&lightning, Colour::ORANGE),
    ];
    let lump = |colour: Colour| {
        blank
            .fill(&Shape::rounded(0.5, 0.52, 0.68, 0.6, 0.2), colour.dark(0.25))
            .fill(&Shape::rounded(0.48, 0.48, 0.54, 0.44, 0.16), colour)
    };
    let handle = |tile: Canvas| {
        tile.fill(&Shape::line((0.2, 0.84), (0.68, 0.32), 0.1), Colour::WOOD.dark(0.2))
    };
    let pickaxe =
        |colour: Colour| handle(blank).fill(&Shape::arc((0.3, 0.7), 0.5, -1.5, -0.1, 0.13), colour);
    let sword = |colour: Colour| {
        blank
            .fill(&Shape::line((0.34, 0.68), (0.82, 0.16), 0.13), colour)
            .fill(&Shape::line((0.2, 0.84), (0.34, 0.68), 0.1), Colour::TEXT)
            .fill(&Shape::line((0.24, 0.56), (0.46, 0.78), 0.08), Colour::TEXT)
    };
    let mut items = vec![blank; super::ITEMS];
    let (wood, stone) = (Colour::WOOD, Colour::GREY);
    items[item::WOOD] = lump(wood);
    items[item::STONE] = lump(stone);
    items[item::COAL] = lump(Colour::BLACK.light(0.15));
    items[item::IRON] = lump(IRON);
    items[item::DIAMOND] = blank.fill(&gem(), Colour::CYAN);
    items[item::SAPLING] = blank.fill(&sapling(), Colour([40, 100, 60]));
    for (i, colour) in [wood, stone, IRON].into_iter().enumerate() {
        items[item::WOOD_PICKAXE + i] = pickaxe(colour);
        items[item::WOOD_SWORD + i] = sword(colour);
    }
    needs.into_iter().chain(items).collect()
}
