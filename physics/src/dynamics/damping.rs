//! Dampers and the drag of the medium, with their derivatives by velocities.

use super::position::Kinematics;
use crate::model::{Disable, Model, TransmissionType};
use crate::real::Real;
use crate::vector::{Matrix, ORIGIN, Spatial, Vector, column, constant, rotate, sub, transpose};

use Real::Constant;

/// A damper's coefficients `c`: its force is `x (c[0] + c[1] |x| + c[2] x^2)` at the velocity `x`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Damping([f64; 3]);

impl Damping {
    fn new(linear: f64, [second, third]: [f64; 2]) -> Self {
        Self([linear, second, third])
    }

    fn add(self, Self(other): Self, times: f64) -> Self {
        Self(std::array::from_fn(|i| self.0[i] + times * other[i]))
    }

    pub(crate) fn is_none(self) -> bool {
        self.0 == [0.0; 3]
    }

    /// The force against a velocity.
    pub(crate) fn of(self, velocity: Real) -> Real {
        let [linear, second, third] = self.0;
        velocity * (Constant(linear) + velocity.abs() * second + velocity.square() * third)
    }

    /// The derivative of the force by the velocity.
    pub(crate) fn slope(self, velocity: Real) -> Real {
        let [linear, second, third] = self.0;
        Constant(linear) + velocity.abs() * (2.0 * second) + velocity.square() * (3.0 * third)
    }
}

impl Model {
    /// True if no force is passive: MuJoCo computes none at all without springs and dampers.
    pub(crate) fn without_passive(&self) -> bool {
        self.disabled(Disable::Spring) && self.disabled(Disable::Damper)
    }

    /// The damping of a degree of freedom and its actuators.
    pub(crate) fn damping(&self, dof: usize) -> Damping {
        let own = Damping::new(self.dof_damping[dof], self.dof_dampingpoly[dof]);
        self.geared_damping(own, false, self.dof_jntid[dof])
    }

    /// The damping of a tendon and its actuators.
    pub(crate) fn tendon_damping(&self, tendon: usize) -> Damping {
        let own = Damping::new(self.tendon_damping[tendon], self.tendon_dampingpoly[tendon]);
        self.geared_damping(own, true, tendon)
    }

    fn geared_damping(&self, own: Damping, tendon: bool, id: usize) -> Damping {
        let pulls = |&actuator: &usize| {
            (self.actuator_trntype[actuator] == TransmissionType::Tendon) == tendon
                && self.actuator_trnid[actuator][0] == Some(id)
        };
        (0..self.nu).filter(pulls).fold(own, |sum, actuator| {
            let gear = self.actuator_gear[actuator][0];
            let poly = self.actuator_dampingpoly[actuator];
            sum.add(Damping::new(self.actuator_damping[actuator], poly), gear * gear)
        })
    }
}

/// The drag of the medium on a body as a box with the body's inertia: `mj_inertiaBoxFluidModel`. Each axis of the box has
/// a torque and a force, which depend on the velocity along this axis alone.
pub(crate) struct Drag {
    centre: Vector,
    /// The axes of the box, as columns.
    axes: Matrix,
    torque: [Damper; 3],
    force: [Damper; 3],
}

/// A velocity relative to the medium, and the coefficients of its drag.
#[derive(Clone, Copy)]
struct Damper(Real, Damping);

impl Drag {
    /// The drag on a body; `None` for a body without mass, and without a medium.
    pub(crate) fn new(
        model: &Model,
        position: &Kinematics,
        velocity: &[Spatial],
        body: usize,
    ) -> Option<Self> {
        let (mass, moments) = (model.body_mass[body], model.body_inertia[body]);
        let (viscosity, density) = (model.opt.viscosity, model.opt.density);
        if (viscosity <= 0.0 && density <= 0.0) || mass <= 0.0 || model.without_passive() {
            return None;
        }
        let side = |i: usize| {
            let rest: f64 = moments.iter().sum::<f64>() - 2.0 * moments[i];
            (rest.max(1e-15) / mass * 6.0).sqrt()
        };
        let sides = [side(0), side(1), side(2)];
        let centre = position.point(body, model.body_ipos[body]);
        let axes = position.frame(body, model.body_iquat[body]);
        let local = transpose(axes);
        let turn = rotate(local, velocity[body].w);
        let flow = rotate(local, sub(velocity[body].at(centre), constant(model.opt.wind)));
        let diameter = sides.iter().sum::<f64>() / 3.0;
        let pi = std::f64::consts::PI;
        let of = |torque: bool| {
            std::array::from_fn(|i| {
                let [a, b, c] = [0, 1, 2].map(|k| sides[(i + k) % 3]);
                if torque {
                    let across = a * (b.powi(4) + c.powi(4)) / 64.0;
                    let slow = pi * diameter.powi(3) * viscosity;
                    Damper(turn[i], Damping([slow, density * across, 0.0]))
                } else {
                    let slow = 3.0 * pi * diameter * viscosity;
                    Damper(flow[i], Damping([slow, 0.5 * density * b * c, 0.0]))
                }
            })
        };
        Some(Self { centre, axes, torque: of(true), force: of(false) })
    }

    pub(crate) fn force(&self) -> Spatial {
        let against =
            |dampers: [Damper; 3]| rotate(self.axes, dampers.map(|Damper(x, c)| -c.of(x)));
        let torque = Spatial { w: against(self.torque), v: ORIGIN };
        torque.add(Spatial::force_at(self.centre, against(self.force)))
    }

    /// The unit force of each axis, and the derivative of the drag along it by the velocity along it.
    pub(crate) fn slopes(&self) -> Vec<(Spatial, Real)> {
        let axis = |i: usize| column(self.axes, i);
        let slope = |Damper(x, damping): Damper| damping.slope(x);
        let torques = (0..3).map(|i| (Spatial { w: axis(i), v: ORIGIN }, slope(self.torque[i])));
        let unit = |i: usize| Spatial::force_at(self.centre, axis(i));
        let forces = (0..3).map(|i| (unit(i), slope(self.force[i])));
        torques.chain(forces).filter(|(_, slope)| !slope.is_zero()).collect()
    }
}
