//! Pictures of robots: capsules and spheres as thick lines, drawn from the farthest to the nearest.

use std::f64::consts::FRAC_PI_2;

use podracer_dsl::prelude::*;
use podracer_physics::model::GeomType;
use podracer_physics::{Data, Model};

use crate::render::{Canvas, Colour, Shape};

/// Thickness of the outlines, in pixels.
const OUTLINE: f64 = 1.5;
/// Pixels of a picture's longer side.
const SIDE: f64 = 320.0;

/// The view of a picture: a parallel projection.
#[derive(Clone, Copy, Debug)]
pub struct Camera {
    /// Width and height of the view, in metres.
    size: [f64; 2],
    /// The place in the middle of the view, relative to the torso if the camera follows it.
    middle: [f64; 3],
    /// True for a camera that follows the torso along x and y.
    follows: bool,
    /// Angle of the view about the z axis, 0 along y, in radians.
    azimuth: f64,
    /// Angle of the view to the floor, in radians.
    elevation: f64,
}

impl Camera {
    /// A view along y that follows the torso. `height` is the height of its middle, in metres.
    pub(super) fn side(width: f64, height: f64) -> Self {
        Camera { follows: true, ..Camera::fixed(width, 0.75 * width, height) }
    }

    /// A view along y that stays. `middle` is the height of its middle, in metres.
    pub(super) fn fixed(width: f64, height: f64, middle: f64) -> Self {
        let (size, middle) = ([width, height], [0.0, 0.0, middle]);
        Camera { size, middle, follows: false, azimuth: 0.0, elevation: 0.0 }
    }

    /// A view down to the floor that stays.
    pub(super) fn above(width: f64) -> Self {
        Camera { elevation: FRAC_PI_2, ..Camera::fixed(width, width, 0.0) }
    }

    /// An oblique view down that follows the torso. `height` is the height of its middle, in metres.
    pub(super) fn oblique(width: f64, height: f64) -> Self {
        Camera { azimuth: 0.5, elevation: 0.45, ..Camera::side(width, height) }
    }

    /// The same view with another middle, in metres.
    pub(super) fn about(self, middle: [f64; 3]) -> Self {
        Camera { middle, ..self }
    }

    /// The same view, which follows the torso.
    pub(super) fn following(self) -> Self {
        Camera { follows: true, ..self }
    }

    /// The axes of the picture in the world: to the right, down, and to the viewer.
    fn axes(&self) -> [[f64; 3]; 3] {
        let ((sin, cos), (rise, run)) = (self.azimuth.sin_cos(), self.elevation.sin_cos());
        [[cos, sin, 0.0], [rise * sin, -rise * cos, -run], [sin * run, -cos * run, rise]]
    }

    /// The picture of a state, u8 `[height, width, 3]`.
    #[track_caller]
    pub(super) fn picture(&self, model: &Model, data: &Data) -> Tensor {
        let geoms: Vec<usize> =
            (0..model.ngeom).filter(|&geom| model.geom_type[geom] != GeomType::Plane).collect();
        let still = zeros(F32, [model.nu]);
        let (places, turns) =
            model.forward(data, still, |forward| (forward.xpos(), forward.xmat()));
        let torso = places.index(1);
        let middle = constant(self.middle.map(|x| x as f32))
            + if self.follows { torso * constant([1.0_f32, 1.0, 0.0]) } else { zeros(F32, [3]) };
        // Both ends of each geom in the coordinates of the picture: `[geoms, 3]`.
        let [first, second] = [-1.0, 1.0].map(|end| {
            let points: Vec<Tensor> = geoms
                .iter()
                .map(|&geom| {
                    let body = model.geom_bodyid[geom];
                    let local = constant(end_of(model, geom, end).map(|x| x as f32));
                    let turned = turns.index(body).reshape([3, 3]).matmul(local.expand_dims(1));
                    places.index(body) + turned.reshape([3]) - middle
                })
                .collect();
            let axes = self.axes().map(|axis| axis.map(|x| x as f32));
            stack(&points, 0).matmul(constant(axes).transpose())
        });
        let corner = constant(self.size.map(|side| (0.5 * side) as f32));
        let on_picture = |ends: Tensor| ends.slice((0..geoms.len(), 0..2)) + corner;
        let radius: Vec<f32> = geoms.iter().map(|&geom| model.geom_size[geom][0] as f32).collect();
        let colour: Vec<[f32; 3]> = geoms.iter().map(|&geom| colour(model, geom)).collect();
        let order = (first + second).index_axis(1, 2).argsort(0);
        let sorted = |rows: Tensor| rows.take(order, 0);
        let (first, second) = (sorted(on_picture(first)), sorted(on_picture(second)));
        let radius = sorted(constant(radius));
        let colour = sorted(stack(&colour.into_iter().map(constant).collect::<Vec<_>>(), 0));
        let [width, height] = self.size;
        let outline = OUTLINE * width.max(height) / SIDE;
        let canvas = self.floor(Canvas::new(height, width, Colour::SKY), model, middle);
        let painted = (0..geoms.len()).fold(canvas, |canvas, geom| {
            let line = |thinner: f64| {
                let radius = radius.index(geom) - thinner;
                capsule(first.index(geom), second.index(geom), radius)
            };
            let colour = colour.index(geom);
            canvas.fill(&line(0.0), 0.55 * colour).fill(&line(outline), colour)
        });
        painted.finish()
    }

