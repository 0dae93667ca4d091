//! Distances of pairs of geoms, with the formulas of MuJoCo's primitive colliders.

mod rods;
mod solids;

use crate::math::Vec3;
use crate::model::GeomType;
use crate::real::{ONE, Real, ZERO};
use crate::vector::{
    Matrix, Vector, add, column, constant, cross, dot, length, negated, rotate, scale, sub,
    transpose,
};

use Real::Constant;

/// A geom in the coordinates of a contact.
pub(crate) struct PlacedGeom {
    pub(crate) kind: GeomType,
    pub(crate) size: Vec3,
    pub(crate) centre: Vector,
    pub(crate) axes: Matrix,
}

/// A possible contact of two geoms.
#[derive(Clone, Debug)]
pub(crate) struct Touch {
    /// The distance of the surfaces; negative for geoms that penetrate each other.
    pub(crate) distance: Real,
    /// The point between the surfaces.
    pub(crate) place: Vector,
    /// The normal from the first geom to the second, and two tangents.
    pub(crate) frame: [Vector; 3],
}

/// True if [`touches`] covers a pair of types, in this order.
pub(crate) fn covers(first: GeomType, second: GeomType) -> bool {
    use GeomType::{Box, Capsule, Cylinder, Ellipsoid, Plane, Sphere};
    matches!(
        (first, second),
        (Plane, Sphere | Capsule | Ellipsoid | Cylinder | Box)
            | (Sphere, Sphere | Capsule | Cylinder | Box)
            | (Capsule, Capsule | Cylinder)
    )
}

/// All contacts that two geoms can have, for a pair of types that [`covers`] has. `margin` is the pair's margin. Without
/// `several`, a pair of MuJoCo's general collider has one contact.
pub(crate) fn touches(
    first: &PlacedGeom,
    second: &PlacedGeom,
    margin: f64,
    several: bool,
) -> Vec<Touch> {
    use GeomType::{Box, Capsule, Cylinder, Ellipsoid, Plane, Sphere};
    let radius = second.size[0];
    match (first.kind, second.kind) {
        (Plane, Sphere) => vec![on_plane(first, second.centre, radius, None)],
        (Plane, Capsule) => {
            ends(second).map(|end| on_plane(first, end, radius, Some(axis(second)))).into()
        }
        (Plane, Ellipsoid) => {
            let normal = rotate(transpose(second.axes), negated(axis(first)));
            let scaled: Vector = std::array::from_fn(|i| normal[i] * second.size[i]);
            let down = scale(scaled, ONE / length(scaled));
            let deepest: Vector = std::array::from_fn(|i| down[i] * second.size[i]);
            let point = add(second.centre, rotate(second.axes, deepest));
            vec![on_plane(first, point, 0.0, None)]
        }
        (Plane, Box) => (0..4).map(|corner| box_on_plane(first, second, corner)).collect(),
        (Plane, Cylinder) => solids::cylinder_on_plane(first, second),
        (Sphere, Cylinder) => vec![solids::sphere_and_cylinder(first, second)],
        (Sphere, Box) => vec![solids::sphere_and_box(first, second)],
        (Sphere, Sphere) => vec![spheres([first, second], [first.centre, second.centre])],
        (Sphere, Capsule) => {
            let along = dot(axis(second), sub(first.centre, second.centre));
            let nearest = along.clamp([-second.size[1], second.size[1]]);
            let point = add(second.centre, scale(axis(second), nearest));
            vec![spheres([first, second], [first.centre, point])]
        }
        (Capsule, Capsule) => match cross(axis(first), axis(second)) {
            [Constant(0.0), Constant(0.0), Constant(0.0)] => {
                [-1.0, 1.0].map(|end| spheres([first, second], next_to(first, second, end))).into()
            }
            _ => vec![spheres([first, second], nearest_points(first, second))],
        },
        (Capsule, Cylinder) => rods::capsule_and_cylinder(first, second, margin, several),
        _ => Vec::new(),
    }
}

fn axis(shape: &PlacedGeom) -> Vector {
    column(shape.axes, 2)
}

/// The centres of a capsule's ends.
fn ends(capsule: &PlacedGeom) -> [Vector; 2] {
    [1.0, -1.0]
        .map(|end| add(capsule.centre, scale(axis(capsule), Constant(end * capsule.size[1]))))
}

/// A sphere above a plane.
fn on_plane(plane: &PlacedGeom, centre: Vector, radius: f64, along: Option<Vector>) -> Touch {
    let normal = axis(plane);
    let distance = dot(normal, sub(centre, plane.centre)) - Constant(radius);
    let depth = distance * 0.5 + Constant(radius);
    Touch { distance, place: sub(centre, scale(normal, depth)), frame: frame(normal, along) }
}

