//! The lines of a function's readable text. They are groups of equations that form one call of a
//! library function, in the order of the lines, and the values that are written as literals.

use crate::array::Array;
use crate::attributes::Attribute;
use crate::ir::{Call, Eqn, Func, Var};
use crate::ops::Effect;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A number that is written at its readers in place of a name.
#[derive(Clone, Debug)]
pub(super) struct Literal {
    pub value: Arc<Array>,
}

/// Equations that become one line: a call of a library function, or a single equation.
#[derive(Clone, Debug, Default)]
pub(super) struct Unit {
    pub call: Option<Call>,
    /// Positions of the equations, rising.
    pub eqns: Vec<usize>,
    /// The variables that are read from outside, in order of the first read. Only a single equation lists literals and static values here.
    pub inputs: Vec<Var>,
    /// The variables that are read outside.
    pub outputs: Vec<Var>,
    /// Constants of a call that may interest a caller.
    pub constants: Vec<Var>,
}

/// The lines of a function, in order, and the values without a line.
pub(super) struct Lines {
    pub units: Vec<Unit>,
    pub literals: Vec<Option<Literal>>,
    /// The number of reads of each variable, by lines and results.
    pub reads: Vec<usize>,
}

impl Lines {
    pub fn of(func: &Func) -> Lines {
        let literals = literals(func);
        let fixed = fixed(func, &literals);
        let mut groups = Groups::new(func);
        for (position, eqn) in func.eqns.iter().enumerate() {
            if eqn.outputs.iter().all(|var| literals[var.index()].is_some())
                && !eqn.outputs.is_empty()
            {
                continue;
            }
            let is_fixed = eqn.outputs.iter().any(|var| fixed[var.index()]);
            let folds = !is_fixed && eqn.op.effect() == Effect::Pure;
            let call = eqn.loc.call().map(Call::whole).filter(|_| folds);
            groups.add(position, eqn, call);
        }
        let Groups { mut units, home, .. } = groups;
        bound(func, &mut units, &home, (&literals, &fixed));
        let units = needed(func, units, &home);
        let units = ordered(units);
        let mut reads = vec![0; func.types.len()];
        let read = units.iter().flat_map(|unit| &unit.inputs).chain(&func.results);
        read.for_each(|var| reads[var.index()] += 1);
        Lines { units, literals, reads }
    }
}

/// The variables that are a single number, as constants or broadcasts of constants.
fn literals(func: &Func) -> Vec<Option<Literal>> {
    let mut literals: Vec<Option<Literal>> = vec![None; func.types.len()];
    for eqn in &func.eqns {
        let literal = match eqn.op.mnemonic() {
            "constant" => match eqn.op.attributes().get("value") {
                Some(Attribute::Array(value)) if value.splat_value().is_some() => {
                    Some(Literal { value: value.clone() })
                }
                _ => None,
            },
            "broadcast_in_dim" | "reshape" => literals[eqn.inputs[0].index()].clone(),
            _ => None,
        };
        if let (Some(literal), [output]) = (literal, &eqn.outputs[..]) {
            literals[output.index()] = Some(literal);
        }
    }
    literals
}

/// True for the variables that depend on no parameter, such as an `iota`: any call may have its own
/// copy of them.
fn fixed(func: &Func, literals: &[Option<Literal>]) -> Vec<bool> {
    let mut fixed: Vec<bool> = literals.iter().map(Option::is_some).collect();
    for eqn in &func.eqns {
        let known = match eqn.op.mnemonic() {
            "constant" | "iota" => true,
            _ => !eqn.inputs.is_empty() && eqn.inputs.iter().all(|var| fixed[var.index()]),
        };
        if known && eqn.op.effect() == Effect::Pure && eqn.op.funcs().is_empty() {
            eqn.outputs.iter().for_each(|var| fixed[var.index()] = true);
        }
    }
    fixed
}

/// Units under construction. No unit reads, directly or through others, a value that depends on it.
struct Groups {
    units: Vec<Unit>,
    /// The units that each unit reads.
    sources: Vec<BTreeSet<usize>>,
    /// The unit that defines each variable.
    home: Vec<Option<usize>>,
    /// The unit that accepts further equations of a call.
    open: BTreeMap<Call, usize>,
}

impl Groups {
    fn new(func: &Func) -> Groups {
        let home = vec![None; func.types.len()];
        Groups { units: Vec::new(), sources: Vec::new(), home, open: BTreeMap::new() }
    }

    /// Adds an equation to the open unit of its call, if none of its outside operands depends on
    /// that unit. Otherwise it starts a new unit.
    fn add(&mut self, position: usize, eqn: &Eqn, call: Option<Call>) {
        let sources: BTreeSet<usize> =
            eqn.inputs.iter().filter_map(|var| self.home[var.index()]).collect();
        let open = call.and_then(|call| self.open.get(&call).copied());
        let unit = match open.filter(|&unit| !self.leads_back(unit, &sources)) {
            Some(unit) => unit,
            None => {
                self.units.push(Unit { call, ..Unit::default() });
                self.sources.push(BTreeSet::new());
                self.units.len() - 1
            }
        };
        if let Some(call) = call {
            self.open.insert(call, unit);
        }
        self.units[unit].eqns.push(position);
        self.sources[unit].extend(sources.into_iter().filter(|&source| source != unit));
        eqn.outputs.iter().for_each(|var| self.home[var.index()] = Some(unit));
    }

