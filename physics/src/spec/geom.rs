//! Geoms and sites as written.

use super::Solver;
use super::orientation::Orientation;
use crate::ModelResult;
use crate::mjcf::Element;
use crate::model::GeomType;

const TYPES: &[(&str, GeomType)] = &[
    ("plane", GeomType::Plane),
    ("sphere", GeomType::Sphere),
    ("capsule", GeomType::Capsule),
    ("ellipsoid", GeomType::Ellipsoid),
    ("cylinder", GeomType::Cylinder),
    ("box", GeomType::Box),
];

/// A frame, and the size of its contents.
#[derive(Clone, Debug)]
pub(crate) struct ShapeValues {
    pub(crate) kind: GeomType,
    pub(crate) size: [f64; 3],
    pub(crate) pos: [f64; 3],
    pub(crate) orientation: Orientation,
    /// Ends of a segment, in place of the frame and the last size.
    pub(crate) from_to: Option<[f64; 6]>,
}

impl ShapeValues {
    fn new(size: [f64; 3]) -> Self {
        Self {
            kind: GeomType::Sphere,
            size,
            pos: [0.0; 3],
            orientation: Orientation::default(),
            from_to: None,
        }
    }

    fn apply(&mut self, element: &Element) -> ModelResult<()> {
        let other = match element.text("type") {
            Some(kind @ ("mesh" | "hfield" | "sdf")) => Some(kind),
            _ => None,
        };
        if let Some(kind) = other {
            return Err(crate::Error::NotCovered {
                place: element.attribute("type").map_or(&element.place, |a| &a.place).clone(),
                what: format!("type `{kind}` of `{}`", element.name),
                hint: "; use plane, sphere, capsule, ellipsoid, cylinder or box".to_owned(),
            });
        }
        element.set_choice("type", TYPES, &mut self.kind)?;
        element.set_first("size", &mut self.size)?;
        element.set("pos", &mut self.pos)?;
        self.orientation.apply(element)?;
        self.from_to = element.get("fromto")?.or(self.from_to);
        Ok(())
    }
}

/// Values of a geom, which classes have, too.
#[derive(Clone, Debug)]
pub(crate) struct GeomValues {
    pub(crate) shape: ShapeValues,
    pub(crate) contype: i32,
    pub(crate) conaffinity: i32,
    pub(crate) condim: i32,
    pub(crate) priority: i32,
    pub(crate) group: i32,
    pub(crate) friction: [f64; 3],
    pub(crate) solmix: f64,
    pub(crate) solver: Solver,
    pub(crate) margin: f64,
    pub(crate) gap: f64,
    pub(crate) mass: Option<f64>,
    pub(crate) density: f64,
}

impl Default for GeomValues {
    fn default() -> Self {
        Self {
            shape: ShapeValues::new([0.0; 3]),
            contype: 1,
            conaffinity: 1,
            condim: 3,
            priority: 0,
            group: 0,
            friction: [1.0, 0.005, 0.0001],
            solmix: 1.0,
            solver: Solver::default(),
            margin: 0.0,
            gap: 0.0,
            mass: None,
            density: 1000.0,
        }
    }
}

impl GeomValues {
    pub(crate) fn apply(&mut self, element: &Element) -> ModelResult<()> {
        self.shape.apply(element)?;
        element.set("contype", &mut self.contype)?;
        element.set("conaffinity", &mut self.conaffinity)?;
        element.set("condim", &mut self.condim)?;
        if ![1, 3, 4, 6].contains(&self.condim) {
            return Err(element.fault("condim", "1, 3, 4 or 6"));
        }
        element.set("priority", &mut self.priority)?;
        element.set("group", &mut self.group)?;
        element.set_first("friction", &mut self.friction)?;
        element.set("solmix", &mut self.solmix)?;
        self.solver.apply(element, "solref", "solimp")?;
        element.set("margin", &mut self.margin)?;
        element.set("gap", &mut self.gap)?;
        self.mass = element.get("mass")?.or(self.mass);
        element.set("density", &mut self.density)?;
        if self.mass.unwrap_or(0.0) < 0.0 {
            return Err(element.fault("mass", "a number that is not negative"));
        }
        if self.density < 0.0 {
            return Err(element.fault("density", "a number that is not negative"));
        }
        Ok(())
    }
}

/// Values of a site, which classes have, too.
#[derive(Clone, Debug)]
pub(crate) struct SiteValues {
    pub(crate) shape: ShapeValues,
    pub(crate) group: i32,
}

impl Default for SiteValues {
    fn default() -> Self {
        Self { shape: ShapeValues::new([0.005; 3]), group: 0 }
    }
}

impl SiteValues {
    pub(crate) fn apply(&mut self, element: &Element) -> ModelResult<()> {
        self.shape.apply(element)?;
        element.set("group", &mut self.group)?;
        Ok(())
    }
}