/// The lower of two opposite corners of a box: MuJoCo's contacts are the corners below the centre.
fn box_on_plane(plane: &PlacedGeom, solid: &PlacedGeom, corner: usize) -> Touch {
    let sign = |bit: usize| if corner >> bit & 1 == 1 { 1.0 } else { -1.0 };
    let [x, y, z] = solid.size;
    let offset = rotate(solid.axes, constant([sign(0) * x, sign(1) * y, z]));
    let up = ZERO.less(dot(axis(plane), offset));
    let lower = up.select_all(negated(offset), offset);
    on_plane(plane, add(solid.centre, lower), 0.0, None)
}

/// Two spheres in shapes of their radii, at these centres. If the centres are equal, the normal is orthogonal to the
/// axes of both shapes.
fn spheres([first, second]: [&PlacedGeom; 2], [one, other]: [Vector; 2]) -> Touch {
    let apart = sub(other, one);
    let gap = length(apart);
    let same = gap.vanishes();
    let normal = same.select_all(
        unit_or_x(cross(axis(first), axis(second))),
        scale(apart, ONE / same.select(ONE, gap)),
    );
    beside(first, one, normal, gap - Constant(second.size[0]))
}

/// A sphere at a centre at the distance `gap` from a surface; the normal goes from the sphere to the surface.
fn beside(sphere: &PlacedGeom, centre: Vector, normal: Vector, gap: Real) -> Touch {
    let radius = Constant(sphere.size[0]);
    let distance = gap - radius;
    let place = add(centre, scale(normal, distance * 0.5 + radius));
    Touch { distance, place, frame: frame(normal, None) }
}

/// The points of the axes of two capsules that are next to each other. Capsules with axes that are always parallel touch at
/// two points; where moving axes happen to be parallel, MuJoCo has two contacts, too, and this has one.
fn nearest_points(first: &PlacedGeom, second: &PlacedGeom) -> [Vector; 2] {
    let (a, b) = (
        scale(axis(first), Constant(first.size[1])),
        scale(axis(second), Constant(second.size[1])),
    );
    let apart = sub(first.centre, second.centre);
    let (aa, ab, bb) = (
        Constant(first.size[1] * first.size[1]),
        -dot(a, b),
        Constant(second.size[1] * second.size[1]),
    );
    let (u, v) = (-dot(a, apart), dot(b, apart));
    let determinant = aa * bb - ab * ab;
    let parallel = determinant.vanishes();
    let divisor = ONE / parallel.select(ONE, determinant);
    let unit = [-1.0, 1.0];
    // Parallel axes: the middle of the first.
    let x = parallel.select(ZERO, (bb * u - ab * v) * divisor).clamp(unit);
    let y = ((v - ab * x) / bb).clamp(unit);
    let x = ((u - ab * y) / aa).clamp(unit);
    [add(first.centre, scale(a, x)), add(second.centre, scale(b, y))]
}

/// The points of two parallel axes that are next to an end of the second axis, or of the overlap of both.
fn next_to(first: &PlacedGeom, second: &PlacedGeom, end: f64) -> [Vector; 2] {
    let [half, other] = [first.size[1], second.size[1]];
    let end = add(second.centre, scale(axis(second), Constant(end * other)));
    let x = dot(axis(first), sub(end, first.centre)).clamp([-half, half]);
    let one = add(first.centre, scale(axis(first), x));
    let y = dot(axis(second), sub(one, second.centre)).clamp([-other, other]);
    [one, add(second.centre, scale(axis(second), y))]
}

/// A right-handed frame with this normal; the first tangent is the projection of `along`.
fn frame(normal: Vector, along: Option<Vector>) -> [Vector; 3] {
    let tangent = match along {
        Some(along) => {
            let across = across(along, normal);
            single(across).unwrap_or_else(|| unit_or_x(across))
        }
        None => {
            let steep = Constant(0.5).less(normal[1].abs());
            let guide = steep.select_all(constant([0.0, 0.0, 1.0]), constant([0.0, 1.0, 0.0]));
            let across = across(guide, normal);
            scale(across, ONE / length(across))
        }
    };
    [normal, tangent, cross(normal, tangent)]
}

/// The unit vector of the same direction; x if there is none.
fn unit_or_x(vector: Vector) -> Vector {
    let size = length(vector);
    let none = size.vanishes();
    let unit = scale(vector, ONE / none.select(ONE, size));
    none.select_all(constant([1.0, 0.0, 0.0]), unit)
}

/// The part of a vector that is orthogonal to a unit vector.
fn across(vector: Vector, unit: Vector) -> Vector {
    let along = dot(vector, unit);
    std::array::from_fn(|i| match unit[i] {
        Constant(x) if x.abs() == 1.0 => ZERO,
        x => vector[i] - x * along,
    })
}

/// The unit vector of a vector that always has one direction, up to its sign, which no cone depends on.
fn single(vector: Vector) -> Option<Vector> {
    let nonzero: Vec<usize> = (0..3).filter(|&i| !vector[i].is_zero()).collect();
    match nonzero[..] {
        [only] => Some(constant(std::array::from_fn(|i| f64::from(u8::from(i == only))))),
        _ => None,
    }
}
