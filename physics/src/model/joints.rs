//! Joints, positions and degrees of freedom.

use super::types::JointType;
use super::{Model, names};
use crate::ModelResult;
use crate::mjcf::Element;
use crate::spec::joint::JointValues;
use crate::spec::{Spec, direction};

impl Model {
    pub(super) fn add_joints(&mut self, spec: &Spec) -> ModelResult<()> {
        // The last degree of freedom of each body or of its ancestors.
        let mut last: Vec<Option<usize>> = Vec::with_capacity(self.nbody);
        for (id, body) in spec.bodies.iter().enumerate() {
            last.push(if id == 0 { None } else { last[body.parent] });
            let (joint, dof) = (self.njnt, self.nv);
            for written in &body.joints {
                self.add_joint(id, &written.values, &written.element, spec, &mut last[id])?;
            }
            self.body_jntnum.push(self.njnt - joint);
            self.body_jntadr.push((self.njnt > joint).then_some(joint));
            self.body_dofnum.push(self.nv - dof);
            self.body_dofadr.push((self.nv > dof).then_some(dof));
        }
        Ok(())
    }

    fn add_joint(
        &mut self,
        body: usize,
        joint: &JointValues,
        element: &Element,
        spec: &Spec,
        last: &mut Option<usize>,
    ) -> ModelResult<()> {
        let kind = joint.kind;
        let compiler = &spec.compiler;
        let rotates = matches!(kind, JointType::Hinge | JointType::Ball);
        let angle = |value: f64| if rotates { compiler.radians(value) } else { value };
        names::push(&mut self.jnt_name, element, element.text("name").unwrap_or_default())?;
        let limited = match kind {
            JointType::Free => false,
            _ => joint.limited.resolve(element, "range", joint.range, compiler.autolimits)?,
        };
        if limited && kind == JointType::Ball && joint.range[0] != 0.0 {
            return Err(element.fault("range", "0 and a positive angle for a ball joint"));
        }
        let force_limited = joint.force_limited.resolve(
            element,
            "actuatorfrcrange",
            joint.force_range,
            compiler.autolimits,
        )?;
        let id = self.njnt;
        self.njnt += 1;
        self.jnt_type.push(kind);
        self.jnt_qposadr.push(self.nq);
        self.jnt_dofadr.push(self.nv);
        self.jnt_bodyid.push(body);
        self.jnt_limited.push(limited);
        self.jnt_actfrclimited.push(force_limited);
        self.jnt_actgravcomp.push(joint.gravity_by_actuator);
        self.jnt_solref.push(joint.limit.reference);
        self.jnt_solimp.push(joint.limit.impedance);
        let turns = matches!(kind, JointType::Slide | JointType::Hinge);
        let axis = if turns { direction(element, "axis", joint.axis)? } else { [0.0, 0.0, 1.0] };
        self.jnt_axis.push(axis);
        self.jnt_pos.push(if kind == JointType::Free { [0.0; 3] } else { joint.pos });
        self.jnt_stiffness.push(joint.stiffness[0]);
        self.jnt_stiffnesspoly.push([joint.stiffness[1], joint.stiffness[2]]);
        // MuJoCo leaves the range of a joint without limits as it is written.
        self.jnt_range.push(if limited { joint.range.map(angle) } else { joint.range });
        self.jnt_actfrcrange.push(joint.force_range);
        self.jnt_margin.push(joint.margin);

        match kind {
            JointType::Free | JointType::Ball => {
                let rest = match kind {
                    JointType::Free => {
                        [&self.body_pos[body][..], &self.body_quat[body][..]].concat()
                    }
                    _ => vec![1.0, 0.0, 0.0, 0.0],
                };
                self.qpos0.extend(&rest);
                self.qpos_spring.extend(&rest);
            }
            JointType::Slide | JointType::Hinge => {
                self.qpos0.push(angle(joint.reference));
                self.qpos_spring.push(angle(joint.spring_reference));
            }
        }
        self.nq = self.qpos0.len();
        for _ in 0..kind.dofs() {
            self.dof_parentid.push(*last);
            *last = Some(self.nv);
            self.nv += 1;
            self.dof_bodyid.push(body);
            self.dof_jntid.push(id);
            self.dof_solref.push(joint.friction.reference);
            self.dof_solimp.push(joint.friction.impedance);
            self.dof_frictionloss.push(joint.friction_loss);
            self.dof_armature.push(joint.armature);
            self.dof_damping.push(joint.damping[0]);
            self.dof_dampingpoly.push([joint.damping[1], joint.damping[2]]);
        }
        Ok(())
    }
}
