//! 2048: slide the tiles; equal tiles merge, and new tiles appear.
//!
//! A step is a deterministic slide, followed by a random new tile. [`Game2048::slide`],
//! [`Game2048::chance_probabilities`] and [`Game2048::settle`] are the two halves as functions, for
//! a search with chance nodes.

use super::computed_if;
use crate::environment::{Environment, TimeStep};
use crate::render::{Align, Canvas, Colour, Shape};
use crate::space::Space;
use podracer_dsl::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// 2048 on a board of 4 by 4 tiles. A merge pays the value of the new tile. The episode is
/// terminated when no slide can move a tile, and by an action that moves no tile, which pays -1. It
/// has no settings.
///
/// The rules and the observations follow pgx 2.6.0. A new tile is drawn with other random numbers,
/// and the same probabilities.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Game2048 {}

/// Rows and columns of the board.
const SIZE: usize = 4;
/// Number of cells.
const CELLS: usize = SIZE * SIZE;
/// Channels of the observation: no tile, and the tiles 2 to 2^30.
const CHANNELS: usize = 31;
/// Number of chance outcomes: a 2 in each cell, and a 4 in each cell.
pub const OUTCOMES: usize = 2 * CELLS;
/// Probability that a new tile is a 4.
const FOUR: f64 = 0.1;

/// Bits of a tile in the word of its row.
const BITS: usize = 8;
/// The highest bit of each tile of a row.
const HIGHEST: u32 = 0x8080_8080;
/// The highest bit of each tile of a row that has a neighbour on the right.
const HIGHEST_BUT_LAST: u32 = 0x0080_8080;

/// The tiles. A row is a word. Byte `c` of it, counted from the lowest, is the tile in column `c`:
/// 0 for no tile, `n` for the tile `2^n`.
#[derive(Tree, Clone, Copy)]
pub struct Board {
    /// The rows from top to bottom. `u32[]` each
    pub rows: (Tensor, Tensor, Tensor, Tensor),
}

/// The tiles, and whether the game is over.
#[derive(Tree, Clone, Copy)]
pub struct State {
    /// The tiles on the board.
    pub board: Board,
    /// True if the game is over. `bool[]`
    pub over: Tensor,
}

/// Result of a slide, before the new tile comes.
#[derive(Tree, Clone, Copy)]
pub struct Slide {
    /// The board after the slide: the afterstate.
    pub afterstate: Board,
    /// Sum of the tiles made by merging. `f32[]`
    pub reward: Tensor,
    /// True if a tile moved; otherwise the action is not legal. `bool[]`
    pub moved: Tensor,
}

type Rows = [Tensor; SIZE];

/// The highest bit of each byte that is not 0; bytes are below 128. Other bits are cleared.
#[track_caller]
fn taken(row: Tensor) -> Tensor {
    (row + !HIGHEST) & HIGHEST
}

/// The tile at a column, `u32[]`.
#[track_caller]
fn tile(row: Tensor, column: usize) -> Tensor {
    (row >> (BITS * column)) & 0xff
}

/// The row without the byte at a column: the bytes behind it move up, and a 0 is appended.
#[track_caller]
fn without(row: Tensor, column: usize) -> Tensor {
    let before = (1u32 << (BITS * column)) - 1;
    (row & before) | ((row >> BITS) & !before)
}

/// The row slid to the left, and the sum of the tiles made by merging, `u32[]`.
#[track_caller]
fn slid(row: Tensor) -> (Tensor, Tensor) {
    let gaps_closed = (0..SIZE - 1)
        .rev()
        .fold(row, |row, column| select(tile(row, column).eq(0), without(row, column), row));
    let (mut row, mut sum) = (gaps_closed, scalar(0u32));
    for column in 0..SIZE - 1 {
        let this = tile(row, column);
        let merges = this.ne(0) & this.eq(tile(row, column + 1));
        let merged = without(row, column + 1) + (1u32 << (BITS * column));
        row = select(merges, merged, row);
        sum += select(merges, scalar(2u32) << this, 0u32);
    }
    (row, sum)
}

