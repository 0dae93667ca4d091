//! Shapes, text and cells on a canvas.

use std::collections::BTreeMap;
use std::f64::consts::PI;

use podracer_dsl::prelude::*;
use podracer_envs::render::{Align, CHARACTERS, Canvas, Colour, Shape};

use crate::run::run;

/// Black: the coverage of white shapes on it can be read back.
const NOTHING: Colour = Colour([0, 0, 0]);
const ALL: Colour = Colour([255, 255, 255]);

/// The picture that a function draws.
fn drawn(draw: impl FnOnce() -> Canvas) -> Array {
    run((), &[], |()| draw().finish()).remove(0)
}

/// Red, green and blue of each pixel.
fn pixels(picture: &Array) -> Vec<[u8; 3]> {
    let values: Vec<u8> = picture.to_f64().into_iter().map(|value| value as u8).collect();
    values.as_chunks::<3>().0.to_vec()
}

/// The area of white shapes in pixels, and the number of pixels on their edges.
fn covered(draw: impl FnOnce() -> Canvas) -> (f64, usize) {
    let pixels = pixels(&drawn(draw));
    let area = pixels.iter().map(|pixel| f64::from(pixel[0]) / 255.0).sum();
    (area, pixels.iter().filter(|pixel| (1..255).contains(&pixel[0])).count())
}

/// Asserts that a white shape on 2 by 2 units has this area, in units, within one percent.
#[track_caller]
fn check_area(expected: f64, shape: impl FnOnce() -> Shape) {
    let (area, edges) = covered(|| Canvas::new(2.0, 2.0, NOTHING).fill(&shape(), ALL));
    let area = area / 160.0 / 160.0;
    assert!((area / expected - 1.0).abs() < 0.01, "{area} instead of {expected}");
    assert!(edges > 50, "{edges} pixels on edges");
}

#[test]
fn shapes_cover_their_areas_with_smooth_edges() {
    check_area(PI * 0.49, || Shape::disc(1.0, 1.0, 0.7));
    check_area(2.0 * PI * 0.7 * 0.1, || Shape::ring(1.0, 1.0, 0.7, 0.1));
    check_area(0.1 + PI * 0.0025, || Shape::line((0.4, 0.6), (1.0, 1.4), 0.1));
    check_area(0.6 * 0.3, || Shape::rectangle(0.0, 0.0, 0.6, 0.3).rotate(0.3).translate(1.0, 1.0));
    check_area(1.0 - (4.0 - PI) * 0.04, || Shape::rounded(1.003, 0.997, 1.0, 1.0, 0.2));
    check_area(0.5, || Shape::polygon(&[(0.5, 0.5), (1.5, 0.5), (0.5, 1.5)]));
    check_area(PI / 2.0 * 0.7 * 0.1 + PI * 0.0025, || {
        Shape::arc((1.0, 1.0), 0.7, 0.2, 0.2 + PI / 2.0, 0.1)
    });
}

#[test]
fn shapes_combine_as_sets() {
    let left = || Shape::disc(0.8, 1.0, 0.5);
    let right = || Shape::disc(1.2, 1.0, 0.5);
    let area = |shape: fn(Shape, Shape) -> Shape| {
        covered(|| Canvas::new(2.0, 2.0, NOTHING).fill(&shape(left(), right()), ALL)).0
    };
    let both = area(Shape::union) + area(Shape::intersection);
    assert!((both / area(|left, _| left) / 2.0 - 1.0).abs() < 0.01);
    let parts = area(Shape::minus) + area(Shape::intersection);
    assert!((parts / area(|left, _| left) - 1.0).abs() < 0.01);
    assert_eq!(area(|left, _| left.when(constant(false))), 0.0);
    assert_eq!(area(|left, _| left.when(constant(true))), area(|left, _| left));
}

#[test]
fn transparent_layers_mix_colours() {
    let picture = drawn(|| {
        let all = Shape::rectangle(0.5, 0.5, 2.0, 2.0);
        Canvas::new(1.0, 1.0, NOTHING).fill_alpha(&all, Colour([200, 100, 0]), 0.5).fill_alpha(
            &all,
            constant([0.0, 0.0, 80.0]),
            scalar(0.25),
        )
    });
    assert_eq!(pixels(&picture)[0], [75, 38, 20]);
}

