//! Pairs of geoms, and equality constraints, as written.

use super::Solver;
use super::defaults::Defaults;
use crate::Result;
use crate::mjcf::Element;

/// Values of a pair. `None` is taken from the geoms.
#[derive(Clone, Debug, Default)]
pub(crate) struct PairValues {
    pub(crate) condim: Option<i32>,
    /// Two tangential, one torsional and two rolling coefficients, from the first.
    pub(crate) friction: [Option<f64>; 5],
    pub(crate) reference: [Option<f64>; 2],
    pub(crate) friction_reference: [f64; 2],
    pub(crate) impedance: [Option<f64>; 5],
    pub(crate) margin: Option<f64>,
    pub(crate) gap: Option<f64>,
}

fn first(element: &Element, name: &str, values: &mut [Option<f64>]) -> Result<()> {
    let mut read = [0.0; 5];
    let count = element.set_first(name, &mut read[..values.len()])?;
    for (value, read) in values.iter_mut().zip(read).take(count) {
        *value = Some(read);
    }
    Ok(())
}

impl PairValues {
    pub(crate) fn apply(&mut self, element: &Element) -> Result<()> {
        self.condim = element.get("condim")?.or(self.condim);
        if self.condim.is_some_and(|condim| ![1, 3, 4, 6].contains(&condim)) {
            return Err(element.fault("condim", "1, 3, 4 or 6"));
        }
        first(element, "friction", &mut self.friction)?;
        first(element, "solref", &mut self.reference)?;
        first(element, "solimp", &mut self.impedance)?;
        element.set_first("solreffriction", &mut self.friction_reference)?;
        self.margin = element.get("margin")?.or(self.margin);
        self.gap = element.get("gap")?.or(self.gap);
        Ok(())
    }
}

/// A pair of geoms that may collide.
pub(crate) struct Pair {
    pub(crate) element: Element,
    pub(crate) values: PairValues,
}

impl Pair {
    pub(super) fn new(element: &Element, defaults: &Defaults) -> Result<Self> {
        let mut values = defaults.of(element, None)?.pair.clone();
        values.apply(element)?;
        Ok(Self { element: element.clone(), values })
    }
}

/// Values of an equality constraint, which classes have, too.
#[derive(Clone, Debug)]
pub(crate) struct EqualityValues {
    pub(crate) active: bool,
    pub(crate) solver: Solver,
}

impl Default for EqualityValues {
    fn default() -> Self {
        Self { active: true, solver: Solver::default() }
    }
}

impl EqualityValues {
    pub(crate) fn apply(&mut self, element: &Element) -> Result<()> {
        element.set("active", &mut self.active)?;
        self.solver.apply(element, "solref", "solimp")
    }
}

/// An equality constraint.
pub(crate) struct Equality {
    pub(crate) element: Element,
    pub(crate) values: EqualityValues,
}

impl Equality {
    pub(super) fn new(element: &Element, defaults: &Defaults) -> Result<Self> {
        let mut values = defaults.of(element, None)?.equality.clone();
        values.apply(element)?;
        Ok(Self { element: element.clone(), values })
    }
}
