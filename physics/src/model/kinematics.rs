//! Frames of the bodies for given positions, and the motion that each degree of freedom gives to a point.

use super::Model;
use super::types::JointType;
use crate::math::{
    IDENTITY, Mat3, Quat, Vec3, about, add, column, cross, matrix, mul, rotate, scale, sub, unit,
};

/// The world frames of bodies and joints.
pub(super) struct Frames {
    pub(super) pos: Vec<Vec3>,
    pub(super) quat: Vec<Quat>,
    pub(super) rotation: Vec<Mat3>,
    anchor: Vec<Vec3>,
    axis: Vec<Vec3>,
}

impl Frames {
    /// The frames for `nq` positions.
    pub(super) fn new(model: &Model, qpos: &[f64]) -> Self {
        let mut frames = Self {
            pos: vec![[0.0; 3]],
            quat: vec![IDENTITY],
            rotation: vec![matrix(IDENTITY)],
            anchor: Vec::with_capacity(model.njnt),
            axis: Vec::with_capacity(model.njnt),
        };
        for body in 1..model.nbody {
            let parent = model.body_parentid[body];
            let mut pos =
                add(frames.pos[parent], rotate(&frames.rotation[parent], model.body_pos[body]));
            let mut quat = mul(frames.quat[parent], model.body_quat[body]);
            let first = model.body_jntadr[body].unwrap_or(0);
            for joint in first..first + model.body_jntnum[body] {
                let at = model.jnt_qposadr[joint];
                let kind = model.jnt_type[joint];
                let quat_at = |at: usize| -> Quat { std::array::from_fn(|i| qpos[at + i]) };
                if kind == JointType::Free {
                    pos = [qpos[at], qpos[at + 1], qpos[at + 2]];
                    quat = unit(quat_at(at + 3)).unwrap_or(IDENTITY);
                }
                let anchor = add(pos, rotate(&matrix(quat), model.jnt_pos[joint]));
                let axis = rotate(&matrix(quat), model.jnt_axis[joint]);
                let moved = || qpos[at] - model.qpos0[at];
                match kind {
                    JointType::Free => {}
                    JointType::Slide => pos = add(pos, scale(axis, moved())),
                    JointType::Hinge => quat = mul(quat, about(model.jnt_axis[joint], moved())),
                    JointType::Ball => quat = mul(quat, unit(quat_at(at)).unwrap_or(IDENTITY)),
                }
                if matches!(kind, JointType::Hinge | JointType::Ball) {
                    pos = sub(anchor, rotate(&matrix(quat), model.jnt_pos[joint]));
                }
                frames.anchor.push(anchor);
                frames.axis.push(axis);
            }
            let quat = unit(quat).unwrap_or(IDENTITY);
            frames.pos.push(pos);
            frames.quat.push(quat);
            frames.rotation.push(matrix(quat));
        }
        frames
    }

    /// A point of a body in the world.
    pub(super) fn point(&self, body: usize, local: Vec3) -> Vec3 {
        add(self.pos[body], rotate(&self.rotation[body], local))
    }

    /// The centre of mass of a body.
    pub(super) fn centre(&self, model: &Model, body: usize) -> Vec3 {
        self.point(body, model.body_ipos[body])
    }

    /// Velocity of a point of a body, and angular velocity of the body, by the unit velocity of each degree of freedom.
    /// Those that do not move the body are left out.
    pub(super) fn jacobian(
        &self,
        model: &Model,
        body: usize,
        point: Vec3,
    ) -> Vec<(usize, Vec3, Vec3)> {
        let weld = model.body_weldid[body];
        let mut next = model.body_dofadr[weld].map(|first| first + model.body_dofnum[weld] - 1);
        let mut rows = Vec::new();
        while let Some(dof) = next {
            let joint = model.dof_jntid[dof];
            let (of, axis) = (model.dof_bodyid[dof], dof - model.jnt_dofadr[joint]);
            let turn = |axis: Vec3, anchor: Vec3| (cross(axis, sub(point, anchor)), axis);
            let (linear, angular) = match model.jnt_type[joint] {
                JointType::Slide => (self.axis[joint], [0.0; 3]),
                JointType::Hinge => turn(self.axis[joint], self.anchor[joint]),
                JointType::Ball => turn(column(&self.rotation[of], axis), self.anchor[joint]),
                JointType::Free if axis < 3 => {
                    (std::array::from_fn(|i| f64::from(u8::from(i == axis))), [0.0; 3])
                }
                JointType::Free => turn(column(&self.rotation[of], axis - 3), self.anchor[joint]),
            };
            rows.push((dof, linear, angular));
            next = model.dof_parentid[dof];
        }
        rows
    }
}
