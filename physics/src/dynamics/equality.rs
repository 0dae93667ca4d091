//! Equality constraints: polynomials of joints and tendons, points and frames of two bodies.

use super::constraint::{Row, RowKind, along, sparse};
use super::impedance::Impedance;
use super::position::Kinematics;
use super::stage::detail;
use super::state::State;
use super::transmission::PullPath;
use super::velocity::BodyMotion;
use crate::model::{Disable, EqualityType, Model, ObjectType};
use crate::real::{ONE, Real, ZERO};
use crate::vector::{
    Matrix, ORIGIN, Spatial, Vector, add, cross, dot, matmul, norm, quaternion, rotate, scale, sub,
    transpose,
};

use Real::Constant;

/// Adds the rows of the equalities.
pub(crate) fn add_equalities(
    model: &Model,
    position: &Kinematics,
    motion: &BodyMotion,
    tendons: &[PullPath],
    state: &State,
    rows: &mut Vec<Row>,
) {
    if model.disabled(Disable::Equality) {
        return;
    }
    for equality in (0..model.neq).filter(|&equality| model.eq_active0[equality]) {
        match model.eq_type[equality] {
            EqualityType::Joint | EqualityType::Tendon => {
                rows.push(polynomial(model, tendons, state, equality));
            }
            EqualityType::Connect | EqualityType::Weld => {
                let join = || Join::new(model, position, equality).rows(motion);
                rows.extend(detail(model, join));
            }
        }
    }
}

/// A polynomial of joints or tendons.
fn polynomial(model: &Model, tendons: &[PullPath], state: &State, equality: usize) -> Row {
    let data = model.eq_data[equality];
    let part = |id: usize| match model.eq_type[equality] {
        EqualityType::Tendon => {
            let path = &tendons[id];
            let inverse = model.tendon_invweight0[id];
            (path.length - Constant(model.tendon_length0[id]), sparse(&path.moment), inverse)
        }
        _ => {
            let (at, dof) = (model.jnt_qposadr[id], model.jnt_dofadr[id]);
            let moved = state.qpos[at] - Constant(model.qpos0[at]);
            (moved, vec![(dof, ONE)], model.dof_invweight0[dof])
        }
    };
    let (first, mut jacobian, mut inverse) = part(model.eq_obj1id[equality]);
    let mut distance = first - Constant(data[0]);
    if let Some(second) = model.eq_obj2id[equality] {
        let (x, more, more_inverse) = part(second);
        let terms = (1..5).map(|i| (0..i).fold(Constant(data[i]), |term, _| term * x));
        distance -= terms.sum();
        let slopes = (1..5).map(|i| (1..i).fold(Constant(data[i] * i as f64), |term, _| term * x));
        let slope: Real = slopes.sum();
        jacobian.extend(more.into_iter().map(|(dof, entry)| (dof, -(entry * slope))));
        inverse += more_inverse;
    }
    let speed = along(&jacobian, &state.qvel);
    let (solref, solimp) = (model.eq_solref[equality], model.eq_solimp[equality]);
    let impedance = Impedance::new(model, solref, solimp, distance);
    let (weight, aim) = (impedance.weight(inverse), impedance.aim(speed, distance));
    Row { kind: RowKind::Equality, jacobian, weight, aim, on_bodies: Vec::new() }
}

/// Two bodies, which are joined at a point of each.
struct Join<'a> {
    model: &'a Model,
    position: &'a Kinematics,
    equality: usize,
    bodies: [usize; 2],
    /// The points, each relative to the reference point of its body's tree.
    places: [Vector; 2],
    /// The place of the first point from the second.
    apart: Vector,
    turn: Option<Turn>,
}

/// The orientation of the first frame in the second frame.
struct Turn {
    /// The axes of the second frame, as rows.
    frame: Matrix,
    /// The quaternion's scalar, and its vector.
    w: Real,
    xyz: Vector,
    /// The factor of the error.
    scale: f64,
}

impl<'a> Join<'a> {
    fn new(model: &'a Model, position: &'a Kinematics, equality: usize) -> Self {
        let data = model.eq_data[equality];
        let three = |at: usize| [data[at], data[at + 1], data[at + 2]];
        let weld = model.eq_type[equality] == EqualityType::Weld;
        let first = model.eq_obj1id[equality];
        let objects = [first, model.eq_obj2id[equality].unwrap_or(0)];
        let identity = [1.0, 0.0, 0.0, 0.0];
        // Each side's body, and the joined frame in it.
        let sides = if model.eq_objtype[equality] == ObjectType::Site {
            objects
                .map(|site| (model.site_bodyid[site], model.site_pos[site], model.site_quat[site]))
        } else {
            let (one, other) = if weld { (3, 0) } else { (0, 3) };
            let relative = if weld { std::array::from_fn(|i| data[6 + i]) } else { identity };
            [(objects[0], three(one), relative), (objects[1], three(other), identity)]
        };
        let bodies = sides.map(|(body, ..)| body);
        let places = sides.map(|(body, local, _)| position.point(body, local));
        let apart = sub(places[0], position.seen_from(model, bodies[0], bodies[1], places[1]));
        let turn = weld.then(|| {
            let [one, other] = sides.map(|(body, _, quat)| position.frame(body, quat));
            let frame = transpose(other);
            let [w, x, y, z] = quaternion(matmul(frame, one));
            Turn { frame, w, xyz: [x, y, z], scale: data[10] }
        });
        Self { model, position, equality, bodies, places, apart, turn }
    }

