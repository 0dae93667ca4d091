//! Equality constraints.

use super::kinematics::Frames;
use super::types::{EqualityType, ObjectType};
use super::{Model, names};
use crate::ModelResult;
use crate::math::{IDENTITY, conjugate, matrix, mul, rotate, sub, unit};
use crate::mjcf::Element;
use crate::spec::Spec;

/// Data of a constraint that gives none: MuJoCo has one default for all types.
const COMMON: [f64; 12] = [0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0];

/// Both objects of a constraint, and their kind.
type Objects = (ObjectType, usize, Option<usize>);

impl Model {
    pub(super) fn add_equalities(&mut self, spec: &Spec) -> ModelResult<()> {
        let frames = Frames::new(self, &self.qpos0);
        for equality in &spec.equalities {
            let element = &equality.element;
            let (kind, objects, data) = match element.name.as_str() {
                "connect" => {
                    let objects = self.bodies_or_sites(element, &["anchor"])?;
                    (EqualityType::Connect, objects, connect(element, objects, &frames)?)
                }
                "weld" => {
                    let objects = self.bodies_or_sites(element, &["anchor", "relpose"])?;
                    (EqualityType::Weld, objects, weld(element, objects, &frames)?)
                }
                "joint" => {
                    let objects = two(element, "joint", &self.jnt_name)?;
                    let ids = [Some(objects.1), objects.2];
                    if ids.iter().flatten().any(|&id| self.jnt_type[id].dofs() != 1) {
                        let message = "joints of an equality are hinges or slides".to_owned();
                        return Err(element.invalid(message));
                    }
                    (EqualityType::Joint, objects, polynomial(element)?)
                }
                _ => {
                    let objects = two(element, "tendon", &self.tendon_name)?;
                    (EqualityType::Tendon, objects, polynomial(element)?)
                }
            };
            if Some(objects.1) == objects.2 {
                let message = "both objects of the equality are the same".to_owned();
                return Err(element.invalid(message));
            }
            self.neq += 1;
            self.eq_type.push(kind);
            self.eq_objtype.push(objects.0);
            self.eq_obj1id.push(objects.1);
            self.eq_obj2id.push(objects.2);
            self.eq_active0.push(equality.values.active);
            self.eq_solref.push(equality.values.solver.reference);
            self.eq_solimp.push(equality.values.solver.impedance);
            self.eq_data.push(data);
        }
        Ok(())
    }

    fn bodies_or_sites(&self, element: &Element, only_bodies: &[&str]) -> ModelResult<Objects> {
        let has = |name: &str| element.attribute(name).is_some();
        if has("site1") || has("site2") {
            let others = ["body1", "body2"].iter().chain(only_bodies);
            if let Some(other) = others.into_iter().find(|name| has(name)) {
                let message = format!("`{other}` is for bodies: leave it out, or the sites");
                return Err(element.invalid(message));
            }
            let site = |name| names::named(element, name, "site", &self.site_name);
            return Ok((ObjectType::Site, site("site1")?, Some(site("site2")?)));
        }
        let body = |name| names::named(element, name, "body", &self.body_name);
        let other = if has("body2") { body("body2")? } else { 0 };
        Ok((ObjectType::Body, body("body1")?, Some(other)))
    }
}

/// Joints or tendons: their kind follows from the constraint's type.
fn two(element: &Element, kind: &str, names: &[String]) -> ModelResult<Objects> {
    let (one, other) = (format!("{kind}1"), format!("{kind}2"));
    let second = match element.attribute(&other) {
        Some(_) => Some(names::named(element, &other, kind, names)?),
        None => None,
    };
    Ok((ObjectType::Unknown, names::named(element, &one, kind, names)?, second))
}

fn polynomial(element: &Element) -> ModelResult<[f64; 12]> {
    let mut data = COMMON;
    element.set_first("polycoef", &mut data[..5])?;
    Ok(data)
}

/// The anchor in both bodies' frames.
fn connect(element: &Element, objects: Objects, frames: &Frames) -> ModelResult<[f64; 12]> {
    let mut data = [0.0; 12];
    if let (ObjectType::Body, one, Some(other)) = objects {
        element.needed("anchor")?;
        let anchor = element.get("anchor")?.unwrap_or([0.0; 3]);
        let at = sub(frames.point(one, anchor), frames.pos[other]);
        data[10] = COMMON[10];
        data[..3].copy_from_slice(&anchor);
        data[3..6].copy_from_slice(&rotate(&matrix(conjugate(frames.quat[other])), at));
    }
    Ok(data)
}

/// The anchor in the second body's frame, the relative pose, the scale of torques, and whether the pose is the
/// reference's.
fn weld(element: &Element, objects: Objects, frames: &Frames) -> ModelResult<[f64; 12]> {
    let scale = element.get("torquescale")?.unwrap_or(COMMON[10]);
    let mut data = [0.0; 12];
    data[10] = scale;
    let (ObjectType::Body, one, Some(other)) = objects else {
        data[1] = COMMON[1];
        return Ok(data);
    };
    let anchor = element.get("anchor")?.unwrap_or([0.0; 3]);
    data[..3].copy_from_slice(&anchor);
    let pose: [f64; 7] = element.get("relpose")?.unwrap_or([0.0; 7]);
    let turn = [pose[3], pose[4], pose[5], pose[6]];
    if turn == [0.0; 4] {
        let at = sub(frames.point(other, anchor), frames.pos[one]);
        let back = conjugate(frames.quat[one]);
        data[3..6].copy_from_slice(&rotate(&matrix(back), at));
        data[6..10].copy_from_slice(&mul(back, frames.quat[other]));
        data[11] = 1.0;
    } else {
        data[3..6].copy_from_slice(&pose[..3]);
        data[6..10].copy_from_slice(&unit(turn).unwrap_or(IDENTITY));
    }
    Ok(data)
}
