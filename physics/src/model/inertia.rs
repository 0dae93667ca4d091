//! Masses and inertias of bodies, from `inertial` or from geoms.

use std::f64::consts::PI;

use super::Model;
use super::types::GeomType;
use crate::ModelResult;
use crate::math::{Mat3, TINY, Vec3, add, diagonal_in, dot, matrix, principal, scale, sub};
use crate::spec::Spec;
use crate::spec::body::{Body, Inertial};
use crate::spec::compiler::FromGeom;

fn volume(kind: GeomType, size: Vec3) -> f64 {
    let [a, b, c] = size;
    match kind {
        GeomType::Plane => 0.0,
        GeomType::Sphere => 4.0 / 3.0 * PI * a * a * a,
        GeomType::Capsule => PI * (a * a * 2.0 * b + 4.0 / 3.0 * a * a * a),
        GeomType::Ellipsoid => 4.0 / 3.0 * PI * a * b * c,
        GeomType::Cylinder => PI * a * a * 2.0 * b,
        GeomType::Box => 8.0 * a * b * c,
    }
}

/// Principal moments of a solid shape.
fn moments(kind: GeomType, [a, b, c]: Vec3, mass: f64) -> Vec3 {
    match kind {
        GeomType::Plane => [0.0; 3],
        GeomType::Sphere => [2.0 / 5.0 * mass * a * a; 3],
        GeomType::Capsule => {
            // The caps are halves of a sphere, away from the centre.
            let height = 2.0 * b;
            let sphere = mass * 4.0 * a / (4.0 * a + 3.0 * height);
            let middle = mass - sphere;
            let across = middle * (3.0 * a * a + height * height) / 12.0
                + sphere * (2.0 / 5.0 * a * a + height * height / 4.0 + 3.0 / 8.0 * height * a);
            [across, across, middle * a * a / 2.0 + sphere * 2.0 / 5.0 * a * a]
        }
        GeomType::Ellipsoid => {
            [b * b + c * c, a * a + c * c, a * a + b * b].map(|sum| mass * sum / 5.0)
        }
        GeomType::Cylinder => {
            let height = 2.0 * b;
            let across = mass * (3.0 * a * a + height * height) / 12.0;
            [across, across, mass * a * a / 2.0]
        }
        GeomType::Box => [b * b + c * c, a * a + c * c, a * a + b * b].map(|sum| mass * sum / 3.0),
    }
}

impl Model {
    pub(super) fn add_inertias(&mut self, spec: &Spec) -> ModelResult<()> {
        let compiler = &spec.compiler;
        for (id, body) in spec.bodies.iter().enumerate().skip(1) {
            match (&body.inertial, compiler.inertia_from_geom) {
                (Some(inertial), FromGeom::False | FromGeom::Auto) => {
                    self.set_inertial(id, inertial, spec)?;
                }
                (None, FromGeom::False) => self.set_massless(id),
                (inertial, _) => {
                    match (self.set_from_geoms(id, body, compiler.inertia_groups), inertial) {
                        (true, _) => {}
                        (false, Some(inertial)) => self.set_inertial(id, inertial, spec)?,
                        (false, None) => self.set_massless(id),
                    }
                }
            }
            self.body_mass[id] = self.body_mass[id].max(compiler.bound_mass);
            let inertia = self.body_inertia[id].map(|value| value.max(compiler.bound_inertia));
            self.body_inertia[id] = inertia;
            let [a, b, c] = inertia;
            if a + b < c || a + c < b || b + c < a {
                if !compiler.balance_inertia {
                    let message = format!(
                        "the moments of inertia {a}, {b}, {c} are not those of a body: the sum of two is at least the third. \
                         Correct them, or set `balanceinertia` of `compiler`"
                    );
                    return Err(body.element.invalid(message));
                }
                self.body_inertia[id] = [(a + b + c) / 3.0; 3];
            }
        }
        let moving = (1..self.nbody).filter(|&id| self.body_jntnum[id] > 0);
        for id in moving {
            if !self.is_heavy(id) {
                let message = "the body moves without mass or inertia: give it a geom with mass, or `inertial`";
                return Err(spec.bodies[id].element.invalid(message.to_owned()));
            }
        }
        self.set_total_mass(compiler.total_mass);
        self.body_subtreemass = self.body_mass.clone();
        for id in (1..self.nbody).rev() {
            self.body_subtreemass[self.body_parentid[id]] += self.body_subtreemass[id];
        }
        Ok(())
    }

