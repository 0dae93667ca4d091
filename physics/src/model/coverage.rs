//! Gaps: elements with dynamics that are not covered.

use super::Model;
use super::types::WrapType;
use crate::mjcf::Element;
use crate::spec::Spec;
use crate::{Error, ModelResult};

/// Integrators of `opt.integrator` that the dynamics have: Euler, RK4, implicitfast.
const INTEGRATORS: [i32; 3] = [0, 1, 3];

impl Model {
    /// Check of the elements against the dynamics.
    ///
    /// # Errors
    /// The first element with dynamics that are not covered.
    pub(super) fn check_covered(&self, root: &Element, spec: &Spec) -> ModelResult<()> {
        let gap = |element: &Element, what: &str, hint: &str| {
            let (place, what) = (element.place.clone(), what.to_owned());
            Err(Error::NotCovered { place, what, hint: format!("; {hint}") })
        };
        let option = root.all("option").last().unwrap_or(root);
        if !INTEGRATORS.contains(&self.opt.integrator) {
            return gap(option, "the integrator", "use Euler, RK4 or implicitfast");
        }
        if self.opt.noslip_iterations > 0 {
            return gap(option, "the solver without slip", "set `noslip_iterations` to 0");
        }
        let heavy = self.tendon_armatures();
        for (tendon, written) in spec.tendons.iter().enumerate() {
            let first = self.tendon_adr[tendon];
            if heavy[tendon] != 0.0 && self.wrap_type[first] == WrapType::Site {
                let what = "armature of a spatial tendon";
                return gap(&written.element, what, "set `armature` to 0");
            }
        }
        if let Some([one, other]) = self.uncovered_pair() {
            let geoms: Vec<&Element> = (spec.bodies.iter())
                .flat_map(|body| body.geoms.iter().map(|geom| &geom.element))
                .collect();
            let kinds =
                [one, other].map(|geom| format!("{:?}", self.geom_type[geom]).to_lowercase());
            let place = &geoms[one].place;
            let what = format!("a contact of this {} with the {} of {place}", kinds[1], kinds[0]);
            let hint = "leave it out by `contype` and `conaffinity`, or by `exclude`";
            return gap(geoms[other], &what, hint);
        }
        if !self.pairs().is_empty() && self.opt.cone != 0 {
            return gap(option, "an elliptic friction cone", "set `cone` to `pyramidal`");
        }
        Ok(())
    }
}
