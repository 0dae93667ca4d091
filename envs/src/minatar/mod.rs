//! MinAtar: five games of Atari on boards of 10 by 10 cells.
//!
//! Young and Tian, "MinAtar: An Atari-Inspired Testbed for Thorough and Reproducible Reinforcement
//! Learning Experiments", 2019. The rules, the random draws and the channels of the observations
//! equal those in gymnax 1.0.1. gymnax 0.0.9 has no Seaquest, and differs in SpaceInvaders (see
//! [`space_invaders`]). The original MinAtar repeats the last action with probability 0.1, as
//! [`Environment::sticky_actions`](crate::Environment::sticky_actions) does.
//!
//! # Invariants
//! - Sets of cells are ten words, one per row; bit `c` is column `c`. Only pictures and
//!   observations have an element for each cell.
//! - There is no scatter or gather: a position is compared with an index.
//! - Draws that few steps need are in a loop that runs only in those steps (`drawn_if`). Outside a
//!   loop, XLA would compute the twenty rounds of each draw again for every cell of an observation
//!   that depends on it.

pub mod asterix;
pub mod breakout;
pub mod freeway;
pub mod seaquest;
pub mod space_invaders;

pub use asterix::Asterix;
pub use breakout::Breakout;
pub use freeway::Freeway;
pub use seaquest::Seaquest;
pub use space_invaders::SpaceInvaders;

use crate::space::Space;
use podracer_dsl::prelude::*;

/// Rows and columns of every board.
const SIZE: usize = 10;

/// The six actions of MinAtar.
const NOTHING: i32 = 0;
const LEFT: i32 = 1;
const UP: i32 = 2;
const RIGHT: i32 = 3;
const DOWN: i32 = 4;
const FIRE: i32 = 5;

/// The action for an index into a discrete space of some of the six actions.
#[track_caller]
fn one_of(actions: &[i32], action: Tensor) -> Tensor {
    let mut chosen = scalar(actions[0]);
    for (index, &meaning) in actions.iter().enumerate().skip(1) {
        chosen = select(action.eq(index), meaning, chosen);
    }
    chosen
}

/// The coordinate after a step to either side, within bounds. `i32[]`
#[track_caller]
fn moved(from: Tensor, action: Tensor, [less, more]: [i32; 2], [low, high]: [i32; 2]) -> Tensor {
    let step = action.eq(more).astype(I32) - action.eq(less).astype(I32);
    // A coordinate out of bounds stays where it is.
    select(step.eq(0), from, (from + step).clamp(low, high))
}

/// The word with the bit of a column, 0 for a column outside the board. i32 to u32, any shape.
#[track_caller]
fn bit(column: Tensor) -> Tensor {
    let inside = column.ge(0) & column.lt(SIZE);
    let shape = column.shape();
    let one = constant(1u32).broadcast_to(shape);
    select(inside, one << column.maximum(0).astype(U32), 0u32)
}

/// The words of one cell, empty if it is outside. `u32[10]`
#[track_caller]
fn cell(row: Tensor, column: Tensor) -> Tensor {
    let word = bit(column).broadcast_to([SIZE]);
    select(arange(SIZE).eq(row), word, 0u32)
}

/// The words of the cells of several objects, some of them present. Positions `i32[n]`, `present`
/// bool `[n]`; `u32[10]`
#[track_caller]
fn cells(rows: Tensor, columns: Tensor, present: Tensor) -> Tensor {
    let count = rows.len();
    let words = select(present, bit(columns), 0u32);
    let here = iota(I32, [SIZE, count], 0).eq(rows.expand_dims(0).broadcast_to([SIZE, count]));
    let words = words.expand_dims(0).broadcast_to([SIZE, count]);
    select(here, words, 0u32).any_axis(1)
}

/// True if the cell is in the set. `bool[]`
#[track_caller]
fn contains(words: Tensor, row: Tensor, column: Tensor) -> Tensor {
    (words & cell(row, column)).any().ne(0u32)
}

/// The set one row further down; row 0 is empty. `u32[10]`
#[track_caller]
fn down(words: Tensor) -> Tensor {
    concatenate(&[zeros(U32, [1]), words.slice_axis(0, 0..SIZE - 1)], 0)
}

/// The set one row further up; the last row is empty. `u32[10]`
#[track_caller]
fn up(words: Tensor) -> Tensor {
    concatenate(&[words.slice_axis(0, 1..SIZE), zeros(U32, [1])], 0)
}

/// A constant set, from the bits of each row. `u32[10]`
#[track_caller]
fn known(row: impl Fn(usize) -> u32) -> Tensor {
    constant((0..SIZE).map(row).collect::<Vec<u32>>())
}

/// True in each cell of the set, bool `[10, 10]`.
#[track_caller]
fn plane(words: Tensor) -> Tensor {
    let words = words.expand_dims(1).broadcast_to([SIZE, SIZE]);
    ((words >> iota(U32, [SIZE, SIZE], 1)) & 1u32).ne(0u32)
}

/// The draw from a key if it is `wanted` (bool `[]`), and `otherwise` if not. For a batch of
/// environments the draws are computed only if at least one environment wants them.
#[track_caller]
pub(crate) fn drawn_if<T: Tree>(
    wanted: Tensor,
    key: Key,
    otherwise: T,
    draw: impl FnOnce(Key) -> T,
) -> T {
    let body = |_| (constant(false), draw(key.again()));
    while_loop((wanted, otherwise), |(wanted, _)| wanted, body).1
}

/// The observation of some sets, `f32[10, 10, sets]`.
#[track_caller]
fn observation(sets: &[Tensor]) -> Tensor {
    let words = stack(sets, 1);
    let shape = [SIZE, SIZE, sets.len()];
    let words = words.expand_dims(1).broadcast_to(shape);
    ((words >> iota(U32, shape, 1)) & 1u32).astype(F32)
}

/// The space of such observations.
fn observation_space(channels: &[&str]) -> Space {
    Space::bounded([SIZE, SIZE, channels.len()], 0.0, 1.0).described(&channels.join(", "))
}
