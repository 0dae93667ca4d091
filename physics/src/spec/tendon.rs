//! Tendons as written: sums of joints, and paths through sites.

use super::defaults::Defaults;
use super::{LIMITED, Limited, Solver};
use crate::ModelResult;
use crate::mjcf::Element;

/// Values of a tendon, which classes have, too.
#[derive(Clone, Debug)]
pub(crate) struct TendonValues {
    pub(crate) limited: Limited,
    pub(crate) range: [f64; 2],
    pub(crate) margin: f64,
    pub(crate) limit: Solver,
    pub(crate) force_limited: Limited,
    pub(crate) force_range: [f64; 2],
    /// Linear, quadratic and cubic coefficients.
    pub(crate) stiffness: [f64; 3],
    pub(crate) damping: [f64; 3],
    /// Dead band of the spring; -1 for the length at the springs' reference.
    pub(crate) spring_length: [f64; 2],
    pub(crate) friction_loss: f64,
    pub(crate) friction: Solver,
    pub(crate) armature: f64,
}

impl Default for TendonValues {
    fn default() -> Self {
        Self {
            limited: Limited::Auto,
            range: [0.0; 2],
            margin: 0.0,
            limit: Solver::default(),
            force_limited: Limited::Auto,
            force_range: [0.0; 2],
            stiffness: [0.0; 3],
            damping: [0.0; 3],
            spring_length: [-1.0; 2],
            friction_loss: 0.0,
            friction: Solver::default(),
            armature: 0.0,
        }
    }
}

impl TendonValues {
    pub(crate) fn apply(&mut self, element: &Element) -> ModelResult<()> {
        element.set_choice("limited", LIMITED, &mut self.limited)?;
        element.set("range", &mut self.range)?;
        element.set("margin", &mut self.margin)?;
        self.limit.apply(element, "solreflimit", "solimplimit")?;
        element.set_choice("actuatorfrclimited", LIMITED, &mut self.force_limited)?;
        element.set("actuatorfrcrange", &mut self.force_range)?;
        element.set_first("stiffness", &mut self.stiffness)?;
        element.set_first("damping", &mut self.damping)?;
        if element.set_first("springlength", &mut self.spring_length)? == 1 {
            self.spring_length[1] = self.spring_length[0];
        }
        element.set("frictionloss", &mut self.friction_loss)?;
        self.friction.apply(element, "solreffriction", "solimpfriction")?;
        element.set("armature", &mut self.armature)?;
        if self.armature < 0.0 {
            return Err(element.fault("armature", "a number that is not negative"));
        }
        Ok(())
    }
}

/// A tendon. The children of its element are `joint` or `site`.
pub(crate) struct Tendon {
    pub(crate) element: Element,
    pub(crate) values: TendonValues,
}

impl Tendon {
    pub(super) fn new(element: &Element, defaults: &Defaults) -> ModelResult<Self> {
        let mut values = defaults.of(element, None)?.tendon.clone();
        values.apply(element)?;
        let least = if element.name == "spatial" { 2 } else { 1 };
        if element.children.len() < least {
            let message = format!("`{}` needs at least {least} of its parts", element.name);
            return Err(element.invalid(message));
        }
        Ok(Self { element: element.clone(), values })
    }
}
