//! What the agent sees: seven by seven cells in front of it, and forms of observations.
//!
//! # Invariants
//! - Arrays of what is seen have the axis across first, from left to right, and then the one ahead, from the farthest to the agent's own row, as
//!   the package's images have. The agent is at `[3, 6]`.

use super::cell::{self, kind};
use super::{World, forward, tiles};
use crate::space::Space;
use podracer_dsl::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Cells of the view along each side.
const SIZE: usize = 7;
/// The agent's column in the view.
const CENTER: i32 = 3;
/// Kinds of things that an observation tells apart, and states of doors.
const KINDS: usize = 11;
const DOORS: usize = 3;
/// Numbers for each cell in the features.
const NUMBERS: usize = KINDS + cell::colour::COUNT + DOORS;
const DIRECTIONS: usize = 4;

/// Form of the observations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum View {
    /// One vector of zeros and ones, `f32[984]`: for each cell of the view its kind of 11, its colour of 6 and a door's state of 3, and then where
    /// the agent looks. Levels whose task names a colour have six more for that: `f32[990]`.
    #[default]
    Features,
    /// The image of the package, `f32[7, 7, 3]`: the numbers of each cell's kind, colour and state.
    Symbolic,
    /// The package's picture of the view, `u8[56, 56, 3]`.
    Pixels,
}

impl View {
    /// The observation of [codes that are seen](seen), where the agent looks, and the colour that its task names.
    #[track_caller]
    pub(super) fn of(self, codes: Tensor, direction: Tensor, colour: Option<Tensor>) -> Tensor {
        match self {
            View::Features => {
                let number = iota(I32, [SIZE, SIZE, NUMBERS], 2);
                let [kind, colours, door] = parts(codes).map(|part| part.expand_dims(2));
                let colours = colours + KINDS as i32;
                let door = door + (NUMBERS - DOORS) as i32;
                let shown = number.eq(kind) | number.eq(colours) | number.eq(door);
                let mut all = vec![shown.flatten(), arange(DIRECTIONS).eq(direction)];
                all.extend(colour.map(|colour| arange(cell::colour::COUNT).eq(colour)));
                concatenate(&all, 0).astype(F32)
            }
            View::Symbolic => stack(&parts(codes), 2).astype(F32),
            View::Pixels => {
                let (across, ahead) = places();
                let agent = across.eq(CENTER) & ahead.eq(SIZE as i32 - 1);
                // Pictures have rows first.
                let [lit, agent, codes] = [codes.gt(0), agent, codes].map(Tensor::transpose);
                tiles::Look { lit, agent, direction: scalar(3) }.draw(codes)
            }
        }
    }

    /// The space of the observations; `names_colour` if the task names one.
    pub(super) fn space(self, names_colour: bool) -> Space {
        match self {
            View::Features => {
                let colours = if names_colour { cell::colour::COUNT } else { 0 };
                let numbers = SIZE * SIZE * NUMBERS + DIRECTIONS + colours;
                Space::bounded([numbers], 0.0, 1.0)
                    .described("kinds, colours and states of the cells seen, and the direction")
            }
            View::Symbolic => Space::bounded([SIZE, SIZE, 3], 0.0, KINDS as f64 - 1.0)
                .described("kind, colour and state of the cells seen"),
            View::Pixels => Space::pixels([SIZE * tiles::PIXELS, SIZE * tiles::PIXELS, 3]),
        }
    }
}

/// Numbers of each cell's place across and ahead. `i32[7, 7]` each
#[track_caller]
fn places() -> (Tensor, Tensor) {
    (iota(I32, [SIZE, SIZE], 0), iota(I32, [SIZE, SIZE], 1))
}

/// Numbers of kind, colour and state of codes, `i32` of their shape each.
#[track_caller]
fn parts(codes: Tensor) -> [Tensor; 3] {
    let which = codes & 15;
    let shut = which.gt(kind::LAVA + 1);
    let door = select(shut, which - (kind::LAVA + 1), 0);
    [select(shut, kind::OPEN_DOOR, which), codes / 16, door]
}

