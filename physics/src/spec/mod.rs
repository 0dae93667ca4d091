//! The contents of a model as written, with default classes applied and before anything is computed.

pub(crate) mod actuator;
pub(crate) mod body;
pub(crate) mod compiler;
pub(crate) mod defaults;
pub(crate) mod geom;
pub(crate) mod joint;
pub(crate) mod option;
pub(crate) mod orientation;
pub(crate) mod relation;
pub(crate) mod sensor;
pub(crate) mod tendon;

use crate::ModelResult;
use crate::math::norm;
use crate::mjcf::Element;
use crate::model::Options;

/// Most keyframes that `size` may ask for.
const MOST_KEYS: usize = 10_000;

/// A switch that a range may decide.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Limited {
    False,
    True,
    Auto,
}

pub(crate) const LIMITED: &[(&str, Limited)] =
    &[("false", Limited::False), ("true", Limited::True), ("auto", Limited::Auto)];

impl Limited {
    /// True if the limit holds.
    ///
    /// # Errors
    /// An empty range of a limit, and a range that `limited` does not mention if limits are not inferred.
    pub(crate) fn resolve(
        self,
        element: &Element,
        name: &str,
        range: [f64; 2],
        autolimits: bool,
    ) -> ModelResult<bool> {
        let given = range != [0.0, 0.0];
        let limited = match self {
            Limited::True => true,
            Limited::False => false,
            Limited::Auto if autolimits => range[0] < range[1],
            Limited::Auto if given => {
                let message = format!(
                    "`{name}` of `{}` is set, but not the attribute that limits: set it, or `autolimits` of `compiler`",
                    element.name
                );
                return Err(element.invalid(message));
            }
            Limited::Auto => false,
        };
        if (limited || (self == Limited::Auto && given)) && range[0] >= range[1] {
            return Err(element.fault(name, "two numbers, the smaller first"));
        }
        Ok(limited)
    }
}

/// The constraint solver's reference and impedance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Solver {
    pub(crate) reference: [f64; 2],
    pub(crate) impedance: [f64; 5],
}

impl Default for Solver {
    fn default() -> Self {
        Self { reference: [0.02, 1.0], impedance: [0.9, 0.95, 0.001, 0.5, 2.0] }
    }
}

impl Solver {
    pub(crate) fn apply(
        &mut self,
        element: &Element,
        reference: &str,
        impedance: &str,
    ) -> ModelResult<()> {
        element.set_first(reference, &mut self.reference)?;
        element.set_first(impedance, &mut self.impedance)?;
        Ok(())
    }
}

/// A whole model as written.
pub(crate) struct Spec {
    pub(crate) compiler: compiler::Compiler,
    pub(crate) options: Options,
    pub(crate) meaninertia: Option<f64>,
    pub(crate) bodies: Vec<body::Body>,
    pub(crate) pairs: Vec<relation::Pair>,
    pub(crate) excludes: Vec<Element>,
    pub(crate) equalities: Vec<relation::Equality>,
    pub(crate) tendons: Vec<tendon::Tendon>,
    pub(crate) actuators: Vec<actuator::Actuator>,
    pub(crate) sensors: Vec<Element>,
    pub(crate) numerics: Vec<(String, Vec<f64>)>,
    pub(crate) keys: Vec<Element>,
    /// Least number of keyframes.
    pub(crate) least_keys: usize,
}

impl Spec {
    /// Reads the sections of a root.
    pub(crate) fn new(root: &Element) -> ModelResult<Self> {
        let section = |name: &'static str| root.all(name).flat_map(|section| &section.children);
        let mut compiler = compiler::Compiler::default();
        root.all("compiler").try_for_each(|element| compiler.apply(element))?;
        let mut options = Options::default();
        root.all("option").try_for_each(|element| option::apply(&mut options, element))?;
        let mut meaninertia = None;
        for element in root.all("statistic") {
            meaninertia = element.get("meaninertia")?.or(meaninertia);
        }
        let defaults = defaults::Defaults::new(root)?;
        let bodies = body::all(root, &compiler, &defaults)?;
        let mut spec = Self {
            compiler,
            options,
            meaninertia,
            bodies,
            pairs: Vec::new(),
            excludes: Vec::new(),
            equalities: Vec::new(),
            tendons: Vec::new(),
            actuators: Vec::new(),
            sensors: section("sensor").cloned().collect(),
            numerics: Vec::new(),
            keys: section("keyframe").cloned().collect(),
            least_keys: least_keys(root)?,
        };
        for element in section("contact") {
            match element.name.as_str() {
                "pair" => spec.pairs.push(relation::Pair::new(element, &defaults)?),
                _ => spec.excludes.push(element.clone()),
            }
        }
        for element in section("equality") {
            spec.equalities.push(relation::Equality::new(element, &defaults)?);
        }
        for element in section("tendon") {
            spec.tendons.push(tendon::Tendon::new(element, &defaults)?);
        }
        for element in section("actuator") {
            spec.actuators.push(actuator::Actuator::new(element, &defaults)?);
        }
        for element in section("custom").filter(|element| element.name == "numeric") {
            let name = element.needed("name")?;
            if spec.numerics.iter().any(|(known, _)| known == name) {
                return Err(element.fault("name", "a name that no other `numeric` has"));
            }
            spec.numerics.push((name.to_owned(), numeric(element)?));
        }
        Ok(spec)
    }
}

/// The number of keyframes that `size` asks for.
fn least_keys(root: &Element) -> ModelResult<usize> {
    let mut least = 0;
    for element in root.all("size") {
        if let Some(count) = element.get::<i32>("nkey")? {
            let count = usize::try_from(count).ok().filter(|&count| count <= MOST_KEYS);
            least = count.ok_or_else(|| element.fault("nkey", &format!("0 to {MOST_KEYS}")))?;
        }
    }
    Ok(least)
}

/// The numbers of a `numeric`, followed by zeros if its size asks for more.
fn numeric(element: &Element) -> ModelResult<Vec<f64>> {
    let mut data: Vec<f64> = element.get("data")?.unwrap_or_default();
    let size =
        element.get::<i32>("size")?.map_or(data.len(), |size| usize::try_from(size).unwrap_or(0));
    if size < data.len() || size == 0 || size > 1 << 20 {
        return Err(element.fault("size", "a number of entries, at least as many as `data` has"));
    }
    data.resize(size, 0.0);
    Ok(data)
}

/// A direction of length 1.
pub(crate) fn direction(element: &Element, name: &str, axis: [f64; 3]) -> ModelResult<[f64; 3]> {
    let length = norm(&axis);
    if length < 1e-14 {
        return Err(element.fault(name, "a vector of positive length"));
    }
    Ok(axis.map(|x| x / length))
}
