//! Breakout: bounce a ball off the paddle to break the bricks above.

use super::{LEFT, NOTHING, RIGHT, SIZE, cell, moved, observation, one_of, plane};
use crate::environment::{Environment, TimeStep};
use crate::render::{Canvas, Colour, Shape};
use crate::space::Space;
use podracer_dsl::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The bits of the three full rows of bricks, rows 1 to 3.
const WALL: u32 = (1 << 30) - 1;

/// Breakout of MinAtar: a brick that breaks pays 1, and a lost ball terminates the episode. It is
/// truncated after `time_limit` steps. When all bricks are broken, new bricks appear as soon as the
/// ball is back at the paddle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Breakout {
    /// Steps after which an episode is truncated.
    #[schemars(range(min = 1, max = i32::MAX))]
    pub time_limit: usize,
    /// If false, observations do not show the ball's previous position: its direction must be
    /// remembered from the step before.
    pub trail: bool,
}

/// 1000 steps, with the whole observation.
impl Default for Breakout {
    fn default() -> Self {
        Breakout { time_limit: 1000, trail: true }
    }
}

/// Ball, paddle and bricks.
#[derive(Tree, Clone, Copy)]
pub struct State {
    /// Row of the ball. `i32[]`
    pub ball_row: Tensor,
    /// Column of the ball. `i32[]`
    pub ball_column: Tensor,
    /// Row of the ball in the state before. `i32[]`
    pub last_row: Tensor,
    /// Column of the ball in the state before. `i32[]`
    pub last_column: Tensor,
    /// True if the ball flies to the right. `bool[]`
    pub right: Tensor,
    /// True if the ball flies down. `bool[]`
    pub down: Tensor,
    /// Column of the paddle, which is in the last row. `i32[]`
    pub paddle: Tensor,
    /// The bricks: bit `10 * (row - 1) + column`. `u32[]`
    pub bricks: Tensor,
    /// True if the ball was in a brick's cell in the last step: it then breaks no other brick in
    /// this step. `bool[]`
    pub strike: Tensor,
    /// Steps since the episode began. `i32[]`
    pub time: Tensor,
}

/// The bricks as a set of cells, `u32[10]`.
#[track_caller]
fn brick_rows(bricks: Tensor) -> Tensor {
    let row = arange(SIZE);
    let here = row.ge(1) & row.le(3);
    let shift = ((row - 1).clamp(0, 2) * SIZE).astype(U32);
    let words = (bricks.broadcast_to([SIZE]) >> shift) & 0x3ffu32;
    select(here, words, 0u32)
}

impl Environment for Breakout {
    type State = State;
    type Observation = Tensor;

    /// The ball begins at the left or the right side and moves to the other.
    fn initial_state(&self, key: Key) -> State {
        let from_right = key.randint([], 0..2).ne(0);
        let (row, column) = (scalar(3), select(from_right, 9, 0));
        State {
            ball_row: row,
            ball_column: column,
            last_row: row,
            last_column: column,
            right: !from_right,
            down: constant(true),
            paddle: scalar(4),
            bricks: scalar(WALL),
            strike: constant(false),
            time: scalar(0),
        }
    }

