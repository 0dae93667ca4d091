//! Quantities that follow from the positions: frames, the motions of the degrees of freedom, inertias.

use super::stage::{numbers, stage};
use crate::math;
use crate::model::{JointType, Model};
use crate::real::{ONE, Real, ZERO};
use crate::vector::{
    Inertia, Matrix, ORIGIN, Spatial, Vector, about, add, column, constant, constant_matrix,
    constant_rotation, cross, dot, matmul, rotate, rotation, scale, sub,
};

/// Frames and inertias. The bodies of a tree have places relative to the tree's reference point, which moves with the
/// slides of the tree's first body: so a slide of the whole robot is in none of its equations.
#[derive(Clone, Debug)]
pub(crate) struct Position {
    /// The reference point of each body's tree, in the world.
    pub(crate) reference: Vec<Vector>,
    /// The place of each body.
    pub(crate) place: Vec<Vector>,
    /// The orientation of each body.
    pub(crate) rotation: Vec<Matrix>,
    /// The motion of each degree of freedom, about the reference point.
    pub(crate) motion: Vec<Spatial>,
    /// The inertia of each body, about the reference point.
    pub(crate) inertia: Vec<Inertia>,
}

numbers!(Position: reference, place, rotation, motion, inertia);

impl Position {
    pub(crate) fn new(model: &Model, qpos: &[Real]) -> Self {
        let turns = stage(|| {
            let turn = |joint: usize| {
                let at = model.jnt_qposadr[joint];
                match model.jnt_type[joint] {
                    JointType::Hinge => (qpos[at] - Real::Constant(model.qpos0[at])).sin_cos(),
                    _ => (ZERO, ONE),
                }
            };
            (0..model.njnt).map(turn).collect::<Vec<_>>()
        });
        let mut position = stage(|| Self::frames(model, qpos, &turns));
        position.inertia = stage(|| position.inertias(model));
        position
    }

    fn frames(model: &Model, qpos: &[Real], turns: &[(Real, Real)]) -> Self {
        let identity = constant_rotation(math::IDENTITY);
        let mut all = Self {
            reference: vec![ORIGIN],
            place: vec![ORIGIN],
            rotation: vec![identity],
            motion: Vec::with_capacity(model.nv),
            inertia: Vec::new(),
        };
        for body in 1..model.nbody {
            let parent = model.body_parentid[body];
            let above = all.rotation[parent];
            let mut place = add(all.place[parent], rotate(above, constant(model.body_pos[body])));
            let mut turned = matmul(above, constant_rotation(model.body_quat[body]));
            let mut reference = all.reference[parent];
            let first = model.body_jntadr[body].unwrap_or(0);
            let joints = first..first + model.body_jntnum[body];
            // The reference point moves with the slides of a tree's first body, up to the first rotation.
            let mut leads = !joints.is_empty() && model.body_weldid[parent] == 0;
            if leads {
                (reference, place) = (place, ORIGIN);
            }
            let mut frames = Vec::with_capacity(joints.len());
            for joint in joints.clone() {
                let at = model.jnt_qposadr[joint];
                let kind = model.jnt_type[joint];
                if kind == JointType::Free {
                    reference = [qpos[at], qpos[at + 1], qpos[at + 2]];
                    turned = rotation(std::array::from_fn(|i| qpos[at + 3 + i]));
                    frames.push((ORIGIN, ORIGIN));
                    continue;
                }
                let anchor = add(place, rotate(turned, constant(model.jnt_pos[joint])));
                let axis = rotate(turned, constant(model.jnt_axis[joint]));
                if kind == JointType::Slide {
                    let moved = scale(axis, qpos[at] - Real::Constant(model.qpos0[at]));
                    let moves = if leads { &mut reference } else { &mut place };
                    *moves = add(*moves, moved);
                } else {
                    let turn = match kind {
                        JointType::Hinge => about(model.jnt_axis[joint], turns[joint]),
                        _ => rotation(std::array::from_fn(|i| qpos[at + i])),
                    };
                    turned = matmul(turned, turn);
                    place = sub(anchor, rotate(turned, constant(model.jnt_pos[joint])));
                    leads = false;
                }
                frames.push((anchor, axis));
            }
            for (joint, (anchor, axis)) in joints.zip(frames) {
                all.add_motions(model.jnt_type[joint], anchor, axis, turned);
            }
            all.reference.push(reference);
            all.place.push(place);
            all.rotation.push(turned);
        }
        all
    }

