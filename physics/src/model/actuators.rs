//! Actuators.

use super::types::{JointType, TransmissionType};
use super::{Model, names};
use crate::ModelResult;
use crate::mjcf::Element;
use crate::spec::actuator::{Gains, types};
use crate::spec::{Limited, Spec};

impl Model {
    pub(super) fn add_actuators(&mut self, spec: &Spec) -> ModelResult<()> {
        for actuator in &spec.actuators {
            let element = &actuator.element;
            let mut gains = actuator.gains.clone();
            names::push(
                &mut self.actuator_name,
                element,
                element.text("name").unwrap_or_default(),
            )?;
            let (kind, id) = self.transmission(element)?;
            self.inherit_range(&mut gains, kind, id, element)?;
            let infer = spec.compiler.autolimits;
            let resolve =
                |limited: Limited, name: &str, range| limited.resolve(element, name, range, infer);
            let control = resolve(gains.control_limited, "ctrlrange", gains.control_range)?;
            let force = resolve(gains.force_limited, "forcerange", gains.force_range)?;
            let activation = resolve(gains.activation_limited, "actrange", gains.activation_range)?;
            let activations = usize::from(gains.dynamics != types::NO_DYNAMICS);
            if activation && activations == 0 {
                let message = "`actlimited` needs an activation: set `dyntype`, or leave it out";
                return Err(element.invalid(message.to_owned()));
            }
            self.actuator_trntype.push(kind);
            self.actuator_dyntype.push(gains.dynamics);
            self.actuator_gaintype.push(gains.gain);
            self.actuator_biastype.push(gains.bias);
            self.actuator_trnid.push([Some(id), None]);
            self.actuator_actadr.push((activations > 0).then_some(self.na));
            self.actuator_actnum.push(activations);
            self.na += activations;
            self.actuator_ctrllimited.push(control);
            self.actuator_forcelimited.push(force);
            self.actuator_actlimited.push(activation);
            self.actuator_dynprm.push(gains.dynamics_parameters);
            self.actuator_gainprm.push(gains.gain_parameters);
            self.actuator_biasprm.push(gains.bias_parameters);
            self.actuator_actearly.push(gains.early);
            self.actuator_ctrlrange.push(gains.control_range);
            self.actuator_forcerange.push(gains.force_range);
            self.actuator_actrange.push(gains.activation_range);
            self.actuator_gear.push(gains.gear);
            self.actuator_armature.push(gains.armature);
            self.actuator_damping.push(gains.damping[0]);
            self.actuator_dampingpoly.push([gains.damping[1], gains.damping[2]]);
            self.actuator_group.push(gains.group);
            self.nu += 1;
        }
        Ok(())
    }

    fn transmission(&self, element: &Element) -> ModelResult<(TransmissionType, usize)> {
        let kinds = [
            ("joint", TransmissionType::Joint),
            ("jointinparent", TransmissionType::JointInParent),
            ("tendon", TransmissionType::Tendon),
        ];
        let mut given = kinds.into_iter().filter(|(name, _)| element.attribute(name).is_some());
        let (Some((name, kind)), None) = (given.next(), given.next()) else {
            let message =
                format!("`{}` needs one of `joint`, `jointinparent`, `tendon`", element.name);
            return Err(element.invalid(message));
        };
        let id = match kind {
            TransmissionType::Tendon => names::named(element, name, "tendon", &self.tendon_name)?,
            _ => names::named(element, name, "joint", &self.jnt_name)?,
        };
        Ok((kind, id))
    }

    /// The range of a servo's setpoint from its joint or tendon.
    fn inherit_range(
        &self,
        gains: &mut Gains,
        kind: TransmissionType,
        id: usize,
        element: &Element,
    ) -> ModelResult<()> {
        let by = gains.inherit_range;
        if by < 0.0 {
            return Err(element.fault("inheritrange", "a number that is not negative"));
        }
        if by == 0.0 {
            return Ok(());
        }
        let target = match kind {
            TransmissionType::Tendon => self.tendon_range[id],
            _ if matches!(self.jnt_type[id], JointType::Slide | JointType::Hinge) => {
                self.jnt_range[id]
            }
            _ => [0.0; 2],
        };
        if target[0] >= target[1] {
            let message = "`inheritrange` needs a joint or tendon with a range".to_owned();
            return Err(element.invalid(message));
        }
        let range = if gains.dynamics == types::INTEGRATOR {
            &mut gains.activation_range
        } else {
            &mut gains.control_range
        };
        if *range != [0.0; 2] {
            let message = "`inheritrange` and a range of its own: leave one out".to_owned();
            return Err(element.invalid(message));
        }
        let (mean, half) = (0.5 * (target[0] + target[1]), 0.5 * (target[1] - target[0]) * by);
        *range = [mean - half, mean + half];
        Ok(())
    }

    /// Length of an actuator and its derivatives by the degrees of freedom, at `qpos0`.
    pub(super) fn actuator_at_reference(
        &self,
        actuator: usize,
        rotations: &[crate::math::Mat3],
        tendons: &[Vec<f64>],
    ) -> (f64, Vec<f64>) {
        let gear = self.actuator_gear[actuator];
        let id = self.actuator_trnid[actuator][0].unwrap_or(0);
        if self.actuator_trntype[actuator] == TransmissionType::Tendon {
            let moment = tendons[id].iter().map(|moment| gear[0] * moment).collect();
            return (gear[0] * self.tendon_length0[id], moment);
        }
        let mut moment = vec![0.0; self.nv];
        let dof = self.jnt_dofadr[id];
        match self.jnt_type[id] {
            JointType::Slide | JointType::Hinge => {
                moment[dof] = gear[0];
                return (gear[0] * self.qpos0[self.jnt_qposadr[id]], moment);
            }
            // The parent's and the child's frame agree at the reference.
            JointType::Ball => moment[dof..dof + 3].copy_from_slice(&gear[..3]),
            JointType::Free => {
                moment[dof..dof + 6].copy_from_slice(&gear);
                if self.actuator_trntype[actuator] == TransmissionType::JointInParent {
                    let axes = &rotations[self.jnt_bodyid[id]];
                    for i in 0..3 {
                        moment[dof + 3 + i] = (0..3).map(|k| axes[k][i] * gear[3 + k]).sum();
                    }
                }
            }
        }
        (0.0, moment)
    }
}
