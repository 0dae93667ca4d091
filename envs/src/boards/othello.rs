//! Othello: stones of the other player between two of one's own change sides, and the player with
//! more stones wins.

use super::{Moved, Stones, cell_names, computed_if, on, two_planes};
use crate::environment::{Environment, TimeStep};
use crate::render::{Canvas, Colour, Shape};
use crate::space::Space;
use podracer_dsl::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Othello of two players on a board of 8 by 8 cells; [`boards`](crate::boards) describes turns and
/// rewards. A player who has no move passes by an action. The game is over after two passes, when
/// the board is full, and when a player has no stone. It has no settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Othello {}

/// Rows and columns of the board. Bit `8 * row + column` is a cell.
const SIZE: usize = 8;
/// Number of cells, and the action that passes.
const PASS: usize = SIZE * SIZE;
/// Stones at the start: of the player who begins, and of the other player.
const START: [u64; 2] = [1 << 28 | 1 << 35, 1 << 27 | 1 << 36];
/// The moves of the player who begins.
const FIRST_MOVES: u64 = 1 << 19 | 1 << 26 | 1 << 37 | 1 << 44;

/// Cells that are not in the first or last column.
const INNER_COLUMNS: u64 = 0x7e7e_7e7e_7e7e_7e7e;
/// Cells that are not in the first or last row.
const INNER_ROWS: u64 = 0x00ff_ffff_ffff_ff00;

/// Distance in bits from a cell to the next cell in a line, and the cells with neighbours on both
/// sides along it.
const DIRECTIONS: [(usize, u64); 4] = [
    (1, INNER_COLUMNS),
    (SIZE, INNER_ROWS),
    (SIZE - 1, INNER_COLUMNS & INNER_ROWS),
    (SIZE + 1, INNER_COLUMNS & INNER_ROWS),
];

/// The bits of the cells.
const CELLS: [u32; PASS] = {
    let mut bits = [0; PASS];
    let mut cell = 0;
    while cell < PASS {
        bits[cell] = cell as u32;
        cell += 1;
    }
    bits
};

/// The stones, the moves of the player to move, and whether the last move was a pass.
#[derive(Tree, Clone, Copy)]
pub struct State {
    /// The stones and the player to move. Sets of cells are `u64[]`.
    pub stones: Stones,
    /// Cells that the player to move may put a stone in; none if the player has to pass. `u64[]`
    pub moves: Tensor,
    /// True if the other player has just passed. `bool[]`
    pub passed: Tensor,
}

/// Shifts bits along a direction, up or down.
#[track_caller]
fn shifted(set: Tensor, by: usize, up: bool) -> Tensor {
    if up { set << by } else { set >> by }
}

/// Stones of `other` in an unbroken line behind a stone of `from`, for each of the eight
/// directions, with the set shifted by one more cell.
#[track_caller]
fn lines(from: Tensor, other: Tensor) -> Vec<(Tensor, Tensor)> {
    let mut lines = Vec::with_capacity(2 * DIRECTIONS.len());
    for (by, inner) in DIRECTIONS {
        let other = other & inner;
        for up in [true, false] {
            // One stone, then two, then twice two more: a line has at most six stones between two
            // others.
            let pairs = other & shifted(other, by, up);
            let mut line = other & shifted(from, by, up);
            line = line | (other & shifted(line, by, up));
            line = line | (pairs & shifted(line, 2 * by, up));
            line = line | (pairs & shifted(line, 2 * by, up));
            lines.push((line, shifted(line, by, up)));
        }
    }
    lines
}

/// The cells where a stone of `own` would turn some of `other`. `u64[]`
#[track_caller]
fn moves(own: Tensor, other: Tensor) -> Tensor {
    let ends = lines(own, other).into_iter().map(|(_, end)| end);
    ends.reduce(|all, end| all | end).expect("there are directions") & !(own | other)
}

/// The stones of `other` that a new stone turns. `u64[]`
#[track_caller]
fn turned(stone: Tensor, own: Tensor, other: Tensor) -> Tensor {
    let turned =
        lines(stone, other).into_iter().map(|(line, end)| select((end & own).ne(0u64), line, 0u64));
    turned.reduce(|all, line| all | line).expect("there are directions")
}

impl Environment for Othello {
    type State = State;
    type Observation = Tensor;

    fn initial_state(&self, _key: Key) -> State {
        let [own, other] = START.map(scalar);
        let (moves, passed) = (scalar(FIRST_MOVES), constant(false));
        State { stones: Stones::first(own, other), moves, passed }
    }

