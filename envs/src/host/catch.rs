//! Catch in pixels: the game of [`crate::Catch`] on 12 by 12 cells, shown as 84 by 84 grey pixels.

use super::native::{discrete, take};
use super::pixels::{CELLS, Frame, SIDE};
use super::{HostError, NativeEnvironment, Outcome, Random};
use crate::{Catch, Environment, Space};

/// A ball falls one row a step; be under it when it lands, after 11 steps. Pays 1 or -1 at the end of the episode.
#[derive(Clone, Debug, PartialEq)]
pub struct PixelCatch {
    ball_row: usize,
    ball_column: usize,
    paddle: usize,
    frame: Frame,
}

impl Default for PixelCatch {
    fn default() -> Self {
        PixelCatch { ball_row: 0, ball_column: 0, paddle: CELLS / 2, frame: Frame::new() }
    }
}

impl PixelCatch {
    fn paint(&mut self) {
        self.frame.clear();
        self.frame.paint(self.ball_row, self.ball_column, 255);
        self.frame.paint(CELLS - 1, self.paddle, 255);
    }
}

impl NativeEnvironment for PixelCatch {
    /// u8 `[84, 84, 1]`.
    fn observation_space(&self) -> Space {
        Space::pixels([SIDE, SIDE, 1])
    }

    /// Left, stay, right.
    fn action_space(&self) -> Space {
        let cells = Catch { rows: CELLS, columns: CELLS };
        cells.action_space()
    }

    fn truncates(&self) -> bool {
        false
    }

    fn worth_a_thread(&self) -> usize {
        32
    }

    fn reset(&mut self, random: &mut Random) {
        self.ball_row = 0;
        self.ball_column = random.below(CELLS);
        self.paddle = CELLS / 2;
        self.paint();
    }

    fn step(&mut self, action: &[u8], _: &mut Random) -> Outcome {
        let moved = self.paddle as i32 + discrete(action) - 1;
        self.paddle = moved.clamp(0, CELLS as i32 - 1) as usize;
        self.ball_row += 1;
        self.paint();
        let terminated = self.ball_row == CELLS - 1;
        let reward = match (terminated, self.paddle == self.ball_column) {
            (false, _) => 0.0,
            (true, true) => 1.0,
            (true, false) => -1.0,
        };
        Outcome { reward, terminated, truncated: false }
    }

    fn observe(&self, observation: &mut [u8]) {
        observation.copy_from_slice(self.frame.pixels());
    }

    fn save(&self, bytes: &mut Vec<u8>) {
        bytes.extend([self.ball_row as u8, self.ball_column as u8, self.paddle as u8]);
    }

    fn load(&mut self, bytes: &mut &[u8]) -> Result<(), HostError> {
        let cells: [u8; 3] = take(bytes)?;
        if cells.iter().any(|&cell| usize::from(cell) >= CELLS) {
            return Err(HostError::Snapshot(format!("{cells:?} are no cells of Catch")));
        }
        [self.ball_row, self.ball_column, self.paddle] = cells.map(usize::from);
        self.paint();
        Ok(())
    }
}
