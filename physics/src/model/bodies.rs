//! The tree of bodies.

use super::{Model, names};
use crate::ModelResult;
use crate::math::IDENTITY;
use crate::spec::Spec;

impl Model {
    pub(super) fn add_bodies(&mut self, spec: &Spec) -> ModelResult<()> {
        self.nbody = spec.bodies.len();
        for (id, body) in spec.bodies.iter().enumerate() {
            names::push(&mut self.body_name, &body.element, &body.name)?;
            let parent = body.parent;
            self.body_parentid.push(parent);
            self.body_rootid.push(if parent == 0 { id } else { self.body_rootid[parent] });
            let welded = body.joints.is_empty() && id != 0;
            self.body_weldid.push(if welded { self.body_weldid[parent] } else { id });
            self.body_pos.push(body.pos);
            self.body_quat.push(body.orientation.quat(&body.element, &spec.compiler)?);
            self.body_gravcomp.push(body.gravity_compensation);
            self.body_ipos.push([0.0; 3]);
            self.body_iquat.push(IDENTITY);
            self.body_mass.push(0.0);
            self.body_inertia.push([0.0; 3]);
        }
        Ok(())
    }
}
