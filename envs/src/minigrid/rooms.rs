//! Grids of square rooms with doors between them.

use super::cell::{self, colour};
use super::{Grid, World, between};
use crate::cells::draw_cell;
use podracer_dsl::prelude::*;

/// Rooms side by side, with shared walls.
#[derive(Clone, Copy)]
pub(super) struct Rooms {
    pub rows: usize,
    pub columns: usize,
    /// Rows and columns of a room, walls included.
    pub size: usize,
}

impl Rooms {
    /// Distance between two rooms, in rows or columns.
    pub(super) fn pitch(&self) -> i32 {
        self.size as i32 - 1
    }

    pub(super) fn extents(&self) -> (usize, usize) {
        let extent = |rooms: usize| (self.size - 1) * rooms + 1;
        (extent(self.rows), extent(self.columns))
    }

    /// The rooms, without doors.
    #[track_caller]
    pub(super) fn grid(&self) -> Grid {
        let grid = Grid::new(self.extents());
        let (row, column) = grid.places();
        grid.with((row % self.pitch()).eq(0) | (column % self.pitch()).eq(0), cell::WALL)
    }

    /// A room with its walls, by its row and column among the rooms. `bool[rows, columns]`
    #[track_caller]
    fn room(&self, grid: &Grid, row: impl IntoTensor, column: impl IntoTensor) -> Tensor {
        let from = |room: Tensor| room * self.pitch();
        let (top, left) = (from(row.into_tensor()), from(column.into_tensor()));
        grid.within((top, top + self.pitch()), (left, left + self.pitch()))
    }

    /// A cell for a thing in a room. In the middle room, it is not next to the middle, because the
    /// package has the agent there at first.
    #[track_caller]
    pub(super) fn spot(
        &self,
        grid: &Grid,
        (row, column): (impl IntoTensor, impl IntoTensor),
        draw: Tensor,
    ) -> (Tensor, Tensor) {
        let middle = |rooms: usize| ((rooms / 2) * (self.size - 1) + self.size / 2) as i32;
        let (rows, columns) = grid.places();
        let away = (rows - middle(self.rows)).abs() + (columns - middle(self.columns)).abs();
        grid.spot(self.room(grid, row, column) & away.ge(2), draw)
    }

    /// The world with the agent in a room, in any free cell and direction with nothing or a wall in
    /// front.
    #[track_caller]
    pub(super) fn entered(&self, grid: Grid, (row, column): (usize, usize), draw: Tensor) -> World {
        let (rows, columns) = self.extents();
        let free = grid.empty() & self.room(&grid, row as i32, column as i32);
        let clear = grid.empty() | grid.cells.eq(cell::WALL);
        let around = clear.pad(&[(1, 1), (1, 1)], false);
        // The cells in front for each direction: right, down, left, up.
        let ways = [(1, 2), (2, 1), (1, 0), (0, 1)].map(|(down, right)| {
            let front = around.slice_axis(0, down..down + rows);
            free & front.slice_axis(1, right..right + columns)
        });
        let (place, column) = draw_cell(concatenate(&ways, 0), draw);
        let rows = rows as i32;
        grid.world((place % rows, column), place / rows)
    }
}

/// The number of a colour, by a draw.
#[track_caller]
pub(super) fn drawn_colour(draw: Tensor) -> Tensor {
    between(draw, 0, colour::COUNT as i32)
}
