//! Breakout in pixels: a game of our own after Atari's, on 12 by 12 cells, shown as the last four frames of 84 by 84 grey
//! pixels. The ball moves one cell diagonally in each step, as in MinAtar (Young and Tian 2019).

use super::native::{discrete, take};
use super::pixels::{CELLS, Frame, SIDE, Stack};
use super::{HostError, NativeEnvironment, Outcome, Random};
use crate::Space;

/// The rows of the wall.
const WALL: std::ops::Range<usize> = 2..5;
/// The row of the paddle, which is two cells wide.
const BOTTOM: usize = CELLS - 1;
/// Walls of an episode: 72 points in all, one for each brick.
const WALLS: u8 = 2;
/// How often the ball may come back without hitting a brick. More of it ends the episode: no game lasts for ever.
const MOST_RETURNS: u8 = 60;

/// Hit bricks with the ball, and do not let it fall. Each brick pays 1. The episode is terminated where the ball falls
/// past the paddle, both walls are gone, or the ball has come back 60 times without hitting a brick. Where on the
/// paddle the ball lands decides whether it goes left or right.
#[derive(Clone, Debug, PartialEq)]
pub struct PixelBreakout {
    row: usize,
    column: usize,
    /// Whether it goes down, and whether it goes right.
    down: bool,
    right: bool,
    /// The left one of its cells.
    paddle: usize,
    bricks: [[bool; CELLS]; WALL.end - WALL.start],
    walls: u8,
    returns: u8,
    frame: Frame,
    stack: Stack,
}

impl Default for PixelBreakout {
    fn default() -> Self {
        PixelBreakout {
            row: WALL.end,
            column: 0,
            down: true,
            right: true,
            paddle: CELLS / 2 - 1,
            bricks: [[true; CELLS]; WALL.end - WALL.start],
            walls: 1,
            returns: 0,
            frame: Frame::new(),
            stack: Stack::new(),
        }
    }
}

impl PixelBreakout {
    fn paint(&mut self) {
        self.frame.clear();
        for (row, bricks) in WALL.zip(self.bricks) {
            for column in (0..CELLS).filter(|&column| bricks[column]) {
                self.frame.paint(row, column, 80 + 30 * (row - WALL.start) as u8);
            }
        }
        self.frame.paint(BOTTOM, self.paddle, 200);
        self.frame.paint(BOTTOM, self.paddle + 1, 200);
        self.frame.paint(self.row, self.column, 255);
    }

    /// Where the ball goes next, reflected by the sides and the top.
    fn next_cell(&mut self) -> (usize, usize) {
        if self.column == 0 {
            self.right = true;
        } else if self.column == CELLS - 1 {
            self.right = false;
        }
        if self.row == 0 {
            self.down = true;
        }
        let next = |at: usize, forward: bool| if forward { at + 1 } else { at - 1 };
        (next(self.row, self.down), next(self.column, self.right))
    }

    /// Moves the ball. The reward, and whether the ball or all bricks are gone.
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
                self.bricks = [[true; CELLS]; WALL.end - WALL.start];
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
    /// u8 `[84, 84, 4]`: the last four frames, the latest last.
    fn observation_space(&self) -> Space {
        Space::pixels([SIDE, SIDE, 4])
    }

    /// Left, stay, right.
    fn action_space(&self) -> Space {
        Space::discrete(3)
    }

    fn truncates(&self) -> bool {
        false
    }

    fn worth_a_thread(&self) -> usize {
        8
    }

    fn reset(&mut self, random: &mut Random) {
        let (frame, stack) = (self.frame.clone(), self.stack.clone());
        *self = PixelBreakout {
            column: random.below(CELLS),
            right: random.below(2) == 1,
            frame,
            stack,
            ..PixelBreakout::default()
        };
        self.paint();
        self.stack.fill(&self.frame);
    }

    fn step(&mut self, action: &[u8], _: &mut Random) -> Outcome {
        let moved = self.paddle as i32 + discrete(action) - 1;
        self.paddle = moved.clamp(0, CELLS as i32 - 2) as usize;
        let (reward, terminated) = self.roll();
        self.paint();
        self.stack.push(&self.frame);
        Outcome { reward, terminated, truncated: false }
    }

    fn observe(&self, observation: &mut [u8]) {
        observation.copy_from_slice(self.stack.pixels());
    }

    fn save(&self, bytes: &mut Vec<u8>) {
        let cells = [self.row, self.column, self.paddle].map(|cell| cell as u8);
        bytes.extend(cells);
        bytes.extend([u8::from(self.down), u8::from(self.right), self.walls, self.returns]);
        bytes.extend(self.bricks.as_flattened().iter().map(|&brick| u8::from(brick)));
        bytes.extend(self.stack.pixels());
    }

    fn load(&mut self, bytes: &mut &[u8]) -> Result<(), HostError> {
        let [row, column, paddle, down, right, walls, returns] = take::<7>(bytes)?;
        let cells = [row, column, paddle].map(usize::from);
        if cells.iter().any(|&cell| cell >= CELLS) || cells[2] + 1 >= CELLS {
            return Err(HostError::Snapshot(format!("{cells:?} are no cells of Breakout")));
        }
        [self.row, self.column, self.paddle] = cells;
        [self.down, self.right] = [down, right].map(|flag| flag != 0);
        [self.walls, self.returns] = [walls, returns];
        for brick in self.bricks.as_flattened_mut() {
            let [flag] = take(bytes)?;
            *brick = flag != 0;
        }
        let pixels = self.stack.pixels_mut();
        let (front, rest) = bytes
            .split_at_checked(pixels.len())
            .ok_or_else(|| HostError::Snapshot("it is too short".to_owned()))?;
        pixels.copy_from_slice(front);
        *bytes = rest;
        Ok(())
    }
}
