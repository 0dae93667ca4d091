//! Tendons, with their lengths and moments.

use super::kinematics::Frames;
use super::types::{JointType, WrapType};
use super::{Model, names};
use crate::ModelResult;
use crate::math::{dot, norm, scale, sub};
use crate::spec::Spec;

impl Model {
    pub(super) fn add_tendons(&mut self, spec: &Spec) -> ModelResult<()> {
        for tendon in &spec.tendons {
            let (element, values) = (&tendon.element, &tendon.values);
            names::push(&mut self.tendon_name, element, element.text("name").unwrap_or_default())?;
            let first = self.nwrap;
            for part in &element.children {
                let (kind, id, coefficient) = if element.name == "fixed" {
                    let joint = names::named(part, "joint", "joint", &self.jnt_name)?;
                    if matches!(self.jnt_type[joint], JointType::Free | JointType::Ball) {
                        return Err(part.fault("joint", "a hinge or slide joint"));
                    }
                    if self.wrap_objid[first..].contains(&joint) {
                        return Err(
                            part.fault("joint", "a joint that the tendon does not have yet")
                        );
                    }
                    part.needed("coef")?;
                    (WrapType::Joint, joint, part.get("coef")?.unwrap_or(0.0))
                } else {
                    let site = names::named(part, "site", "site", &self.site_name)?;
                    if self.nwrap > first && self.wrap_objid[self.nwrap - 1] == site {
                        return Err(part.fault("site", "another site than the one before"));
                    }
                    (WrapType::Site, site, 0.0)
                };
                self.nwrap += 1;
                self.wrap_type.push(kind);
                self.wrap_objid.push(id);
                self.wrap_prm.push(coefficient);
            }
            let infer = spec.compiler.autolimits;
            let limited = values.limited.resolve(element, "range", values.range, infer)?;
            let range = values.force_range;
            let force_limited =
                values.force_limited.resolve(element, "actuatorfrcrange", range, infer)?;
            self.ntendon += 1;
            self.tendon_adr.push(first);
            self.tendon_num.push(self.nwrap - first);
            self.tendon_limited.push(limited);
            self.tendon_actfrclimited.push(force_limited);
            self.tendon_solref_lim.push(values.limit.reference);
            self.tendon_solimp_lim.push(values.limit.impedance);
            self.tendon_solref_fri.push(values.friction.reference);
            self.tendon_solimp_fri.push(values.friction.impedance);
            self.tendon_range.push(values.range);
            self.tendon_actfrcrange.push(values.force_range);
            self.tendon_margin.push(values.margin);
            self.tendon_stiffness.push(values.stiffness[0]);
            self.tendon_stiffnesspoly.push([values.stiffness[1], values.stiffness[2]]);
            self.tendon_damping.push(values.damping[0]);
            self.tendon_dampingpoly.push([values.damping[1], values.damping[2]]);
            self.tendon_armature.push(values.armature);
            self.tendon_frictionloss.push(values.friction_loss);
            self.tendon_lengthspring.push(values.spring_length);
        }
        Ok(())
    }

    /// Length of a tendon, and its derivatives by the degrees of freedom.
    pub(super) fn tendon_at(
        &self,
        tendon: usize,
        frames: &Frames,
        qpos: &[f64],
    ) -> (f64, Vec<f64>) {
        let mut length = 0.0;
        let mut moment = vec![0.0; self.nv];
        let first = self.tendon_adr[tendon];
        let parts = first..first + self.tendon_num[tendon];
        for part in parts.clone() {
            let id = self.wrap_objid[part];
            if self.wrap_type[part] == WrapType::Joint {
                length += self.wrap_prm[part] * qpos[self.jnt_qposadr[id]];
                moment[self.jnt_dofadr[id]] += self.wrap_prm[part];
            } else if part + 1 < parts.end {
                let (one, other) = (id, self.wrap_objid[part + 1]);
                let at = |site: usize| frames.point(self.site_bodyid[site], self.site_pos[site]);
                let along = sub(at(other), at(one));
                let distance = norm(&along);
                length += distance;
                if distance < 1e-15 {
                    continue;
                }
                let along = scale(along, 1.0 / distance);
                for (site, sign) in [(one, -1.0), (other, 1.0)] {
                    for (dof, linear, _) in frames.jacobian(self, self.site_bodyid[site], at(site))
                    {
                        moment[dof] += sign * dot(along, linear);
                    }
                }
            }
        }
        (length, moment)
    }
}
