//! Sensors.

use super::types::ObjectType;
use super::{Model, names};
use crate::ModelResult;
use crate::mjcf::Element;
use crate::spec::Spec;
use crate::spec::sensor::{Reads, SENSORS};

impl Model {
    pub(super) fn add_sensors(&mut self, spec: &Spec) -> ModelResult<()> {
        for element in &spec.sensors {
            let known = SENSORS.iter().find(|(name, ..)| *name == element.name);
            let Some(&(_, number, values, reads)) = known else {
                return Err(
                    element.invalid(format!("`{}` is no sensor of the table", element.name))
                );
            };
            names::push(&mut self.sensor_name, element, element.text("name").unwrap_or_default())?;
            let (kind, id) = self.sensed(element, reads)?;
            let reference = match element.attribute("refname") {
                Some(_) => self.frame(element, "reftype", "refname")?,
                None if element.attribute("reftype").is_some() => {
                    return Err(element.invalid("`reftype` needs `refname`".to_owned()));
                }
                None => (ObjectType::Unknown, None),
            };
            self.sensor_type.push(number);
            self.sensor_objtype.push(kind);
            self.sensor_objid.push(id);
            self.sensor_reftype.push(reference.0);
            self.sensor_refid.push(reference.1);
            self.sensor_dim.push(values);
            self.sensor_adr.push(self.nsensordata);
            self.nsensordata += values;
            self.nsensor += 1;
            for (name, list) in
                [("cutoff", &mut self.sensor_cutoff), ("noise", &mut self.sensor_noise)]
            {
                let value = element.get(name)?.unwrap_or(0.0);
                if value < 0.0 {
                    return Err(element.fault(name, "a number that is not negative"));
                }
                list.push(value);
            }
        }
        Ok(())
    }

    /// Kind and index of the object that a sensor reads.
    fn sensed(&self, element: &Element, reads: Reads) -> ModelResult<(ObjectType, Option<usize>)> {
        let find = |kind: &str, names: &[String]| names::named(element, kind, kind, names);
        Ok(match reads {
            Reads::Nothing => (ObjectType::Unknown, None),
            Reads::Site => (ObjectType::Site, Some(find("site", &self.site_name)?)),
            Reads::Tendon => {
                let tendon = find("tendon", &self.tendon_name)?;
                if element.name.starts_with("tendonlimit") && !self.tendon_limited[tendon] {
                    return Err(element.fault("tendon", "a tendon with a limit"));
                }
                (ObjectType::Tendon, Some(tendon))
            }
            Reads::Actuator => (ObjectType::Actuator, Some(find("actuator", &self.actuator_name)?)),
            Reads::Body => (ObjectType::Body, Some(find("body", &self.body_name)?)),
            Reads::Frame => self.frame(element, "objtype", "objname")?,
            Reads::Joint | Reads::Ball | Reads::Scalar => {
                let joint = find("joint", &self.jnt_name)?;
                let dofs = self.jnt_type[joint].dofs();
                match reads {
                    Reads::Ball if dofs != 3 => {
                        return Err(element.fault("joint", "a ball joint"));
                    }
                    Reads::Scalar if dofs != 1 => {
                        return Err(element.fault("joint", "a hinge or slide joint"));
                    }
                    Reads::Joint if !self.jnt_limited[joint] => {
                        return Err(element.fault("joint", "a joint with a limit"));
                    }
                    _ => (ObjectType::Joint, Some(joint)),
                }
            }
        })
    }

    fn frame(
        &self,
        element: &Element,
        kind: &str,
        name: &str,
    ) -> ModelResult<(ObjectType, Option<usize>)> {
        element.needed(kind)?;
        let kinds = &[
            ("body", ObjectType::Body),
            ("xbody", ObjectType::XBody),
            ("geom", ObjectType::Geom),
            ("site", ObjectType::Site),
        ];
        if element.text(kind) == Some("camera") {
            return Err(crate::Error::NotCovered {
                place: element.attribute(kind).map_or(&element.place, |a| &a.place).clone(),
                what: format!("`{kind}` \"camera\" of `{}`", element.name),
                hint: "; use a site".to_owned(),
            });
        }
        let object = element.choice(kind, kinds)?.unwrap_or(ObjectType::Unknown);
        let (word, names) = match object {
            ObjectType::Geom => ("geom", &self.geom_name),
            ObjectType::Site => ("site", &self.site_name),
            _ => ("body", &self.body_name),
        };
        Ok((object, Some(names::named(element, name, word, names)?)))
    }
}