/// The row from right to left.
#[track_caller]
fn mirrored(row: Tensor) -> Tensor {
    let halves = row.rotate_left(16);
    ((halves >> 8) & 0x00ff_00ffu32) | ((halves & 0x00ff_00ffu32) << 8)
}

/// Rows and columns exchanged.
#[track_caller]
fn transposed([a, b, c, d]: Rows) -> Rows {
    // First the 2 by 2 blocks, then the tiles of each.
    let block = |upper: Tensor, lower: Tensor| {
        ((upper & 0xffffu32) | (lower << 16), (upper >> 16) | (lower & 0xffff_0000u32))
    };
    let ((a, c), (b, d)) = (block(a, c), block(b, d));
    let pair = |upper: Tensor, lower: Tensor| {
        let (odd, even) = (0xff00_ff00u32, 0x00ff_00ffu32);
        ((upper & even) | ((lower & even) << 8), ((upper & odd) >> 8) | (lower & odd))
    };
    let ((a, b), (c, d)) = (pair(a, b), pair(c, d));
    [a, b, c, d]
}

/// Rows of `yes` if the condition is true, otherwise of `no`.
#[track_caller]
fn either(condition: Tensor, yes: Rows, no: Rows) -> Rows {
    std::array::from_fn(|row| select(condition, yes[row], no[row]))
}

/// True if any word is not 0. `bool[]`
#[track_caller]
fn any(words: &[Tensor]) -> Tensor {
    words.iter().copied().reduce(|all, word| all | word).expect("there are words").ne(0u32)
}

/// A number below `count`, i32 `[]`, from the first of two uniform numbers, f32 `[2]`.
#[track_caller]
fn nth(draws: Tensor, count: Tensor) -> Tensor {
    (draws.index(0) * count.astype(F32)).astype(I32)
}

/// The outcome of a tile in a cell, i32 `[]`. The second of two uniform numbers, f32 `[2]`, decides
/// between a 2 and a 4.
#[track_caller]
fn outcome(cell: Tensor, draws: Tensor) -> Tensor {
    cell + select(draws.index(1).lt(FOUR), CELLS as i32, 0)
}

impl Board {
    /// A board with these rows.
    pub fn of([a, b, c, d]: Rows) -> Board {
        Board { rows: (a, b, c, d) }
    }

    fn rows(&self) -> Rows {
        let (a, b, c, d) = self.rows;
        [a, b, c, d]
    }

    /// The exponents of the tiles, 0 for no tile. `u32[4, 4]`
    #[track_caller]
    pub fn tiles(&self) -> Tensor {
        let rows = stack(&self.rows(), 0).expand_dims(1).broadcast_to([SIZE, SIZE]);
        (rows >> (iota(U32, [SIZE, SIZE], 1) * BITS)) & 0xff
    }

    /// True for the slides that move a tile: to the left, up, to the right, down. `bool[4]`
    #[track_caller]
    fn slides(&self) -> Tensor {
        let rows = self.rows();
        let taken = rows.map(self::taken);
        let twins = |a: Tensor, b: Tensor, present: Tensor| present & !self::taken(a ^ b);
        let (mut left, mut right, mut up, mut down) = (vec![], vec![], vec![], vec![]);
        for (row, here) in rows.iter().zip(taken) {
            let next = here >> BITS;
            let equal = twins(*row, *row >> BITS, here);
            left.push(((!here & next) | equal) & HIGHEST_BUT_LAST);
            right.push(((here & !next) | equal) & HIGHEST_BUT_LAST);
        }
        for row in 0..SIZE - 1 {
            let (here, next) = (taken[row], taken[row + 1]);
            let equal = twins(rows[row], rows[row + 1], here) & HIGHEST;
            up.push((!here & next) | equal);
            down.push((here & !next) | equal);
        }
        stack(&[any(&left), any(&up), any(&right), any(&down)], 0)
    }

