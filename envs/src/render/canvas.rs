//! The canvas that pictures are painted on.
//!
//! # Invariants
//! - Coordinates are in units: x to the right and y down from the upper left corner.
//! - Pixels are f32 from 0 to 255 until [`Canvas::finish`], so that transparent layers add no rounding errors.

use podracer_dsl::prelude::*;

use super::text::{self, Align};
use super::{Colour, Paint, Shape};

/// Pixels of the longer side of a picture, about.
const SIDE: usize = 320;
/// Least number of pixels of a cell's side.
const LEAST: usize = 4;

/// A picture in construction. Each shape is painted over the shapes before it.
#[derive(Clone, Copy)]
pub struct Canvas {
    /// Height and width in pixels.
    pub(super) size: [usize; 2],
    /// Rows and columns of a board, or one row and one column.
    pub(super) grid: [usize; 2],
    /// Pixels per unit.
    pub(super) scale: f64,
    /// The picture so far, f32 `[height, width, 3]`.
    pub(super) pixels: Tensor,
}

impl Canvas {
    /// A canvas of one colour, with its height and width in units. The longer side has about 320 pixels.
    ///
    /// # Panics
    /// Sides that are not positive and finite.
    #[track_caller]
    pub fn new(height: f64, width: f64, background: Colour) -> Canvas {
        assert!(height > 0.0 && width > 0.0 && height.max(width).is_finite(), "sides are positive");
        let scale = SIDE as f64 / height.max(width);
        let size = [height, width].map(|side| ((side * scale).round() as usize).max(1));
        Canvas::of_pixels(size, [1, 1], scale, background)
    }

    /// A canvas for a board, with one unit per cell. A cell has a whole number of pixels, at least 4, and if possible the longer side has
    /// 256 to 400.
    #[track_caller]
    pub fn board(rows: usize, columns: usize, background: Colour) -> Canvas {
        let longer = rows.max(columns);
        let cell = ((SIDE + longer / 2) / longer).max(LEAST);
        Canvas::of_pixels([rows * cell, columns * cell], [rows, columns], cell as f64, background)
    }

    #[track_caller]
    pub(super) fn of_pixels(
        size: [usize; 2],
        grid: [usize; 2],
        scale: f64,
        background: Colour,
    ) -> Canvas {
        let pixels = background.tensor().broadcast_to([size[0], size[1], 3]);
        Canvas { size, grid, scale, pixels }
    }

    /// Pixels of a cell's side.
    pub(super) fn cell_side(&self) -> usize {
        self.size[0] / self.grid[0]
    }

    /// The coordinates of the centers of `pixels` pixels, f32 `[pixels]`, in units.
    #[track_caller]
    fn centers(&self, pixels: usize) -> Tensor {
        (iota(F32, [pixels], 0) + 0.5) * (1.0 / self.scale)
    }

    /// The share of each pixel that a shape covers, in a part of `height` by `width` pixels at the origin. f32 `[height, width]`
    #[track_caller]
    pub(super) fn coverage(&self, shape: &Shape, [height, width]: [usize; 2]) -> Tensor {
        let (x, y) = (self.centers(width).expand_dims(0), self.centers(height).expand_dims(1));
        let distance = shape.distance(x, y);
        (0.5 - distance * self.scale).clamp(0.0, 1.0).broadcast_to([height, width])
    }

    /// Blends a colour, f32 that broadcasts with `[height, width, 3]`, by coverage, f32 `[height, width]`.
    #[track_caller]
    pub(super) fn blend(self, coverage: Tensor, colour: Tensor) -> Canvas {
        let pixels = self.pixels + (colour - self.pixels) * coverage.expand_dims(2);
        Canvas { pixels, ..self }
    }

    /// Fills a shape.
    #[track_caller]
    pub fn fill(self, shape: &Shape, colour: impl Into<Paint>) -> Canvas {
        self.fill_alpha(shape, colour, 1.0)
    }

