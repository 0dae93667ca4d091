//! Things that several boards have: floors, walls, walkers and goals.

use podracer_dsl::prelude::*;

use super::{Align, Canvas, Colour, Shape};

/// A floor's tile with a thin edge.
#[track_caller]
pub(crate) fn floor(canvas: &Canvas) -> Canvas {
    let tile = canvas.tile(Colour::BOARD.dark(0.07));
    tile.fill(&Shape::rectangle(0.5, 0.5, 0.96, 0.96), Colour::BOARD)
}

/// A tile of a brick wall.
#[track_caller]
pub(crate) fn wall(canvas: &Canvas) -> Canvas {
    let tile = canvas.tile(Colour::GREY.dark(0.3));
    let brick = |x: f64, y: f64| Shape::rounded(x, y, 0.45, 0.27, 0.03);
    let (upper, middle) = ([(0.25, 0.17), (0.75, 0.17)], [(0.5, 0.5), (0.0, 0.5), (1.0, 0.5)]);
    let places = upper.into_iter().chain(middle).chain([(0.25, 0.83), (0.75, 0.83)]);
    let all = places.map(|(x, y)| brick(x, y)).reduce(Shape::union);
    all.map_or(tile, |all| tile.fill(&all, Colour::GREY))
}

/// A walker on foot, in a cell.
#[track_caller]
pub(crate) fn walker() -> Shape {
    let body =
        Shape::rounded(0.5, 0.74, 0.5, 0.44, 0.2).minus(Shape::rectangle(0.5, 1.0, 1.0, 0.2));
    Shape::disc(0.5, 0.32, 0.17).union(body)
}

/// A flag with its pole, in a cell.
#[track_caller]
pub(crate) fn flag(tile: Canvas, colour: Colour) -> Canvas {
    tile.fill(&Shape::line((0.32, 0.16), (0.32, 0.88), 0.07), Colour::TEXT)
        .fill(&Shape::polygon(&[(0.35, 0.14), (0.82, 0.32), (0.35, 0.5)]), colour)
}

/// Names of colours next to each other from (x, y), with the height of capital letters and the width of each name.
#[track_caller]
pub(crate) fn legend(
    canvas: Canvas,
    names: &[(&str, Colour)],
    (x, y): (f64, f64),
    size: f64,
    width: f64,
) -> Canvas {
    names.iter().enumerate().fold(canvas, |canvas, (i, &(name, colour))| {
        let x = x + i as f64 * width;
        canvas.fill(&Shape::disc(x, y, size * 0.5), colour).text(
            name,
            (x + size, y),
            size,
            Align::Left,
            Colour::TEXT,
        )
    })
}

/// Bars on the unit square's columns: `heights`, f32 `[n]` from 0 to 1, and their `widths` as shares of a column, f32 `[n]`, where `shown`,
/// bool `[n]`, is true. The bars stand on `floor`, and a height of 1 is `tall` units high. The columns share `wide` units from x = `left`.
pub(crate) fn bars(
    [heights, widths, shown]: [Tensor; 3],
    (left, floor): (f64, f64),
    (wide, tall): (f64, f64),
) -> Shape {
    let count = heights.len();
    let column = wide / count as f64;
    Shape::new(move |x, y| {
        let place = (x - left) * (1.0 / column);
        let index = place.floor().astype(I32).clamp(0, count as i32 - 1);
        let of = |each: Tensor| each.take(index, 0);
        let away = select(of(shown), 0.0, 1e6);
        let aside = ((place - index.astype(F32) - 0.5).abs() - 0.5 * of(widths)) * column + away;
        aside.maximum(floor - tall * of(heights) - y).maximum(y - floor)
    })
}
