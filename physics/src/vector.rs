//! Vectors, rotations, quaternions (`w x y z`) and spatial vectors of traced numbers.

use crate::math;
use crate::real::{ONE, Real, ZERO};

use Real::Constant;

pub(crate) type Vector = [Real; 3];
/// A matrix, as rows.
pub(crate) type Matrix = [[Real; 3]; 3];
pub(crate) type Quaternion = [Real; 4];

pub(crate) const ORIGIN: Vector = [ZERO; 3];

/// Constants. What rounding leaves of a zero next to larger numbers is zero.
pub(crate) fn constant<const N: usize>(values: [f64; N]) -> [Real; N] {
    let largest = values.iter().fold(0.0_f64, |largest, x| largest.max(x.abs()));
    values.map(|x| Constant(if x.abs() < 1e-14 * largest { 0.0 } else { x }))
}

/// The rotation of a constant quaternion.
pub(crate) fn constant_rotation(q: [f64; 4]) -> Matrix {
    constant_matrix(math::matrix(q))
}

pub(crate) fn constant_matrix(m: math::Mat3) -> Matrix {
    let largest = m.iter().flatten().fold(0.0_f64, |largest, x| largest.max(x.abs()));
    m.map(|row| row.map(|x| Constant(if x.abs() < 1e-14 * largest { 0.0 } else { x })))
}

pub(crate) fn add<const N: usize>(a: [Real; N], b: [Real; N]) -> [Real; N] {
    std::array::from_fn(|i| a[i] + b[i])
}

pub(crate) fn sub<const N: usize>(a: [Real; N], b: [Real; N]) -> [Real; N] {
    std::array::from_fn(|i| a[i] - b[i])
}

pub(crate) fn scale<const N: usize>(a: [Real; N], by: Real) -> [Real; N] {
    a.map(|x| x * by)
}

pub(crate) fn negated<const N: usize>(a: [Real; N]) -> [Real; N] {
    a.map(|x| -x)
}

pub(crate) fn dot<const N: usize>(a: [Real; N], b: [Real; N]) -> Real {
    a.into_iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The length of a vector, with a gradient of zero at zero.
pub(crate) fn length(x: Vector) -> Real {
    norm(&x)
}

/// [`length`] of any number of elements.
pub(crate) fn norm(x: &[Real]) -> Real {
    let square: Real = x.iter().map(|x| x.square()).sum();
    let positive = ZERO.less(square);
    positive.select(positive.select(square, ONE).sqrt(), ZERO)
}

pub(crate) fn cross(a: Vector, b: Vector) -> Vector {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

pub(crate) fn column(m: Matrix, j: usize) -> Vector {
    [m[0][j], m[1][j], m[2][j]]
}

pub(crate) fn transpose(m: Matrix) -> Matrix {
    std::array::from_fn(|j| column(m, j))
}

pub(crate) fn rotate(m: Matrix, v: Vector) -> Vector {
    m.map(|row| dot(row, v))
}

pub(crate) fn matmul(a: Matrix, b: Matrix) -> Matrix {
    a.map(|row| std::array::from_fn(|j| dot(row, column(b, j))))
}

/// The rotation about a constant unit axis by an angle with this sine and cosine.
pub(crate) fn about(axis: [f64; 3], (sin, cos): (Real, Real)) -> Matrix {
    let rest = ONE - cos;
    let [x, y, z] = axis;
    let skew = [[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]];
    std::array::from_fn(|i| {
        std::array::from_fn(|j| {
            let square = axis[i] * axis[j];
            let symmetric = match i == j {
                true if square == 1.0 => ONE,
                true => cos + rest * square,
                false => rest * square,
            };
            symmetric + sin * skew[i][j]
        })
    })
}

/// The rotation of a quaternion of any length.
pub(crate) fn rotation(q: Quaternion) -> Matrix {
    let [w, x, y, z] = q;
    let twice = Constant(2.0) / dot(q, q);
    let product = |a: Real, b: Real| a * b * twice;
    [
        [
            ONE - product(y, y) - product(z, z),
            product(x, y) - product(w, z),
            product(x, z) + product(w, y),
        ],
        [
            product(x, y) + product(w, z),
            ONE - product(x, x) - product(z, z),
            product(y, z) - product(w, x),
        ],
        [
            product(x, z) - product(w, y),
            product(y, z) + product(w, x),
            ONE - product(x, x) - product(y, y),
        ],
    ]
}

/// One of the two unit quaternions of a rotation.
pub(crate) fn quaternion(m: Matrix) -> Quaternion {
    let [xx, yy, zz] = [m[0][0], m[1][1], m[2][2]];
    let (x, y, z) = (m[2][1] - m[1][2], m[0][2] - m[2][0], m[1][0] - m[0][1]);
    let (xy, xz, yz) = (m[0][1] + m[1][0], m[0][2] + m[2][0], m[1][2] + m[2][1]);
    // Each is the quaternion times four times one of its elements: the largest one divides best.
    let multiples = [
        [ONE + xx + yy + zz, x, y, z],
        [x, ONE + xx - yy - zz, xy, xz],
        [y, xy, ONE - xx + yy - zz, yz],
        [z, xz, yz, ONE - xx - yy + zz],
    ];
    let [mut best, rest @ ..] = multiples;
    let mut size = best[0];
    for (i, multiple) in rest.into_iter().enumerate() {
        let larger = size.less(multiple[i + 1]);
        best = larger.select_all(multiple, best);
        size = larger.select(multiple[i + 1], size);
    }
    scale(best, ONE / norm(&best))
}

/// Hamilton's product.
pub(crate) fn quaternion_product(a: Quaternion, b: Quaternion) -> Quaternion {
    [
        a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3],
        a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2],
        a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1],
        a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0],
    ]
}

