//! Joints as written.

use super::{LIMITED, Limited, Solver};
use crate::ModelResult;
use crate::mjcf::Element;
use crate::model::JointType;

/// Values of a joint, which classes have, too. Angles are as written.
#[derive(Clone, Debug)]
pub(crate) struct JointValues {
    pub(crate) kind: JointType,
    pub(crate) pos: [f64; 3],
    pub(crate) axis: [f64; 3],
    pub(crate) reference: f64,
    pub(crate) spring_reference: f64,
    /// Linear, quadratic and cubic coefficients.
    pub(crate) stiffness: [f64; 3],
    pub(crate) damping: [f64; 3],
    /// Time constant and damping ratio; positive numbers replace stiffness and damping.
    pub(crate) spring_damper: [f64; 2],
    pub(crate) limited: Limited,
    pub(crate) range: [f64; 2],
    pub(crate) margin: f64,
    pub(crate) limit: Solver,
    pub(crate) force_limited: Limited,
    pub(crate) force_range: [f64; 2],
    pub(crate) gravity_by_actuator: bool,
    pub(crate) armature: f64,
    pub(crate) friction_loss: f64,
    pub(crate) friction: Solver,
}

impl Default for JointValues {
    fn default() -> Self {
        Self {
            kind: JointType::Hinge,
            pos: [0.0; 3],
            axis: [0.0, 0.0, 1.0],
            reference: 0.0,
            spring_reference: 0.0,
            stiffness: [0.0; 3],
            damping: [0.0; 3],
            spring_damper: [0.0; 2],
            limited: Limited::Auto,
            range: [0.0; 2],
            margin: 0.0,
            limit: Solver::default(),
            force_limited: Limited::Auto,
            force_range: [0.0; 2],
            gravity_by_actuator: false,
            armature: 0.0,
            friction_loss: 0.0,
            friction: Solver::default(),
        }
    }
}

const TYPES: &[(&str, JointType)] = &[
    ("free", JointType::Free),
    ("ball", JointType::Ball),
    ("slide", JointType::Slide),
    ("hinge", JointType::Hinge),
];

impl JointValues {
    pub(crate) fn apply(&mut self, element: &Element) -> ModelResult<()> {
        element.set_choice("type", TYPES, &mut self.kind)?;
        element.set("pos", &mut self.pos)?;
        element.set("axis", &mut self.axis)?;
        element.set("ref", &mut self.reference)?;
        element.set("springref", &mut self.spring_reference)?;
        element.set_first("stiffness", &mut self.stiffness)?;
        element.set_first("damping", &mut self.damping)?;
        element.set("springdamper", &mut self.spring_damper)?;
        if self.spring_damper != [0.0; 2] && self.spring_damper.iter().any(|&x| x <= 0.0) {
            return Err(element.fault("springdamper", "two positive numbers"));
        }
        element.set_choice("limited", LIMITED, &mut self.limited)?;
        element.set("range", &mut self.range)?;
        element.set("margin", &mut self.margin)?;
        self.limit.apply(element, "solreflimit", "solimplimit")?;
        element.set_choice("actuatorfrclimited", LIMITED, &mut self.force_limited)?;
        element.set("actuatorfrcrange", &mut self.force_range)?;
        element.set("actuatorgravcomp", &mut self.gravity_by_actuator)?;
        element.set("armature", &mut self.armature)?;
        element.set("frictionloss", &mut self.friction_loss)?;
        self.friction.apply(element, "solreffriction", "solimpfriction")
    }
}
