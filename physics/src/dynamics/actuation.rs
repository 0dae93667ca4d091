//! Forces of the actuators, and the rates of their activations.

use super::state::State;
use super::transmission::PullPath;
use crate::model::{Disable, JointType, Model, TransmissionType};
use crate::real::{ONE, Real, ZERO};

use Real::Constant;

/// Types of dynamics with an activation, `mjtDyn`.
const INTEGRATOR: i32 = 1;
const EXACT_FILTER: i32 = 3;

/// Forces of the actuators, and the rates of their activations.
#[derive(Clone, Debug)]
pub(crate) struct Actuation {
    /// The force of each actuator, `actuator_force [nu]`.
    pub(crate) scalar: Vec<Real>,
    /// The forces on the degrees of freedom, `qfrc_actuator [nv]`.
    pub(crate) force: Vec<Real>,
    /// The derivative of each actuator's force by its velocity.
    pub(crate) slopes: Vec<Real>,
    /// The rate of change of each activation, `act_dot [na]`.
    pub(crate) act_dot: Vec<Real>,
}

super::stage::numbers!(Actuation: scalar, force, slopes, act_dot);

impl Actuation {
    /// The actuators' forces, with the forces `lifts [nv]` that compensate gravity.
    pub(crate) fn new(
        model: &Model,
        state: &State,
        paths: &[PullPath],
        tendons: &[PullPath],
        lifts: &[Real],
    ) -> Self {
        let mut all = Self {
            scalar: Vec::new(),
            force: vec![ZERO; model.nv],
            slopes: Vec::new(),
            act_dot: vec![ZERO; model.na],
        };
        let off = model.disabled(Disable::Actuation);
        for (actuator, path) in paths.iter().enumerate() {
            if off {
                all.scalar.push(ZERO);
                all.slopes.push(ZERO);
                continue;
            }
            let mut control = state.ctrl[actuator];
            if model.actuator_ctrllimited[actuator] && !model.disabled(Disable::ClampCtrl) {
                control = control.clamp(model.actuator_ctrlrange[actuator]);
            }
            let input = match model.actuator_actadr[actuator] {
                None => control,
                Some(at) => {
                    all.act_dot[at] = act_dot(model, actuator, control, state.act[at]);
                    if model.switched_off(actuator) {
                        all.act_dot[at] = ZERO;
                    }
                    if model.actuator_actearly[actuator] {
                        next_activation(model, actuator, state.act[at], all.act_dot[at])
                    } else {
                        state.act[at]
                    }
                }
            };
            if model.switched_off(actuator) {
                all.scalar.push(ZERO);
                all.slopes.push(ZERO);
                continue;
            }
            let length = path.length;
            let velocity = path.rate(&state.qvel);
            let affine = |prm: &[f64; 10], kind: i32| match kind {
                0 => Constant(prm[0]),
                _ => Constant(prm[0]) + length * prm[1] + velocity * prm[2],
            };
            let gain = affine(&model.actuator_gainprm[actuator], model.actuator_gaintype[actuator]);
            let bias = match model.actuator_biastype[actuator] {
                0 => ZERO,
                kind => affine(&model.actuator_biasprm[actuator], kind),
            };
            all.scalar.push(gain * input + bias);
            let slope = |kind: i32, prm: &[f64; 10]| if kind == 0 { 0.0 } else { prm[2] };
            all.slopes.push(
                input * slope(model.actuator_gaintype[actuator], &model.actuator_gainprm[actuator])
                    + Constant(slope(
                        model.actuator_biastype[actuator],
                        &model.actuator_biasprm[actuator],
                    )),
            );
        }
        all.limit_tendons(model, tendons);
        for (actuator, path) in paths.iter().enumerate() {
            if model.actuator_forcelimited[actuator] && !off {
                let [low, high] = model.actuator_forcerange[actuator].map(Constant);
                let force = all.scalar[actuator];
                all.scalar[actuator] = force.max(low).min(high);
                let inside = low.less(force).select(all.slopes[actuator], ZERO);
                all.slopes[actuator] = force.less(high).select(inside, ZERO);
            }
            path.pull(all.scalar[actuator], &mut all.force);
        }
        for (dof, &lift) in lifts.iter().enumerate() {
            let joint = model.dof_jntid[dof];
            if model.jnt_actgravcomp[joint] && model.nu > 0 && !off {
                all.force[dof] += lift;
            }
        }
        for joint in 0..model.njnt {
            let single = matches!(model.jnt_type[joint], JointType::Slide | JointType::Hinge);
            if model.jnt_actfrclimited[joint] && single {
                let dof = model.jnt_dofadr[joint];
                all.force[dof] = all.force[dof].clamp(model.jnt_actfrcrange[joint]);
            }
        }
        all
    }

    /// Scales the forces of the actuators of each tendon, if their sum is beyond the tendon's limits.
    fn limit_tendons(&mut self, model: &Model, tendons: &[PullPath]) {
        for tendon in (0..tendons.len()).filter(|&tendon| model.tendon_actfrclimited[tendon]) {
            let pulls = |actuator: &usize| {
                model.actuator_trntype[*actuator] == TransmissionType::Tendon
                    && model.actuator_trnid[*actuator][0] == Some(tendon)
            };
            let actuators: Vec<usize> = (0..model.nu).filter(pulls).collect();
            let sum: Real = actuators.iter().map(|&actuator| self.scalar[actuator]).sum();
            let kept = sum.clamp(model.tendon_actfrcrange[tendon]);
            let none = sum.vanishes();
            let factor = none.select(Constant(1.0), kept / none.select(Constant(1.0), sum));
            for actuator in actuators {
                self.scalar[actuator] = self.scalar[actuator] * factor;
                self.slopes[actuator] = factor.less(ONE).select(ZERO, self.slopes[actuator]);
            }
        }
    }
}

impl Model {
    /// True for an actuator of a group that `actuatorgroupdisable` has.
    fn switched_off(&self, actuator: usize) -> bool {
        let group = self.actuator_group[actuator];
        (0..31).contains(&group) && self.opt.disableactuator >> group & 1 == 1
    }
}

/// The rate of change of an activation.
fn act_dot(model: &Model, actuator: usize, control: Real, act: Real) -> Real {
    match model.actuator_dyntype[actuator] {
        INTEGRATOR => control,
        _ => (control - act) * (1.0 / model.actuator_dynprm[actuator][0].max(1e-15)),
    }
}

/// The activation after a step.
pub(crate) fn next_activation(model: &Model, actuator: usize, act: Real, act_dot: Real) -> Real {
    let step = match model.actuator_dyntype[actuator] {
        EXACT_FILTER => {
            let tau = model.actuator_dynprm[actuator][0].max(1e-15);
            tau * (1.0 - (-model.opt.timestep / tau).exp())
        }
        _ => model.opt.timestep,
    };
    let next = act + act_dot * step;
    let limited = model.actuator_actlimited[actuator];
    if limited { next.clamp(model.actuator_actrange[actuator]) } else { next }
}
