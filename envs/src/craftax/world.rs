//! Worlds: lakes, mountains with tunnels, caves and ores, and woods, from Perlin noise.

use super::Place;
use super::map::{CELLS, SIZE, block};
use crate::cells::{draw_cell, only};
use podracer_dsl::prelude::*;
use std::f64::consts::{SQRT_2, TAU};

/// Rows and columns of the noise lattices: lakes, mountains, tunnels, woods.
const LATTICES: [(usize, usize); 4] = [(4, 4), (4, 4), (8, 32), (16, 16)];

/// Uniform draws that determine a world.
#[derive(Tree, Clone, Copy)]
pub struct Seeds {
    /// Angles of the noise gradients, in turns, for lakes, mountains, tunnels and woods: `f32[5,
    /// 5]` twice, `f32[9, 33]`, `f32[17, 17]`
    pub angles: [Tensor; 4],
    /// Draws of coal, iron, diamonds and trees, in each cell. `f32[64, 64]` each
    pub cells: [Tensor; 4],
    /// Draw of the position of the guaranteed diamond. `f32[]`
    pub diamond: Tensor,
}

impl Seeds {
    /// All draws come from one draw, which is one kernel to compile.
    #[track_caller]
    pub(super) fn draw(key: Key) -> Seeds {
        let corners = LATTICES.map(|(rows, columns)| [rows + 1, columns + 1]);
        let count = corners.iter().map(|[rows, columns]| rows * columns).sum::<usize>();
        let draws = key.uniform([count + 4 * CELLS + 1]);
        let mut from = 0;
        let mut take = |rows: usize, columns: usize| {
            from += rows * columns;
            draws.slice(from - rows * columns..from).reshape([rows, columns])
        };
        Seeds {
            angles: corners.map(|[rows, columns]| take(rows, columns)),
            cells: [(); 4].map(|()| take(SIZE, SIZE)),
            diamond: take(1, 1).reshape([]),
        }
    }
}

/// Number of parts of the map that are made one after another.
const PARTS: usize = 4;
const ROWS: usize = SIZE / PARTS;

/// Perlin noise on a part of the map, from the gradients at the corners of a lattice: row and
/// column components, `f32[rows + 1, columns + 1]` each. `f32[ROWS, SIZE]`
#[track_caller]
fn noise(slopes: (Tensor, Tensor)) -> Tensor {
    let (rows, columns) = (slopes.0.dim(0) - 1, slopes.0.dim(1) - 1);
    let (height, width) = (ROWS / rows, SIZE / columns);
    let cells = [rows, height, columns, width];
    // The position in a cell of the lattice, from 0 to 1 along both axes.
    let y = iota(F32, cells, 1) / height as f64;
    let x = iota(F32, cells, 3) / width as f64;
    let ramp = |down: usize, right: usize| {
        let corner = |slope: Tensor| {
            let corners =
                slope.slice_axis(0, down..down + rows).slice_axis(1, right..right + columns);
            corners.reshape([rows, 1, columns, 1]).broadcast_to(cells)
        };
        (y - down as f64) * corner(slopes.0) + (x - right as f64) * corner(slopes.1)
    };
    let smooth = |t: Tensor| t * t * t * (t * (t * 6.0 - 15.0) + 10.0);
    let mix = |from: Tensor, to: Tensor, t: Tensor| from * (1.0 - t) + t * to;
    let (down, right) = (smooth(y), smooth(x));
    let noise = mix(mix(ramp(0, 0), ramp(1, 0), down), mix(ramp(0, 1), ramp(1, 1), down), right);
    noise.reshape([ROWS, SIZE]) * SQRT_2
}

/// Gradients of each part of the map, from their angles in turns, `f32[rows + 1, columns + 1]`.
/// `f32[PARTS, rows / PARTS + 1, columns + 1]` each
#[track_caller]
fn slopes(angles: Tensor) -> (Tensor, Tensor) {
    let rows = (angles.dim(0) - 1) / PARTS;
    let part = |i: usize| angles.slice_axis(0, i * rows..(i + 1) * rows + 1);
    let angles = stack(&[0, 1, 2, 3].map(part), 0) * TAU;
    (angles.cos(), angles.sin())
}