/// A motion or a force about a reference point: the rotational part, then the translational part.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spatial {
    pub(crate) w: Vector,
    pub(crate) v: Vector,
}

impl Spatial {
    pub(crate) const ZERO: Self = Self { w: ORIGIN, v: ORIGIN };

    pub(crate) fn add(self, other: Self) -> Self {
        Self { w: add(self.w, other.w), v: add(self.v, other.v) }
    }

    pub(crate) fn scale(self, by: Real) -> Self {
        Self { w: scale(self.w, by), v: scale(self.v, by) }
    }

    pub(crate) fn dot(self, other: Self) -> Real {
        dot(self.w, other.w) + dot(self.v, other.v)
    }

    /// The six numbers, the rotational part first.
    pub(crate) fn six(self) -> [Real; 6] {
        let ([a, b, c], [d, e, f]) = (self.w, self.v);
        [a, b, c, d, e, f]
    }

    /// The rate of change of `motion`, which moves with this velocity.
    pub(crate) fn cross_motion(self, motion: Self) -> Self {
        Self {
            w: cross(self.w, motion.w),
            v: add(cross(self.w, motion.v), cross(self.v, motion.w)),
        }
    }

    /// The rate of change of `force`, which moves with this velocity.
    pub(crate) fn cross_force(self, force: Self) -> Self {
        Self { w: add(cross(self.w, force.w), cross(self.v, force.v)), v: cross(self.w, force.v) }
    }

    /// The velocity of a point, by its place relative to the reference point.
    pub(crate) fn at(self, point: Vector) -> Vector {
        add(self.v, cross(self.w, point))
    }

    /// The spatial force of a force at a point.
    pub(crate) fn force_at(point: Vector, force: Vector) -> Self {
        Self { w: cross(point, force), v: force }
    }
}

/// A rigid body's inertia about a reference point.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Inertia {
    pub(crate) mass: Real,
    /// Mass times the centre of mass.
    pub(crate) moment: Vector,
    /// The symmetric matrix: xx, yy, zz, xy, xz, yz.
    pub(crate) rotational: [Real; 6],
}

impl Inertia {
    pub(crate) const ZERO: Self = Self { mass: ZERO, moment: ORIGIN, rotational: [ZERO; 6] };

    pub(crate) fn add(self, other: Self) -> Self {
        Self {
            mass: self.mass + other.mass,
            moment: add(self.moment, other.moment),
            rotational: add(self.rotational, other.rotational),
        }
    }

    /// The inertia about another point, by its place from the reference point.
    pub(crate) fn about(self, point: Vector) -> Self {
        let moment = sub(self.moment, scale(point, self.mass));
        // With c the centre of mass and p the point, |c - p|^2 - |c|^2 = -(2 c - p) p; and likewise off the diagonal.
        let twice = sub(scale(point, self.mass), scale(self.moment, Real::Constant(2.0)));
        let square = |i: usize| twice[i] * point[i];
        let product = |i: usize, j: usize| {
            self.moment[i] * point[j] + point[i] * self.moment[j] - self.mass * point[i] * point[j]
        };
        let change = [
            square(1) + square(2),
            square(0) + square(2),
            square(0) + square(1),
            product(0, 1),
            product(0, 2),
            product(1, 2),
        ];
        Self { mass: self.mass, moment, rotational: add(self.rotational, change) }
    }

    /// The momentum of a velocity.
    pub(crate) fn apply(self, velocity: Spatial) -> Spatial {
        let [xx, yy, zz, xy, xz, yz] = self.rotational;
        let spin = rotate([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]], velocity.w);
        Spatial {
            w: add(spin, cross(self.moment, velocity.v)),
            v: sub(scale(velocity.v, self.mass), cross(self.moment, velocity.w)),
        }
    }
}
