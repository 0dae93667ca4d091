//! Sliding tiles: sort the tiles of a frame by moving the gap.

use crate::cells::{WAYS, along, draw_way};
use crate::environment::{Environment, TimeStep};
use crate::render::{Canvas, Colour, Shape};
use crate::space::Space;
use podracer_dsl::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// SlidingTiles: the tiles of a square frame with one gap are brought into their order, row by row,
/// with the gap at the end. A move exchanges the gap with a neighbouring tile; a move that leads
/// out of the frame does nothing.
///
/// The reward of a step is the number of places that are right after the step, minus the number
/// before it; the gap's place counts too. The episode is terminated when all places are right, and
/// truncated after `time_limit` steps. Puzzles are made by random moves of the gap, from the solved
/// puzzle.
///
/// The rules follow jumanji 1.1.2's SlidingTilePuzzle-v0. In jumanji the time limit is an end without
/// value. Puzzles are drawn with other random numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SlidingTiles {
    /// Rows and columns of the frame.
    #[schemars(range(min = 2, max = 10))]
    pub size: usize,
    /// Random moves that make a puzzle.
    #[schemars(range(min = 1, max = 10_000))]
    pub shuffles: usize,
    /// Steps after which an episode is truncated.
    #[schemars(range(min = 1, max = i32::MAX))]
    pub time_limit: usize,
}

/// A frame of 5 by 5 places, 200 random moves, and 500 steps, as in jumanji.
impl Default for SlidingTiles {
    fn default() -> Self {
        SlidingTiles { size: 5, shuffles: 200, time_limit: 500 }
    }
}

/// The frame and its gap.
#[derive(Tree, Clone, Copy)]
pub struct State {
    /// The tile in each place, row by row: 1 to `size * size - 1`, and 0 for the gap. `i32[size * size]`
    pub tiles: Tensor,
    /// Row of the gap. `i32[]`
    pub row: Tensor,
    /// Column of the gap. `i32[]`
    pub column: Tensor,
    /// Steps since the episode began. `i32[]`
    pub time: Tensor,
}

impl SlidingTiles {
    fn places(&self) -> usize {
        self.size * self.size
    }

    /// The solved puzzle. `i32[size * size]`
    #[track_caller]
    fn solved(&self) -> Tensor {
        (arange(self.places()) + 1).rem(self.places() as i32)
    }

    /// True for each move that stays in the frame. `bool[4]`
    #[track_caller]
    fn open(&self, row: Tensor, column: Tensor) -> Tensor {
        let size = self.size as i32;
        let way = |(down, right): (i32, i32)| {
            let (row, column) = (row + down, column + right);
            row.ge(0) & row.lt(size) & column.ge(0) & column.lt(size)
        };
        stack(&WAYS.map(way), 0)
    }

    /// The state after a move, 0 to 3; other numbers do nothing.
    #[track_caller]
    fn moved(&self, state: State, action: Tensor) -> State {
        let (down, right) = along(action);
        let (row, column) = (state.row + down, state.column + right);
        let place = |row: Tensor, column: Tensor| row * self.size as i32 + column;
        let places = arange(self.places());
        let (from, to) = (places.eq(place(row, column)), places.eq(place(state.row, state.column)));
        let tile = select(from, state.tiles, 0).sum();
        let tiles = select(to, tile, select(from, 0, state.tiles));
        State { tiles, row, column, ..state }
    }

    /// True for each place with the right tile. `bool[size * size]`
    #[track_caller]
    fn right(&self, state: &State) -> Tensor {
        state.tiles.eq(self.solved())
    }

    /// The initial state of an episode with these tiles, `i32[size * size]`.
    #[track_caller]
    pub fn at(&self, tiles: Tensor) -> State {
        let gap = select(tiles.eq(0), arange(self.places()), 0).sum();
        let size = self.size as i32;
        State { tiles, row: gap / size, column: gap.rem(size), time: scalar(0) }
    }
}

impl Environment for SlidingTiles {
    type State = State;
    type Observation = Tensor;

    /// The solved puzzle after random moves of the gap, drawn uniformly from the moves that stay in
    /// the frame.
    fn initial_state(&self, key: Key) -> State {
        let last = scalar(self.size as i32 - 1);
        let solved = State { tiles: self.solved(), row: last, column: last, time: scalar(0) };
        let draws = key.uniform([self.shuffles]);
        let (state, _) = scan(solved, draws, |state, draw| {
            let open = self.open(state.row, state.column);
            let action = draw_way(open.astype(F32).expand_dims(0), draw.reshape([1]));
            (self.moved(state, action.index(0)), ())
        });
        state
    }

    fn step(&self, state: State, action: Tensor, _: Key) -> (State, TimeStep) {
        let before = self.right(&state).astype(I32).sum();
        let open = self.open(state.row, state.column);
        let is_open = (arange(4).eq(action) & open).any();
        let moved = self.moved(state, select(is_open, action, -1));
        let state = State { time: state.time + 1, ..moved };
        let right = self.right(&state);
        let reward = (right.astype(I32).sum() - before).astype(F32);
        let terminated = right.all();
        let truncated = state.time.ge(self.time_limit) & !terminated;
        (state, TimeStep { observation: self.observe(state), reward, terminated, truncated })
    }

    /// A plane for each tile with 1 at its position, the gap's first. `f32[size, size, size *
    /// size]`
    fn observe(&self, state: State) -> Tensor {
        let tiles = arange(self.places()).expand_dims(0);
        let planes = state.tiles.expand_dims(1).eq(tiles).astype(F32);
        planes.reshape([self.size, self.size, self.places()])
    }

    fn observation_space(&self) -> Space {
        Space::bounded([self.size, self.size, self.places()], 0.0, 1.0)
            .described("1 at the gap, 1 at each tile")
    }

    /// Directions of the gap: 0 to 3 are up, right, down, left.
    fn action_space(&self) -> Space {
        Space::discrete(4).named(["up", "right", "down", "left"])
    }

    /// The moves that stay in the frame.
    fn legal_actions(&self, state: &State) -> Option<Tensor> {
        Some(self.open(state.row, state.column))
    }

    /// The share of the places with the right tile.
    fn success(&self, state: &State) -> Option<Tensor> {
        Some(self.right(state).astype(F32).mean())
    }

    /// Numbered tiles in a frame: green in the right place, and wooden elsewhere.
    fn render(&self, state: &State) -> Option<Tensor> {
        let frame = Colour::TEXT;
        let board = |cells: Tensor| cells.reshape([self.size, self.size]);
        let (tiles, right) = (board(state.tiles), board(self.right(state)));
        let which = select(tiles.eq(0), 0, select(right, 2, 1));
        let canvas = Canvas::board(self.size, self.size, frame);
        let gap = canvas.tile(frame);
        let tile = |colour: Colour| {
            gap.fill(&Shape::rounded(0.5, 0.51, 0.94, 0.94, 0.1), colour.dark(0.3))
                .fill(&Shape::rounded(0.5, 0.49, 0.94, 0.92, 0.1), colour)
        };
        let digits = (self.size * self.size - 1).ilog10() + 1;
        let canvas = canvas.tiles(which, &[gap, tile(Colour::WOOD), tile(Colour::GREEN)]);
        Some(canvas.numbers(select(tiles.gt(0), tiles, -1), digits, 0.36, Colour::WHITE).finish())
    }
}
