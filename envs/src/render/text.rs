//! Text as coverage, rasterised while tracing.
//!
//! # Invariants
//! - A character occupies a whole number of pixels, and is rasterised by itself: the digits of a traced number have the pixels of the same
//!   digits in constant text.

use podracer_dsl::prelude::*;

use super::glyphs::{CAPITAL, glyph, lines};

/// Space around a glyph, in the grid's units (a capital letter is eight units high): to its sides, above and below.
const SIDE: f64 = 1.1;
const ABOVE: f64 = 1.0;
const BELOW: f64 = 4.0;
/// Half the thickness of strokes, in the grid's units and at least in pixels.
const RADIUS: f64 = 0.62;
const THINNEST: f64 = 0.6;

/// The side of text that is at its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// The left side of the text.
    Left,
    /// The middle of the text.
    Center,
    /// The right side of the text.
    Right,
}

/// Coverage of text, 0 to 255.
pub(super) struct Raster {
    height: usize,
    width: usize,
    /// `height * width` numbers, row by row.
    pixels: Vec<u8>,
    /// Pixels per unit of the grid.
    scale: f64,
}

impl Raster {
    /// Pixels from the left side to the position.
    pub(super) fn offset(&self, align: Align) -> i64 {
        match align {
            Align::Left => 0,
            Align::Center => self.width as i64 / 2,
            Align::Right => self.width as i64,
        }
    }

    /// Pixels from the top to the middle of capital letters.
    pub(super) fn middle(&self) -> f64 {
        middle(self.scale)
    }

    /// The coverage, f32 `[height, width]`.
    #[track_caller]
    pub(super) fn coverage(self) -> Tensor {
        let pixels = constant(self.pixels).reshape([self.height, self.width]);
        pixels.astype(F32) * (1.0 / 255.0)
    }
}

fn middle(scale: f64) -> f64 {
    (ABOVE + CAPITAL / 2.0) * scale
}

/// Text in one line with capital letters of this height in pixels.
pub(super) fn raster(text: &str, capital: f64) -> Raster {
    let scale = capital / CAPITAL;
    let letters: Vec<Raster> = text.chars().map(|letter| character(letter, scale)).collect();
    let height = letters.first().map_or(1, |letter| letter.height);
    let width = letters.iter().map(|letter| letter.width).sum::<usize>();
    let row = |row: usize| {
        letters.iter().flat_map(move |letter| &letter.pixels[row * letter.width..][..letter.width])
    };
    let pixels = (0..height).flat_map(row).copied().collect();
    Raster { height, width, pixels, scale }
}

/// One character.
fn character(letter: char, scale: f64) -> Raster {
    let width = ((f64::from(glyph(letter).0) + 2.0 * SIDE) * scale).round().max(1.0) as usize;
    let height = ((ABOVE + CAPITAL + BELOW) * scale).ceil().max(1.0) as usize;
    // The glyph is in the middle of its pixels.
    let left = (width as f64 - f64::from(glyph(letter).0) * scale) / 2.0;
    let radius = (RADIUS * scale).max(THINNEST);
    let place = |(x, y): (f64, f64)| (left + x * scale, (ABOVE + y) * scale);
    let strokes: Vec<Vec<_>> =
        lines(letter).into_iter().map(|line| line.into_iter().map(place).collect()).collect();
    let pixel = |i: usize| {
        let (x, y) = ((i % width) as f64 + 0.5, (i / width) as f64 + 0.5);
        let distance = strokes.iter().map(|line| distance(line, x, y)).fold(f64::MAX, f64::min);
        ((0.5 - (distance - radius)).clamp(0.0, 1.0) * 255.0).round() as u8
    };
    Raster { height, width, pixels: (0..height * width).map(pixel).collect(), scale }
}

/// The distance of a point from a line with these corners.
fn distance(line: &[(f64, f64)], x: f64, y: f64) -> f64 {
    let to = |(cx, cy): (f64, f64)| (x - cx).hypot(y - cy);
    let pieces = line.windows(2).map(|ends| {
        let ((left, top), (right, bottom)) = (ends[0], ends[1]);
        let (dx, dy) = (right - left, bottom - top);
        let along = ((x - left) * dx + (y - top) * dy) / (dx * dx + dy * dy).max(1e-9);
        let part = along.clamp(0.0, 1.0);
        to((left + part * dx, top + part * dy))
    });
    pieces.fold(line.first().map_or(f64::MAX, |&first| to(first)), f64::min)
}

/// The coverage of each digit, f32 `[10, height, width]`, and the pixels from its top to its middle.
#[track_caller]
fn digits_table(capital: f64) -> (Tensor, f64) {
    let scale = capital / CAPITAL;
    let table: Vec<Tensor> = ('0'..='9').map(|digit| character(digit, scale).coverage()).collect();
    (stack(&table, 0), middle(scale))
}

/// Digits, i32 of any shape with -1 for none, as coverage next to each other along the last axis: `[.., digits]` becomes f32
/// `[n, height, digits * width]`.
#[track_caller]
fn written(digits: Tensor, table: Tensor) -> Tensor {
    let (count, height, width) = (digits.dim(-1), table.dim(1), table.dim(2));
    let one_hot = digits.reshape([digits.elements(), 1]).eq(arange(10)).astype(F32);
    let shown = one_hot.matmul(table.reshape([10, height * width]));
    let numbers = digits.elements() / count;
    let by_row = shown.reshape([numbers, count, height, width]).swap_axes(1, 2);
    by_row.reshape([numbers, height, count * width])
}

/// 10 to the power of a place.
fn power(place: u32) -> i32 {
    10i32.pow(place)
}

/// The greatest number with this number of digits.
fn most(digits: u32) -> i32 {
    power(digits - 1) - 1 + 9 * power(digits - 1)
}

/// The coverage of a whole number from its left side, f32 `[height, digits * width]`, and the pixels from its top to the middle of the
/// digits.
#[track_caller]
pub(super) fn number(value: Tensor, digits: u32, capital: f64) -> (Tensor, f64) {
    let (table, middle) = digits_table(capital);
    let value = value.astype(I32).clamp(0, most(digits));
    // Number of digits after the first.
    let after = (1..digits).fold(scalar(0), |sum, place| sum + value.ge(power(place)).astype(I32));
    let places = after - arange(digits as usize);
    let powers: Vec<i32> = (0..digits).map(power).collect();
    let power = constant(powers).take(places.maximum(0), 0);
    let digit = select(places.ge(0), (value / power).rem(10), -1);
    (written(digit, table).index(0), middle)
}

/// The coverage of numbers with exactly `count` digits of at most `digits`, f32 `[n, height, count * width]`, without coverage for other
/// numbers; and the pixels from its top to the middle of the digits. `values` is i32 `[n]`.
#[track_caller]
pub(super) fn numbers(values: Tensor, count: u32, digits: u32, capital: f64) -> (Tensor, f64) {
    let (table, middle) = digits_table(capital);
    let values = values.astype(I32).minimum(most(digits));
    let least = if count == 1 { 0 } else { power(count - 1) };
    let shown = (values.ge(least) & values.le(most(count))).expand_dims(1);
    let powers: Vec<i32> = (0..count).rev().map(power).collect();
    let digit = (values.maximum(0).expand_dims(1) / constant(powers).expand_dims(0)).rem(10);
    (written(select(shown, digit, -1), table), middle)
}
