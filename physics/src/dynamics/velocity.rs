//! Velocities of the bodies, and the forces that follow from positions and velocities.

use super::damping::Drag;
use super::position::Kinematics;
use super::stage::detail;
use super::state::State;
use super::transmission::PullPath;
use crate::model::{Disable, JointType, Model};
use crate::real::{ONE, Real, ZERO};
use crate::vector::{
    ORIGIN, Spatial, Vector, constant, length, negated, quaternion_product, scale,
};

use Real::Constant;

/// Motions of the bodies.
#[derive(Clone, Debug)]
pub(crate) struct BodyMotion {
    /// The velocity of each body.
    pub(crate) velocity: Vec<Spatial>,
    /// The acceleration of each body without accelerations of the degrees of freedom, against the fall of gravity.
    pub(crate) acceleration: Vec<Spatial>,
    /// The force that each body's motion takes without accelerations of the degrees of freedom.
    pub(crate) force: Vec<Spatial>,
}

super::stage::numbers!(BodyMotion: velocity, acceleration, force);

pub(crate) fn motion(model: &Model, position: &Kinematics, qvel: &[Real]) -> BodyMotion {
    let falls = !model.disabled(Disable::Gravity);
    let lift = negated(constant(model.opt.gravity));
    let lift = if falls { Spatial { w: ORIGIN, v: lift } } else { Spatial::ZERO };
    let mut velocity = vec![Spatial::ZERO; model.nbody];
    let mut acceleration = vec![lift; model.nbody];
    let mut force = vec![Spatial::ZERO; model.nbody];
    for body in 1..model.nbody {
        let parent = model.body_parentid[body];
        let (v, a) = detail(model, || {
            let (mut v, mut a) = (velocity[parent], acceleration[parent]);
            // The axes of a ball, and the axes of a free joint's rotation, turn with what moves the body before them.
            let mut before = v;
            for dof in model.dofs(body) {
                let joint = model.dof_jntid[dof];
                let axis = dof - model.jnt_dofadr[joint];
                let together = match model.jnt_type[joint] {
                    JointType::Ball => axis > 0,
                    JointType::Free => axis > 3,
                    JointType::Slide | JointType::Hinge => false,
                };
                if !together {
                    before = v;
                }
                let moved = position.motion[dof].scale(qvel[dof]);
                a = a.add(before.cross_motion(moved));
                v = v.add(moved);
            }
            (v, a)
        });
        (velocity[body], acceleration[body]) = (v, a);
        let inertia = position.inertia[body];
        force[body] = detail(model, || inertia.apply(a).add(v.cross_force(inertia.apply(v))));
    }
    BodyMotion { velocity, acceleration, force }
}

/// The forces of springs, dampers, the medium and compensated gravity.
pub(crate) fn passive(
    model: &Model,
    position: &Kinematics,
    velocity: &[Spatial],
    tendons: &[PullPath],
    state: &State,
) -> Vec<Real> {
    let mut force = vec![ZERO; model.nv];
    if model.without_passive() {
        return force;
    }
    if !model.disabled(Disable::Spring) {
        add_springs(model, state, &mut force);
    }
    if !model.disabled(Disable::Damper) {
        for (dof, force) in force.iter_mut().enumerate() {
            *force -= model.damping(dof).of(state.qvel[dof]);
        }
    }
    for (tendon, path) in tendons.iter().enumerate() {
        path.pull(tendon_force(model, tendon, path, &state.qvel), &mut force);
    }
    let mut on_bodies = vec![Spatial::ZERO; model.nbody];
    for (body, on_body) in on_bodies.iter_mut().enumerate().skip(1) {
        if let Some(drag) = Drag::new(model, position, velocity, body) {
            *on_body = drag.force();
        }
    }
    let on_dofs = position.generalized(model, on_bodies);
    let lifts = gravity_compensation(model, position);
    for (dof, (force, on_dof)) in force.iter_mut().zip(on_dofs).enumerate() {
        let by_actuator = model.jnt_actgravcomp[model.dof_jntid[dof]];
        *force += on_dof + if by_actuator { ZERO } else { lifts[dof] };
    }
    force
}