    /// The floor with squares of a metre, or of a part of it in a small view.
    #[track_caller]
    fn floor(&self, canvas: Canvas, model: &Model, middle: Tensor) -> Canvas {
        let planes = (0..model.ngeom).filter(|&geom| model.geom_type[geom] == GeomType::Plane);
        let Some(floor) = planes.map(|geom| model.geom_pos[geom][2]).next() else { return canvas };
        let side = if self.size[0] > 1.0 { 0.5 } else { 0.1 };
        let [_, down, viewer] = self.axes();
        let ((sin, cos), size) = (self.azimuth.sin_cos(), self.size);
        let depth = middle.index(2) - floor;
        let [x, y] = [0, 1].map(|axis| middle.index(axis));
        // In a view along the floor, the floor is seen from below: its cut shows stripes.
        let level = viewer[2] == 0.0;
        let below = move |_: Tensor, y: Tensor| depth - (y - 0.5 * size[1]);
        let shape = match level {
            true => Shape::new(below),
            false => Shape::new(|_, _| scalar(-1e6)),
        };
        canvas.fill_with(&shape, move |across, along| {
            let right = across - 0.5 * size[0];
            // Metres on the floor, away from the viewer.
            let away = match level {
                true => zeros(F32, [1, 1]),
                false => -((along - 0.5 * size[1]) + down[2] * depth) / viewer[2],
            };
            let (x, y) = (x + right * cos - away * sin, y + right * sin + away * cos);
            let dark = ((x / side).floor() + (y / side).floor()).modulo(2.0);
            let [light, dim] = [Colour::BOARD, Colour::CELL].map(Colour::tensor);
            light + (dim - light) * dark.expand_dims(2)
        })
    }
}

/// An end of a geom's middle line, in the frame of its body.
fn end_of(model: &Model, geom: usize, end: f64) -> [f64; 3] {
    let [radius, half, _] = model.geom_size[geom];
    let along = match model.geom_type[geom] {
        GeomType::Capsule => half,
        GeomType::Cylinder => (half - radius).max(0.0),
        _ => 0.0,
    };
    let [w, x, y, z] = model.geom_quat[geom];
    let axis = [2.0 * (x * z + w * y), 2.0 * (y * z - w * x), 1.0 - 2.0 * (x * x + y * y)];
    std::array::from_fn(|i| model.geom_pos[geom][i] + end * along * axis[i])
}

/// The colour of a geom: grey in the world, and from blue to yellow along the bodies.
fn colour(model: &Model, geom: usize) -> [f32; 3] {
    let body = model.geom_bodyid[geom];
    let share = (body as f64 - 1.0) / (model.nbody as f64 - 2.0).max(1.0);
    let colour = match body {
        0 => Colour::LINE,
        _ => Colour::BLUE.mixed(Colour::YELLOW, share),
    };
    colour.0.map(f32::from)
}

/// A line with round ends between two points, each f32 `[2]`.
#[track_caller]
fn capsule(from: Tensor, to: Tensor, radius: Tensor) -> Shape {
    let [left, top] = [0, 1].map(|axis| from.index(axis));
    let [dx, dy] = [0, 1].map(|axis| (to - from).index(axis));
    // 1e-9 avoids a division by 0 for a sphere.
    let scale = 1.0 / (dx.square() + dy.square() + 1e-9);
    Shape::new(move |x, y| {
        let (x, y) = (x - left, y - top);
        let part = (x * (dx * scale) + y * (dy * scale)).clamp(0.0, 1.0);
        (part * dx - x).hypot(part * dy - y) - radius
    })
}