    /// The board with the tile of an outcome: 2 in cell `outcome`, or 4 in cell `outcome - 16`. It
    /// replaces a tile in that cell.
    #[track_caller]
    fn with(&self, outcome: Tensor) -> Board {
        let (cell, four) = (outcome & (CELLS as i32 - 1), outcome.ge(CELLS as i32));
        let shift = ((cell & (SIZE as i32 - 1)) * BITS as i32).astype(U32);
        let tile = select(four, 2u32, 1u32) << shift;
        let mask = !(scalar(0xffu32) << shift);
        let row = cell >> 2;
        let rows = self.rows();
        Board::of(std::array::from_fn(|i| {
            select(row.eq(i as i32), (rows[i] & mask) | tile, rows[i])
        }))
    }
}

impl Game2048 {
    /// Slides the tiles of a board; action 0 to 3 is left, up, right, down.
    #[track_caller]
    pub fn slide(&self, board: Board, action: Tensor) -> Slide {
        let rows = board.rows();
        let (vertical, backward) = ((action & 1).eq(1), action.ge(2));
        // Every slide is a slide to the left, on a board that is turned before and turned back
        // after.
        let turned = either(vertical, transposed(rows), rows);
        let turned = either(backward, turned.map(mirrored), turned);
        let slid = turned.map(slid);
        let (after, sums) = (slid.map(|(row, _)| row), slid.map(|(_, sum)| sum));
        let moved: Vec<Tensor> = (0..SIZE).map(|row| turned[row] ^ after[row]).collect();
        let after = either(backward, after.map(mirrored), after);
        let after = either(vertical, transposed(after), after);
        let reward = (sums[0] + sums[1] + sums[2] + sums[3]).astype(F32);
        Slide { afterstate: Board::of(after), reward, moved: any(&moved) }
    }

    /// The probability of each chance outcome after a slide: outcome `c` is a 2 in cell `c = 4 *
    /// row + column`, outcome `16 + c` a 4. They sum to 1 if a cell is free, as after a slide that
    /// moved a tile. `f32[32]`
    #[track_caller]
    pub fn chance_probabilities(&self, afterstate: Board) -> Tensor {
        let free = afterstate.tiles().reshape([CELLS]).eq(0).astype(F32);
        let per_cell = free / free.sum().maximum(1.0);
        concatenate(&[per_cell * (1.0 - FOUR), per_cell * FOUR], 0)
    }

    /// The state after a slide and a chance outcome, `i32[]`, numbered as in
    /// [`Game2048::chance_probabilities`].
    #[track_caller]
    pub fn settle(&self, afterstate: Board, outcome: Tensor) -> State {
        let board = afterstate.with(outcome);
        State { board, over: !board.slides().any() }
    }

    /// Draws a chance outcome after a slide, `i32[]`. On a full board it is an outcome in the first
    /// cell.
    #[track_caller]
    pub fn draw_chance(&self, afterstate: Board, key: Key) -> Tensor {
        let draws = key.uniform([2]);
        // The highest bit of each free cell's byte; other bits are unused.
        let free = afterstate.rows().map(|row| !(row + 0x7f7f_7f7fu32) & 0x8080_8080u32);
        let bits = |x: Tensor| x.popcount().astype(I32);
        // Free cells before each row, and in total.
        let mut before = vec![scalar(0)];
        before.extend(free.iter().scan(scalar(0), |count, &row| {
            *count += bits(row);
            Some(*count)
        }));
        let count = before[SIZE];
        // Number of free cells to skip before the drawn cell.
        let left = nth(draws, count);
        let (mut row, mut passed, mut columns) = (scalar(0), scalar(0), free[0]);
        for next in 1..SIZE {
            let further = left.ge(before[next]);
            row = select(further, next as i32, row);
            passed = select(further, before[next], passed);
            columns = select(further, free[next], columns);
        }
        let column = (1..SIZE).fold(scalar(0), |column, next| {
            let before = bits(columns & ((1u32 << (BITS * next)) - 1));
            select((left - passed).ge(before), next as i32, column)
        });
        let cell = select(count.gt(0), row * SIZE as i32 + column, 0);
        outcome(cell, draws)
    }