    /// The motions of a joint's degrees of freedom, for the body's final orientation.
    fn add_motions(&mut self, kind: JointType, anchor: Vector, axis: Vector, turned: Matrix) {
        let turn = |axis: Vector| Spatial { w: axis, v: cross(anchor, axis) };
        match kind {
            JointType::Slide => self.motion.push(Spatial { w: ORIGIN, v: axis }),
            JointType::Hinge => self.motion.push(turn(axis)),
            JointType::Ball => self.motion.extend((0..3).map(|i| turn(column(turned, i)))),
            JointType::Free => {
                let unit =
                    |i: usize| constant(std::array::from_fn(|j| f64::from(u8::from(i == j))));
                self.motion.extend((0..3).map(|i| Spatial { w: ORIGIN, v: unit(i) }));
                self.motion.extend((0..3).map(|i| turn(column(turned, i))));
            }
        }
    }

    fn inertias(&self, model: &Model) -> Vec<Inertia> {
        let of = |body: usize| {
            let mass = model.body_mass[body];
            if body == 0 || mass == 0.0 && model.body_inertia[body] == [0.0; 3] {
                return Inertia::ZERO;
            }
            let axes = math::matrix(model.body_iquat[body]);
            let own = constant_matrix(math::diagonal_in(&axes, model.body_inertia[body]));
            let turned = matmul(self.rotation[body], own);
            let at = |i: usize, j: usize| dot(turned[i], self.rotation[body][j]);
            let [x, y, z] = self.point(body, model.body_ipos[body]);
            let moment = scale([x, y, z], Real::Constant(mass));
            let [mx, my, mz] = moment;
            let rotational = [
                at(0, 0) + my * y + mz * z,
                at(1, 1) + mx * x + mz * z,
                at(2, 2) + mx * x + my * y,
                at(0, 1) - mx * y,
                at(0, 2) - mx * z,
                at(1, 2) - my * z,
            ];
            Inertia { mass: Real::Constant(mass), moment, rotational }
        };
        (0..model.nbody).map(of).collect()
    }

    /// The place of a point of a body, relative to the reference point.
    pub(crate) fn point(&self, body: usize, local: [f64; 3]) -> Vector {
        add(self.place[body], rotate(self.rotation[body], constant(local)))
    }

    /// The orientation of a frame of a body.
    pub(crate) fn frame(&self, body: usize, quat: [f64; 4]) -> Matrix {
        matmul(self.rotation[body], constant_rotation(quat))
    }

    /// The place in the world of a place that is relative to the reference point of a body's tree.
    pub(crate) fn world(&self, body: usize, place: Vector) -> Vector {
        add(self.reference[body], place)
    }

    /// A place that is relative to the reference point of `of`, relative to the reference point of `body`.
    pub(crate) fn seen_from(&self, model: &Model, body: usize, of: usize, place: Vector) -> Vector {
        if model.tree(body) == model.tree(of) {
            return place;
        }
        sub(add(self.reference[of], place), self.reference[body])
    }

    /// The sum over each degree of freedom that moves a body of its motion times a number.
    pub(crate) fn motions(&self, model: &Model, by: &[Real]) -> Vec<Spatial> {
        let mut bodies = vec![Spatial::ZERO; model.nbody];
        for body in 1..model.nbody {
            bodies[body] = bodies[model.body_parentid[body]];
            for dof in model.dofs(body) {
                bodies[body] = bodies[body].add(self.motion[dof].scale(by[dof]));
            }
        }
        bodies
    }

    /// The forces on the degrees of freedom of spatial forces on bodies.
    pub(crate) fn generalized(&self, model: &Model, mut forces: Vec<Spatial>) -> Vec<Real> {
        for body in (1..model.nbody).rev() {
            let parent = model.body_parentid[body];
            forces[parent] = forces[parent].add(forces[body]);
        }
        (0..model.nv).map(|dof| self.motion[dof].dot(forces[model.dof_bodyid[dof]])).collect()
    }
}
