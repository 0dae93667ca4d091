//! Catch: a ball falls one row per step; be under it when it lands.
//!
//! Osband et al., "Behaviour Suite for Reinforcement Learning", ICLR 2020, after Mnih et al.,
//! "Recurrent Models of Visual Attention", 2014. Values equal those in gymnax's `Catch-bsuite`.

use crate::environment::{Environment, TimeStep};
use crate::render::{Canvas, Colour, Shape};
use crate::space::Space;
use podracer_dsl::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Catch on a board of `rows` by `columns`. Each episode lasts `rows - 1` steps, pays 1 or -1 in
/// its last step, and is then terminated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Catch {
    /// Rows of the board: the ball falls one in each step, and the paddle moves in the last.
    #[schemars(range(min = 2, max = 1_000), extend("x-reason" = "the ball needs a row to fall"))]
    pub rows: usize,
    /// Columns of the board.
    #[schemars(range(min = 1, max = 1_000))]
    pub columns: usize,
}

/// A board of 10 rows by 5 columns, as in bsuite.
impl Default for Catch {
    fn default() -> Self {
        Catch { rows: 10, columns: 5 }
    }
}

/// Positions of ball and paddle, in cells.
#[derive(Tree, Clone, Copy)]
pub struct State {
    /// Row of the ball, from 0 at the top to `rows - 1`. `i32[]`
    pub ball_row: Tensor,
    /// Column of the ball, in `0..columns`. `i32[]`
    pub ball_column: Tensor,
    /// Column of the paddle, in `0..columns`. `i32[]`
    pub paddle: Tensor,
}

impl Environment for Catch {
    type State = State;
    type Observation = Tensor;

    fn initial_state(&self, key: Key) -> State {
        let ball_column = key.randint([], 0..self.columns as i32);
        State { ball_row: zeros(I32, []), ball_column, paddle: scalar(self.columns as i32 / 2) }
    }

    fn step(&self, state: State, action: Tensor, _key: Key) -> (State, TimeStep) {
        let paddle = (state.paddle + action - 1).clamp(0, self.columns as i32 - 1);
        let ball_row = state.ball_row + 1;
        let terminated = ball_row.eq(self.rows as i32 - 1);
        let reward = select(terminated, select(paddle.eq(state.ball_column), 1.0, -1.0), 0.0);
        let state = State { ball_row, paddle, ..state };
        (state, TimeStep::new(self.observe(state), reward, terminated))
    }

    /// The board, `f32[rows, columns]`: 1 at the ball and at the paddle, 0 elsewhere.
    fn observe(&self, state: State) -> Tensor {
        let cells = arange(self.rows * self.columns);
        let ball = cells.eq(state.ball_row * self.columns + state.ball_column);
        let paddle = cells.eq(state.paddle + (self.rows - 1) * self.columns);
        (ball | paddle).astype(F32).reshape([self.rows, self.columns])
    }

    fn observation_space(&self) -> Space {
        Space::bounded([self.rows, self.columns], 0.0, 1.0)
            .described("1 at the ball and at the paddle")
    }

    /// Actions 0 to 2: left, stay, right.
    fn action_space(&self) -> Space {
        Space::discrete(3).named(["left", "stay", "right"])
    }

    fn truncates(&self) -> bool {
        false
    }

    /// The falling ball in red, and the paddle in blue.
    fn render(&self, state: &State) -> Option<Tensor> {
        let ball = Shape::disc(0.5, 0.5, 0.36);
        Some(
            Canvas::board(self.rows, self.columns, Colour::BOARD)
                .grid(0.04, Colour::CELL)
                .fill_cell(
                    self.rows - 1,
                    state.paddle,
                    &Shape::rounded(0.5, 0.72, 0.96, 0.4, 0.14),
                    Colour::BLUE,
                )
                .fill_cell(state.ball_row, state.ball_column, &ball, Colour::RED)
                .fill_cell(
                    state.ball_row,
                    state.ball_column,
                    &Shape::disc(0.4, 0.4, 0.09),
                    Colour::RED.light(0.5),
                )
                .finish(),
        )
    }
}
