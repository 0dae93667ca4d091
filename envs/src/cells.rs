//! Directions on boards, and random cells.

use podracer_dsl::prelude::*;

/// Row and column offsets of each direction: up, right, down, left.
pub(crate) const WAYS: [(i32, i32); 4] = [(-1, 0), (0, 1), (1, 0), (0, -1)];

/// Row and column offsets of directions, which are indices of [`WAYS`]; other numbers have offset
/// 0. `i32` of the directions' shape each.
#[track_caller]
pub(crate) fn along(way: Tensor) -> (Tensor, Tensor) {
    let by = |pick: fn((i32, i32)) -> i32| {
        let goes = WAYS.map(pick);
        (0..4).fold(scalar(0), |sum, i| sum + select(way.eq(i), goes[i as usize], 0))
    };
    (by(|(rows, _)| rows), by(|(_, columns)| columns))
}

/// A mask with a single cell of a board with this shape. `bool[rows, columns]`
#[track_caller]
pub(crate) fn only(shape: [usize; 2], (row, column): (Tensor, Tensor)) -> Tensor {
    iota(I32, shape, 0).eq(row) & iota(I32, shape, 1).eq(column)
}

/// One of four directions by weights, `f32[n, 4]`, and uniform draws, `f32[n]`; -1 if all weights
/// are 0. `i32[n]`
#[track_caller]
pub(crate) fn draw_way(weights: Tensor, draws: Tensor) -> Tensor {
    let place = draws * weights.sum_axis(1);
    // The last direction with a positive weight and with a part that begins at or before the drawn
    // point.
    let (mut drawn, mut before) = (full([draws.len()], -1), zeros(F32, [draws.len()]));
    for way in 0..4 {
        let weight = weights.index_axis(1, way);
        drawn = select(place.ge(before) & weight.gt(0.0), way, drawn);
        before += weight;
    }
    drawn
}

/// A true cell, by a uniform draw, `f32[]`: row and column, `i32[]` each; the first cell if none is
/// true. `free` is `bool[rows, columns]`.
#[track_caller]
pub(crate) fn draw_cell(free: Tensor, draw: Tensor) -> (Tensor, Tensor) {
    let (rows, columns) = (free.dim(0), free.dim(1));
    let free = free.astype(I32);
    let by_row = free.sum_axis(1);
    // Number of true cells to skip before the drawn cell.
    let skipped = (draw * by_row.sum().astype(F32)).astype(I32);
    // The row where the count exceeds it, and the column in that row.
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
