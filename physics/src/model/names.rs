//! Names of objects.

use super::{Model, unknown_name};
use crate::ModelResult;
use crate::mjcf::Element;

/// The index of a name.
fn index(names: &[String], name: &str) -> Option<usize> {
    names.iter().position(|known| known == name && !name.is_empty())
}

impl Model {
    /// The body of a name.
    #[must_use]
    pub fn body(&self, name: &str) -> Option<usize> {
        index(&self.body_name, name)
    }

    /// The joint of a name.
    #[must_use]
    pub fn joint(&self, name: &str) -> Option<usize> {
        index(&self.jnt_name, name)
    }

    /// The geom of a name.
    #[must_use]
    pub fn geom(&self, name: &str) -> Option<usize> {
        index(&self.geom_name, name)
    }

    /// The site of a name.
    #[must_use]
    pub fn site(&self, name: &str) -> Option<usize> {
        index(&self.site_name, name)
    }

    /// The tendon of a name.
    #[must_use]
    pub fn tendon(&self, name: &str) -> Option<usize> {
        index(&self.tendon_name, name)
    }

    /// The actuator of a name.
    #[must_use]
    pub fn actuator(&self, name: &str) -> Option<usize> {
        index(&self.actuator_name, name)
    }

    /// The sensor of a name.
    #[must_use]
    pub fn sensor(&self, name: &str) -> Option<usize> {
        index(&self.sensor_name, name)
    }
}

/// Appends the name of an element, which no other of its kind may have.
pub(super) fn push(names: &mut Vec<String>, element: &Element, name: &str) -> ModelResult<()> {
    if index(names, name).is_some() {
        return Err(element.fault("name", "a name that no other element of its kind has"));
    }
    names.push(name.to_owned());
    Ok(())
}

/// The index of the object that an attribute names.
pub(super) fn named(
    element: &Element,
    attribute: &str,
    kind: &str,
    names: &[String],
) -> ModelResult<usize> {
    let name = element.needed(attribute)?;
    index(names, name).ok_or_else(|| unknown_name(element, attribute, kind, names))
}