/// The forces that compensate gravity, `qfrc_gravcomp [nv]`.
pub(crate) fn gravity_compensation(model: &Model, position: &Kinematics) -> Vec<Real> {
    let lift = |body: usize| {
        let weight = -model.body_mass[body] * model.body_gravcomp[body];
        if weight == 0.0 || model.disabled(Disable::Gravity) || model.without_passive() {
            return Spatial::ZERO;
        }
        let centre = position.point(body, model.body_ipos[body]);
        Spatial::force_at(centre, scale(constant(model.opt.gravity), Constant(weight)))
    };
    position.generalized(model, (0..model.nbody).map(lift).collect())
}

/// The factor of a spring's displacement: `c + p[0] x + p[1] x^2`.
fn rate(coefficient: f64, poly: [f64; 2], x: Real) -> Real {
    Constant(coefficient) + x * poly[0] + x.square() * poly[1]
}

fn add_springs(model: &Model, state: &State, force: &mut [Real]) {
    for joint in 0..model.njnt {
        let (stiffness, poly) = (model.jnt_stiffness[joint], model.jnt_stiffnesspoly[joint]);
        if stiffness == 0.0 && poly == [0.0; 2] {
            continue;
        }
        let (at, dof) = (model.jnt_qposadr[joint], model.jnt_dofadr[joint]);
        let moved = |i: usize| state.qpos[at + i] - Constant(model.qpos_spring[at + i]);
        let turned = |at: usize| {
            let rest = std::array::from_fn(|i| model.qpos_spring[at + i]);
            rotation_vector(std::array::from_fn(|i| state.qpos[at + i]), rest)
        };
        let mut pull =
            |dof: usize, x: Real, size: Real| force[dof] -= x * rate(stiffness, poly, size);
        match model.jnt_type[joint] {
            JointType::Slide | JointType::Hinge => pull(dof, moved(0), moved(0)),
            JointType::Ball => {
                let turned = turned(at);
                (0..3).for_each(|i| pull(dof + i, turned[i], length(turned)));
            }
            JointType::Free => {
                let places = [moved(0), moved(1), moved(2)];
                (0..3).for_each(|i| pull(dof + i, places[i], length(places)));
                let turned = turned(at + 3);
                (0..3).for_each(|i| pull(dof + 3 + i, turned[i], length(turned)));
            }
        }
    }
}

/// The rotation vector that takes a constant orientation to `to`, in the frame of `from`.
pub(crate) fn rotation_vector(to: [Real; 4], from: [f64; 4]) -> Vector {
    let from = constant([from[0], -from[1], -from[2], -from[3]]);
    let [w, x, y, z] = quaternion_product(from, to);
    let sine = length([x, y, z]);
    // The shorter of both ways round.
    let back = w.less(ZERO);
    let (w, sign) = (w.abs(), back.select(-ONE, ONE));
    let angle = Real::atan2(sine, w) * 2.0;
    let none = sine.vanishes();
    let factor = none.select(Constant(2.0), angle / none.select(ONE, sine)) * sign;
    scale([x, y, z], factor)
}

fn tendon_force(model: &Model, tendon: usize, path: &PullPath, qvel: &[Real]) -> Real {
    let mut force = ZERO;
    let (stiffness, poly) = (model.tendon_stiffness[tendon], model.tendon_stiffnesspoly[tendon]);
    if !model.disabled(Disable::Spring) && (stiffness != 0.0 || poly != [0.0; 2]) {
        let [low, high] = model.tendon_lengthspring[tendon].map(Constant);
        // Slack between the two lengths.
        let beyond = (path.length - high).max(ZERO) + (path.length - low).min(ZERO);
        force -= beyond * rate(stiffness, poly, beyond);
    }
    let damping = model.tendon_damping(tendon);
    if !model.disabled(Disable::Damper) && !damping.is_none() {
        force -= damping.of(path.rate(qvel));
    }
    force
}
