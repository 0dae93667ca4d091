//! The compiled model.
//!
//! Names, units and contents follow `mujoco.MjModel` 4.0.0. An index of -1 there is `None` here. Angles are
//! radians, and every array has one entry per body, joint, degree of freedom and so on, as the first word of its name
//! says.

mod actuators;
mod bodies;
mod constants;
mod contents;
mod coverage;
mod equalities;
mod fields;
mod geoms;
mod inertia;
mod joints;
mod keys;
mod kinematics;
mod names;
mod options;
mod sensors;
mod tendons;
mod tree;
mod types;

use std::path::Path;

pub use contents::Model;
pub use options::Options;
pub(crate) use tree::Disable;
pub use types::{EqualityType, GeomType, JointType, ObjectType, TransmissionType, WrapType};

use crate::mjcf::{self, Element};
use crate::spec::Spec;
use crate::{Error, ModelResult, XmlPlace};

impl Model {
    /// The model of an MJCF text, which may include no files.
    ///
    /// # Errors
    /// Malformed XML, unknown elements, dynamics that are not covered, and models that contradict themselves.
    pub fn from_mjcf(text: &str) -> ModelResult<Self> {
        Self::covered(&mjcf::read(text)?)
    }

    /// The model of an MJCF file.
    ///
    /// # Errors
    /// As of [`Model::from_mjcf`], and files that cannot be read.
    pub fn from_file(path: impl AsRef<Path>) -> ModelResult<Self> {
        Self::covered(&mjcf::read_file(path.as_ref())?)
    }

    /// The model of an MJCF file, without a check of the dynamics: for comparisons of the fields.
    ///
    /// # Errors
    /// As of [`Model::from_file`], without gaps of the dynamics.
    #[doc(hidden)]
    pub fn fields_of_file(path: impl AsRef<Path>) -> ModelResult<Self> {
        let root = mjcf::read_file(path.as_ref())?;
        Self::compile(&root, &Spec::new(&root)?)
    }

    /// As [`Model::fields_of_file`], of an MJCF text.
    ///
    /// # Errors
    /// As of [`Model::from_mjcf`], without gaps of the dynamics.
    #[doc(hidden)]
    pub fn fields_of_mjcf(text: &str) -> ModelResult<Self> {
        let root = mjcf::read(text)?;
        Self::compile(&root, &Spec::new(&root)?)
    }

    fn covered(root: &Element) -> ModelResult<Self> {
        let spec = Spec::new(root)?;
        let model = Self::compile(root, &spec)?;
        model.check_covered(root, &spec)?;
        Ok(model)
    }

    fn compile(root: &Element, spec: &Spec) -> ModelResult<Self> {
        let mut model = Self { opt: spec.options.clone(), ..Self::default() };
        model.add_bodies(spec)?;
        model.add_joints(spec)?;
        model.add_geoms(spec)?;
        model.add_inertias(spec)?;
        model.add_contacts(spec)?;
        model.add_tendons(spec)?;
        model.add_actuators(spec)?;
        model.set_constants(spec)?;
        model.add_equalities(spec)?;
        model.add_sensors(spec)?;
        model.numerics = spec.numerics.clone();
        model.add_keys(spec)?;
        model.check_finite(root)?;
        Ok(model)
    }

    /// Numbers as large as 1e300 overflow in products.
    fn check_finite(&self, root: &Element) -> ModelResult<()> {
        for (name, values) in self.fields() {
            if !values.iter().all(|value| value.is_finite()) {
                let message = format!(
                    "`{name}` overflows: the model has a number that is too large or too small"
                );
                return Err(root.invalid(message));
            }
        }
        Ok(())
    }
}

/// An error about a name that nothing has.
fn unknown_name(element: &Element, attribute: &str, kind: &str, names: &[String]) -> Error {
    let name = element.text(attribute).unwrap_or_default();
    let place: &XmlPlace = element.attribute(attribute).map_or(&element.place, |a| &a.place);
    let names = names.iter().map(String::as_str).filter(|name| !name.is_empty());
    Error::Unknown {
        place: place.clone(),
        what: format!("{kind} `{name}`"),
        hint: mjcf::near(name, names, "there are"),
    }
}
