//! Shapes as signed distances.
//!
//! # Invariants
//! - A distance is in units of the environment, negative inside the shape, and exact within about a pixel of the outline, so that a
//!   [`Canvas`](super::Canvas) can derive the coverage of a pixel from it.
//! - Coordinates that a shape receives broadcast with each other: x is usually `[1, width]`, and y `[height, 1]`. A shape returns any shape
//!   that broadcasts with both.

use std::rc::Rc;

use podracer_dsl::prelude::*;

/// Distance of shapes that are not drawn, in units.
const FAR: f64 = 1e6;

/// A shape of a picture: a signed distance, in units, of points with given coordinates.
#[derive(Clone)]
pub struct Shape(Rc<dyn Fn(Tensor, Tensor) -> Tensor>);

impl Shape {
    /// A shape from its signed distance at x and y, negative inside: all f32 and in units.
    pub fn new(distance: impl Fn(Tensor, Tensor) -> Tensor + 'static) -> Shape {
        Shape(Rc::new(distance))
    }

    /// The signed distance at x and y, in units.
    #[track_caller]
    pub fn distance(&self, x: Tensor, y: Tensor) -> Tensor {
        (self.0)(x, y)
    }

    /// A disc around (x, y).
    #[track_caller]
    pub fn disc(x: impl IntoTensor, y: impl IntoTensor, radius: impl IntoTensor) -> Shape {
        let (cx, cy, radius) = (number(x), number(y), number(radius));
        Shape::new(move |x, y| length(x - cx, y - cy) - radius)
    }

    /// A circle around (x, y), with `thickness` around its radius.
    #[track_caller]
    pub fn ring(x: impl IntoTensor, y: impl IntoTensor, radius: f64, thickness: f64) -> Shape {
        let (cx, cy) = (number(x), number(y));
        Shape::new(move |x, y| (length(x - cx, y - cy) - radius).abs() - thickness / 2.0)
    }

    /// A rectangle around (x, y).
    #[track_caller]
    pub fn rectangle(
        x: impl IntoTensor,
        y: impl IntoTensor,
        width: impl IntoTensor,
        height: impl IntoTensor,
    ) -> Shape {
        let (cx, cy) = (number(x), number(y));
        let (half_width, half_height) = (0.5 * number(width), 0.5 * number(height));
        Shape::new(move |x, y| ((x - cx).abs() - half_width).maximum((y - cy).abs() - half_height))
    }

    /// A rectangle around (x, y) with round corners of this radius.
    #[track_caller]
    pub fn rounded(
        x: impl IntoTensor,
        y: impl IntoTensor,
        width: f64,
        height: f64,
        radius: f64,
    ) -> Shape {
        let (cx, cy) = (number(x), number(y));
        Shape::new(move |x, y| {
            let across = (x - cx).abs() - (width / 2.0 - radius);
            let down = (y - cy).abs() - (height / 2.0 - radius);
            let outside = length(across.maximum(0.0), down.maximum(0.0));
            outside + across.maximum(down).minimum(0.0) - radius
        })
    }

    /// A line with round ends between two points, each (x, y).
    #[track_caller]
    pub fn line<X: IntoTensor, Y: IntoTensor, Z: IntoTensor, W: IntoTensor>(
        from: (X, Y),
        to: (Z, W),
        thickness: f64,
    ) -> Shape {
        let (from, to) = ((number(from.0), number(from.1)), (number(to.0), number(to.1)));
        let (dx, dy) = (to.0 - from.0, to.1 - from.1);
        // 1e-9 avoids a division by 0 for a line without length.
        let scale = 1.0 / (dx.square() + dy.square() + 1e-9);
        Shape::new(move |x, y| {
            let (x, y) = (x - from.0, y - from.1);
            let part = (x * (dx * scale) + y * (dy * scale)).clamp(0.0, 1.0);
            length(x - part * dx, y - part * dy) - thickness / 2.0
        })
    }

