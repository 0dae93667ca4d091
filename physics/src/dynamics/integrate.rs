//! Integrators: the next state.

use podracer_dsl::prelude::*;

use super::actuation::next_activation;
use super::damping::Drag;
use super::forward::Forward;
use super::gyration::turn_free_bodies;
use super::mass::Symmetric;
use super::stage::{Numbers, stage};
use super::state::State;
use crate::model::{Disable, JointType, Model};
use crate::real::{ONE, Real, Truth, ZERO};
use crate::vector::{Quaternion, Vector, add, cross, dot, length, quaternion_product, scale};

use Real::Constant;

const RK4: i32 = 1;
const IMPLICIT_FAST: i32 = 3;

/// The evaluations of a step of Runge and Kutta: the part of the step to the next evaluation, and the weight of the rates.
const EVALUATIONS: [(f64, f64); 4] =
    [(0.5, 1.0 / 6.0), (0.5, 1.0 / 3.0), (1.0, 1.0 / 3.0), (0.0, 1.0 / 6.0)];

/// State of the integrator between two evaluations.
#[derive(Clone, Debug)]
pub(crate) struct Carry {
    /// The state to evaluate.
    pub(crate) state: State,
    /// The evaluations of the present step of Runge and Kutta.
    stages: Option<Stages>,
}

#[derive(Clone, Debug)]
struct Stages {
    /// The state at the start of the step.
    start: State,
    /// The motion since the start of the step, `[nv]`.
    since: Vec<Real>,
    /// The weighted sums of the rates of positions, velocities and activations.
    sums: [Vec<Real>; 3],
}

/// The place of an evaluation in its step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RateStage {
    part: Real,
    weight: Real,
    last: Truth,
}

impl Numbers for Carry {
    fn each(&mut self, f: &mut dyn FnMut(&mut Real)) {
        self.state.each(f);
        if let Some(Stages { start, since, sums }) = &mut self.stages {
            start.each(f);
            since.each(f);
            sums.each(f);
        }
    }
}

impl RateStage {
    /// The evaluations of some steps, as rows of `[part, weight, last]`.
    pub(crate) fn rows(model: &Model, steps: usize, dtype: DType) -> Array {
        let one = match model.opt.integrator {
            RK4 => &EVALUATIONS[..],
            _ => &[(0.0, 1.0)],
        };
        let row = |&(part, weight): &(f64, f64)| [part, weight, f64::from(u8::from(part == 0.0))];
        let rows: Vec<f64> = one.iter().flat_map(row).collect();
        Array::floats(dtype, [steps * one.len(), 3], &rows.repeat(steps))
    }

    pub(crate) fn new(row: Tensor) -> Self {
        let [part, weight, last] = [0, 1, 2].map(|i| Real::Value(row.index(i)));
        Self { part, weight, last: Constant(0.5).less(last) }
    }
}

impl Carry {
    pub(crate) fn new(model: &Model, state: State) -> Self {
        let zeros = |of: &[Real]| vec![ZERO; of.len()];
        let stages = (model.opt.integrator == RK4).then(|| Stages {
            since: zeros(&state.qvel),
            sums: [zeros(&state.qvel), zeros(&state.qvel), zeros(&state.act)],
            start: state.clone(),
        });
        Self { state, stages }
    }

    /// The carry after an evaluation.
    pub(crate) fn next(&self, forward: &Forward, evaluation: RateStage) -> Self {
        let model = forward.model;
        let Some(stages) = &self.stages else {
            let qacc = forward.implicit(model.opt.integrator == IMPLICIT_FAST);
            let state = advance(forward, &self.state, None, &qacc, &forward.actuation.act_dot);
            return Self { state, stages: None };
        };
        stages.next(forward, evaluation)
    }
}

