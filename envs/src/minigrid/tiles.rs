//! Pictures of cells: each is a tile of eight by eight pixels, drawn on the host as in the package.
//!
//! # Invariants
//! - A tile is painted with three by three points per pixel; the pixel is their mean.

use super::cell::{code, colour, kind};
use podracer_dsl::prelude::*;
use std::f64::consts::FRAC_PI_2;

/// Pixels of a tile along each side.
pub(super) const PIXELS: usize = 8;
/// Points of a pixel along each side.
const POINTS: usize = 3;
const SIDE: usize = PIXELS * POINTS;
/// Greatest number of codes of a cell.
const CODES: usize = 128;

type Rgb = [u8; 3];

const BLACK: Rgb = [0, 0, 0];
const LINES: Rgb = [100, 100, 100];
const AGENT: Rgb = [255, 0, 0];
const LAVA: Rgb = [255, 128, 0];

/// The colours by their numbers.
const COLOURS: [Rgb; colour::COUNT] =
    [[255, 0, 0], [0, 255, 0], [0, 0, 255], [112, 39, 195], [255, 255, 0], [100, 100, 100]];

/// Light on the cells of a grid, and the agent in it.
pub(super) struct Look {
    /// True for cells that are lighter. `bool[rows, columns]`
    pub lit: Tensor,
    /// True for the agent's cell. `bool[rows, columns]`
    pub agent: Tensor,
    /// Direction of the agent's view. `i32[]`
    pub direction: Tensor,
}

impl Look {
    /// The picture of cells with these codes, `i32[rows, columns]`. `u8[8 * rows, 8 * columns, 3]`
    #[track_caller]
    pub(super) fn draw(&self, codes: Tensor) -> Tensor {
        let [rows, columns] = [0, 1].map(|axis| codes.dim(axis));
        let set = select(self.agent, self.direction + 2, self.lit.astype(I32));
        let tiles = all().take(set * CODES as i32 + codes, 0);
        let picture = tiles.permute([0, 2, 1, 3, 4]);
        picture.reshape([rows * PIXELS, columns * PIXELS, 3])
    }
}

/// The tiles of every code: as they are, lighter, and lighter with the agent in each of four
/// directions. `u8[6 * 128, 8, 8, 3]`
#[track_caller]
fn all() -> Tensor {
    let agent = |direction| (Some(direction), true);
    let sets = [(None, false), (None, true), agent(0), agent(1), agent(2), agent(3)];
    let codes = 0..CODES as i32;
    let tiles = sets
        .into_iter()
        .flat_map(|(agent, lit)| codes.clone().flat_map(move |of| tile(of, agent, lit)));
    let bytes: Vec<u8> = tiles.collect();
    let ty = u8([sets.len() * CODES, PIXELS, PIXELS, 3]).0;
    constant_of(&Array::from_bytes(ty, bytes).expect("a byte for each element"))
}

/// A tile in construction, point by point.
struct Tile([[Rgb; SIDE]; SIDE]);

impl Tile {
    /// Paints the points where `inside(x, y)` holds; x and y run from 0 to 1 to the right and down.
    fn paint(&mut self, colour: Rgb, inside: impl Fn(f64, f64) -> bool) {
        let middle = |point: usize| (point as f64 + 0.5) / SIDE as f64;
        for (y, row) in self.0.iter_mut().enumerate() {
            for (x, point) in row.iter_mut().enumerate() {
                if inside(middle(x), middle(y)) {
                    *point = colour;
                }
            }
        }
    }

    fn rectangle(&mut self, colour: Rgb, [left, right]: [f64; 2], [top, bottom]: [f64; 2]) {
        self.paint(colour, |x, y| x >= left && x <= right && y >= top && y <= bottom);
    }

    fn square(&mut self, colour: Rgb, low: f64, high: f64) {
        self.rectangle(colour, [low, high], [low, high]);
    }

    fn disc(&mut self, colour: Rgb, (cx, cy): (f64, f64), radius: f64) {
        self.paint(colour, |x, y| (x - cx).powi(2) + (y - cy).powi(2) <= radius * radius);
    }

    fn line(&mut self, colour: Rgb, from: (f64, f64), to: (f64, f64), radius: f64) {
        let (dx, dy) = (to.0 - from.0, to.1 - from.1);
        let length = dx.hypot(dy);
        self.paint(colour, |x, y| {
            let (x, y) = (x - from.0, y - from.1);
            let along = ((x * dx + y * dy) / length).clamp(0.0, length);
            (x - along * dx / length).hypot(y - along * dy / length) <= radius
        });
    }

