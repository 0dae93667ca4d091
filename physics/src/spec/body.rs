//! Bodies with their joints, geoms and sites, in the order of the compiled model: each before its descendants.

use super::compiler::{Compiler, FromGeom};
use super::defaults::Defaults;
use super::geom::{GeomValues, SiteValues};
use super::joint::JointValues;
use super::orientation::Orientation;
use crate::ModelResult;
use crate::mjcf::Element;
use crate::model::JointType;

/// Values with the element that they come from.
pub(crate) struct Written<T> {
    pub(crate) element: Element,
    pub(crate) values: T,
}

/// The element `inertial`.
pub(crate) struct Inertial {
    pub(crate) element: Element,
    pub(crate) mass: f64,
    pub(crate) pos: [f64; 3],
    pub(crate) orientation: Orientation,
    pub(crate) diagonal: [f64; 3],
    /// `xx yy zz xy xz yz`.
    pub(crate) full: Option<[f64; 6]>,
}

impl Inertial {
    fn new(element: &Element) -> ModelResult<Self> {
        let mut orientation = Orientation::default();
        let turned = orientation.apply(element)?;
        let full = element.get("fullinertia")?;
        let diagonal = element.get("diaginertia")?;
        if full.is_some() && (turned || diagonal.is_some()) {
            let message =
                "`fullinertia` has its own axes: leave the orientation and `diaginertia` out";
            return Err(element.invalid(message.to_owned()));
        }
        element.needed("mass")?;
        element.needed("pos")?;
        Ok(Self {
            mass: element.get("mass")?.unwrap_or(0.0),
            pos: element.get("pos")?.unwrap_or([0.0; 3]),
            orientation,
            diagonal: diagonal.unwrap_or([0.0; 3]),
            full,
            element: element.clone(),
        })
    }
}

/// A body, its frame and its parts.
pub(crate) struct Body {
    /// The element without its children.
    pub(crate) element: Element,
    pub(crate) name: String,
    pub(crate) parent: usize,
    pub(crate) pos: [f64; 3],
    pub(crate) orientation: Orientation,
    pub(crate) gravity_compensation: f64,
    pub(crate) inertial: Option<Inertial>,
    pub(crate) joints: Vec<Written<JointValues>>,
    pub(crate) geoms: Vec<Written<GeomValues>>,
    pub(crate) sites: Vec<Written<SiteValues>>,
}

impl Body {
    fn new(element: &Element, parent: usize) -> ModelResult<Self> {
        let mut orientation = Orientation::default();
        orientation.apply(element)?;
        let name =
            if element.name == "worldbody" { "world" } else { element.text("name").unwrap_or("") };
        Ok(Self {
            name: name.to_owned(),
            parent,
            pos: element.get("pos")?.unwrap_or([0.0; 3]),
            orientation,
            gravity_compensation: element.get("gravcomp")?.unwrap_or(0.0),
            inertial: None,
            joints: Vec::new(),
            geoms: Vec::new(),
            sites: Vec::new(),
            element: Element { children: Vec::new(), ..element.clone() },
        })
    }
}

/// All bodies of a root. The first is the world.
pub(super) fn all(
    root: &Element,
    compiler: &Compiler,
    defaults: &Defaults,
) -> ModelResult<Vec<Body>> {
    let mut world = Element { name: "worldbody".to_owned(), children: Vec::new(), ..root.clone() };
    world.attributes.clear();
    for section in root.all("worldbody") {
        world.place = section.place.clone();
        world.children.extend(section.children.iter().cloned());
    }
    let mut bodies = Vec::new();
    visit(&world, 0, None, (compiler, defaults), &mut bodies)?;
    Ok(bodies)
}

fn visit(
    element: &Element,
    parent: usize,
    inherited: Option<&str>,
    (compiler, defaults): (&Compiler, &Defaults),
    bodies: &mut Vec<Body>,
) -> ModelResult<()> {
    let inherited = element.text("childclass").or(inherited);
    if let Some(class) = element.text("childclass") {
        defaults.named(element, "childclass", class)?;
    }
    let id = bodies.len();
    let mut body = Body::new(element, parent)?;
    for child in &element.children {
        let class = || defaults.of(child, inherited);
        match child.name.as_str() {
            "inertial" => {
                if body.inertial.is_some() {
                    return Err(child.invalid("a body has one `inertial`".to_owned()));
                }
                body.inertial = Some(Inertial::new(child)?);
            }
            "joint" => {
                let mut values = class()?.joint.clone();
                values.apply(child)?;
                body.joints.push(Written { element: child.clone(), values });
            }
            "freejoint" => {
                // Classes have no part in it.
                let values = JointValues { kind: JointType::Free, ..JointValues::default() };
                body.joints.push(Written { element: child.clone(), values });
            }
            "geom" => {
                let mut values = class()?.geom.clone();
                values.apply(child)?;
                body.geoms.push(Written { element: child.clone(), values });
            }
            "site" => {
                let mut values = class()?.site.clone();
                values.apply(child)?;
                body.sites.push(Written { element: child.clone(), values });
            }
            _ => {}
        }
    }
    let weightless = body.inertial.is_some() && compiler.inertia_from_geom != FromGeom::True;
    let mut pictures = Vec::new();
    for geom in &body.geoms {
        pictures.push(geom.is_picture(weightless)?);
    }
    let mut pictures = pictures.into_iter();
    body.geoms.retain(|_| !pictures.next().unwrap_or(false));
    let free = body.joints.iter().find(|joint| joint.values.kind == JointType::Free);
    if let Some(free) = free {
        if body.joints.len() > 1 {
            let message = "a free joint is the only joint of its body".to_owned();
            return Err(free.element.invalid(message));
        }
        if parent != 0 {
            let message = "a free joint belongs to a child of `worldbody`".to_owned();
            return Err(free.element.invalid(message));
        }
    }
    bodies.push(body);
    for child in element.all("body") {
        visit(child, id, inherited, (compiler, defaults), bodies)?;
    }
    Ok(())
}