impl Stages {
    /// The method of Runge and Kutta with four evaluations; on rotations the method of Munthe-Kaas, which integrates the
    /// rotation vector since the start of the step.
    fn next(&self, forward: &Forward, RateStage { part, weight, last }: RateStage) -> Carry {
        let model = forward.model;
        let velocity = from_start(model, &self.since, &forward.state.qvel);
        let rates = [&velocity, &forward.solution.qacc, &forward.actuation.act_dot];
        let mut sums = self.sums.clone();
        for (sum, rates) in sums.iter_mut().zip(rates) {
            sum.iter_mut().zip(rates).for_each(|(sum, &rate)| *sum += rate * weight);
        }
        // The last evaluation continues with the sums, the others with their own rates.
        let onward: [Vec<Real>; 3] = std::array::from_fn(|i| {
            sums[i]
                .iter()
                .zip(rates[i])
                .map(|(&sum, &rate)| last.select(sum, rate * part))
                .collect()
        });
        let [velocity, qacc, act_dot] = &onward;
        let mut state = advance(forward, &self.start, Some(velocity), qacc, act_dot);
        for (next, (&from, &rate)) in state.act.iter_mut().zip(self.start.act.iter().zip(act_dot)) {
            *next = last.select(*next, from + rate * model.opt.timestep);
        }
        let choose = |last_one: &[Real], others: &[Real]| -> Vec<Real> {
            last_one.iter().zip(others).map(|(&a, &b)| last.select(a, b)).collect()
        };
        let zeros = |of: &[Real]| vec![ZERO; of.len()];
        let start = State {
            qpos: choose(&state.qpos, &self.start.qpos),
            qvel: choose(&state.qvel, &self.start.qvel),
            act: choose(&state.act, &self.start.act),
            ..state.clone()
        };
        let moved: Vec<Real> = velocity.iter().map(|&rate| rate * model.opt.timestep).collect();
        let stages = Stages {
            start,
            since: choose(&zeros(&moved), &moved),
            sums: sums.map(|sum| choose(&zeros(&sum), &sum)),
        };
        Carry { state, stages: Some(stages) }
    }
}

impl Forward<'_> {
    /// The accelerations with damping at the end of the step.
    fn implicit(&self, fast: bool) -> Vec<Real> {
        let model = self.model;
        let step = model.opt.timestep;
        let damped = (0..model.nv).any(|dof| !model.damping(dof).is_none());
        if !fast && (!damped || model.disabled(Disable::EulerDamp)) {
            return self.solution.qacc.clone();
        }
        let matrix = stage(|| {
            let mut matrix = self.mass.clone();
            for dof in (0..model.nv).filter(|_| !model.disabled(Disable::Damper)) {
                let slope = model.damping(dof).slope(self.state.qvel[dof]);
                matrix.add_at(dof, dof, slope * step);
            }
            if fast {
                self.add_slopes(&mut matrix);
            }
            matrix
        });
        let factor = stage(|| matrix.factor(model));
        let force: Vec<Real> = self
            .force
            .iter()
            .zip(&self.solution.force)
            .map(|(&smooth, &pushed)| smooth + pushed)
            .collect();
        let mut qacc = stage(|| factor.solve(model, &force));
        if fast {
            let (position, velocity) = (&self.position, &self.velocity);
            turn_free_bodies(model, position, velocity, &matrix, &force, &mut qacc);
        }
        qacc
    }

    /// Subtracts the derivatives by the velocities, times the seconds of a step, of the forces of actuators, tendons and
    /// the medium.
    fn add_slopes(&self, matrix: &mut Symmetric) {
        let model = self.model;
        let mut add = |slope: Real, moment: &[Real]| {
            for i in 0..model.nv {
                for j in model.chain(Some(i)) {
                    matrix.add_at(i, j, slope * moment[i] * moment[j] * model.opt.timestep);
                }
            }
        };
        for (path, &slope) in self.actuators.iter().zip(&self.actuation.slopes) {
            add(-slope, &path.moment);
        }
        for (tendon, path) in self.tendons.iter().enumerate() {
            let damping = model.tendon_damping(tendon);
            if !damping.is_none() && !model.disabled(Disable::Damper) {
                add(damping.slope(path.rate(&self.state.qvel)), &path.moment);
            }
        }
        for body in 1..model.nbody {
            let drag = Drag::new(model, &self.position, &self.velocity, body);
            for (unit, slope) in drag.iter().flat_map(Drag::slopes) {
                let mut moment = vec![ZERO; model.nv];
                for dof in model.chain(model.last_dof(body)) {
                    moment[dof] = unit.dot(self.position.motion[dof]);
                }
                add(slope, &moment);
            }
        }
    }
}

/// The rates of the motion since the start of a step: velocities, except for rotations. For a rotation, the rate of the
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

/// The state a step after `from`, by the rates of positions, velocities and activations. Positions follow the next
/// velocities if they have no rates of their own.
fn advance(
    forward: &Forward,
    from: &State,
    velocity: Option<&[Real]>,
    qacc: &[Real],
    act_dot: &[Real],
) -> State {
    let model = forward.model;
    let step = model.opt.timestep;
    let mut act = from.act.clone();
    for (actuator, at) in model.actuator_actadr.iter().enumerate() {
        if let Some(at) = *at {
            act[at] = next_activation(model, actuator, from.act[at], act_dot[at]);
        }
    }
    let qvel: Vec<Real> = from.qvel.iter().zip(qacc).map(|(&v, &a)| v + a * step).collect();
    let qpos = moved(model, &from.qpos, velocity.unwrap_or(&qvel), step);
    let warmstart = forward.solution.qacc.clone();
    State { qpos, qvel, act, ctrl: from.ctrl.clone(), warmstart }
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
