//! The agent's view: seven by seven cells in front of it, and forms of observations.
//!
//! # Invariants
//! - Arrays of the view have the lateral axis first, from left to right, and then the axis ahead,
//!   from the farthest row to the agent's own, as in the package's images. The agent is at `[3,
//!   6]`.

use super::cell::{self, kind};
use super::{World, forward, tiles};
use crate::cells::only;
use crate::space::Space;
use podracer_dsl::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Cells of the view along each side.
const SIZE: usize = 7;
/// The agent's column in the view.
const CENTER: i32 = 3;
/// Number of kinds of things that an observation distinguishes, and of states of doors.
const KINDS: usize = 11;
const DOORS: usize = 3;
/// Number of values per cell in the features.
const NUMBERS: usize = KINDS + cell::colour::COUNT + DOORS;
const DIRECTIONS: usize = 4;

/// Form of the observations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum View {
    /// One vector with elements 0 or 1, `f32[984]`: for each cell of the view its kind of 11, its
    /// colour of 6 and a door's state of 3, and then the agent's direction. Levels with a colour in
    /// their task have six more elements for it: `f32[990]`.
    #[default]
    Features,
    /// The image of the package, `f32[7, 7, 3]`: the numbers of each cell's kind, colour and state.
    Symbolic,
    /// The package's picture of the view, `u8[56, 56, 3]`.
    Pixels,
}

impl View {
    /// The observation for the [visible codes](seen), the agent's direction, and the colour in its
    /// task.
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

    /// The space of the observations; `names_colour` is true if the task names a colour.
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

/// Indices of each cell across and ahead. `i32[7, 7]` each
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

/// Rows and columns in the grid for positions in the view. `i32` of the positions' shape each
#[track_caller]
fn in_grid(world: &World, across: Tensor, ahead: Tensor) -> (Tensor, Tensor) {
    let (across, ahead) = (across - CENTER, (SIZE as i32 - 1) - ahead);
    let (down, right) = forward(world.direction);
    (world.row + down * ahead + right * across, world.column + right * ahead - down * across)
}

/// The codes of the cells in the view, 0 for hidden cells; the agent's own cell has the thing that
/// it carries. `i32[7, 7]`
///
/// Starting with the agent's row, visible and clear cells reveal their neighbours on both sides,
/// and the cells in the next row straight ahead and on that side: first from left to right, then
/// from right to left.
#[track_caller]
pub(super) fn seen((rows, columns): (usize, usize), world: &World, sees_through: bool) -> Tensor {
    const ALL: u32 = (1 << SIZE) - 1;
    let across = arange(SIZE);
    // A row of the view is a word with one bit per lateral position.
    let bits = constant(1u32) << across.astype(U32);
    // Each row is an iteration of a loop: in a single kernel XLA would read the grid again for each
    // number that is shown.
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
        // The last cell to the right reveals nothing on the way to it, and the last cell to the
        // left nothing on the way back.
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

/// A word of visible positions, extended to one side through clear positions: in steps of 1, 2 and
/// 4.
#[track_caller]
fn spread(from: Tensor, clear: Tensor, shift: fn(Tensor, u32) -> Tensor) -> Tensor {
    let (mut seen, mut way) = (from, shift(clear, 1));
    for by in [1, 2, 4] {
        seen = seen | (way & shift(seen, by));
        way = way & shift(way, by);
    }
    seen
}

/// True for each cell of the grid that the agent sees. `bool[rows, columns]`
#[track_caller]
pub(super) fn lit((rows, columns): (usize, usize), world: &World, codes: Tensor) -> Tensor {
    let grid = [rows, columns];
    let (across, ahead) = places();
    let (row, column) = in_grid(world, across, ahead);
    // The agent's own cell is always visible.
    let shown = codes.gt(0);
    let (grid_row, grid_column) = (iota(I32, grid, 0), iota(I32, grid, 1));
    let mut lit = constant(false).broadcast_to(grid);
    for across in 0..SIZE {
        for ahead in 0..SIZE {
            let at = |all: Tensor| all.index(across).index(ahead);
            lit = lit | (grid_row.eq(at(row)) & grid_column.eq(at(column)) & at(shown));
        }
    }
    lit
}

/// The package's picture of the whole grid. `u8[8 * rows, 8 * columns, 3]`
#[track_caller]
pub(super) fn package_picture(extents: (usize, usize), world: &World, codes: Tensor) -> Tensor {
    let lit = lit(extents, world, codes);
    let grid = [extents.0, extents.1];
    let agent = only(grid, (world.row, world.column));
    let codes = world.cells.astype(I32).reshape(grid);
    tiles::Look { lit, agent, direction: world.direction }.draw(codes)
}
