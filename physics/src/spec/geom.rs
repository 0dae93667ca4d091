//! Geoms and sites as written.

use super::Solver;
use super::body::Written;
use super::orientation::Orientation;
use crate::mjcf::Element;
use crate::model::GeomType;
use crate::{Error, ModelResult};

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
    /// The element that says that the shape is a mesh, which nothing but pictures reads.
    pub(crate) mesh: Option<Element>,
}

impl ShapeValues {
    fn new(size: [f64; 3]) -> Self {
        Self {
            kind: GeomType::Sphere,
            size,
            pos: [0.0; 3],
            orientation: Orientation::default(),
            from_to: None,
            mesh: None,
        }
    }

    fn apply(&mut self, element: &Element) -> ModelResult<()> {
        match element.text("type") {
            Some("mesh") if element.name == "geom" => self.mesh = Some(element.clone()),
            Some("mesh" | "hfield" | "sdf") => {
                return Err(not_covered(
                    element,
                    "use plane, sphere, capsule, ellipsoid, cylinder or box",
                ));
            }
            Some(_) => {
                self.mesh = None;
                element.set_choice("type", TYPES, &mut self.kind)?;
            }
            None => {}
        }
        element.set_first("size", &mut self.size)?;
        element.set("pos", &mut self.pos)?;
        self.orientation.apply(element)?;
        self.from_to = element.get("fromto")?.or(self.from_to);
        Ok(())
    }
}

/// An error about the type of a shape.
fn not_covered(element: &Element, hint: &str) -> Error {
    Error::NotCovered {
        place: element.attribute("type").map_or(&element.place, |a| &a.place).clone(),
        what: format!("type `{}` of `{}`", element.text("type").unwrap_or_default(), element.name),
        hint: format!("; {hint}"),
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

impl Written<GeomValues> {
    /// True for a mesh that is only a part of pictures. `weightless` is true if the mass of the body's geoms does not
    /// matter.
    ///
    /// # Errors
    /// A mesh that collides or has a mass.
    pub(super) fn is_picture(&self, weightless: bool) -> ModelResult<bool> {
        let GeomValues { shape, contype, conaffinity, mass, density, .. } = &self.values;
        let Some(mesh) = &shape.mesh else {
            return match self.element.attribute("mesh") {
                Some(_) => {
                    Err(not_covered(&self.element, "a shape that is fitted to a mesh has no size"))
                }
                None => Ok(false),
            };
        };
        if *contype != 0 || *conaffinity != 0 {
            let hint = "a mesh is covered if `contype` and `conaffinity` are 0; otherwise use plane, sphere, capsule, \
                        ellipsoid, cylinder or box";
            return Err(not_covered(mesh, hint));
        }
        if !weightless && mass.unwrap_or(*density) != 0.0 {
            let hint =
                "its mass is not computed: give the mesh the mass 0, or the body an `inertial`";
            return Err(not_covered(mesh, hint));
        }
        Ok(true)
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