    /// A convex polygon with these corners, each (x, y), in either orientation.
    ///
    /// # Panics
    /// Fewer than three corners.
    #[track_caller]
    pub fn polygon(corners: &[(f64, f64)]) -> Shape {
        assert!(corners.len() >= 3, "a polygon has at least three corners");
        let next = |i: usize| corners[(i + 1) % corners.len()];
        let area: f64 =
            (0..corners.len()).map(|i| corners[i].0 * next(i).1 - next(i).0 * corners[i].1).sum();
        let edges: Vec<_> = (0..corners.len())
            .map(|i| {
                let (from, to) = (corners[i], next(i));
                let (dx, dy) = (to.0 - from.0, to.1 - from.1);
                let scale = area.signum() / dx.hypot(dy).max(1e-9);
                let (across, down) = (dy * scale, -dx * scale);
                (across, down, across * from.0 + down * from.1)
            })
            .collect();
        Shape::new(move |x, y| {
            let side = |&(across, down, at): &(f64, f64, f64)| (x * across - at) + y * down;
            let first = side(&edges[0]);
            edges[1..].iter().fold(first, |most, edge| most.maximum(side(edge)))
        })
    }

    /// A part of a circle around (x, y) with round ends. Angles are in radians from the x axis towards the y axis, which is clockwise
    /// on the picture; `to` is at least `from`, and at most a whole turn further.
    #[track_caller]
    pub fn arc(
        center: (f64, f64),
        radius: f64,
        from: impl IntoTensor,
        to: impl IntoTensor,
        thickness: f64,
    ) -> Shape {
        let (from, to) = (number(from), number(to));
        let (middle, half) = (0.5 * (from + to), 0.5 * (to - from));
        let (sin, cos) = (middle.sin(), middle.cos());
        let (end_sin, end_cos) = (half.sin(), half.cos());
        Shape::new(move |x, y| {
            let (x, y) = (x - center.0, y - center.1);
            // Along the direction to the arc's middle, and across it.
            let (along, across) = (x * cos + y * sin, (y * cos - x * sin).abs());
            let beyond = (across * end_cos).gt(along * end_sin);
            let to_end = length(along - end_cos * radius, across - end_sin * radius);
            let to_circle = (length(x, y) - radius).abs();
            select(beyond, to_end, to_circle) - thickness / 2.0
        })
    }

    /// The points of this shape or of another.
    #[must_use]
    pub fn union(self, other: Shape) -> Shape {
        Shape::new(move |x, y| self.distance(x, y).minimum(other.distance(x, y)))
    }

    /// The points of this shape that are in another, too.
    #[must_use]
    pub fn intersection(self, other: Shape) -> Shape {
        Shape::new(move |x, y| self.distance(x, y).maximum(other.distance(x, y)))
    }

    /// The points of this shape that are not in another.
    #[must_use]
    pub fn minus(self, other: Shape) -> Shape {
        Shape::new(move |x, y| self.distance(x, y).maximum(-other.distance(x, y)))
    }

    /// The points that are in any of several shapes: `shape` makes one of each row of `rows`, `[n, ..]`. The size of the program does not
    /// depend on n.
    pub fn any(rows: Tensor, shape: impl Fn(Tensor) -> Shape + 'static) -> Shape {
        Shape::new(move |x, y| {
            let start = zeros(F32, (x + y).shape()) + FAR;
            let nearer = |least: Tensor, row: Tensor| {
                (least.minimum(shape(row).distance(x, y)).broadcast_to(start.shape()), ())
            };
            scan(start, rows, nearer).0
        })
    }

    /// The shape moved to the right and down, in units.
    #[must_use]
    #[track_caller]
    pub fn translate(self, right: impl IntoTensor, down: impl IntoTensor) -> Shape {
        let (right, down) = (number(right), number(down));
        Shape::new(move |x, y| self.distance(x - right, y - down))
    }

    /// The shape turned around the origin by an angle in radians, clockwise on the picture.
    #[must_use]
    #[track_caller]
    pub fn rotate(self, angle: impl IntoTensor) -> Shape {
        let angle = number(angle);
        let (sin, cos) = (angle.sin(), angle.cos());
        Shape::new(move |x, y| self.distance(x * cos + y * sin, y * cos - x * sin))
    }

    /// The shape where `condition` is true, otherwise nothing. `bool[]`
    #[must_use]
    #[track_caller]
    pub fn when(self, condition: Tensor) -> Shape {
        let away = select(condition, 0.0, FAR);
        Shape::new(move |x, y| self.distance(x, y) + away)
    }
}

/// A number of the host or of the program as f32.
#[track_caller]
fn number(value: impl IntoTensor) -> Tensor {
    value.into_tensor().astype(F32)
}

/// Euclidean length, of operands that broadcast.
#[track_caller]
fn length(x: Tensor, y: Tensor) -> Tensor {
    (x.square() + y.square()).sqrt()
}
