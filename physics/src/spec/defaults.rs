//! Default classes: `default`.

use std::collections::BTreeMap;

use super::actuator::Gains;
use super::geom::{GeomValues, SiteValues};
use super::joint::JointValues;
use super::relation::{EqualityValues, PairValues};
use super::tendon::TendonValues;
use crate::mjcf::Element;
use crate::{Error, ModelResult};

/// The values that elements of a class begin with.
#[derive(Clone, Debug, Default)]
pub(crate) struct Class {
    pub(crate) joint: JointValues,
    pub(crate) geom: GeomValues,
    pub(crate) site: SiteValues,
    pub(crate) pair: PairValues,
    pub(crate) equality: EqualityValues,
    pub(crate) tendon: TendonValues,
    pub(crate) actuator: Gains,
}

/// All classes by name, with at least `main`.
pub(crate) struct Defaults {
    classes: BTreeMap<String, Class>,
}

const MAIN: &str = "main";

impl Defaults {
    /// The classes of a root.
    pub(crate) fn new(root: &Element) -> ModelResult<Self> {
        let mut made = Self { classes: BTreeMap::from([(MAIN.to_owned(), Class::default())]) };
        for element in root.all("default") {
            let name = element.text("class").unwrap_or(MAIN);
            if name != MAIN {
                return Err(element.fault("class", "`main` for a class outside of others"));
            }
            let main = made.classes[MAIN].clone();
            made.read(element, MAIN, main)?;
        }
        Ok(made)
    }

    fn read(&mut self, element: &Element, name: &str, mut class: Class) -> ModelResult<()> {
        for child in &element.children {
            match child.name.as_str() {
                "joint" => class.joint.apply(child)?,
                "geom" => class.geom.apply(child)?,
                "site" => class.site.apply(child)?,
                "pair" => class.pair.apply(child)?,
                "equality" => class.equality.apply(child)?,
                "tendon" => class.tendon.apply(child)?,
                "general" | "motor" | "position" | "velocity" | "intvelocity" | "damper"
                | "cylinder" => class.actuator.apply(child)?,
                // Nested classes follow, and the schema lets nothing else pass that has an effect.
                _ => {}
            }
        }
        self.classes.insert(name.to_owned(), class.clone());
        for child in element.all("default") {
            let name = child.needed("class")?;
            if self.classes.contains_key(name) {
                return Err(child.fault("class", "a name that no other class has"));
            }
            self.read(child, name, class.clone())?;
        }
        Ok(())
    }

    /// The class that an element names, or that it inherits from its bodies.
    pub(crate) fn of(&self, element: &Element, inherited: Option<&str>) -> ModelResult<&Class> {
        self.named(element, "class", element.text("class").or(inherited).unwrap_or(MAIN))
    }

    /// The class of a name that an attribute gives.
    pub(crate) fn named(
        &self,
        element: &Element,
        attribute: &str,
        name: &str,
    ) -> ModelResult<&Class> {
        self.classes.get(name).ok_or_else(|| Error::Unknown {
            place: element.attribute(attribute).map_or(&element.place, |a| &a.place).clone(),
            what: format!("default class `{name}`"),
            hint: crate::mjcf::near(name, self.classes.keys().map(String::as_str), "there are"),
        })
    }
}
