//! Catch in pixels: the game of [`crate::Catch`] on 12 by 12 cells, shown as 84 by 84 grey pixels.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::native::discrete;
use super::pixels::{CELLS, SIDE, paint};
use super::{NativeEnvironment, Outcome, Random};
use crate::{Catch, Environment, Space};

/// A ball falls one row a step; be under it when it lands, after 11 steps. Pays 1 or -1 at the end of the episode. It has
/// no settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PixelCatch {}

/// The positions of ball and paddle, in cells: each in `0..12`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// The ball's row, 0 at the top.
    pub ball_row: usize,
    /// The ball's column.
    pub ball_column: usize,
    /// The paddle's column.
    pub paddle: usize,
}

impl NativeEnvironment for PixelCatch {
    type State = State;

    /// The frame, u8 `[84, 84, 1]`.
    fn observation_space(&self) -> Space {
        Space::pixels([SIDE, SIDE, 1])
    }

    /// Actions 0 to 2: left, stay, right.
    fn action_space(&self) -> Space {
        Catch { rows: CELLS, columns: CELLS }.action_space()
    }

    fn truncates(&self) -> bool {
        false
    }

    fn min_per_thread(&self) -> usize {
        32
    }

    fn initial_state(&self, random: &mut Random) -> State {
        State { ball_row: 0, ball_column: random.below(CELLS), paddle: CELLS / 2 }
    }

    fn step(&self, state: &mut State, action: &[u8], _: &mut Random) -> Outcome {
        let moved = state.paddle as i32 + discrete(action) - 1;
        state.paddle = moved.clamp(0, CELLS as i32 - 1) as usize;
        state.ball_row += 1;
        let terminated = state.ball_row == CELLS - 1;
        let reward = match (terminated, state.paddle == state.ball_column) {
            (false, _) => 0.0,
            (true, true) => 1.0,
            (true, false) => -1.0,
        };
        Outcome { reward, terminated, truncated: false }
    }

    fn observe(&self, state: &State, observation: &mut [u8]) {
        observation.fill(0);
        paint(observation, state.ball_row, state.ball_column, 255);
        paint(observation, CELLS - 1, state.paddle, 255);
    }

    fn check(&self, state: &State) -> Result<(), String> {
        let State { ball_row, ball_column, paddle } = *state;
        // The ball in the last row ends the episode: no state has it there.
        if ball_row < CELLS - 1 && ball_column < CELLS && paddle < CELLS {
            return Ok(());
        }
        Err(format!("{state:?} is no state of Catch on {CELLS} by {CELLS} cells"))
    }
}
