//! Canvases of boards: shapes, tiles and numbers in cells.
//!
//! # Invariants
//! - A cell is a unit, and has a whole number of pixels: a picture of one cell is spread over the board by broadcasts, so that the size
//!   of a program does not depend on the number of cells.

use podracer_dsl::prelude::*;

use super::{Canvas, Colour, Paint, Shape, text};

impl Canvas {
    /// A canvas for one cell of this board, as background of [`Canvas::tiles`]: one unit high and wide.
    #[track_caller]
    pub fn tile(&self, background: Colour) -> Canvas {
        let cell = self.cell_side();
        Canvas::of_pixels([cell, cell], [1, 1], self.scale, background)
    }

    /// Fills a shape in each cell of the board where `mask`, bool or f32 `[rows, columns]`, is true; a number is an alpha. The
    /// shape has the coordinates of a cell, from 0 to 1, and is cut off at the cell's edges. The colour may be one per cell.
    #[track_caller]
    pub fn fill_cells(self, mask: Tensor, shape: &Shape, colour: impl Into<Paint>) -> Canvas {
        let ([rows, columns], cell) = (self.grid, self.cell_side());
        let part = self.coverage(shape, [cell, cell]).reshape([1, cell, 1, cell]);
        let mask = mask.astype(F32).reshape([rows, 1, columns, 1]);
        let colour = colour.into().tensor();
        let colour = match colour.rank() {
            1 => colour.reshape([1, 1, 3]),
            _ => colour
                .reshape([rows, 1, columns, 1, 3])
                .broadcast_to([rows, cell, columns, cell, 3])
                .reshape([self.size[0], self.size[1], 3]),
        };
        self.blend((mask * part).reshape(self.size), colour)
    }

    /// Fills whole cells of the board where `mask`, bool `[rows, columns]`, is true.
    #[track_caller]
    pub fn paint(self, mask: Tensor, colour: impl Into<Paint>) -> Canvas {
        self.fill_cells(mask, &Shape::rectangle(0.5, 0.5, 2.0, 2.0), colour)
    }

    /// Fills a shape in one cell of the board, if the cell is on the board; see [`Canvas::fill_cells`].
    #[track_caller]
    pub fn fill_cell(
        self,
        row: impl IntoTensor,
        column: impl IntoTensor,
        shape: &Shape,
        colour: impl Into<Paint>,
    ) -> Canvas {
        let (row, column) = (row.into_tensor().astype(I32), column.into_tensor().astype(I32));
        let mask = iota(I32, self.grid, 0).eq(row) & iota(I32, self.grid, 1).eq(column);
        self.fill_cells(mask, shape, colour)
    }

    /// Fills one whole cell of the board, if it is on the board.
    #[track_caller]
    pub fn cell(
        self,
        row: impl IntoTensor,
        column: impl IntoTensor,
        colour: impl Into<Paint>,
    ) -> Canvas {
        self.fill_cell(row, column, &Shape::rectangle(0.5, 0.5, 2.0, 2.0), colour)
    }

    /// Covers each cell of the board with one of `tiles`, which are canvases of [`Canvas::tile`]: `which`, i32 `[rows, columns]`, has
    /// their indices. The size of the program depends on the number of tiles, and not on the number of cells.
    #[track_caller]
    pub fn tiles(self, which: Tensor, tiles: &[Canvas]) -> Canvas {
        let ([rows, columns], cell) = (self.grid, self.cell_side());
        let tiles: Vec<Tensor> = tiles.iter().map(|tile| tile.pixels).collect();
        let pixels = stack(&tiles, 0).take(which, 0).permute([0, 2, 1, 3, 4]);
        debug_assert_eq!(pixels.elements(), rows * columns * cell * cell * 3);
        Canvas { pixels: pixels.reshape([self.size[0], self.size[1], 3]), ..self }
    }

    /// Covers each cell of the board with the tile of the last mask that is true in the cell, or with the tile `floor`. Masks are bool
    /// `[rows, columns]`; see [`Canvas::tiles`].
    #[track_caller]
    pub fn layers(self, floor: Canvas, things: &[(Tensor, Canvas)]) -> Canvas {
        let none = full(self.grid, 0);
        let which = things
            .iter()
            .enumerate()
            .fold(none, |which, (index, (mask, _))| select(*mask, index as i32 + 1, which));
        let tiles: Vec<Canvas> =
            [floor].into_iter().chain(things.iter().map(|thing| thing.1)).collect();
        self.tiles(which, &tiles)
    }

    /// Lines of this thickness, in units, between the cells of the board and around it.
    #[track_caller]
    pub fn grid(self, thickness: f64, colour: impl Into<Paint>) -> Canvas {
        let edge = Shape::new(move |x, y| {
            let from_edge = |at: Tensor| (at - (at + 0.5).floor()).abs();
            from_edge(x).minimum(from_edge(y)) - thickness / 2.0
        });
        self.fill(&edge, colour)
    }

    /// Writes a whole number into the middle of each cell of the board: `values`, i32 `[rows, columns]`. Cells with a negative number stay
    /// empty, and numbers of more than `digits` digits show nines. `size` is the height of a digit in cells; longer numbers are
    /// smaller if they would not fit.
    #[track_caller]
    pub fn numbers(
        self,
        values: Tensor,
        digits: u32,
        size: f64,
        colour: impl Into<Paint>,
    ) -> Canvas {
        let ([rows, columns], cell) = (self.grid, self.cell_side());
        let parts = (1..=digits).map(|count| {
            let size = size.min(Canvas::fitting(count as usize));
            let (part, middle) = text::numbers(values.flatten(), count, digits, size * self.scale);
            let [height, width] = [part.dim(1) as i64, part.dim(2) as i64];
            let top = (cell as f64 / 2.0 - middle).round() as i64;
            let left = (cell as i64 - width) / 2;
            let after = (cell as i64 - top - height, cell as i64 - left - width);
            part.pad(&[(0, 0), (top, after.0), (left, after.1)], 0.0)
        });
        let sum = parts.reduce(|all, part| all + part).unwrap_or_else(|| scalar(0.0));
        let all = sum.reshape([rows, columns, cell, cell]).swap_axes(1, 2).reshape(self.size);
        self.blend(all, colour.into().tensor().reshape([1, 1, 3]))
    }

    /// The greatest height of text with this number of digits that fits into a cell, in cells.
    pub(crate) fn fitting(digits: usize) -> f64 {
        0.9 / digits.max(1) as f64
    }
}
