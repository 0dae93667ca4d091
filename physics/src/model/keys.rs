//! Keyframes.

use super::types::JointType;
use super::{Model, names};
use crate::ModelResult;
use crate::math::{Quat, unit};
use crate::mjcf::Element;
use crate::spec::Spec;

/// The numbers of an attribute, or the default if the element does not have it.
fn numbers(element: &Element, name: &str, default: &[f64]) -> ModelResult<Vec<f64>> {
    let values: Vec<f64> = element.get(name)?.unwrap_or_else(|| default.to_vec());
    if values.len() != default.len() {
        return Err(element.fault(name, &format!("{} finite numbers", default.len())));
    }
    Ok(values)
}

impl Model {
    pub(super) fn add_keys(&mut self, spec: &Spec) -> ModelResult<()> {
        for element in &spec.keys {
            names::push(&mut self.key_name, element, element.text("name").unwrap_or_default())?;
            let mut qpos = numbers(element, "qpos", &self.qpos0)?;
            for (joint, kind) in self.jnt_type.iter().enumerate() {
                let at = match kind {
                    JointType::Free => self.jnt_qposadr[joint] + 3,
                    JointType::Ball => self.jnt_qposadr[joint],
                    JointType::Slide | JointType::Hinge => continue,
                };
                let quat: Quat = std::array::from_fn(|i| qpos[at + i]);
                let quat = unit(quat)
                    .ok_or_else(|| element.fault("qpos", "quaternions of positive length"))?;
                qpos[at..at + 4].copy_from_slice(&quat);
            }
            self.key_time.push(element.get("time")?.unwrap_or(0.0));
            self.key_qpos.push(qpos);
            self.key_qvel.push(numbers(element, "qvel", &vec![0.0; self.nv])?);
            self.key_act.push(numbers(element, "act", &vec![0.0; self.na])?);
            self.key_ctrl.push(numbers(element, "ctrl", &vec![0.0; self.nu])?);
            self.nkey += 1;
        }
        // Keyframes without an element are the reference.
        for _ in self.nkey..spec.least_keys {
            self.key_name.push(String::new());
            self.key_time.push(0.0);
            self.key_qpos.push(self.qpos0.clone());
            self.key_qvel.push(vec![0.0; self.nv]);
            self.key_act.push(vec![0.0; self.na]);
            self.key_ctrl.push(vec![0.0; self.nu]);
            self.nkey += 1;
        }
        Ok(())
    }
}
