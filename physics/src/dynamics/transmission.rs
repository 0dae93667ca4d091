//! Lengths of tendons and actuators, and their pull on the degrees of freedom.

use super::position::Kinematics;
use super::velocity::rotation_vector;
use crate::math::IDENTITY;
use crate::model::{JointType, Model, TransmissionType, WrapType};
use crate::real::{ONE, Real, ZERO};
use crate::vector::{Vector, constant, dot, length, rotate, rotation, scale, sub, transpose};

use Real::Constant;

/// A length, and its derivative by the degrees of freedom.
#[derive(Clone, Debug)]
pub(crate) struct PullPath {
    pub(crate) length: Real,
    pub(crate) moment: Vec<Real>,
}

super::stage::numbers!(PullPath: length, moment);

impl PullPath {
    fn none(model: &Model) -> Self {
        Self { length: ZERO, moment: vec![ZERO; model.nv] }
    }

    /// The rate of change of the length.
    pub(crate) fn rate(&self, qvel: &[Real]) -> Real {
        self.moment.iter().zip(qvel).map(|(&moment, &velocity)| moment * velocity).sum()
    }

    /// Adds the forces on the degrees of freedom of a force along the path.
    pub(crate) fn pull(&self, force: Real, on: &mut [Real]) {
        for (on, &moment) in on.iter_mut().zip(&self.moment) {
            *on += moment * force;
        }
    }
}

/// Each tendon: `ten_length` and `ten_J`.
pub(crate) fn tendons(model: &Model, position: &Kinematics, qpos: &[Real]) -> Vec<PullPath> {
    let of = |tendon: usize| {
        let mut path = PullPath::none(model);
        let first = model.tendon_adr[tendon];
        let parts = first..first + model.tendon_num[tendon];
        for part in parts.clone() {
            let id = model.wrap_objid[part];
            if model.wrap_type[part] == WrapType::Joint {
                let coefficient = Constant(model.wrap_prm[part]);
                path.length += coefficient * qpos[model.jnt_qposadr[id]];
                path.moment[model.jnt_dofadr[id]] += coefficient;
            } else if part + 1 < parts.end {
                add_segment(model, position, [id, model.wrap_objid[part + 1]], &mut path);
            }
        }
        path
    };
    (0..model.ntendon).map(of).collect()
}

/// The straight line from one site to another.
fn add_segment(model: &Model, position: &Kinematics, sites: [usize; 2], path: &mut PullPath) {
    let ends = sites.map(|site| {
        let body = model.site_bodyid[site];
        (body, position.point(body, model.site_pos[site]))
    });
    let [from, to] = ends.map(|(body, place)| position.world(body, place));
    let along = sub(to, from);
    let distance = length(along);
    path.length += distance;
    let none = distance.vanishes();
    let along = scale(along, none.select(ZERO, ONE / none.select(ONE, distance)));
    for ((body, place), sign) in ends.into_iter().zip([-1.0, 1.0]) {
        for dof in model.chain(model.last_dof(body)) {
            path.moment[dof] += dot(along, position.motion[dof].at(place)) * sign;
        }
    }
}

/// Each actuator: `actuator_length` and `actuator_moment`.
pub(crate) fn actuators(
    model: &Model,
    position: &Kinematics,
    tendons: &[PullPath],
    qpos: &[Real],
) -> Vec<PullPath> {
    let of = |actuator: usize| {
        let gear = model.actuator_gear[actuator];
        let mut path = PullPath::none(model);
        let Some(id) = model.actuator_trnid[actuator][0] else { return path };
        let kind = model.actuator_trntype[actuator];
        if kind == TransmissionType::Tendon {
            path.length = tendons[id].length * gear[0];
            path.moment = tendons[id].moment.iter().map(|&moment| moment * gear[0]).collect();
            return path;
        }
        let (at, dof) = (model.jnt_qposadr[id], model.jnt_dofadr[id]);
        let in_parent = kind == TransmissionType::JointInParent;
        let axis =
            |first: usize| -> Vector { constant([gear[first], gear[first + 1], gear[first + 2]]) };
        let mut set = |first: usize, axis: Vector| {
            path.moment[first..first + 3].copy_from_slice(&axis);
        };
        match model.jnt_type[id] {
            JointType::Slide | JointType::Hinge => {
                path.length = qpos[at] * gear[0];
                path.moment[dof] = Constant(gear[0]);
            }
            JointType::Ball => {
                let quat = std::array::from_fn(|i| qpos[at + i]);
                let axis = axis(0);
                // The rotation vector is the same in both frames.
                path.length = dot(rotation_vector(quat, IDENTITY), axis);
                let own = if in_parent { rotate(transpose(rotation(quat)), axis) } else { axis };
                path.moment[dof..dof + 3].copy_from_slice(&own);
            }
            JointType::Free => {
                let turned = position.rotation[model.jnt_bodyid[id]];
                let turn = axis(3);
                set(dof, axis(0));
                set(dof + 3, if in_parent { rotate(transpose(turned), turn) } else { turn });
            }
        }
        path
    };
    (0..model.nu).map(of).collect()
}
