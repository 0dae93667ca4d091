//! Frames of 84 by 84 pixels, painted in cells: what the environments with pixels show.

/// Pixels along each side.
pub(super) const SIDE: usize = 84;
/// Cells along each side.
pub(super) const CELLS: usize = 12;
/// Pixels along each side of a cell.
const CELL: usize = SIDE / CELLS;

/// One grey frame, row by row.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Frame(Vec<u8>);

impl Frame {
    /// All black.
    pub(super) fn new() -> Self {
        Frame(vec![0; SIDE * SIDE])
    }

    pub(super) fn clear(&mut self) {
        self.0.fill(0);
    }

    /// Paints a cell.
    pub(super) fn paint(&mut self, row: usize, column: usize, grey: u8) {
        for line in self.0.chunks_exact_mut(SIDE).skip(row * CELL).take(CELL) {
            line[column * CELL..(column + 1) * CELL].fill(grey);
        }
    }

    pub(super) fn pixels(&self) -> &[u8] {
        &self.0
    }
}

/// The last four frames, `[84, 84, 4]`, the latest in the last channel.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Stack(Vec<[u8; 4]>);

impl Stack {
    pub(super) fn new() -> Self {
        Stack(vec![[0; 4]; SIDE * SIDE])
    }

    /// Four times the same frame, with which an episode begins.
    pub(super) fn fill(&mut self, frame: &Frame) {
        for (channels, &pixel) in self.0.iter_mut().zip(frame.pixels()) {
            *channels = [pixel; 4];
        }
    }

    /// Takes up a frame, and drops the oldest.
    pub(super) fn push(&mut self, frame: &Frame) {
        for (channels, &pixel) in self.0.iter_mut().zip(frame.pixels()) {
            let [_, b, c, d] = *channels;
            *channels = [b, c, d, pixel];
        }
    }

    pub(super) fn pixels(&self) -> &[u8] {
        self.0.as_flattened()
    }

    pub(super) fn pixels_mut(&mut self) -> &mut [u8] {
        self.0.as_flattened_mut()
    }
}
