//! Pairs of geoms, and equality constraints, as written.

use super::Solver;
use super::defaults::Defaults;
use crate::ModelResult;
use crate::mjcf::Element;

/// Values of a pair, which classes have, too. The geoms have no part in them.
#[derive(Clone, Debug)]
pub(crate) struct PairValues {
    pub(crate) condim: i32,
    /// Two sliding, one torsional and two rolling coefficients.
    pub(crate) friction: [f64; 5],
    pub(crate) solver: Solver,
    /// Reference of friction; zeros for the solver's own.
    pub(crate) friction_reference: [f64; 2],
    pub(crate) margin: f64,
    pub(crate) gap: f64,
}

impl Default for PairValues {
    fn default() -> Self {
        Self {
            condim: 3,
            friction: [1.0, 1.0, 0.005, 0.0001, 0.0001],
            solver: Solver::default(),
            friction_reference: [0.0; 2],
            margin: 0.0,
            gap: 0.0,
        }
    }
}

impl PairValues {
    pub(crate) fn apply(&mut self, element: &Element) -> ModelResult<()> {
        element.set("condim", &mut self.condim)?;
        if ![1, 3, 4, 6].contains(&self.condim) {
            return Err(element.fault("condim", "1, 3, 4 or 6"));
        }
        element.set_first("friction", &mut self.friction)?;
        self.solver.apply(element, "solref", "solimp")?;
        element.set_first("solreffriction", &mut self.friction_reference)?;
        element.set("margin", &mut self.margin)?;
        element.set("gap", &mut self.gap)?;
        Ok(())
    }
}

/// A pair of geoms that may collide.
pub(crate) struct Pair {
    pub(crate) element: Element,
    pub(crate) values: PairValues,
}

impl Pair {
    pub(super) fn new(element: &Element, defaults: &Defaults) -> ModelResult<Self> {
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
    pub(crate) fn apply(&mut self, element: &Element) -> ModelResult<()> {
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
    pub(super) fn new(element: &Element, defaults: &Defaults) -> ModelResult<Self> {
        let mut values = defaults.of(element, None)?.equality.clone();
        values.apply(element)?;
        Ok(Self { element: element.clone(), values })
    }
}