    /// MuJoCo gives the body's own frame, which is in the parent's, to the inertia of a body without mass.
    fn set_massless(&mut self, id: usize) {
        self.body_ipos[id] = self.body_pos[id];
        self.body_iquat[id] = self.body_quat[id];
    }

    /// True for a body with mass and inertia of its own, or of a body that is welded to it.
    fn is_heavy(&self, id: usize) -> bool {
        let own = self.body_mass[id] >= TINY && self.body_inertia[id].iter().all(|&x| x >= TINY);
        let mut children = (id + 1..self.nbody).filter(|&child| self.body_parentid[child] == id);
        own || children.any(|child| self.body_jntnum[child] == 0 && self.is_heavy(child))
    }

    fn set_total_mass(&mut self, total: f64) {
        let sum: f64 = self.body_mass.iter().sum();
        if total > 0.0 && sum > 0.0 {
            let by = total / sum;
            self.body_mass.iter_mut().for_each(|mass| *mass *= by);
            self.body_inertia.iter_mut().for_each(|inertia| *inertia = scale(*inertia, by));
        }
    }

    fn set_inertial(&mut self, id: usize, inertial: &Inertial, spec: &Spec) -> ModelResult<()> {
        let element = &inertial.element;
        if inertial.mass < 0.0 {
            return Err(element.fault("mass", "a number that is not negative"));
        }
        self.body_mass[id] = inertial.mass;
        self.body_ipos[id] = inertial.pos;
        (self.body_inertia[id], self.body_iquat[id]) = match inertial.full {
            Some([xx, yy, zz, xy, xz, yz]) => principal([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]),
            None => (inertial.diagonal, inertial.orientation.quat(element, &spec.compiler)?),
        };
        let name = if inertial.full.is_some() { "fullinertia" } else { "diaginertia" };
        if self.body_inertia[id].iter().any(|&value| value < 0.0) {
            return Err(element.fault(name, "moments that are not negative"));
        }
        Ok(())
    }

    /// Sums the geoms of a body. Returns whether there is one with mass.
    fn set_from_geoms(&mut self, id: usize, body: &Body, groups: [i32; 2]) -> bool {
        let first = self.body_geomadr[id].unwrap_or(0);
        let mut parts = Vec::new();
        for (geom, written) in (first..).zip(&body.geoms) {
            let (kind, size) = (self.geom_type[geom], self.geom_size[geom]);
            let values = &written.values;
            let mass = values.mass.unwrap_or_else(|| values.density * volume(kind, size));
            let selected = (groups[0]..=groups[1]).contains(&values.group);
            if selected && kind != GeomType::Plane && mass > TINY {
                parts.push((geom, mass, moments(kind, size, mass)));
            }
        }
        if let &[(geom, mass, moments)] = &parts[..] {
            // One geom's frame is kept as it is.
            self.body_mass[id] = mass;
            self.body_ipos[id] = self.geom_pos[geom];
            self.body_iquat[id] = self.geom_quat[geom];
            self.body_inertia[id] = moments;
        } else if !parts.is_empty() {
            let mass: f64 = parts.iter().map(|(_, mass, _)| mass).sum();
            let weighted = parts.iter().map(|&(geom, mass, _)| scale(self.geom_pos[geom], mass));
            let centre = weighted.fold([0.0; 3], add).map(|sum| sum / mass);
            let mut whole: Mat3 = [[0.0; 3]; 3];
            for &(geom, mass, moments) in &parts {
                let turned = diagonal_in(&matrix(self.geom_quat[geom]), moments);
                let at = sub(self.geom_pos[geom], centre);
                for i in 0..3 {
                    for j in 0..3 {
                        let own = if i == j { dot(at, at) } else { 0.0 };
                        whole[i][j] += turned[i][j] + mass * (own - at[i] * at[j]);
                    }
                }
            }
            self.body_mass[id] = mass;
            self.body_ipos[id] = centre;
            (self.body_inertia[id], self.body_iquat[id]) = principal(whole);
        }
        !parts.is_empty()
    }
}