    fn door(&mut self, which: i32, colour: Rgb) {
        match which {
            kind::OPEN_DOOR => {
                self.rectangle(colour, [0.88, 1.0], [0.0, 1.0]);
                self.rectangle(BLACK, [0.92, 0.96], [0.04, 0.96]);
            }
            kind::LOCKED_DOOR => {
                self.square(colour, 0.0, 1.0);
                self.square(colour.map(|part| (0.45 * f64::from(part)) as u8), 0.06, 0.94);
                self.rectangle(colour, [0.52, 0.75], [0.5, 0.56]);
            }
            _ => {
                self.square(colour, 0.0, 1.0);
                self.square(BLACK, 0.04, 0.96);
                self.square(colour, 0.08, 0.92);
                self.square(BLACK, 0.12, 0.88);
                self.disc(colour, (0.75, 0.5), 0.08);
            }
        }
    }

    fn thing(&mut self, which: i32, colour: Rgb) {
        match which {
            kind::WALL | kind::GOAL => self.square(colour, 0.0, 1.0),
            kind::FLOOR => self.square(colour.map(|part| part / 2), 0.031, 1.0),
            kind::OPEN_DOOR | kind::CLOSED_DOOR | kind::LOCKED_DOOR => self.door(which, colour),
            kind::KEY => {
                self.rectangle(colour, [0.5, 0.63], [0.31, 0.88]);
                self.rectangle(colour, [0.38, 0.5], [0.59, 0.66]);
                self.rectangle(colour, [0.38, 0.5], [0.81, 0.88]);
                self.disc(colour, (0.56, 0.28), 0.19);
                self.disc(BLACK, (0.56, 0.28), 0.064);
            }
            kind::BALL => self.disc(colour, (0.5, 0.5), 0.31),
            kind::BOX => {
                self.square(colour, 0.12, 0.88);
                self.square(BLACK, 0.18, 0.82);
                self.rectangle(colour, [0.16, 0.84], [0.47, 0.53]);
            }
            kind::LAVA => {
                self.square(LAVA, 0.0, 1.0);
                for (high, low) in [(0.3, 0.4), (0.5, 0.6), (0.7, 0.8)] {
                    for (from, ends) in [(0.1, [high, low]), (0.3, [low, high])] {
                        for from in [from, from + 0.4] {
                            self.line(BLACK, (from, ends[0]), (from + 0.2, ends[1]), 0.03);
                        }
                    }
                }
            }
            _ => {}
        }
    }

    /// A triangle that points in a direction.
    fn agent(&mut self, direction: usize) {
        let (sine, cosine) = (direction as f64 * -FRAC_PI_2).sin_cos();
        self.paint(AGENT, |x, y| {
            let (x, y) = (x - 0.5, y - 0.5);
            let (x, y) = (0.5 + x * cosine - y * sine, 0.5 + y * cosine + x * sine);
            // Between the edges from the back to the tip, and in front of the back.
            let reach = (0.87 - x) / 0.75 * 0.31;
            x >= 0.12 && (y - 0.5).abs() <= reach
        });
    }

    fn lighter(&mut self) {
        for part in self.0.iter_mut().flatten().flatten() {
            *part = (f64::from(*part) + 0.3 * f64::from(255 - *part)) as u8;
        }
    }

    /// The pixels, each the mean of its points.
    fn pixels(&self) -> Vec<u8> {
        let mut pixels = Vec::with_capacity(PIXELS * PIXELS * 3);
        for (y, x) in (0..PIXELS).flat_map(|y| (0..PIXELS).map(move |x| (y, x))) {
            for part in 0..3 {
                // The mean of a row comes first, and then the mean of rows, which determines the
                // rounding.
                let row = |row: usize| {
                    let points = &self.0[y * POINTS + row][x * POINTS..][..POINTS];
                    points.iter().map(|point| f64::from(point[part])).sum::<f64>() / POINTS as f64
                };
                pixels.push(((0..POINTS).map(row).sum::<f64>() / POINTS as f64) as u8);
            }
        }
        pixels
    }
}

/// The pixels of a cell with this code. `u8[8, 8, 3]`
fn tile(of: i32, agent: Option<usize>, lit: bool) -> Vec<u8> {
    let mut tile = Tile([[BLACK; SIDE]; SIDE]);
    tile.rectangle(LINES, [0.0, 0.031], [0.0, 1.0]);
    tile.rectangle(LINES, [0.0, 1.0], [0.0, 0.031]);
    let (which, number) = (of & 15, of / 16);
    if let Some(&colour) = COLOURS.get(number as usize) {
        debug_assert_eq!(code(which, number), of);
        tile.thing(which, colour);
    }
    if let Some(direction) = agent {
        tile.agent(direction);
    }
    if lit {
        tile.lighter();
    }
    tile.pixels()
}
