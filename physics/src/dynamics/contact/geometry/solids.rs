//! Contacts of cylinders, and of boxes with spheres.

use super::{PlacedGeom, Touch, axis, beside, on_plane, unit_or_x};
use crate::real::{ONE, Real, ZERO};
use crate::vector::{
    Vector, add, column, cross, dot, length, negated, rotate, scale, sub, transpose,
};

use Real::Constant;

/// The deepest points of both rims, and two more points of the lower rim, which make a triangle with its deepest point.
pub(super) fn cylinder_on_plane(plane: &PlacedGeom, cylinder: &PlacedGeom) -> Vec<Touch> {
    let [radius, half, _] = cylinder.size;
    let normal = axis(plane);
    let along = dot(axis(cylinder), normal);
    let down = ZERO.less(along).select_all(negated(axis(cylinder)), axis(cylinder));
    let across = sub(scale(down, -along.abs()), normal);
    let steep = length(across);
    let upright = steep.vanishes();
    let across = upright
        .select_all(column(cylinder.axes, 0), scale(across, ONE / upright.select(ONE, steep)));
    let sideways = scale(cross(across, down), Constant(0.5 * 3.0_f64.sqrt() * radius));
    let (across, end) = (scale(across, Constant(radius)), scale(down, Constant(half)));
    let back = sub(end, scale(across, Constant(0.5)));
    let points = [add(end, across), sub(across, end), add(back, sideways), sub(back, sideways)];
    points.map(|point| on_plane(plane, add(cylinder.centre, point), 0.0, None)).into()
}

/// A sphere with a cylinder's side, its flat ends, or the rims between.
pub(super) fn sphere_and_cylinder(sphere: &PlacedGeom, cylinder: &PlacedGeom) -> Touch {
    let [radius, half, _] = cylinder.size;
    let apart = sub(sphere.centre, cylinder.centre);
    let along = dot(axis(cylinder), apart);
    let up = along.less(ZERO).select_all(negated(axis(cylinder)), axis(cylinder));
    let out = sub(apart, scale(axis(cylinder), along));
    let from_axis = length(out);
    let centred = from_axis.vanishes();
    let out = centred.select_all(
        negated(unit_or_x(cross(axis(sphere), axis(cylinder)))),
        scale(out, ONE / centred.select(ONE, from_axis)),
    );
    let (above, beyond) = (along.abs() - Constant(half), from_axis - Constant(radius));
    let (inside, flat) = (above.min(beyond).less(ZERO), beyond.less(above));
    let rim = add(scale(up, above), scale(out, beyond));
    let corner = inside.select(ONE, length(rim));
    let from_rim = corner.vanishes().select(ONE, corner);
    let normal = inside.select_all(flat.select_all(up, out), scale(rim, ONE / from_rim));
    let gap = inside.select(flat.select(above, beyond), from_rim);
    beside(sphere, sphere.centre, negated(normal), gap)
}

/// A sphere with the nearest point of a box, or with the nearest face around its centre.
pub(super) fn sphere_and_box(sphere: &PlacedGeom, solid: &PlacedGeom) -> Touch {
    let local = rotate(transpose(solid.axes), sub(sphere.centre, solid.centre));
    let nearest: Vector = std::array::from_fn(|i| local[i].clamp([-solid.size[i], solid.size[i]]));
    let out = sub(local, nearest);
    let outside = length(out);
    let inside = outside.vanishes();
    let face = |i: usize| local[i].abs() - Constant(solid.size[i]);
    let (mut depth, mut normal) = (face(0), unit(0, local[0]));
    for (i, &place) in local.iter().enumerate().skip(1) {
        let nearer = depth.less(face(i));
        normal = nearer.select_all(unit(i, place), normal);
        depth = nearer.select(face(i), depth);
    }
    let normal = inside.select_all(normal, scale(out, ONE / inside.select(ONE, outside)));
    let normal = rotate(solid.axes, negated(normal));
    beside(sphere, sphere.centre, normal, inside.select(depth, outside))
}

/// The unit vector along a coordinate, with the sign of a number.
fn unit(axis: usize, sign: Real) -> Vector {
    let sign = ZERO.less(sign).select(ONE, -ONE);
    std::array::from_fn(|i| if i == axis { sign } else { ZERO })
}
