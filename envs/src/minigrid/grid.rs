//! Grids in construction, and random positions in them.

use super::World;
use super::cell;
use crate::cells::{self, draw_cell};
use podracer_dsl::prelude::*;

/// A grid in construction.
#[derive(Clone, Copy)]
pub(super) struct Grid {
    rows: usize,
    columns: usize,
    /// The code of each cell. `i32[rows, columns]`
    pub(super) cells: Tensor,
}

impl Grid {
    /// A grid of empty cells.
    #[track_caller]
    pub(super) fn new((rows, columns): (usize, usize)) -> Grid {
        Grid { rows, columns, cells: full([rows, columns], cell::EMPTY) }
    }

    /// A grid with a wall around it.
    #[track_caller]
    pub(super) fn walled(extents: (usize, usize)) -> Grid {
        let grid = Grid::new(extents);
        let (row, column) = grid.places();
        let (last_row, last_column) = (extents.0 as i32 - 1, extents.1 as i32 - 1);
        grid.with(row.eq(0) | row.eq(last_row) | column.eq(0) | column.eq(last_column), cell::WALL)
    }

    /// Numbers of each cell's row and column. `i32[rows, columns]` each
    #[track_caller]
    pub(super) fn places(&self) -> (Tensor, Tensor) {
        let number = |axis| iota(I32, [self.rows, self.columns], axis);
        (number(0), number(1))
    }

    /// The same grid with a code in the cells of a mask.
    #[track_caller]
    pub(super) fn with(self, mask: Tensor, code: impl IntoTensor) -> Grid {
        Grid { cells: select(mask, code, self.cells), ..self }
    }

    /// The same grid with a code in one cell.
    #[track_caller]
    pub(super) fn put(self, place: (Tensor, Tensor), code: impl IntoTensor) -> Grid {
        self.with(self.only(place), code)
    }

    /// A mask of one cell. `bool[rows, columns]`
    #[track_caller]
    pub(super) fn only(&self, place: (Tensor, Tensor)) -> Tensor {
        cells::only([self.rows, self.columns], place)
    }

    /// The cells in a rectangle between two rows and two columns, inclusive. `bool[rows, columns]`
    #[track_caller]
    pub(super) fn within(
        &self,
        (top, bottom): (impl IntoTensor, impl IntoTensor),
        (left, right): (impl IntoTensor, impl IntoTensor),
    ) -> Tensor {
        let (row, column) = self.places();
        row.ge(top) & row.le(bottom) & column.ge(left) & column.le(right)
    }

    /// The empty cells. `bool[rows, columns]`
    #[track_caller]
    pub(super) fn empty(&self) -> Tensor {
        self.cells.eq(cell::EMPTY)
    }

    /// An empty cell within a mask, drawn uniformly by `f32[]`: row and column.
    #[track_caller]
    pub(super) fn spot(&self, allowed: Tensor, draw: Tensor) -> (Tensor, Tensor) {
        draw_cell(self.empty() & allowed, draw)
    }

    /// The world with the agent in a cell.
    #[track_caller]
    pub(super) fn world(self, (row, column): (Tensor, Tensor), direction: Tensor) -> World {
        let cells = self.cells.astype(U8).flatten();
        World { cells, row, column, direction, carried: scalar(0) }
    }

    /// The same grid with the goal in the lower right corner.
    #[track_caller]
    pub(super) fn with_goal(self) -> Grid {
        let corner = |extent: usize| scalar(extent as i32 - 2);
        self.put((corner(self.rows), corner(self.columns)), cell::GOAL)
    }

    /// The world with the agent in the upper left corner, or anywhere.
    #[track_caller]
    pub(super) fn entered(self, anywhere: bool, key: Key) -> World {
        if !anywhere {
            return self.world((scalar(1), scalar(1)), scalar(0));
        }
        let draws = key.uniform([2]);
        let anywhere = constant(true).broadcast_to([self.rows, self.columns]);
        let place = self.spot(anywhere, draws.index(0));
        self.world(place, between(draws.index(1), 0, 4))
    }
}

/// The code of a thing with a colour, by the colour's number.
#[track_caller]
pub(super) fn painted(kind: i32, colour: Tensor) -> Tensor {
    colour * 16 + kind
}

/// An integer from `low` to below `high`, `i32[]` each, drawn uniformly by `f32[]`.
#[track_caller]
pub(super) fn between(draw: Tensor, low: impl IntoTensor, high: impl IntoTensor) -> Tensor {
    let (low, high) = (low.into_tensor().astype(I32), high.into_tensor().astype(I32));
    let drawn = low + (draw * (high - low).astype(F32)).astype(I32);
    // A draw close to 1 may be rounded up.
    drawn.minimum(high - 1)
}
