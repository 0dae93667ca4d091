//! Smooth pictures of grids, for readers; the package's own pictures are in the module `tiles`.

use super::cell::{colour, kind};
use super::{World, view};
use crate::cells::only;
use crate::render::{Canvas, Colour, Shape, scenery};
use podracer_dsl::prelude::*;

/// The colours by their numbers.
const COLOURS: [Colour; colour::COUNT] = [
    Colour::RED,
    Colour::GREEN,
    Colour::BLUE,
    Colour([140, 90, 180]),
    Colour::YELLOW,
    Colour::GREY,
];

/// The picture of the whole grid; the cells that the agent does not see are darker. `codes` are the cells in the agent's view.
#[track_caller]
pub(super) fn picture((rows, columns): (usize, usize), world: &World, codes: Tensor) -> Tensor {
    let grid = [rows, columns];
    let lit = view::lit((rows, columns), world, codes);
    let cells = world.cells.astype(I32).reshape(grid);
    let (which, number) = (cells & 15, cells / 16);
    let table: Vec<f32> = COLOURS.iter().flat_map(|colour| colour.0.map(f32::from)).collect();
    let colours = constant(table).reshape([colour::COUNT, 3]);
    let own = colours.take(number.clamp(0, colour::COUNT as i32 - 1), 0);
    let canvas = Canvas::board(rows, columns, Colour::BOARD);
    let floor = scenery::floor(&canvas);
    let waves = Shape::arc((0.3, 0.36), 0.16, 0.5, 2.6, 0.07).union(Shape::arc(
        (0.68, 0.62),
        0.16,
        0.5,
        2.6,
        0.07,
    ));
    let things = [
        (which.eq(kind::WALL), scenery::wall(&canvas)),
        (which.eq(kind::GOAL), scenery::flag(floor, Colour::GREEN)),
        (which.eq(kind::LAVA), canvas.tile(Colour::ORANGE).fill(&waves, Colour::RED)),
    ];
    let frame = Shape::rectangle(0.5, 0.5, 1.0, 1.0).minus(Shape::rectangle(0.5, 0.5, 0.74, 0.74));
    let leaf = Shape::rectangle(0.5, 0.5, 0.8, 0.8);
    let open = Shape::rectangle(0.07, 0.5, 0.14, 1.0);
    let key = Shape::ring(0.5, 0.3, 0.13, 0.1)
        .union(Shape::line((0.5, 0.42), (0.5, 0.84), 0.09))
        .union(Shape::line((0.5, 0.82), (0.66, 0.82), 0.09))
        .union(Shape::line((0.5, 0.66), (0.63, 0.66), 0.09));
    let chest = Shape::rounded(0.5, 0.5, 0.72, 0.72, 0.08)
        .minus(Shape::rectangle(0.5, 0.5, 0.5, 0.5))
        .union(Shape::rectangle(0.5, 0.5, 0.72, 0.1));
    let (closed, locked) = (which.eq(kind::CLOSED_DOOR), which.eq(kind::LOCKED_DOOR));
    let handle = Shape::disc(0.76, 0.5, 0.07);
    let keyhole = Shape::disc(0.5, 0.44, 0.1).union(Shape::line((0.5, 0.46), (0.5, 0.64), 0.09));
    // The agent points along the direction: right, down, left or up.
    let arrow = Shape::polygon(&[(0.36, 0.0), (-0.28, -0.3), (-0.28, 0.3)])
        .rotate(world.direction.astype(F32) * std::f64::consts::FRAC_PI_2)
        .translate(0.5, 0.5);
    let whole = Shape::rectangle(0.5, 0.5, 2.0, 2.0);
    let shaded = select(lit, 0.0, 0.28);
    let agent = only(grid, (world.row, world.column));
    canvas
        .layers(floor, &things)
        .fill_cells(select(which.eq(kind::FLOOR), 0.4, 0.0), &whole, own)
        .fill_cells(closed | locked, &frame, own * 0.7)
        .fill_cells(closed | locked, &leaf, own)
        .fill_cells(closed, &handle, Colour::BLACK)
        .fill_cells(locked, &keyhole, Colour::BLACK)
        .fill_cells(which.eq(kind::OPEN_DOOR), &open, own)
        .fill_cells(which.eq(kind::KEY), &key, own)
        .fill_cells(which.eq(kind::BALL), &Shape::disc(0.5, 0.5, 0.32), own)
        .fill_cells(which.eq(kind::BOX), &chest, own)
        .fill_cells(shaded, &whole, Colour::BLACK)
        .fill_cells(agent, &arrow, Colour::RED)
        .finish()
}