/// The position in the middle of the map, where the player begins.
pub(super) fn middle() -> Place {
    let half = SIZE as i32 / 2;
    (scalar(half), scalar(half))
}

/// Data for a part of the map. `f32[ROWS, SIZE]` each
#[derive(Tree, Clone, Copy)]
struct MapPart {
    /// Lakes, mountains, tunnels along the rows, tunnels along the columns, woods.
    noises: [Tensor; 5],
    /// Draws of coal, iron, diamonds and trees.
    draws: [Tensor; 4],
    /// Distance from the middle: 0 in the middle, 1 from five steps on.
    clear: Tensor,
}

impl MapPart {
    /// The blocks of the part. `i32[ROWS, SIZE]`
    #[track_caller]
    fn blocks(self) -> Tensor {
        let [lakes, mountains, across, along, woods] = self.noises;
        let [coal, iron, diamonds, trees] = self.draws;
        let lakes = lakes + self.clear - 1.0;
        let mountains = mountains + 0.05 + self.clear - 1.0;
        let stone = mountains.gt(0.7);
        let map = select(lakes.gt(0.6) & lakes.lt(0.75), block::SAND, block::GRASS);
        let map = select(lakes.gt(0.7), block::WATER, map);
        let map = select(stone, block::STONE, map);
        let tunnel = across.gt(0.8) | along.gt(0.8);
        let cave = mountains.gt(0.85) & lakes.gt(0.4);
        let map = select((stone & tunnel) | cave, block::PATH, map);
        let ore = |map: Tensor, here: Tensor, ore| select(map.eq(block::STONE) & here, ore, map);
        let map = ore(map, coal.lt(0.04), block::COAL);
        let map = ore(map, iron.lt(0.03), block::IRON);
        let map = ore(map, mountains.gt(0.8) & diamonds.lt(0.005), block::DIAMOND);
        let map = select(map.eq(block::GRASS) & woods.gt(0.5) & trees.gt(0.8), block::TREE, map);
        select(mountains.gt(0.85) & woods.gt(0.7), block::LAVA, map)
    }
}

impl Seeds {
    /// The blocks of the world, row by row. `u8[64 * 64]`
    ///
    /// Loops over parts of the map prevent noises, draws and blocks from being computed again by
    /// each reader.
    #[track_caller]
    pub fn blocks(&self) -> Tensor {
        let shape = [SIZE, SIZE];
        let (_, noises) = scan((), self.angles.map(slopes), |(), slopes| ((), slopes.map(noise)));
        let noises = noises.map(|noise| {
            let noise = noise.reshape(shape);
            let (low, high) = (noise.min(), noise.max());
            (noise - low) / (high - low)
        });
        let [lakes, mountains, tunnels, woods] = noises;
        let half = SIZE as i32 / 2;
        let away = |axis| (iota(I32, shape, axis) - half).abs();
        // The surroundings of the player are land.
        let clear = ((away(0) + away(1)).astype(F32) / 5.0).clamp(0.0, 1.0);
        let in_parts = |map: Tensor| map.reshape([PARTS, ROWS, SIZE]);
        let parts = MapPart {
            noises: [lakes, mountains, tunnels, tunnels.transpose(), woods].map(in_parts),
            draws: self.cells.map(in_parts),
            clear: in_parts(clear),
        };
        let (_, map) = scan((), parts, |(), part| ((), part.blocks().astype(U8)));
        let map = map.reshape(shape).astype(I32);
        let map = select(only(shape, middle()), block::GRASS, map);
        let rock = map.eq(block::STONE);
        let diamond = draw_cell(rock, self.diamond);
        // A world without stone has none.
        select(only(shape, diamond) & rock, block::DIAMOND, map).astype(U8).reshape([CELLS])
    }
}