    /// True if one of these units, other than `unit`, depends on `unit`.
    fn leads_back(&self, unit: usize, sources: &BTreeSet<usize>) -> bool {
        let mut seen: BTreeSet<usize> = sources.iter().copied().filter(|&it| it != unit).collect();
        let mut open: Vec<usize> = seen.iter().copied().collect();
        while let Some(one) = open.pop() {
            for &source in &self.sources[one] {
                if source == unit {
                    return true;
                }
                if seen.insert(source) {
                    open.push(source);
                }
            }
        }
        false
    }
}

/// Sets the operands, results and constants of the units.
fn bound(
    func: &Func,
    units: &mut [Unit],
    home: &[Option<usize>],
    (literals, fixed): (&[Option<Literal>], &[bool]),
) {
    let mut outside = vec![false; func.types.len()];
    func.results.iter().for_each(|var| outside[var.index()] = true);
    for (number, unit) in units.iter_mut().enumerate() {
        let reads = unit.eqns.iter().flat_map(|&position| {
            let eqn = &func.eqns[position];
            let opaque = eqn.loc.call().is_some_and(Call::is_opaque);
            eqn.inputs.iter().map(move |&var| (var, opaque))
        });
        for (var, opaque) in reads {
            let constant = literals[var.index()].as_ref().filter(|_| unit.call.is_some());
            let tells = |literal: &Literal| {
                let value = literal.value.to_f64().first().copied().unwrap_or_default();
                !opaque && value.is_finite() && ![0.0, 1.0, -1.0].contains(&value)
            };
            if unit.call.is_none() {
                // An equation shows an operand as often as it reads it.
                unit.inputs.push(var);
            } else if constant.is_some_and(tells) {
                let known = |&other: &Var| {
                    literals[other.index()].as_ref().map(|literal| &literal.value)
                        == constant.map(|literal| &literal.value)
                };
                if !unit.constants.iter().any(known) {
                    unit.constants.push(var);
                }
            } else if !fixed[var.index()]
                && home[var.index()] != Some(number)
                && !unit.inputs.contains(&var)
            {
                unit.inputs.push(var);
            }
        }
        for &var in &unit.inputs {
            outside[var.index()] = true;
        }
    }
    for unit in units {
        let defined = unit.eqns.iter().flat_map(|&position| &func.eqns[position].outputs);
        unit.outputs = match unit.call {
            Some(_) => defined.copied().filter(|var| outside[var.index()]).collect(),
            None => defined.copied().collect(),
        };
    }
}

/// The units that are read, or that have an effect.
fn needed(func: &Func, units: Vec<Unit>, home: &[Option<usize>]) -> Vec<Unit> {
    let mut read = vec![false; units.len()];
    let of = |var: &Var| home[var.index()];
    let mut open: Vec<usize> = func.results.iter().filter_map(of).collect();
    open.extend((0..units.len()).filter(|&unit| {
        units[unit].eqns.iter().any(|&eqn| func.eqns[eqn].op.effect() != Effect::Pure)
    }));
    while let Some(unit) = open.pop() {
        if !std::mem::replace(&mut read[unit], true) {
            open.extend(units[unit].inputs.iter().filter_map(of));
        }
    }
    units.into_iter().zip(read).filter_map(|(unit, read)| read.then_some(unit)).collect()
}

/// The units in an order that puts each unit after its sources, otherwise in the order of their
/// first equations.
fn ordered(units: Vec<Unit>) -> Vec<Unit> {
    let homes: BTreeMap<Var, usize> = (0..)
        .zip(&units)
        .flat_map(|(number, unit)| unit.outputs.iter().map(move |&var| (var, number)))
        .collect();
    let mut readers: Vec<Vec<usize>> = vec![Vec::new(); units.len()];
    let mut missing = vec![0; units.len()];
    for (number, unit) in units.iter().enumerate() {
        let sources: BTreeSet<usize> =
            unit.inputs.iter().filter_map(|var| homes.get(var).copied()).collect();
        missing[number] = sources.len();
        sources.into_iter().for_each(|source| readers[source].push(number));
    }
    let first = |number: usize| units[number].eqns.first().copied();
    let mut ready: BTreeSet<_> = (0..units.len())
        .filter(|&number| missing[number] == 0)
        .map(|number| (first(number), number))
        .collect();
    let mut order = Vec::with_capacity(units.len());
    while let Some((_, number)) = ready.pop_first() {
        order.push(number);
        for &reader in &readers[number] {
            missing[reader] -= 1;
            if missing[reader] == 0 {
                ready.insert((first(reader), reader));
            }
        }
    }
    let mut units: Vec<Option<Unit>> = units.into_iter().map(Some).collect();
    order.into_iter().filter_map(|number| units[number].take()).collect()
}
