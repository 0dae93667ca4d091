//! A canvas with a pixel per cell, for pictures without smooth shapes.

use podracer_dsl::prelude::*;

use super::Colour;

/// A point in pixels: x to the right and y down from the upper left corner, both `f32[]`. Pixel
/// centers are at half-integers.
pub type Point = (Tensor, Tensor);

/// A picture in construction. Each shape is painted over the shapes before it.
#[derive(Clone, Copy)]
pub struct Pixels {
    height: usize,
    width: usize,
    /// The picture so far, u8 `[height, width, 3]`.
    pixels: Tensor,
}

impl Pixels {
    /// A canvas of one colour.
    #[track_caller]
    pub fn new(height: usize, width: usize, background: Colour) -> Pixels {
        let pixels = constant(background.0).broadcast_to([height, width, 3]);
        Pixels { height, width, pixels }
    }

    /// A canvas of one colour with a pixel for each cell of a board.
    #[track_caller]
    pub fn board(rows: usize, columns: usize) -> Pixels {
        Pixels::new(rows, columns, Colour::BLACK)
    }

    /// The y of each pixel's center, `f32[height, width]`.
    #[track_caller]
    pub fn rows(&self) -> Tensor {
        iota(F32, [self.height, self.width], 0) + 0.5
    }

    /// The x of each pixel's center, `f32[height, width]`.
    #[track_caller]
    pub fn columns(&self) -> Tensor {
        iota(F32, [self.height, self.width], 1) + 0.5
    }

    /// Paints where `mask`, bool `[height, width]`, is true.
    #[track_caller]
    pub fn paint(self, mask: Tensor, colour: Colour) -> Pixels {
        let shape = [self.height, self.width, 3];
        let mask = mask.expand_dims(-1).broadcast_to(shape);
        let pixels = select(mask, constant(colour.0).broadcast_to(shape), self.pixels);
        Pixels { pixels, ..self }
    }

    /// Paints one cell of a board, if it is on the board.
    #[track_caller]
    pub fn cell(self, row: impl IntoTensor, column: impl IntoTensor, colour: Colour) -> Pixels {
        let shape = [self.height, self.width];
        let (row, column) = (row.into_tensor().astype(I32), column.into_tensor().astype(I32));
        self.paint(iota(I32, shape, 0).eq(row) & iota(I32, shape, 1).eq(column), colour)
    }

    /// Paints a rectangle between its upper left and lower right corners.
    #[track_caller]
    pub fn rectangle(self, (left, top): Point, (right, bottom): Point, colour: Colour) -> Pixels {
        let (x, y) = (self.columns(), self.rows());
        self.paint(x.ge(left) & x.lt(right) & y.ge(top) & y.lt(bottom), colour)
    }

    /// Paints a disc.
    #[track_caller]
    pub fn disc(self, (x, y): Point, radius: f64, colour: Colour) -> Pixels {
        let distance = (self.columns() - x).square() + (self.rows() - y).square();
        self.paint(distance.le(radius * radius), colour)
    }

    /// Paints a line with round ends, `2 * radius` thick.
    #[track_caller]
    pub fn segment(self, from: Point, to: Point, radius: f64, colour: Colour) -> Pixels {
        let (dx, dy) = (to.0 - from.0, to.1 - from.1);
        let (x, y) = (self.columns() - from.0, self.rows() - from.1);
        // The nearest point of the line, as a share of its length; 1e-6 avoids a division by 0.
        let part = (x * dx + y * dy) / (dx.square() + dy.square() + 1e-6);
        let part = part.clamp(0.0, 1.0);
        let distance = (x - part * dx).square() + (y - part * dy).square();
        self.paint(distance.le(radius * radius), colour)
    }

    /// The picture, u8 `[height, width, 3]`.
    pub fn finish(self) -> Tensor {
        self.pixels
    }
}

/// The picture of a board: each plane, bool `[rows, columns]`, is painted over the planes before
/// it.
#[track_caller]
pub fn planes(rows: usize, columns: usize, planes: &[(Tensor, Colour)]) -> Tensor {
    planes
        .iter()
        .fold(Pixels::board(rows, columns), |canvas, (mask, colour)| canvas.paint(*mask, *colour))
        .finish()
}
