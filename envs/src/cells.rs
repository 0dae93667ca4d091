//! Random cells of boards.

use podracer_dsl::prelude::*;

/// A cell of those that are true, by a uniform draw, `f32[]`: row and column, `i32[]` each; the first cell if none is. `free` is
/// `bool[rows, columns]`.
#[track_caller]
pub(crate) fn draw_cell(free: Tensor, draw: Tensor) -> (Tensor, Tensor) {
    let (rows, columns) = (free.dim(0), free.dim(1));
    let free = free.astype(I32);
    let by_row = free.sum_axis(1);
    // True cells that are passed over before the one to take.
    let skipped = (draw * by_row.sum().astype(F32)).astype(I32);
    // The row where the count passes it, and the column in that row.
    let before = |counts: Tensor, n: usize| {
        let earlier = iota(I32, [n, n], 1).lt(iota(I32, [n, n], 0));
        select(earlier, counts.expand_dims(0).broadcast_to([n, n]), 0).sum_axis(1)
    };
    let place = |counts: Tensor, before: Tensor, skipped: Tensor| {
        before.le(skipped) & (before + counts).gt(skipped)
    };
    let rows_before = before(by_row, rows);
    let here = place(by_row, rows_before, skipped);
    let row = select(here, arange(rows), 0).sum();
    let skipped = skipped - select(here, rows_before, 0).sum();
    let in_row = select(here.expand_dims(1).broadcast_to([rows, columns]), free, 0).sum_axis(0);
    let here = place(in_row, before(in_row, columns), skipped);
    (row, select(here, arange(columns), 0).sum())
}
