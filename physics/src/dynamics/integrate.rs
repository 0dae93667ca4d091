//! Integrators: the next state.

use super::actuation::next_activation;
use super::forward::Forward;
use super::state::State;
use crate::model::{Disable, JointType, Model};
use crate::real::{ONE, Real};
use crate::vector::{Quaternion, Vector, add, cross, dot, length, quaternion_product, scale};

use Real::Constant;

const RK4: i32 = 1;
const IMPLICIT_FAST: i32 = 3;

/// The state after a step, and what was computed last: MuJoCo's derived quantities are those of the start of an Euler
/// step, and of the last of the four evaluations of a Runge-Kutta step.
pub(crate) fn step<'a>(forward: Forward<'a>) -> (State, Forward<'a>) {
    match forward.model.opt.integrator {
        RK4 => runge_kutta(forward),
        kind => {
            let qacc = forward.implicit(kind == IMPLICIT_FAST);
            let act_dot = forward.actuation.act_dot.clone();
            let next = advance(&forward, &forward.state, &qacc, &act_dot, None);
            (next, forward)
        }
    }
}

impl Forward<'_> {
    /// The accelerations with damping at the end of the step.
    fn implicit(&self, fast: bool) -> Vec<Real> {
        let model = self.model;
        let step = model.opt.timestep;
        let damped = model.dof_damping.iter().any(|&damping| damping != 0.0);
        if !fast && (!damped || model.disabled(Disable::EulerDamp)) {
            return self.solution.qacc.clone();
        }
        let matrix = super::stage::stage(|| {
            let mut matrix = self.mass.clone();
            for dof in (0..model.nv).filter(|_| !model.disabled(Disable::Damper)) {
                matrix.add_at(dof, dof, Constant(step * model.dof_damping[dof]));
            }
            if fast {
                for (actuator, path) in self.actuators.iter().enumerate() {
                    let slope = self.actuation.slopes[actuator];
                    for i in 0..model.nv {
                        for j in model.chain(Some(i)) {
                            matrix.add_at(i, j, -(slope * path.moment[i] * path.moment[j] * step));
                        }
                    }
                }
            }
            matrix.factor()
        });
        let force: Vec<Real> = self
            .force
            .iter()
            .zip(&self.solution.force)
            .map(|(&smooth, &pushed)| smooth + pushed)
            .collect();
        super::stage::stage(|| matrix.solve(&force))
    }
}

/// The method of Runge and Kutta with four evaluations; on rotations the method of Munthe-Kaas, which integrates the
/// rotation vector from the start of the step.
fn runge_kutta(start: Forward<'_>) -> (State, Forward<'_>) {
    // The part of the step after which the next evaluation is, and the weights of the evaluations.
    let parts = [0.5, 0.5, 1.0];
    let weights = [1.0 / 6.0, 1.0 / 3.0, 1.0 / 3.0, 1.0 / 6.0];
    let first = start.state.clone();
    let mut rates =
        [first.qvel.clone(), start.solution.qacc.clone(), start.actuation.act_dot.clone()];
    let mut sums = rates
        .clone()
        .map(|rates| rates.into_iter().map(|rate| rate * weights[0]).collect::<Vec<_>>());
    let mut last = start;
    for (part, weight) in parts.into_iter().zip(&weights[1..]) {
        let model = last.model;
        let step = model.opt.timestep * part;
        let along = |from: &[Real], rates: &[Real]| -> Vec<Real> {
            from.iter().zip(rates).map(|(&x, &rate)| x + rate * step).collect()
        };
        let state = State {
            qpos: moved(model, &first.qpos, &rates[0], step),
            qvel: along(&first.qvel, &rates[1]),
            act: along(&first.act, &rates[2]),
            ctrl: first.ctrl.clone(),
            warmstart: last.solution.qacc.clone(),
        };
        let moved: Vec<Real> = rates[0].iter().map(|&rate| rate * step).collect();
        last = Forward::new(model, state, last.like);
        let velocity = from_start(model, &moved, &last.state.qvel);
        rates = [velocity, last.solution.qacc.clone(), last.actuation.act_dot.clone()];
        for (sum, rates) in sums.iter_mut().zip(&rates) {
            sum.iter_mut().zip(rates).for_each(|(sum, &rate)| *sum += rate * *weight);
        }
    }
    let [velocity, acceleration, act_dot] = sums;
    let next = advance(&last, &first, &acceleration, &act_dot, Some(&velocity));
    (next, last)
}

