//! Connect Four: stones fall to the bottom of a column, and four in a row win.

use super::{Moved, Stones, on, two_planes};
use crate::environment::{Environment, TimeStep};
use crate::render::{Canvas, Colour, Shape};
use crate::space::Space;
use podracer_dsl::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Connect Four of two players on a board of 6 rows by 7 columns; [`boards`](crate::boards)
/// describes turns and rewards. It has no settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ConnectFour {}

/// Rows of the board.
pub(super) const ROWS: usize = 6;
/// Columns of the board.
pub(super) const COLUMNS: usize = 7;
/// Bits of a column. The highest bit is never set, so that no row continues in the next column: bit
/// `STRIDE * column + height` is a cell, with height 0 at the bottom.
pub(super) const STRIDE: usize = ROWS + 1;
/// A full column.
const COLUMN: u64 = (1 << ROWS) - 1;

/// The bit of a cell; row 0 is at the top.
const fn bit(row: usize, column: usize) -> u32 {
    (STRIDE * column + ROWS - 1 - row) as u32
}

/// The bits of the cells.
const CELLS: [u32; ROWS * COLUMNS] = {
    let mut bits = [0; ROWS * COLUMNS];
    let mut cell = 0;
    while cell < bits.len() {
        bits[cell] = bit(cell / COLUMNS, cell % COLUMNS);
        cell += 1;
    }
    bits
};

/// The bits of the uppermost cells.
const TOP: [u32; COLUMNS] = {
    let mut bits = [0; COLUMNS];
    let mut column = 0;
    while column < COLUMNS {
        bits[column] = bit(0, column);
        column += 1;
    }
    bits
};

/// The word of bits in which every cell has a stone.
pub(super) const FULL: u64 = {
    let (mut full, mut column) = (0, 0);
    while column < COLUMNS {
        full |= COLUMN << (STRIDE * column);
        column += 1;
    }
    full
};

/// Distance in bits from a cell to the next cell in a line: upwards, to the right, and along the
/// two diagonals.
pub(super) const DIRECTIONS: [usize; 4] = [1, STRIDE, STRIDE - 1, STRIDE + 1];

/// True if four stones are in a row. u64 to bool, any shape.
#[track_caller]
fn four(stones: Tensor) -> Tensor {
    let fours = DIRECTIONS.map(|step| {
        let twos = stones & (stones >> step);
        twos & (twos >> (2 * step))
    });
    (fours[0] | fours[1] | fours[2] | fours[3]).ne(0u64)
}

impl Environment for ConnectFour {
    type State = Stones;
    type Observation = Tensor;

    fn initial_state(&self, _key: Key) -> Stones {
        Stones::first(scalar(0u64), scalar(0u64))
    }

    fn step(&self, state: Stones, action: Tensor, _key: Key) -> (Stones, TimeStep) {
        let (state, reward, terminated) = state.after(|| {
            let filled = state.filled();
            let first = action.astype(U64) * STRIDE;
            let bottom = scalar(1u64) << first;
            // Adding 1 to the filled cells of a column gives its lowest free cell.
            let free = (filled + bottom) & (scalar(COLUMN) << first);
            let legal = free.ne(0u64);
            // In a full column the stone replaces the lowest stone, as in pgx.
            let stone = select(legal, free, bottom);
            let (own, other) = (state.own | stone, state.other & !stone);
            let won = four(own);
            let full = (filled | stone).eq(FULL);
            Moved { legal, own, other, done: won | full, reward: won.astype(F32) }
        });
        (state, TimeStep::new(self.observe(state), reward, terminated))
    }

    /// The stones of the player to move, and of the other player; row 0 is at the top. `f32[6, 7, 2]`
    fn observe(&self, state: Stones) -> Tensor {
        state.observation(ROWS, COLUMNS, &CELLS)
    }

    fn observation_space(&self) -> Space {
        two_planes(ROWS, COLUMNS)
    }

    /// The column to put a stone in, from the left.
    fn action_space(&self) -> Space {
        Space::discrete(COLUMNS).named((1..=COLUMNS).map(|column| column.to_string()))
    }

    fn legal_actions(&self, state: &Stones) -> Option<Tensor> {
        Some(!on(state.filled(), &TOP) | state.over)
    }

    fn state_of(&self, observation: Tensor) -> Option<Stones> {
        Some(Stones::seen(observation, &CELLS, U64))
    }

    fn truncates(&self) -> bool {
        false
    }

    fn players(&self) -> usize {
        2
    }

    fn text(&self, state: &Stones) -> Option<Tensor> {
        Some(state.text(ROWS, COLUMNS, &CELLS))
    }

    /// A blue board with round holes: yellow discs for the player who began, and red discs for the other player.
    fn render(&self, state: &Stones) -> Option<Tensor> {
        let frame = Colour::BLUE.dark(0.15);
        let canvas = Canvas::board(ROWS, COLUMNS, frame);
        let board = canvas.tile(frame).fill(&Shape::disc(0.5, 0.5, 0.43), frame.dark(0.3));
        let hole = Shape::disc(0.5, 0.5, 0.39);
        let disc = |colour: Colour| {
            let rim = Shape::ring(0.5, 0.5, 0.27, 0.05);
            board.fill(&hole, colour).fill(&rim, colour.dark(0.18))
        };
        let tiles = [board.fill(&hole, Colour::BOARD), disc(Colour::YELLOW), disc(Colour::RED)];
        Some(canvas.tiles(state.players(ROWS, COLUMNS, &CELLS), &tiles).finish())
    }
}