    /// A step with a chance outcome chosen by the caller, from the board after the slide.
    #[track_caller]
    pub fn step_by(
        &self,
        state: State,
        action: Tensor,
        outcome: impl FnOnce(Board) -> Tensor,
    ) -> (State, TimeStep) {
        let over = constant(true);
        let (next, reward) =
            computed_if(!state.over, (State { over, ..state }, scalar(0.0)), || {
                let Slide { afterstate, reward, moved } = self.slide(state.board, action);
                let next = self.settle(afterstate, outcome(afterstate));
                (State { over: next.over | !moved, ..next }, select(moved, reward, -1.0))
            });
        let over = next.over;
        (next, TimeStep::new(self.observe(next), reward, over))
    }
}

impl Environment for Game2048 {
    type State = State;
    type Observation = Tensor;

    /// Two random tiles.
    fn initial_state(&self, key: Key) -> State {
        let empty = Board::of(std::array::from_fn(|_| scalar(0u32)));
        let [first, second] = key.split_into();
        let first = first.uniform([2]);
        let second = second.uniform([2]);
        // As `draw_chance` on an empty board, and on a board with a single tile, where no counting
        // is needed.
        let cell = nth(first, scalar(CELLS as i32));
        let place = nth(second, scalar(CELLS as i32 - 1));
        let other = place + place.ge(cell).astype(I32);
        self.settle(empty.with(outcome(cell, first)), outcome(other, second))
    }

    fn step(&self, state: State, action: Tensor, key: Key) -> (State, TimeStep) {
        self.step_by(state, action, |afterstate| self.draw_chance(afterstate, key.again()))
    }

    /// 1 in channel `n` for the tile `2^n`, and in channel 0 for no tile. `f32[4, 4, 31]`
    fn observe(&self, state: State) -> Tensor {
        let shape = [SIZE, SIZE, CHANNELS];
        let tiles = state.board.tiles().expand_dims(2).broadcast_to(shape);
        tiles.eq(iota(U32, shape, 2)).astype(F32)
    }

    fn observation_space(&self) -> Space {
        Space::bounded([SIZE, SIZE, CHANNELS], 0.0, 1.0)
            .described("channel n: the tile 2^n, channel 0: no tile")
    }

    /// Actions 0 to 3: left, up, right, down.
    fn action_space(&self) -> Space {
        Space::discrete(4).named(["left", "up", "right", "down"])
    }

    fn legal_actions(&self, state: &State) -> Option<Tensor> {
        Some(state.board.slides() | state.over)
    }

    fn truncates(&self) -> bool {
        false
    }

    /// Rounded tiles with their numbers, each number with its colour.
    fn render(&self, state: &State) -> Option<Tensor> {
        let frame = Colour::LINE;
        let canvas = Canvas::board(SIZE, SIZE, frame);
        let place = Shape::rounded(0.5, 0.5, 0.9, 0.9, 0.08);
        let empty = canvas.tile(frame).fill(&place, Colour::CELL.dark(0.06));
        let numbered = (1..=MOST).map(|exponent| {
            let colour = COLOURS[(exponent - 1).min(COLOURS.len() - 1)];
            let ink = if exponent <= 2 { Colour::TEXT } else { Colour::WHITE };
            let number = (1u64 << exponent).to_string();
            let size = Canvas::fitting(number.len()).min(0.32);
            empty.fill(&place, colour).text(&number, (0.5, 0.5), size, Align::Center, ink)
        });
        let tiles: Vec<Canvas> = [empty].into_iter().chain(numbered).collect();
        Some(canvas.tiles(state.board.tiles().minimum(MOST as i32), &tiles).finish())
    }
}

/// The exponent of the greatest number that a board can have.
const MOST: usize = 17;

/// Colours of the tiles 2, 4, 8 and so on; greater tiles have the last colour.
const COLOURS: [Colour; 12] = [
    Colour([240, 230, 216]),
    Colour([240, 220, 180]),
    Colour([235, 165, 90]),
    Colour([226, 130, 60]),
    Colour([213, 95, 50]),
    Colour([190, 60, 50]),
    Colour([95, 160, 215]),
    Colour([60, 130, 200]),
    Colour([40, 100, 170]),
    Colour([20, 158, 115]),
    Colour([150, 90, 160]),
    Colour([60, 56, 66]),
];
