//! Geoms, sites, and the pairs of geoms and bodies that collide or do not.

use super::types::GeomType;
use super::{Model, names};
use crate::ModelResult;
use crate::math::{Quat, Vec3, from_z, norm, scale, sub};
use crate::mjcf::Element;
use crate::spec::Spec;
use crate::spec::compiler::Compiler;
use crate::spec::geom::ShapeValues;
use crate::spec::relation::Pair;

/// Size, position and orientation of a shape.
fn place(
    shape: &ShapeValues,
    element: &Element,
    compiler: &Compiler,
) -> ModelResult<(Vec3, Vec3, Quat)> {
    let Some([a, b, c, d, e, f]) = shape.from_to else {
        return Ok((shape.size, shape.pos, shape.orientation.quat(element, compiler)?));
    };
    let (from, to) = ([a, b, c], [d, e, f]);
    let along = sub(from, to);
    let length = norm(&along);
    if element.attribute("pos").is_some() {
        let message = "`pos` and `fromto` both set the position: leave one out";
        return Err(element.invalid(message.to_owned()));
    }
    if length < 1e-14 {
        return Err(element.fault("fromto", "two points that differ"));
    }
    let mut size = shape.size;
    match shape.kind {
        GeomType::Capsule | GeomType::Cylinder => size[1] = 0.5 * length,
        GeomType::Box | GeomType::Ellipsoid => {
            size = [size[0], size[0], 0.5 * length];
        }
        GeomType::Plane | GeomType::Sphere => {
            let message = "`fromto` is for capsules, cylinders, boxes and ellipsoids";
            return Err(element.invalid(message.to_owned()));
        }
    }
    Ok((size, scale([a + d, b + e, c + f], 0.5), from_z(along)))
}

/// The number of sizes that must be positive.
fn sizes(kind: GeomType) -> usize {
    match kind {
        GeomType::Plane => 0,
        GeomType::Sphere => 1,
        GeomType::Capsule | GeomType::Cylinder => 2,
        GeomType::Ellipsoid | GeomType::Box => 3,
    }
}

fn check_size(kind: GeomType, size: Vec3, element: &Element) -> ModelResult<()> {
    let needed = sizes(kind);
    if size[..needed].iter().any(|&size| size <= 0.0) {
        return Err(element.fault("size", &format!("{needed} positive numbers for this type")));
    }
    let [x, y, spacing] = size;
    if kind == GeomType::Plane && (x < 0.0 || y < 0.0 || spacing <= 0.0) {
        return Err(element.fault(
            "size",
            "three numbers for a plane, the last positive, the others not negative",
        ));
    }
    Ok(())
}

/// The radius of a sphere around a shape.
fn bound(kind: GeomType, size: Vec3) -> f64 {
    match kind {
        GeomType::Plane => 0.0,
        GeomType::Sphere => size[0],
        GeomType::Capsule => size[0] + size[1],
        GeomType::Cylinder => norm(&size[..2]),
        GeomType::Ellipsoid => size[0].max(size[1]).max(size[2]),
        GeomType::Box => norm(&size),
    }
}

impl Model {
    pub(super) fn add_geoms(&mut self, spec: &Spec) -> ModelResult<()> {
        for (id, body) in spec.bodies.iter().enumerate() {
            let first = self.ngeom;
            for written in &body.geoms {
                let (geom, element) = (&written.values, &written.element);
                let kind = geom.shape.kind;
                names::push(
                    &mut self.geom_name,
                    element,
                    element.text("name").unwrap_or_default(),
                )?;
                let (size, pos, quat) = place(&geom.shape, element, &spec.compiler)?;
                check_size(kind, size, element)?;
                if kind == GeomType::Plane && self.body_weldid[id] != 0 {
                    let message = "a plane belongs to `worldbody`, or to a body that does not move";
                    return Err(element.invalid(message.to_owned()));
                }
                self.ngeom += 1;
                self.geom_type.push(kind);
                self.geom_contype.push(geom.contype);
                self.geom_conaffinity.push(geom.conaffinity);
                self.geom_condim.push(geom.condim);
                self.geom_bodyid.push(id);
                self.geom_group.push(geom.group);
                self.geom_priority.push(geom.priority);
                self.geom_solmix.push(geom.solmix);
                self.geom_solref.push(geom.solver.reference);
                self.geom_solimp.push(geom.solver.impedance);
                self.geom_size.push(size);
                self.geom_rbound.push(bound(kind, size));
                self.geom_pos.push(pos);
                self.geom_quat.push(quat);
                self.geom_friction.push(geom.friction);
                self.geom_margin.push(geom.margin);
                self.geom_gap.push(geom.gap);
            }
            self.body_geomnum.push(self.ngeom - first);
            self.body_geomadr.push((self.ngeom > first).then_some(first));
            for written in &body.sites {
                let (site, element) = (&written.values, &written.element);
                names::push(
                    &mut self.site_name,
                    element,
                    element.text("name").unwrap_or_default(),
                )?;
                let (size, pos, quat) = place(&site.shape, element, &spec.compiler)?;
                check_size(site.shape.kind, size, element)?;
                self.nsite += 1;
                self.site_type.push(site.shape.kind);
                self.site_bodyid.push(id);
                self.site_group.push(site.group);
                self.site_size.push(size);
                self.site_pos.push(pos);
                self.site_quat.push(quat);
            }
        }
        Ok(())
    }

    pub(super) fn add_contacts(&mut self, spec: &Spec) -> ModelResult<()> {
        let mut pairs = Vec::new();
        for pair in &spec.pairs {
            let geom = |name| names::named(&pair.element, name, "geom", &self.geom_name);
            let (mut a, mut b) = (geom("geom1")?, geom("geom2")?);
            if self.geom_bodyid[a] > self.geom_bodyid[b] {
                std::mem::swap(&mut a, &mut b);
            }
            pairs.push((self.signature(self.geom_bodyid[a], self.geom_bodyid[b]), a, b, pair));
        }
        pairs.sort_by_key(|&(signature, ..)| signature);
        for (signature, a, b, pair) in pairs {
            self.pair_signature.push(signature);
            self.add_pair(a, b, pair);
        }
        for exclude in &spec.excludes {
            let body = |name| names::named(exclude, name, "body", &self.body_name);
            let signature = self.signature(body("body1")?, body("body2")?);
            self.exclude_signature.push(signature);
        }
        self.exclude_signature.sort_unstable();
        self.nexclude = self.exclude_signature.len();
        Ok(())
    }

    fn signature(&self, a: usize, b: usize) -> usize {
        (a.min(b) << 16) + a.max(b)
    }

    fn add_pair(&mut self, a: usize, b: usize, pair: &Pair) {
        let values = &pair.values;
        self.npair += 1;
        self.pair_geom1.push(a);
        self.pair_geom2.push(b);
        self.pair_dim.push(values.condim);
        self.pair_friction.push(values.friction);
        self.pair_solref.push(values.solver.reference);
        self.pair_solreffriction.push(values.friction_reference);
        self.pair_solimp.push(values.solver.impedance);
        self.pair_margin.push(values.margin);
        self.pair_gap.push(values.gap);
    }
}