/// The rates at which the motion since the start of a step changes: velocities, but for rotations. There the rate of the
/// rotation vector `u` at the angular velocity `w` is `w + u x w / 2 + c u x (u x w)`, `c = (1 - |u| / 2 cot(|u| / 2)) / |u|^2`.
fn from_start(model: &Model, since: &[Real], qvel: &[Real]) -> Vec<Real> {
    let mut rates = qvel.to_vec();
    for joint in 0..model.njnt {
        let first = match model.jnt_type[joint] {
            JointType::Ball => model.jnt_dofadr[joint],
            JointType::Free => model.jnt_dofadr[joint] + 3,
            JointType::Slide | JointType::Hinge => continue,
        };
        let axes = |all: &[Real]| -> Vector { [all[first], all[first + 1], all[first + 2]] };
        let (turn, velocity) = (axes(since), axes(qvel));
        let once = cross(turn, velocity);
        let square = dot(turn, turn);
        let small = square.less(Constant(0.01));
        let series =
            Constant(1.0 / 12.0) + square * (Constant(1.0 / 720.0) + square * (1.0 / 30240.0));
        let angle = small.select(ONE, square).sqrt();
        let (sin, cos) = (angle * 0.5).sin_cos();
        let whole = (ONE - angle * 0.5 * cos / sin) / small.select(ONE, square);
        let twice = scale(cross(turn, once), small.select(series, whole));
        let rate = add(add(velocity, scale(once, Constant(0.5))), twice);
        rates[first..first + 3].copy_from_slice(&rate);
    }
    rates
}

/// The state a step after `from`. Positions follow the next velocities, unless other velocities are given.
fn advance(
    last: &Forward,
    from: &State,
    qacc: &[Real],
    act_dot: &[Real],
    velocity: Option<&[Real]>,
) -> State {
    let model = last.model;
    let step = model.opt.timestep;
    let mut act = from.act.clone();
    for (actuator, at) in model.actuator_actadr.iter().enumerate() {
        if let Some(at) = *at {
            act[at] = next_activation(model, actuator, from.act[at], act_dot[at]);
        }
    }
    let qvel: Vec<Real> = from.qvel.iter().zip(qacc).map(|(&v, &a)| v + a * step).collect();
    let qpos = moved(model, &from.qpos, velocity.unwrap_or(&qvel), step);
    State { qpos, qvel, act, ctrl: from.ctrl.clone(), warmstart: last.solution.qacc.clone() }
}

/// The positions after some seconds with constant velocities: `mj_integratePos`.
pub(crate) fn moved(model: &Model, qpos: &[Real], qvel: &[Real], seconds: f64) -> Vec<Real> {
    let mut next = qpos.to_vec();
    for joint in 0..model.njnt {
        let (at, dof) = (model.jnt_qposadr[joint], model.jnt_dofadr[joint]);
        let mut slide = |i: usize| next[at + i] = qpos[at + i] + qvel[dof + i] * seconds;
        let turned = |at: usize, dof: usize| {
            let quat = std::array::from_fn(|i| qpos[at + i]);
            turned(quat, scale([qvel[dof], qvel[dof + 1], qvel[dof + 2]], Constant(seconds)))
        };
        match model.jnt_type[joint] {
            JointType::Slide | JointType::Hinge => slide(0),
            JointType::Ball => next[at..at + 4].copy_from_slice(&turned(at, dof)),
            JointType::Free => {
                (0..3).for_each(&mut slide);
                next[at + 3..at + 7].copy_from_slice(&turned(at + 3, dof + 3));
            }
        }
    }
    next
}

/// A quaternion after a rotation by a vector in its own frame, of unit length.
fn turned(quat: Quaternion, by: Vector) -> Quaternion {
    let angle = length(by);
    let (sin, cos) = (angle * 0.5).sin_cos();
    let none = angle.vanishes();
    let factor = none.select(Constant(0.5), sin / none.select(ONE, angle));
    let [x, y, z] = scale(by, factor);
    let next = quaternion_product(quat, [cos, x, y, z]);
    let norm = dot(next, next).sqrt();
    scale(next, ONE / norm)
}
