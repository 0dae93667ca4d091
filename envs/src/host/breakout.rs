//! Breakout in pixels: a game of our own after Atari's, on 12 by 12 cells, shown as the last four frames of 84 by 84 grey
//! pixels. The ball moves one cell diagonally in each step, as in MinAtar (Young and Tian 2019).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::native::discrete;
use super::pixels::{CELLS, FrameStack, PIXELS, SIDE, paint};
use super::{NativeEnvironment, Outcome, Random};
use crate::Space;

/// Rows of the wall.
const WALL: std::ops::Range<usize> = 2..5;
/// All bricks of the wall.
const FULL_WALL: Bricks = [[true; CELLS]; WALL.end - WALL.start];
/// Row of the paddle, which is two cells wide.
const BOTTOM: usize = CELLS - 1;
/// Walls of an episode: 72 points in all, one for each brick.
const WALLS: u8 = 2;
/// Times that the ball may come back without hitting a brick; one more ends the episode, so that every game ends.
const MOST_RETURNS: u8 = 60;

/// True where a brick stands, by row of the wall and column.
type Bricks = [[bool; CELLS]; WALL.end - WALL.start];

/// Hit bricks with the ball, and do not let it fall. Each brick pays 1. The episode is terminated where the ball falls
/// past the paddle, both walls are gone, or the ball has come back 60 times without hitting a brick. Where on the
/// paddle the ball lands decides whether it goes left or right. It has no settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PixelBreakout {}

/// Ball, paddle, bricks and the last four frames.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// The ball's row, 0 at the top.
    row: usize,
    /// The ball's column.
    column: usize,
    /// True if the ball moves down.
    down: bool,
    /// True if the ball moves right.
    right: bool,
    /// The column of the paddle's left cell.
    paddle: usize,
    bricks: Bricks,
    /// Walls built so far, the present one included.
    walls: u8,
    /// Times the ball came back to the paddle since it last hit a brick.
    returns: u8,
    frames: FrameStack,
}

impl State {
    fn frame(&self) -> [u8; PIXELS] {
        let mut frame = [0; PIXELS];
        for (row, bricks) in WALL.zip(self.bricks) {
            for column in (0..CELLS).filter(|&column| bricks[column]) {
                paint(&mut frame, row, column, 80 + 30 * (row - WALL.start) as u8);
            }
        }
        paint(&mut frame, BOTTOM, self.paddle, 200);
        paint(&mut frame, BOTTOM, self.paddle + 1, 200);
        paint(&mut frame, self.row, self.column, 255);
        frame
    }

    /// The next (row, column) of the ball, reflected by the sides and the top.
    fn next_cell(&mut self) -> (usize, usize) {
        if self.column == 0 {
            self.right = true;
        } else if self.column == CELLS - 1 {
            self.right = false;
        }
        if self.row == 0 {
            self.down = true;
        }
        let next = |place: usize, forward: bool| if forward { place + 1 } else { place - 1 };
        (next(self.row, self.down), next(self.column, self.right))
    }

    /// Moves the ball by one cell. Returns the reward, and true if the episode is over.
    fn roll(&mut self) -> (f32, bool) {
        let (row, column) = self.next_cell();
        if WALL.contains(&row) && self.bricks[row - WALL.start][column] {
            self.bricks[row - WALL.start][column] = false;
            self.down = !self.down;
            self.column = column;
            self.returns = 0;
            let gone = self.bricks.as_flattened().iter().all(|brick| !brick);
            return (1.0, gone && self.walls == WALLS);
        }
        if row == BOTTOM {
            let landed = [self.paddle, self.paddle + 1].map(|cell| cell == column);
            if landed == [false, false] {
                (self.row, self.column) = (row, column);
                return (0.0, true);
            }
            // The next wall is there when the ball is at the paddle, far from the bricks.
            if self.bricks.as_flattened().iter().all(|brick| !brick) {
                self.bricks = FULL_WALL;
                self.walls += 1;
            }
            self.returns += 1;
            self.down = false;
            self.right = landed[1];
            self.column = column;
            return (0.0, self.returns > MOST_RETURNS);
        }
        (self.row, self.column) = (row, column);
        (0.0, false)
    }
}

impl NativeEnvironment for PixelBreakout {
    type State = State;

    /// The last four frames, u8 `[84, 84, 4]`, the latest last.
    fn observation_space(&self) -> Space {
        Space::pixels([SIDE, SIDE, 4])
    }

    /// Actions 0 to 2: left, stay, right.
    fn action_space(&self) -> Space {
        Space::discrete(3).named(["left", "stay", "right"])
    }

    fn truncates(&self) -> bool {
        false
    }

    fn min_per_thread(&self) -> usize {
        8
    }

    fn initial_state(&self, random: &mut Random) -> State {
        let mut state = State {
            row: WALL.end,
            column: random.below(CELLS),
            down: true,
            right: random.below(2) == 1,
            paddle: CELLS / 2 - 1,
            bricks: FULL_WALL,
            walls: 1,
            returns: 0,
            frames: FrameStack::default(),
        };
        state.frames = FrameStack::new(&state.frame());
        state
    }

    fn step(&self, state: &mut State, action: &[u8], _: &mut Random) -> Outcome {
        let moved = state.paddle as i32 + discrete(action) - 1;
        state.paddle = moved.clamp(0, CELLS as i32 - 2) as usize;
        let (reward, terminated) = state.roll();
        let frame = state.frame();
        state.frames.push(&frame);
        Outcome { reward, terminated, truncated: false }
    }

    fn observe(&self, state: &State, observation: &mut [u8]) {
        observation.copy_from_slice(state.frames.pixels());
    }

    fn check(&self, state: &State) -> Result<(), String> {
        let State { row, column, paddle, walls, returns, .. } = *state;
        // The ball is above the paddle while an episode goes on, and the paddle is two cells wide.
        let cells = row < BOTTOM && column < CELLS && paddle < CELLS - 1;
        if cells && (1..=WALLS).contains(&walls) && returns <= MOST_RETURNS {
            let (bytes, expected) = (state.frames.pixels().len(), 4 * PIXELS);
            return if bytes == expected {
                Ok(())
            } else {
                Err(format!("the frames of Breakout have {expected} bytes, and these {bytes}"))
            };
        }
        Err(format!(
            "row {row}, column {column}, paddle {paddle}, walls {walls}, returns {returns} is no state of Breakout"
        ))
    }
}