/// Rows and columns in the grid of cells of the view, by their places. `i32` of the places' shape each
#[track_caller]
fn in_grid(world: &World, across: Tensor, ahead: Tensor) -> (Tensor, Tensor) {
    let (across, ahead) = (across - CENTER, (SIZE as i32 - 1) - ahead);
    let (down, right) = forward(world.direction);
    (world.row + down * ahead + right * across, world.column + right * ahead - down * across)
}

/// The codes of the cells in the view, 0 for those that are hidden, with what the agent carries in its own cell. `i32[7, 7]`
///
/// From the agent's row on, cells that are seen and clear show their neighbours to both sides, and those in the next row straight ahead and on
/// that side: first from left to right, then from right to left.
#[track_caller]
pub(super) fn seen((rows, columns): (usize, usize), world: &World, sees_through: bool) -> Tensor {
    const ALL: u32 = (1 << SIZE) - 1;
    let across = arange(SIZE);
    // A row of the view is a word with a bit for each place across.
    let bits = constant(1u32) << across.astype(U32);
    // Each row is a turn of a loop: in one kernel XLA would read the grid anew for each number that is shown.
    let (_, codes) = scan_reverse(constant(1u32 << CENTER), arange(SIZE), |reached, ahead| {
        let (row, column) = in_grid(world, across, ahead);
        let inside = row.ge(0) & row.lt(rows) & column.ge(0) & column.lt(columns);
        let place = select(inside, row * columns as i32 + column, 0);
        let codes = select(inside, world.cells.take(place, 0).astype(I32), cell::WALL);
        if sees_through {
            return (reached, codes);
        }
        let which = codes & 15;
        let blocks = [kind::WALL, kind::CLOSED_DOOR, kind::LOCKED_DOOR];
        let blocks = blocks.iter().fold(constant(false), |any, &kind| any | which.eq(kind));
        let clear = select(blocks, 0u32, bits).sum();
        let here = spread(reached, clear, |word, by| word << by) & ALL;
        // The last cell to the right shows nothing on its way, nor does the last to the left on the way back.
        let rightwards = here & clear & (ALL >> 1);
        let here = spread(here, clear, |word, by| word >> by);
        let leftwards = here & clear & (ALL - 1);
        let next = rightwards | (rightwards << 1) | leftwards | (leftwards >> 1);
        (next & ALL, select((here & bits).ne(0), codes, 0))
    });
    let (across, ahead) = places();
    let own = select(world.carried.gt(0), world.carried, cell::EMPTY);
    select(across.eq(CENTER) & ahead.eq(SIZE as i32 - 1), own, codes.transpose())
}

/// A word of places that are seen, and of those to one side that clear places show: in steps of 1, 2 and 4.
#[track_caller]
fn spread(from: Tensor, clear: Tensor, shift: fn(Tensor, u32) -> Tensor) -> Tensor {
    let (mut seen, mut way) = (from, shift(clear, 1));
    for by in [1, 2, 4] {
        seen = seen | (way & shift(seen, by));
        way = way & shift(way, by);
    }
    seen
}

/// The picture of the whole grid. `u8[8 * rows, 8 * columns, 3]`
#[track_caller]
pub(super) fn picture((rows, columns): (usize, usize), world: &World, codes: Tensor) -> Tensor {
    let grid = [rows, columns];
    let (across, ahead) = places();
    let (row, column) = in_grid(world, across, ahead);
    // The agent's own cell is always seen.
    let shown = codes.gt(0);
    let (grid_row, grid_column) = (iota(I32, grid, 0), iota(I32, grid, 1));
    let mut lit = constant(false).broadcast_to(grid);
    for across in 0..SIZE {
        for ahead in 0..SIZE {
            let at = |all: Tensor| all.index(across).index(ahead);
            lit = lit | (grid_row.eq(at(row)) & grid_column.eq(at(column)) & at(shown));
        }
    }
    let agent = grid_row.eq(world.row) & grid_column.eq(world.column);
    let codes = world.cells.astype(I32).reshape(grid);
    tiles::Look { lit, agent, direction: world.direction }.draw(codes)
}