#[test]
fn cells_equal_shapes_one_by_one() {
    let mask = [[true, false, true], [false, true, false]];
    let cells = drawn(|| {
        let mask = constant(mask);
        Canvas::board(2, 3, NOTHING).fill_cells(mask, &Shape::disc(0.5, 0.4, 0.3), ALL)
    });
    let shapes = drawn(|| {
        let mut canvas = Canvas::board(2, 3, NOTHING);
        for (row, columns) in mask.iter().enumerate() {
            for (column, _) in columns.iter().enumerate().filter(|(_, there)| **there) {
                let disc = Shape::disc(column as f64 + 0.5, row as f64 + 0.4, 0.3);
                canvas = canvas.fill(&disc, ALL);
            }
        }
        canvas
    });
    let tiles = drawn(|| {
        let canvas = Canvas::board(2, 3, NOTHING);
        let empty = canvas.tile(NOTHING);
        let disc = empty.fill(&Shape::disc(0.5, 0.4, 0.3), ALL);
        canvas.tiles(constant(mask).astype(I32), &[empty, disc])
    });
    assert_eq!(cells, tiles);
    // Distances from another origin round differently.
    let worst = pixels(&cells).iter().zip(pixels(&shapes)).map(|(a, b)| a[0].abs_diff(b[0])).max();
    assert!(worst <= Some(1), "{worst:?}");
}

#[test]
fn boards_have_whole_pixels_per_cell() {
    for (rows, columns) in [(3, 3), (7, 6), (12, 12), (1, 50), (100, 90), (200, 7)] {
        let picture = drawn(|| Canvas::board(rows, columns, NOTHING));
        let &[height, width, 3] = &picture.ty().shape[..] else { panic!("three axes") };
        assert_eq!((height % rows, width % columns), (0, 0));
        assert_eq!(height / rows, width / columns);
        let longer = height.max(width);
        assert!((256..=400).contains(&longer) || longer == 4 * rows.max(columns), "{longer}");
    }
}

#[test]
fn colours_may_differ_per_cell() {
    let picture = drawn(|| {
        let colours = constant(vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).reshape([1, 2, 3]);
        Canvas::board(1, 2, NOTHING).paint(constant([[true, true]]), colours)
    });
    let pixels = pixels(&picture);
    assert_eq!((pixels[0], pixels[pixels.len() - 1]), ([1, 2, 3], [4, 5, 6]));
}

#[test]
fn characters_look_different() {
    let all: Vec<char> = CHARACTERS.chars().collect();
    let columns = 10;
    let rows = all.len().div_ceil(columns);
    let picture = drawn(|| {
        let canvas = Canvas::board(rows, columns, NOTHING);
        let tile = canvas.tile(NOTHING);
        let text =
            |letter: &char| tile.text(&letter.to_string(), (0.5, 0.4), 0.5, Align::Center, ALL);
        let tiles: Vec<Canvas> = all.iter().map(text).chain([tile]).collect();
        let which = arange(rows * columns).minimum(all.len() as i32).reshape([rows, columns]);
        canvas.tiles(which, &tiles)
    });
    let (width, pixels) = (picture.ty().shape[1], pixels(&picture));
    let cell = width / columns;
    let mut seen = BTreeMap::new();
    for (place, &character) in all.iter().enumerate() {
        let (row, column) = (place / columns, place % columns);
        let lines = pixels.chunks_exact(width).skip(row * cell).take(cell);
        let glyph: Vec<[u8; 3]> =
            lines.flat_map(|line| &line[column * cell..][..cell]).copied().collect();
        assert!(glyph.iter().any(|pixel| pixel[0] > 200), "{character} is empty");
        if let Some(other) = seen.insert(glyph, character) {
            panic!("{character} looks like {other}");
        }
    }
}

#[test]
fn numbers_equal_their_digits_as_text() {
    for (value, text) in [(0, "0"), (7, "7"), (10, "10"), (4096, "4096"), (99999, "9999")] {
        let canvas = || Canvas::new(1.0, 1.0, NOTHING);
        let number = drawn(|| canvas().number(scalar(value), 4, (0.1, 0.5), 0.1, ALL));
        let text = drawn(|| canvas().text(text, (0.1, 0.5), 0.1, Align::Left, ALL));
        assert_eq!(number, text, "{value}");
    }
}

#[test]
fn text_beyond_the_picture_is_cut_off() {
    let canvas = || Canvas::new(1.0, 1.0, NOTHING);
    let outside = drawn(|| canvas().text("far", (3.0, 0.5), 0.1, Align::Left, ALL));
    assert_eq!(outside, drawn(canvas));
    assert_ne!(drawn(|| canvas().text("far", (0.9, 0.5), 0.3, Align::Left, ALL)), outside);
}