    fn step(&self, state: State, action: Tensor, _key: Key) -> (State, TimeStep) {
        let State { stones, moves: allowed, passed } = state;
        let passes = action.eq(PASS as i32);
        let (stones, reward, terminated) = stones.after(|| {
            // A shift by all 64 bits gives 0.
            let stone = scalar(1u64) << action.astype(U64);
            let legal = select(passes, allowed.eq(0u64), (allowed & stone).ne(0u64));
            let turned = turned(stone, stones.own, stones.other);
            // On an occupied cell, as in pgx: the player's own stone is removed, and the other
            // player's stone stays.
            let own = stones.own ^ (stone | turned);
            let other = stones.other ^ turned;
            let done = (own | other).eq(u64::MAX) | other.eq(0u64) | (passed & passes);
            let lead = own.popcount().astype(I32) - other.popcount().astype(I32);
            let reward = lead.sign().astype(F32);
            Moved { legal, own: own & !other, other, done, reward }
        });
        let moves = computed_if(!terminated, allowed, || moves(stones.own, stones.other));
        let state = State { stones, moves, passed: passes };
        (state, TimeStep::new(self.observe(state), reward, terminated))
    }

    /// The stones of the player to move, and of the other player. `f32[8, 8, 2]`
    fn observe(&self, state: State) -> Tensor {
        state.stones.observation(SIZE, SIZE, &CELLS)
    }

    fn observation_space(&self) -> Space {
        two_planes(SIZE, SIZE)
    }

    /// The cell `8 * row + column` to put a stone in, or 64 to pass, which is legal only without a move.
    fn action_space(&self) -> Space {
        Space::discrete(PASS + 1).named(cell_names(SIZE, SIZE).chain(["pass".to_owned()]))
    }

    fn legal_actions(&self, state: &State) -> Option<Tensor> {
        let moves = on(state.moves, &CELLS);
        let pass = state.moves.eq(0u64).reshape([1]);
        Some(concatenate(&[moves, pass], 0) | state.stones.over)
    }

    /// A player without a move passes, and the observation does not show whether the other player
    /// has just passed. If the other player has a move, they have not passed. If neither player has
    /// a move, this state assumes that they have: its pass ends the game with the outcome of two
    /// passes.
    fn state_of(&self, observation: Tensor) -> Option<State> {
        let stones = Stones::seen(observation, &CELLS, U64);
        let own = moves(stones.own, stones.other);
        let other = moves(stones.other, stones.own);
        Some(State { stones, moves: own, passed: (own | other).eq(0u64) })
    }

    fn truncates(&self) -> bool {
        false
    }

    fn players(&self) -> usize {
        2
    }

    fn text(&self, state: &State) -> Option<Tensor> {
        Some(state.stones.text(SIZE, SIZE, &CELLS))
    }

    /// A green board: black stones for the player who began, white stones for the other player, and a dot in each cell where the
    /// player to move may put a stone.
    fn render(&self, state: &State) -> Option<Tensor> {
        let felt = Colour::GREEN.dark(0.25);
        let canvas = Canvas::board(SIZE, SIZE, felt);
        let empty = canvas.tile(felt).fill(
            &Shape::rectangle(0.5, 0.5, 2.0, 2.0).minus(Shape::rectangle(0.5, 0.5, 0.95, 0.95)),
            felt.dark(0.3),
        );
        let stone = |colour: Colour, edge: Colour| {
            empty
                .fill_alpha(&Shape::disc(0.53, 0.54, 0.4), Colour::BLACK, 0.35)
                .fill(&Shape::disc(0.5, 0.5, 0.4), edge)
                .fill(&Shape::disc(0.49, 0.49, 0.36), colour)
        };
        let (black, white) = (Colour::BLACK, Colour::WHITE);
        let dot = |colour: Colour| empty.fill_alpha(&Shape::disc(0.5, 0.5, 0.09), colour, 0.6);
        let tiles = [
            empty,
            stone(black, black.light(0.25)),
            stone(white, white.dark(0.2)),
            dot(black),
            dot(white),
        ];
        let players = state.stones.players(SIZE, SIZE, &CELLS);
        let moves = on(state.moves, &CELLS).reshape([SIZE, SIZE]) & !state.stones.over;
        Some(canvas.tiles(select(moves, 3 + state.stones.player, players), &tiles).finish())
    }
}
