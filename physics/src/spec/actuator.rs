//! Actuators as written: `general`, and the shortcuts in its terms.

use super::defaults::Defaults;
use super::{LIMITED, Limited};
use crate::ModelResult;
use crate::mjcf::Element;

/// Types of dynamics, gain and bias have MuJoCo's numbers.
pub(crate) mod types {
    pub(crate) const NO_DYNAMICS: i32 = 0;
    pub(crate) const INTEGRATOR: i32 = 1;
    pub(crate) const FILTER: i32 = 2;
    pub(crate) const FILTER_EXACT: i32 = 3;
    pub(crate) const FIXED: i32 = 0;
    pub(crate) const AFFINE_GAIN: i32 = 1;
    pub(crate) const NO_BIAS: i32 = 0;
    pub(crate) const AFFINE_BIAS: i32 = 1;
}

use types::*;

const DYNAMICS: &[(&str, i32)] = &[
    ("none", NO_DYNAMICS),
    ("integrator", INTEGRATOR),
    ("filter", FILTER),
    ("filterexact", FILTER_EXACT),
];
const GAINS: &[(&str, i32)] = &[("fixed", FIXED), ("affine", AFFINE_GAIN)];
const BIASES: &[(&str, i32)] = &[("none", NO_BIAS), ("affine", AFFINE_BIAS)];

/// Values of an actuator, which classes have, too: one set for all elements.
#[derive(Clone, Debug)]
pub(crate) struct Gains {
    pub(crate) dynamics: i32,
    pub(crate) gain: i32,
    pub(crate) bias: i32,
    pub(crate) dynamics_parameters: [f64; 10],
    pub(crate) gain_parameters: [f64; 10],
    pub(crate) bias_parameters: [f64; 10],
    /// A damping ratio, until the bias can be computed.
    pub(crate) damping_ratio: Option<f64>,
    pub(crate) gear: [f64; 6],
    pub(crate) control_limited: Limited,
    pub(crate) control_range: [f64; 2],
    pub(crate) force_limited: Limited,
    pub(crate) force_range: [f64; 2],
    pub(crate) activation_limited: Limited,
    pub(crate) activation_range: [f64; 2],
    pub(crate) inherit_range: f64,
    pub(crate) early: bool,
    pub(crate) armature: f64,
    /// Linear, quadratic and cubic coefficients.
    pub(crate) damping: [f64; 3],
    pub(crate) group: i32,
}

impl Default for Gains {
    fn default() -> Self {
        let one = std::array::from_fn(|i| if i == 0 { 1.0 } else { 0.0 });
        Self {
            dynamics: NO_DYNAMICS,
            gain: FIXED,
            bias: NO_BIAS,
            dynamics_parameters: one,
            gain_parameters: one,
            bias_parameters: [0.0; 10],
            damping_ratio: None,
            gear: std::array::from_fn(|i| if i == 0 { 1.0 } else { 0.0 }),
            control_limited: Limited::Auto,
            control_range: [0.0; 2],
            force_limited: Limited::Auto,
            force_range: [0.0; 2],
            activation_limited: Limited::Auto,
            activation_range: [0.0; 2],
            inherit_range: 0.0,
            early: false,
            armature: 0.0,
            damping: [0.0; 3],
            group: 0,
        }
    }
}

impl Gains {
    pub(crate) fn apply(&mut self, element: &Element) -> ModelResult<()> {
        element.set_first("gear", &mut self.gear)?;
        element.set_choice("ctrllimited", LIMITED, &mut self.control_limited)?;
        element.set("ctrlrange", &mut self.control_range)?;
        element.set_choice("forcelimited", LIMITED, &mut self.force_limited)?;
        element.set("forcerange", &mut self.force_range)?;
        element.set_choice("actlimited", LIMITED, &mut self.activation_limited)?;
        element.set("actrange", &mut self.activation_range)?;
        if element.set("armature", &mut self.armature)? && self.armature < 0.0 {
            return Err(element.fault("armature", "a number that is not negative"));
        }
        element.set_first("damping", &mut self.damping)?;
        element.set("group", &mut self.group)?;
        match element.name.as_str() {
            "motor" => {
                let plain = Self::default();
                (self.dynamics, self.gain, self.bias) = (plain.dynamics, plain.gain, plain.bias);
                self.dynamics_parameters = plain.dynamics_parameters;
                self.gain_parameters = plain.gain_parameters;
                self.bias_parameters = plain.bias_parameters;
                self.damping_ratio = None;
                Ok(())
            }
            "position" => self.position(element),
            "velocity" => self.velocity(element),
            "intvelocity" => {
                self.position(element)?;
                self.dynamics = INTEGRATOR;
                self.activation_limited = Limited::True;
                Ok(())
            }
            "damper" => self.damper(element),
            "cylinder" => self.cylinder(element),
            _ => self.general(element),
        }
    }