    fn step(&self, state: State, action: Tensor, _key: Key) -> (State, TimeStep) {
        let action = one_of(&[NOTHING, LEFT, RIGHT], action);
        let paddle = moved(state.paddle, action, [LEFT, RIGHT], [0, 9]);
        let (from_row, from_column) = (state.ball_row, state.ball_column);
        let (row, column) =
            (from_row + select(state.down, 1, -1), from_column + select(state.right, 1, -1));
        let at_side = column.lt(0) | column.gt(9);
        let (column, right) = (column.clamp(0, 9), state.right ^ at_side);
        let at_top = row.lt(0);
        let (row, down) = (row.maximum(0), state.down ^ at_top);

        let brick_row = row.ge(1) & row.le(3);
        let shift = ((row - 1).clamp(0, 2) * SIZE + column).astype(U32);
        let brick = select(brick_row & !at_top, scalar(1u32) << shift, 0u32);
        let in_brick = (state.bricks & brick).ne(0u32);
        let breaks = in_brick & !state.strike;
        let bricks = select(breaks, state.bricks ^ brick, state.bricks);
        let (row, down) = (select(breaks, from_row, row), down ^ breaks);

        let low = !in_brick & row.eq(9);
        let bricks = select(low & bricks.eq(0u32), WALL, bricks);
        // Above the paddle the ball bounces; next to it, if it falls onto the paddle, it returns to
        // where it came from.
        let above = low & from_column.eq(paddle);
        let beside = low & !above & column.eq(paddle);
        let terminated = low & !above & !beside;
        let state = State {
            ball_row: select(above | beside, from_row, row),
            ball_column: column,
            last_row: from_row,
            last_column: from_column,
            right: right ^ beside,
            down: down ^ (above | beside),
            paddle,
            bricks,
            strike: in_brick,
            time: state.time + 1,
        };
        let truncated = state.time.ge(self.time_limit) & !terminated;
        let reward = breaks.astype(F32);
        (state, TimeStep { observation: self.observe(state), reward, terminated, truncated })
    }

    /// 1 at the paddle, the ball, the ball's previous position (if shown), and the bricks. `f32[10,
    /// 10, 4]`, or `f32[10, 10, 3]` without the trail.
    fn observe(&self, state: State) -> Tensor {
        let trail = self.trail.then(|| cell(state.last_row, state.last_column));
        let (paddle, ball) =
            (cell(scalar(9), state.paddle), cell(state.ball_row, state.ball_column));
        let sets = [Some(paddle), Some(ball), trail, Some(brick_rows(state.bricks))];
        observation(&sets.into_iter().flatten().collect::<Vec<_>>())
    }

    fn observation_space(&self) -> Space {
        let channels = ["paddle", "ball", "trail", "brick"];
        let shown = channels.into_iter().filter(|&name| self.trail || name != "trail");
        super::observation_space(&shown.collect::<Vec<_>>())
    }

    /// Actions 0 to 2: nothing, left, right.
    fn action_space(&self) -> Space {
        Space::discrete(3).named(["nothing", "left", "right"])
    }

    /// The bricks, the paddle in blue, and the ball with its place in the step before.
    fn render(&self, state: &State) -> Option<Tensor> {
        let one = |row: Tensor, column: Tensor| plane(cell(row, column));
        let canvas = Canvas::board(SIZE, SIZE, Colour::BOARD);
        let space = canvas.tile(Colour::BOARD);
        let row = iota(I32, [SIZE, SIZE], 0);
        let bricks = plane(brick_rows(state.bricks));
        let brick = |colour: Colour| {
            space
                .fill(&Shape::rounded(0.5, 0.53, 0.94, 0.8, 0.08), colour.dark(0.3))
                .fill(&Shape::rounded(0.5, 0.49, 0.94, 0.74, 0.08), colour)
        };
        let ball = Shape::disc(0.5, 0.5, 0.3);
        let things = [
            (bricks & row.eq(1), brick(Colour::RED)),
            (bricks & row.eq(2), brick(Colour::ORANGE)),
            (bricks & row.eq(3), brick(Colour::GREEN)),
            (one(scalar(9), state.paddle), {
                space.fill(&Shape::rounded(0.5, 0.5, 0.98, 0.4, 0.16), Colour::BLUE)
            }),
        ];
        Some(
            canvas
                .layers(space, &things)
                .fill_cells(
                    one(state.last_row, state.last_column),
                    &Shape::disc(0.5, 0.5, 0.16),
                    Colour::LINE,
                )
                .fill_cells(one(state.ball_row, state.ball_column), &ball, Colour::TEXT)
                .finish(),
        )
    }
}
