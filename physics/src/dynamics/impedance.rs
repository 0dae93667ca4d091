//! The impedance of a constraint: MuJoCo's `solref` and `solimp`.

use crate::model::{Disable, Model};
use crate::real::{ONE, Real};

use Real::Constant;

const LEAST: f64 = 1e-4;
const MOST: f64 = 0.9999;
const TINY: f64 = 1e-15;

/// Stiffness, damping and impedance at a distance from the constraint.
pub(crate) struct Impedance {
    stiffness: f64,
    damping: f64,
    impedance: Real,
}

impl Impedance {
    pub(crate) fn new(model: &Model, solref: [f64; 2], solimp: [f64; 5], distance: Real) -> Self {
        let [low, high, width, middle, power] = solimp;
        let (low, high) = (low.clamp(LEAST, MOST), high.clamp(LEAST, MOST));
        let (middle, power) = (middle.clamp(LEAST, MOST), power.max(1.0));
        let [first, second] = solref;
        let (stiffness, damping) = if first > 0.0 {
            let safe =
                if model.disabled(Disable::RefSafe) { 0.0 } else { 2.0 * model.opt.timestep };
            let time = first.max(safe);
            (
                1.0 / (high * high * time * time * second * second).max(TINY),
                2.0 / (high * time).max(TINY),
            )
        } else {
            (-first / (high * high).max(TINY), -second / high.max(TINY))
        };
        let impedance = if low == high || width <= TINY {
            Constant(0.5 * (low + high))
        } else {
            let x = (distance.abs() * (1.0 / width)).min(ONE);
            let y = if power == 1.0 {
                x
            } else {
                let rising = x.powf(power) * middle.powf(1.0 - power);
                let falling = ONE - (ONE - x).powf(power) * (1.0 - middle).powf(1.0 - power);
                Constant(middle).less(x).select(falling, rising)
            };
            Constant(low) + y * (high - low)
        };
        Self { stiffness, damping, impedance }
    }

    /// The same without stiffness.
    pub(crate) fn without_stiffness(self) -> Self {
        Self { stiffness: 0.0, ..self }
    }

    /// The weight of a row (`efc_D`) with an inverse inertia of about `inverse`.
    pub(crate) fn weight(&self, inverse: f64) -> Real {
        self.impedance / ((ONE - self.impedance) * inverse.max(TINY))
    }

    /// The acceleration that a row aims at (`efc_aref`).
    pub(crate) fn aim(&self, speed: Real, distance: Real) -> Real {
        -(speed * self.damping) - self.impedance * distance * self.stiffness
    }
}