    /// Fills a shape with a transparent colour: `alpha`, f32 `[]`, is 0 for nothing and 1 for an opaque colour.
    #[track_caller]
    pub fn fill_alpha(
        self,
        shape: &Shape,
        colour: impl Into<Paint>,
        alpha: impl IntoTensor,
    ) -> Canvas {
        let coverage = self.coverage(shape, self.size) * alpha.into_tensor();
        let colour = colour.into().tensor().reshape([1, 1, 3]);
        self.blend(coverage, colour)
    }

    /// Fills a shape with a colour per pixel: `colour` makes f32 `[height, width, 3]` of the coordinates x, `[1, width]`, and y,
    /// `[height, 1]`.
    #[track_caller]
    pub fn fill_with(self, shape: &Shape, colour: impl Fn(Tensor, Tensor) -> Tensor) -> Canvas {
        let [height, width] = self.size;
        let (x, y) = (self.centers(width).expand_dims(0), self.centers(height).expand_dims(1));
        self.blend(self.coverage(shape, self.size), colour(x, y))
    }

    /// Fills the squares of a small picture that have the character `ink` in its rows. The picture covers the whole canvas, usually a
    /// [tile](Canvas::tile).
    #[track_caller]
    pub fn sprite(self, rows: &[&str], ink: char, colour: impl Into<Paint>) -> Canvas {
        let [height, width] = self.size;
        let inked = |i: usize| {
            let row = rows.get(i / width * rows.len() / height);
            let columns = row.map_or(0, |row| row.chars().count());
            row.and_then(|row| row.chars().nth(i % width * columns / width)) == Some(ink)
        };
        let inked: Vec<bool> = (0..height * width).map(inked).collect();
        let colour = colour.into().tensor().reshape([1, 1, 3]);
        self.blend(constant(inked).reshape(self.size).astype(F32), colour)
    }

    /// Writes text with the height of its capital letters in units. (x, y) is the middle of the capital letters' height, at the side
    /// that `align` names.
    #[track_caller]
    pub fn text(
        self,
        text: &str,
        (x, y): (f64, f64),
        size: f64,
        align: Align,
        colour: impl Into<Paint>,
    ) -> Canvas {
        let drawn = text::raster(text, size * self.scale);
        let left = (x * self.scale).round() as i64 - drawn.offset(align);
        let top = (y * self.scale - drawn.middle()).round() as i64;
        let coverage = drawn.coverage();
        self.stamp(coverage, (top, left), colour.into())
    }

    /// Writes a whole number of the program, i32 `[]` from 0, with at most `digits` digits; greater numbers show nines. (x, y) is
    /// the middle of the left side.
    #[track_caller]
    pub fn number(
        self,
        value: Tensor,
        digits: u32,
        (x, y): (f64, f64),
        size: f64,
        colour: impl Into<Paint>,
    ) -> Canvas {
        let (coverage, middle) = text::number(value, digits, size * self.scale);
        let left = (x * self.scale).round() as i64;
        let top = (y * self.scale - middle).round() as i64;
        self.stamp(coverage, (top, left), colour.into())
    }

    /// Blends a colour by coverage, f32 `[height, width]`, with its upper left corner at a pixel. Parts outside of the canvas are cut off.
    #[track_caller]
    fn stamp(self, coverage: Tensor, (top, left): (i64, i64), colour: Paint) -> Canvas {
        let [height, width] = [0, 1].map(|axis| coverage.dim(axis) as i64);
        let around = |before: i64, extent: i64, all: usize| (before, all as i64 - before - extent);
        let padding = [around(top, height, self.size[0]), around(left, width, self.size[1])];
        let visible = padding.iter().zip([height, width]);
        if visible
            .into_iter()
            .any(|(&(before, after), extent)| before + extent <= 0 || after + extent <= 0)
        {
            return self;
        }
        self.blend(coverage.pad(&padding, 0.0), colour.tensor().reshape([1, 1, 3]))
    }

    /// The picture, u8 `[height, width, 3]`.
    #[track_caller]
    pub fn finish(self) -> Tensor {
        (self.pixels.clamp(0.0, 255.0) + 0.5).astype(U8)
    }
}