    fn general(&mut self, element: &Element) -> ModelResult<()> {
        element.set_choice("dyntype", DYNAMICS, &mut self.dynamics)?;
        element.set_choice("gaintype", GAINS, &mut self.gain)?;
        element.set_choice("biastype", BIASES, &mut self.bias)?;
        element.set_first("dynprm", &mut self.dynamics_parameters)?;
        element.set_first("gainprm", &mut self.gain_parameters)?;
        if element.set_first("biasprm", &mut self.bias_parameters)? > 2 {
            self.damping_ratio = None;
        }
        element.set("inheritrange", &mut self.inherit_range)?;
        element.set("actearly", &mut self.early)?;
        Ok(())
    }

    /// A servo of a position: `kp (ctrl - length) - kv velocity`.
    fn position(&mut self, element: &Element) -> ModelResult<()> {
        element.set("kp", &mut self.gain_parameters[0])?;
        (self.dynamics, self.gain, self.bias) = (NO_DYNAMICS, FIXED, AFFINE_BIAS);
        self.bias_parameters[0] = 0.0;
        self.bias_parameters[1] = -self.gain_parameters[0];
        let (damping, ratio) = (element.get::<f64>("kv")?, element.get::<f64>("dampratio")?);
        if damping.is_some() && ratio.is_some() {
            let message = "`kv` and `dampratio` both set the damping: leave one out";
            return Err(element.invalid(message.to_owned()));
        }
        for (name, value) in [("kv", damping), ("dampratio", ratio)] {
            if value.unwrap_or(0.0) < 0.0 {
                return Err(element.fault(name, "a number that is not negative"));
            }
        }
        if let Some(damping) = damping {
            self.bias_parameters[2] = -damping;
            self.damping_ratio = None;
        }
        self.damping_ratio = ratio.or(self.damping_ratio);
        if let Some(constant) = element.get::<f64>("timeconst")? {
            if constant < 0.0 {
                return Err(element.fault("timeconst", "a number that is not negative"));
            }
            self.dynamics_parameters[0] = constant;
            self.dynamics = if constant == 0.0 { NO_DYNAMICS } else { FILTER_EXACT };
        }
        element.set("inheritrange", &mut self.inherit_range)?;
        Ok(())
    }

    /// A servo of a velocity: `kv (ctrl - velocity)`.
    fn velocity(&mut self, element: &Element) -> ModelResult<()> {
        element.set("kv", &mut self.gain_parameters[0])?;
        (self.dynamics, self.gain, self.bias) = (NO_DYNAMICS, FIXED, AFFINE_BIAS);
        self.bias_parameters = [0.0; 10];
        self.bias_parameters[2] = -self.gain_parameters[0];
        self.damping_ratio = None;
        Ok(())
    }

    /// Damping in proportion to the control.
    fn damper(&mut self, element: &Element) -> ModelResult<()> {
        let damping = element.get::<f64>("kv")?.unwrap_or(0.0);
        if damping < 0.0 {
            return Err(element.fault("kv", "a number that is not negative"));
        }
        (self.dynamics, self.gain, self.bias) = (NO_DYNAMICS, AFFINE_GAIN, NO_BIAS);
        self.gain_parameters = [0.0; 10];
        self.gain_parameters[2] = -damping;
        self.control_limited = Limited::True;
        if self.control_range[0] < 0.0 {
            return Err(element.fault("ctrlrange", "numbers that are not negative"));
        }
        Ok(())
    }

    /// A pneumatic or hydraulic cylinder.
    fn cylinder(&mut self, element: &Element) -> ModelResult<()> {
        (self.dynamics, self.gain, self.bias) = (FILTER, FIXED, AFFINE_BIAS);
        element.set("timeconst", &mut self.dynamics_parameters[0])?;
        element.set("area", &mut self.gain_parameters[0])?;
        if let Some(diameter) = element.get::<f64>("diameter")? {
            self.gain_parameters[0] = std::f64::consts::PI / 4.0 * diameter * diameter;
        }
        if let Some(bias) = element.get::<[f64; 3]>("bias")? {
            self.bias_parameters[..3].copy_from_slice(&bias);
        }
        self.damping_ratio = None;
        Ok(())
    }
}

/// An actuator as written.
pub(crate) struct Actuator {
    pub(crate) element: Element,
    pub(crate) gains: Gains,
}

impl Actuator {
    pub(super) fn new(element: &Element, defaults: &Defaults) -> ModelResult<Self> {
        let mut gains = defaults.of(element, None)?.actuator.clone();
        gains.apply(element)?;
        Ok(Self { element: element.clone(), gains })
    }
}