    fn rows(&self, motion: &BodyMotion) -> Vec<Row> {
        let model = self.model;
        let errors = self.errors();
        let distance = norm(&errors);
        let (solref, solimp) = (model.eq_solref[self.equality], model.eq_solimp[self.equality]);
        let impedance = Impedance::new(model, solref, solimp, distance);
        let [one, other] = self.bodies.map(|body| model.body_invweight0[body]);
        let [velocity, other_velocity] = self.bodies.map(|body| motion.velocity[body]);
        let speeds = self.along(velocity, other_velocity);
        let drifts = self.drifts(motion);
        let jacobian = self.jacobian(errors.len());
        let row = |(i, jacobian): (usize, Vec<(usize, Real)>)| {
            let inverse = one[i / 3] + other[i / 3];
            let aim = impedance.aim(speeds[i], errors[i]) - drifts[i];
            let on_bodies = self.on_bodies(i);
            let weight = impedance.weight(inverse);
            Row { kind: RowKind::Equality, jacobian, weight, aim, on_bodies }
        };
        jacobian.into_iter().enumerate().map(row).collect()
    }

    /// The spatial forces on both bodies of a unit force of a row.
    fn on_bodies(&self, row: usize) -> Vec<(usize, Spatial)> {
        let unit = |i: usize| std::array::from_fn(|j| Constant(f64::from(u8::from(i == j))));
        let on = |side: usize| match &self.turn {
            Some(turn) if row >= 3 => {
                let axis = std::array::from_fn(|j| turn.rate(unit(j))[row - 3]);
                Spatial { w: axis, v: ORIGIN }
            }
            _ => Spatial::force_at(self.places[side], unit(row)),
        };
        let [one, other] = self.bodies;
        vec![(one, on(0)), (other, on(1).scale(-ONE))]
    }

    /// The errors of place and orientation.
    fn errors(&self) -> Vec<Real> {
        let turn = self.turn.iter().flat_map(|turn| scale(turn.xyz, Constant(turn.scale)));
        self.apart.into_iter().chain(turn).collect()
    }

    /// The rates of the errors by motions of both bodies.
    fn along(&self, one: Spatial, other: Spatial) -> Vec<Real> {
        let linear = sub(one.at(self.places[0]), other.at(self.places[1]));
        let turn = self.turn.iter().flat_map(|turn| turn.rate(sub(one.w, other.w)));
        linear.into_iter().chain(turn).collect()
    }

    /// The rows by the degrees of freedom.
    fn jacobian(&self, count: usize) -> Vec<Vec<(usize, Real)>> {
        let model = self.model;
        let chains =
            self.bodies.map(|body| model.chain(model.last_dof(body)).collect::<Vec<usize>>());
        let mut rows = vec![Vec::new(); count];
        for dof in 0..model.nv {
            let moved = self.position.motion[dof];
            let column = match [0, 1].map(|side| chains[side].contains(&dof)) {
                [false, false] => continue,
                // Both bodies turn alike.
                [true, true] => cross(moved.w, self.apart).into_iter().chain([ZERO; 3]).collect(),
                [true, false] => self.along(moved, Spatial::ZERO),
                [false, true] => self.along(Spatial::ZERO, moved),
            };
            for (row, entry) in rows.iter_mut().zip(column) {
                if !entry.is_zero() {
                    row.push((dof, entry));
                }
            }
        }
        rows
    }

    /// The accelerations of the errors without accelerations of the degrees of freedom.
    fn drifts(&self, motion: &BodyMotion) -> Vec<Real> {
        let of = |side: usize| {
            let (body, place) = (self.bodies[side], self.places[side]);
            let velocity = motion.velocity[body];
            let turning = cross(velocity.w, velocity.at(place));
            add(motion.acceleration[body].at(place), turning)
        };
        let linear = sub(of(0), of(1));
        let turn = self.turn.iter().flat_map(|turn| {
            let [one, other] = self.bodies.map(|body| motion.velocity[body].w);
            let [up, down] = self.bodies.map(|body| motion.acceleration[body].w);
            let relative = sub(one, other);
            let change = sub(sub(up, down), cross(other, relative));
            // The rate of the quaternion, and its turn of the relative velocity.
            let local = rotate(turn.frame, relative);
            let w = dot(local, turn.xyz) * -0.5;
            let xyz = Turn::turned(local, turn.w, turn.xyz);
            let moved = Turn::turned(local, w, xyz);
            add(turn.rate(change), scale(moved, Constant(turn.scale)))
        });
        linear.into_iter().chain(turn).collect()
    }
}

impl Turn {
    /// The rate of the error by an angular velocity of the first frame in the world.
    fn rate(&self, velocity: Vector) -> Vector {
        let local = rotate(self.frame, velocity);
        scale(Self::turned(local, self.w, self.xyz), Constant(self.scale))
    }

    /// The vector of half the product of an angular velocity and a quaternion.
    fn turned(velocity: Vector, w: Real, xyz: Vector) -> Vector {
        scale(add(scale(velocity, w), cross(velocity, xyz)), Constant(0.5))
    }
}
