//! Frames of 84 by 84 grey pixels, painted in 12 by 12 cells: the observations of the pixel environments.

use serde::{Deserialize, Serialize};

/// Pixels along each side of a frame.
pub(super) const SIDE: usize = 84;
/// Pixels of a frame.
pub(super) const PIXELS: usize = SIDE * SIDE;
/// Cells along each side of a frame.
pub(super) const CELLS: usize = 12;
/// Pixels along each side of a cell.
const CELL: usize = SIDE / CELLS;

/// Paints a cell of a frame, which is u8 `[84, 84]` row by row.
pub(super) fn paint(frame: &mut [u8], row: usize, column: usize, grey: u8) {
    for line in frame.chunks_exact_mut(SIDE).skip(row * CELL).take(CELL) {
        line[column * CELL..(column + 1) * CELL].fill(grey);
    }
}

/// The last four frames, u8 `[84, 84, 4]`, the latest in the last channel.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct FrameStack(Vec<[u8; 4]>);

impl FrameStack {
    /// Four times the same frame, with which an episode begins.
    pub(super) fn new(frame: &[u8; PIXELS]) -> Self {
        FrameStack(frame.iter().map(|&pixel| [pixel; 4]).collect())
    }

    /// Adds a frame and drops the oldest.
    pub(super) fn push(&mut self, frame: &[u8; PIXELS]) {
        for (channels, &pixel) in self.0.iter_mut().zip(frame) {
            let [_, b, c, d] = *channels;
            *channels = [b, c, d, pixel];
        }
    }

    /// The bytes of the observation: `4 * PIXELS` of them, except in a stack read from wrong bytes.
    pub(super) fn pixels(&self) -> &[u8] {
        self.0.as_flattened()
    }
}
