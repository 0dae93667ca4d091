//! Quantities that follow from the positions: frames, the motions of the degrees of freedom, inertias.

use super::stage::{detail, numbers, stage};
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
pub(crate) struct Kinematics {
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

numbers!(Kinematics: reference, place, rotation, motion, inertia);

/// The frame of a body.
#[derive(Clone, Debug)]
struct BodyFrame {
    reference: Vector,
    place: Vector,
    turned: Matrix,
}

numbers!(BodyFrame: reference, place, turned);

impl Kinematics {
    pub(crate) fn new(model: &Model, qpos: &[Real]) -> Self {
        let mut all = Self {
            reference: vec![ORIGIN],
            place: vec![ORIGIN],
            rotation: vec![constant_rotation(math::IDENTITY)],
            motion: Vec::with_capacity(model.nv),
            inertia: vec![Inertia::ZERO],
        };
        let turns = stage(|| {
            let turn = |joint: usize| match model.jnt_type[joint] {
                JointType::Hinge => moved(model, qpos, joint).sin_cos(),
                _ => (ZERO, ONE),
            };
            (0..model.njnt).map(turn).collect::<Vec<_>>()
        });
        all = stage(|| {
            (1..model.nbody).for_each(|body| all.add_body(model, qpos, &turns, body));
            all
        });
        let inertia = |body: usize| detail(model, || all.inertia(model, body));
        let inertias = stage(|| (1..model.nbody).map(inertia).collect::<Vec<_>>());
        all.inertia.extend(inertias);
        all
    }

    fn add_body(&mut self, model: &Model, qpos: &[Real], turns: &[(Real, Real)], body: usize) {
        let parent = model.body_parentid[body];
        let first = model.body_jntadr[body].unwrap_or(0);
        let joints = first..first + model.body_jntnum[body];
        // The reference point moves with the slides of a tree's first body, up to the first rotation.
        let mut leads = !joints.is_empty() && model.body_weldid[parent] == 0;
        let mut frame = detail(model, || {
            let above = self.rotation[parent];
            let place = add(self.place[parent], rotate(above, constant(model.body_pos[body])));
            let turned = matmul(above, constant_rotation(model.body_quat[body]));
            match leads {
                true => BodyFrame { reference: place, place: ORIGIN, turned },
                false => BodyFrame { reference: self.reference[parent], place, turned },
            }
        });
        let mut axes = Vec::with_capacity(joints.len());
        for joint in joints.clone() {
            let kind = model.jnt_type[joint];
            let moved: (BodyFrame, (Vector, Vector)) =
                detail(model, || frame.moved(model, qpos, turns[joint], joint, leads));
            leads &= kind == JointType::Slide;
            frame = moved.0;
            axes.push(moved.1);
        }
        for (joint, (anchor, axis)) in joints.zip(axes) {
            let motions =
                detail(model, || motions(model.jnt_type[joint], anchor, axis, frame.turned));
            self.motion.extend(motions);
        }
        self.reference.push(frame.reference);
        self.place.push(frame.place);
        self.rotation.push(frame.turned);
    }

    fn inertia(&self, model: &Model, body: usize) -> Inertia {
        let mass = model.body_mass[body];
        if mass == 0.0 && model.body_inertia[body] == [0.0; 3] {
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
            let above = bodies[model.body_parentid[body]];
            let add = |sum: Spatial, dof: usize| sum.add(self.motion[dof].scale(by[dof]));
            bodies[body] = detail(model, || model.dofs(body).fold(above, add));
        }
        bodies
    }

    /// The forces on the degrees of freedom of spatial forces on bodies.
    pub(crate) fn generalized(&self, model: &Model, forces: Vec<Spatial>) -> Vec<Real> {
        let forces = model.gathered(|body| forces[body], Spatial::add);
        let on = |dof: usize| self.motion[dof].dot(forces[model.dof_bodyid[dof]]);
        (0..model.nv).map(on).collect()
    }
}

impl BodyFrame {
    /// The frame after a joint's motion, and the anchor and axis of the joint. The slides of a body that `leads` a tree
    /// move the reference point.
    fn moved(
        &self,
        model: &Model,
        qpos: &[Real],
        turn: (Real, Real),
        joint: usize,
        leads: bool,
    ) -> (Self, (Vector, Vector)) {
        let at = model.jnt_qposadr[joint];
        let kind = model.jnt_type[joint];
        let Self { mut reference, mut place, mut turned } = *self;
        if kind == JointType::Free {
            reference = [qpos[at], qpos[at + 1], qpos[at + 2]];
            turned = rotation(std::array::from_fn(|i| qpos[at + 3 + i]));
            return (Self { reference, place, turned }, (ORIGIN, ORIGIN));
        }
        let anchor = add(place, rotate(turned, constant(model.jnt_pos[joint])));
        let axis = rotate(turned, constant(model.jnt_axis[joint]));
        if kind == JointType::Slide {
            let moves = if leads { &mut reference } else { &mut place };
            *moves = add(*moves, scale(axis, moved(model, qpos, joint)));
        } else {
            let turn = match kind {
                JointType::Hinge => about(model.jnt_axis[joint], turn),
                _ => rotation(std::array::from_fn(|i| qpos[at + i])),
            };
            turned = matmul(turned, turn);
            place = sub(anchor, rotate(turned, constant(model.jnt_pos[joint])));
        }
        (Self { reference, place, turned }, (anchor, axis))
    }
}

/// The position of a slide or a hinge relative to the reference position.
fn moved(model: &Model, qpos: &[Real], joint: usize) -> Real {
    let at = model.jnt_qposadr[joint];
    qpos[at] - Real::Constant(model.qpos0[at])
}

/// The motions of a joint's degrees of freedom, for the body's final orientation.
fn motions(kind: JointType, anchor: Vector, axis: Vector, turned: Matrix) -> Vec<Spatial> {
    let turn = |axis: Vector| Spatial { w: axis, v: cross(anchor, axis) };
    let turns = (0..3).map(|i| turn(column(turned, i)));
    match kind {
        JointType::Slide => vec![Spatial { w: ORIGIN, v: axis }],
        JointType::Hinge => vec![turn(axis)],
        JointType::Ball => turns.collect(),
        JointType::Free => {
            let unit = |i: usize| constant(std::array::from_fn(|j| f64::from(u8::from(i == j))));
            let slides = (0..3).map(|i| Spatial { w: ORIGIN, v: unit(i) });
            slides.chain(turns).collect()
        }
    }
}
