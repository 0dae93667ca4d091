//! Pictures of states, drawn in the DSL: [`Environment::render`](crate::Environment::render) makes
//! a picture of a state, in any program. A terminal and a GIF show the same picture, each with its
//! own scaling.
//!
//! A picture is u8 `[height, width, 3]`: red, green and blue. If the state is a board, a cell is
//! one pixel.

use podracer_dsl::prelude::*;

/// A colour: red, green and blue, from 0 to 255.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Colour(pub [u8; 3]);

/// Colours that are distinguishable on dark and on light terminals.
#[allow(missing_docs, reason = "the names say it")]
impl Colour {
    pub const BLACK: Colour = Colour([16, 16, 24]);
    pub const WHITE: Colour = Colour([240, 240, 240]);
    pub const GREY: Colour = Colour([128, 128, 136]);
    pub const RED: Colour = Colour([220, 60, 60]);
    pub const GREEN: Colour = Colour([70, 190, 90]);
    pub const BLUE: Colour = Colour([70, 110, 230]);
    pub const YELLOW: Colour = Colour([240, 200, 60]);
    pub const CYAN: Colour = Colour([70, 200, 220]);
    pub const MAGENTA: Colour = Colour([200, 90, 200]);
    pub const ORANGE: Colour = Colour([240, 140, 50]);
    pub const SKY: Colour = Colour([40, 60, 100]);
    pub const GROUND: Colour = Colour([80, 110, 80]);
    /// Colours for several objects of one kind.
    pub const SEVERAL: [Colour; 10] = [
        Colour::RED,
        Colour::GREEN,
        Colour::BLUE,
        Colour::YELLOW,
        Colour::CYAN,
        Colour::MAGENTA,
        Colour::ORANGE,
        Colour::WHITE,
        Colour([150, 110, 220]),
        Colour([130, 160, 60]),
    ];
}

/// A point in pixels: x to the right and y down from the upper left corner, both `f32[]`. Pixel
/// centers are at half-integers.
pub type Point = (Tensor, Tensor);

/// A picture in construction. Each shape is painted over the shapes before it.
#[derive(Clone, Copy)]
pub struct Canvas {
    height: usize,
    width: usize,
    /// The picture so far, u8 `[height, width, 3]`.
    pixels: Tensor,
}

impl Canvas {
    /// A canvas of one colour.
    #[track_caller]
    pub fn new(height: usize, width: usize, background: Colour) -> Canvas {
        let pixels = constant(background.0).broadcast_to([height, width, 3]);
        Canvas { height, width, pixels }
    }

    /// A canvas of one colour with a pixel for each cell of a board.
    #[track_caller]
    pub fn board(rows: usize, columns: usize) -> Canvas {
        Canvas::new(rows, columns, Colour::BLACK)
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
    pub fn paint(self, mask: Tensor, colour: Colour) -> Canvas {
        let shape = [self.height, self.width, 3];
        let mask = mask.expand_dims(-1).broadcast_to(shape);
        let pixels = select(mask, constant(colour.0).broadcast_to(shape), self.pixels);
        Canvas { pixels, ..self }
    }

    /// Paints one cell of a board, if it is on the board.
    #[track_caller]
    pub fn cell(self, row: impl IntoTensor, column: impl IntoTensor, colour: Colour) -> Canvas {
        let shape = [self.height, self.width];
        let (row, column) = (row.into_tensor().astype(I32), column.into_tensor().astype(I32));
        self.paint(iota(I32, shape, 0).eq(row) & iota(I32, shape, 1).eq(column), colour)
    }

    /// Paints a rectangle between its upper left and lower right corners.
    #[track_caller]
    pub fn rectangle(self, (left, top): Point, (right, bottom): Point, colour: Colour) -> Canvas {
        let (x, y) = (self.columns(), self.rows());
        self.paint(x.ge(left) & x.lt(right) & y.ge(top) & y.lt(bottom), colour)
    }

    /// Paints a disc.
    #[track_caller]
    pub fn disc(self, (x, y): Point, radius: f64, colour: Colour) -> Canvas {
        let distance = (self.columns() - x).square() + (self.rows() - y).square();
        self.paint(distance.le(radius * radius), colour)
    }

    /// Paints a line with round ends, `2 * radius` thick.
    #[track_caller]
    pub fn segment(self, from: Point, to: Point, radius: f64, colour: Colour) -> Canvas {
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
        .fold(Canvas::board(rows, columns), |canvas, (mask, colour)| canvas.paint(*mask, *colour))
        .finish()
}
