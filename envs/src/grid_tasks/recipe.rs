//! Recipes for drawing tasks.

use super::{GridTask, TaskShape, draw_cells, inside};
use podracer_dsl::prelude::*;

/// Numbers of each kind of object.
#[derive(Clone, Copy)]
pub(super) enum Values {
    /// The same numbers in every task.
    Fixed(&'static [f64]),
    /// Uniform on `[-1, 1)`, and for the first kind on `[0, 1)`.
    Rewards,
    /// The exponential of a uniform number between the logarithms of two numbers.
    LogUniform(f64, f64),
}

/// Walls of a world.
#[derive(Clone, Copy)]
pub(super) enum Walls {
    None,
    /// Walls at the cells (row, column) where the function returns true.
    At(fn(usize, usize) -> bool),
    /// A number of cells, drawn in a square with a number of rows.
    Random(usize, usize),
}

/// A distribution of tasks. Ranges include both ends.
#[derive(Clone, Copy)]
pub(super) struct Recipe {
    pub(super) tabular: bool,
    pub(super) sizes: (usize, usize),
    pub(super) time_limits: (usize, usize),
    /// The kind of each object.
    pub(super) kinds: &'static [usize],
    /// Numbers of objects, the first of `kinds`.
    pub(super) objects: (usize, usize),
    pub(super) reward: Values,
    pub(super) terminate: Values,
    pub(super) respawn: Values,
    pub(super) walls: Walls,
}

impl Values {
    /// The numbers for `kinds` kinds. `f32[kinds]`
    #[track_caller]
    fn draw(self, key: Key, kinds: usize) -> Tensor {
        match self {
            Values::Fixed(numbers) => {
                constant(numbers.iter().map(|&number| number as f32).collect::<Vec<_>>())
            }
            Values::Rewards => {
                let drawn = key.uniform([kinds]);
                select(arange(kinds).eq(0), drawn, 2.0 * drawn - 1.0)
            }
            Values::LogUniform(low, high) => log_uniform(key.uniform([kinds]), low, high),
        }
    }
}

/// Numbers between `low` and `high` with uniform logarithms, from `drawn` in `[0, 1)`.
#[track_caller]
fn log_uniform(drawn: Tensor, low: f64, high: f64) -> Tensor {
    (drawn * (high / low).ln() + low.ln()).exp()
}

impl Recipe {
    pub(super) fn shape(&self) -> TaskShape {
        TaskShape {
            size: self.sizes.1,
            objects: self.kinds.len(),
            kinds: self.kinds.iter().max().map_or(0, |kind| kind + 1),
            tabular: self.tabular,
        }
    }

    #[track_caller]
    pub(super) fn draw(&self, key: Key) -> GridTask {
        let TaskShape { size: rows, objects, kinds, .. } = self.shape();
        let keys = key.split_n(8);
        let between = |i: usize, (low, high): (usize, usize)| match low == high {
            true => scalar(low as i32),
            false => keys.at(i).randint([], low as i32..high as i32 + 1),
        };
        let size = between(0, self.sizes);
        let used = arange(objects).lt(between(1, self.objects));
        let (low, high) = self.time_limits;
        let time_limit = match low == high {
            true => scalar(low as i32),
            false => {
                log_uniform(keys.at(2).uniform([]), low as f64, high as f64).round().astype(I32)
            }
        };
        let walls = match self.walls {
            Walls::None => zeros(BOOL, [rows * rows]),
            Walls::At(at) => {
                let cells = (0..rows * rows).map(|cell| at(cell / rows, cell % rows));
                constant(cells.collect::<Vec<bool>>())
            }
            Walls::Random(count, square) => {
                let within = inside(rows, scalar(square as i32));
                let drawn = draw_cells(keys.at(3), within, count);
                drawn.expand_dims(-1).eq(arange(rows * rows)).any_axis(0)
            }
        };
        let places = draw_cells(keys.at(4), inside(rows, size) & !walls, objects + 1);
        let kind: Vec<i32> = self.kinds.iter().map(|&kind| kind as i32).collect();
        let of_objects = |i: usize, values: Values| {
            let of_kinds = values.draw(keys.at(i), kinds);
            let each: Vec<Tensor> = self.kinds.iter().map(|&kind| of_kinds.index(kind)).collect();
            stack(&each, 0)
        };
        GridTask {
            size,
            time_limit,
            walls,
            start: places.index(0),
            used,
            kind: constant(kind),
            cell: places.slice_axis(0, 1..objects + 1),
            reward: of_objects(5, self.reward),
            terminate: of_objects(6, self.terminate),
            respawn: of_objects(7, self.respawn),
        }
    }
}
