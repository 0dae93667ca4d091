//! The text of a program for people: calls of library functions in place of what they expand to, numbers where they are read, values that are
//! read once inside of their readers.
//!
//! # Invariants
//! - The text depends on nothing but the program: no line of the source and no order of tracing is in it.
//! - A value's name depends on its op and on the equations of the same op before it in its function, never on all of them: an inserted
//!   equation changes few lines.
//! - Equal texts do not mean equal programs: a call does not show its equations. It is not parsed.

mod expression;
mod units;

use crate::ir::{Eqn, Func, Loc, Var};
use crate::ops::{Effect, Scan};
use expression::{Expression, attributes, expression};
use std::collections::BTreeSet;
use std::fmt::{self, Display, Formatter};
use units::{Lines, Unit};

/// Characters of an expression that is written inside of another one.
const NESTED: usize = 60;

/// Characters of a list that stands on one line.
const LISTED: usize = 80;

/// A function's text for people, which [`Func::readable`] gives.
#[derive(Clone, Debug)]
pub struct Readable<'a> {
    func: &'a Func,
    params: Vec<String>,
    results: Vec<String>,
    lines: bool,
}

impl Func {
    /// The text for people:
    ///
    /// ```text
    /// step(
    ///   ship.x: f32[]
    ///   key: u32[2]
    /// ) {
    ///   uniform: f32[] = uniform(key)
    ///   return
    ///     f32[] = ship.x + (0.05 * uniform)
    /// }
    /// ```
    pub fn readable(&self) -> Readable<'_> {
        Readable { func: self, params: Vec::new(), results: Vec::new(), lines: false }
    }
}

impl Readable<'_> {
    /// Names the parameters, such as by their paths in a tree; those that are left over are numbered.
    #[must_use]
    pub fn params(self, params: impl IntoIterator<Item = String>) -> Self {
        Readable { params: params.into_iter().collect(), ..self }
    }

    /// Names the results.
    #[must_use]
    pub fn results(self, results: impl IntoIterator<Item = String>) -> Self {
        Readable { results: results.into_iter().collect(), ..self }
    }

    /// Adds the line of the source as a comment, where it is known.
    #[must_use]
    pub fn with_lines(self) -> Self {
        Readable { lines: true, ..self }
    }
}

impl Display for Readable<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut printer = Printer { text: String::new(), lines: self.lines };
        let given = self.params.iter().map(String::as_str).filter(|name| !name.is_empty());
        let mut region = Region::new(self.func, 0);
        let mut given = given.collect::<Vec<_>>().into_iter();
        for (number, &param) in self.func.params.iter().enumerate() {
            let name = given.next().map_or_else(|| format!("arg{number}"), str::to_owned);
            region.name_param(param, name, true);
        }
        let name = if self.func.name.is_empty() { "func" } else { &self.func.name };
        printer.line(0, &format!("{name}("), Loc::NONE);
        for &param in &self.func.params {
            let name = &region.names[param.index()].as_ref().expect("it was named").0.text;
            printer.line(1, &format!("{name}: {}", self.func.ty(param)), Loc::NONE);
        }
        printer.line(0, ") {", Loc::NONE);
        let labels = self.func.results.iter().enumerate().map(|(number, &result)| {
            let name = self.results.get(number).filter(|name| !name.is_empty());
            let ty = self.func.ty(result);
            name.map_or_else(|| format!("{ty} = "), |name| format!("{name}: {ty} = "))
        });
        printer.region(region, labels.collect());
        f.write_str(&printer.text)?;
        f.write_str("}")
    }
}

/// A function that is being printed, with the names of its values.
struct Region<'a> {
    func: &'a Func,
    depth: usize,
    /// The text of each value so far, and whether it is a name that was given from outside.
    names: Vec<Option<(Expression, bool)>>,
    taken: BTreeSet<String>,
}

impl<'a> Region<'a> {
    fn new(func: &'a Func, depth: usize) -> Region<'a> {
        Region { func, depth, names: vec![None; func.types.len()], taken: BTreeSet::new() }
    }

    /// A name that is not taken: this one, or with a number.
    fn fresh(&mut self, base: &str) -> String {
        let numbers = (2..).map(|number| format!("{base}_{number}"));
        let mut names = std::iter::once(base.to_owned()).chain(numbers);
        let name = names.find(|name| !self.taken.contains(name)).expect("there is no end");
        self.taken.insert(name.clone());
        name
    }

    fn name_param(&mut self, param: Var, name: String, given: bool) {
        let name = self.fresh(&name);
        self.names[param.index()] = Some((Expression::atom(name), given));
    }

    fn value(&self, lines: &Lines, var: Var) -> Expression {
        if let Some((expression, _)) = &self.names[var.index()] {
            return expression.clone();
        }
        match &lines.literals[var.index()] {
            Some(literal) => Expression::number(&literal.value),
            None => Expression::atom(format!("undefined{}", var.0)),
        }
    }

    fn values(&self, lines: &Lines, vars: &[Var]) -> Vec<Expression> {
        vars.iter().map(|&var| self.value(lines, var)).collect()
    }

    /// The name of a variable as the name of a body's parameter: only a name that was given, or that of a constant of the loop.
    fn inherited(&self, var: Var, constant: bool) -> Option<(String, bool)> {
        let (expression, given) = self.names[var.index()].as_ref()?;
        let word = |c: char| c.is_ascii_alphanumeric() || "_.[]".contains(c);
        let is_name = expression.text.chars().all(word);
        let outer = |text: &str| {
            if *given || text.starts_with("outer.") {
                text.to_owned()
            } else {
                format!("outer.{text}")
            }
        };
        (is_name && (*given || constant)).then(|| (outer(&expression.text), *given))
    }
}

struct Printer {
    text: String,
    lines: bool,
}

impl Printer {
    fn line(&mut self, depth: usize, text: &str, loc: Loc) {
        self.text += &"  ".repeat(depth);
        self.text += text;
        if let (true, Some((file, line, _))) = (self.lines, loc.parts()) {
            self.text += &format!("  // {file}:{line}");
        }
        self.text.push('\n');
    }

    /// The lines of a function whose parameters have names, and its results after their labels.
    fn region(&mut self, mut region: Region<'_>, labels: Vec<String>) {
        let lines = Lines::of(region.func);
        for unit in &lines.units {
            self.unit(&mut region, &lines, unit);
        }
        let results = region.values(&lines, &region.func.results);
        let results: Vec<String> = labels
            .iter()
            .zip(results)
            .map(|(label, value)| format!("{label}{}", value.text))
            .collect();
        self.list(region.depth + 1, "return", &results);
    }

    /// A head with a list behind it, on one line where it fits.
    fn list(&mut self, depth: usize, head: &str, items: &[String]) {
        let together = items.join(", ");
        if together.len() <= LISTED && (items.len() <= 1 || depth > 1) {
            self.line(depth, format!("{head} {together}").trim_end(), Loc::NONE);
            return;
        }
        self.line(depth, head, Loc::NONE);
        items.iter().for_each(|item| self.line(depth + 1, item, Loc::NONE));
    }

    fn unit(&mut self, region: &mut Region<'_>, lines: &Lines, unit: &Unit) {
        let eqn = &region.func.eqns[unit.eqns[0]];
        let inputs = region.values(lines, &unit.inputs);
        if let Some(call) = unit.call {
            let mut inside: Vec<String> = inputs.into_iter().map(|input| input.text).collect();
            let constant = |var: &Var| lines.literals[var.index()].as_ref();
            let constants = unit.constants.iter().filter_map(constant);
            inside.extend(constants.map(|literal| Expression::number(&literal.value).text));
            let name = call.name().rsplit("::").next().unwrap_or_default().to_owned();
            let text = format!("{name}({})", inside.join(", "));
            self.define(region, lines, (&unit.outputs, &name), &text, eqn.loc);
            return;
        }
        if !eqn.op.funcs().is_empty() {
            self.bodies(region, lines, unit, eqn);
            return;
        }
        let whole = expression(eqn, &inputs);
        let nests = match unit.outputs[..] {
            [output] => lines.reads[output.index()] == 1,
            _ => false,
        };
        let light = !eqn.op.reads_many() && eqn.op.effect() == Effect::Pure;
        if nests && light && whole.text.len() <= NESTED {
            region.names[unit.outputs[0].index()] = Some((whole, false));
            return;
        }
        self.define(region, lines, (&unit.outputs, eqn.op.mnemonic()), &whole.text, eqn.loc);
    }

    /// The line that defines some variables.
    fn define(
        &mut self,
        region: &mut Region<'_>,
        lines: &Lines,
        (outputs, base): (&[Var], &str),
        text: &str,
        loc: Loc,
    ) {
        let name = region.fresh(base);
        let typed = outputs.iter().enumerate().map(|(number, &output)| {
            let own = match outputs.len() {
                1 => name.clone(),
                _ => format!("{name}.{number}"),
            };
            let shown = if lines.reads[output.index()] == 0 { "_" } else { &own };
            let shown = format!("{shown}: {}", region.func.ty(output));
            region.names[output.index()] = Some((Expression::atom(own), false));
            shown
        });
        let typed: Vec<String> = typed.collect();
        let depth = region.depth + 1;
        let together = typed.join(", ");
        if together.len() <= LISTED {
            let space = if typed.is_empty() { "" } else { " = " };
            self.line(depth, &format!("{together}{space}{text}"), loc);
            return;
        }
        typed.iter().for_each(|one| self.line(depth, one, Loc::NONE));
        self.line(depth + 1, &format!("= {text}"), loc);
    }

    /// An equation with bodies, which are indented below it.
    fn bodies(&mut self, region: &mut Region<'_>, lines: &Lines, unit: &Unit, eqn: &Eqn) {
        let mnemonic = eqn.op.mnemonic();
        let operands = region.values(lines, &unit.inputs);
        let depth = region.depth + 1;
        let settings = attributes(eqn).join(", ");
        if let Some(scan) = eqn.op.downcast::<Scan>() {
            let (consts, carries) = (scan.consts, scan.consts + scan.carries);
            let direction = if scan.reverse { ", reverse" } else { "" };
            let head = format!("scan({} rounds{direction}) {{", scan.length);
            let mut body = Region::new(&scan.body, depth);
            let mut heads = Vec::new();
            for (number, (&param, operand)) in scan.body.params.iter().zip(&operands).enumerate() {
                let kind = match number {
                    _ if number < consts => "const",
                    _ if number < carries => "carry",
                    _ => "slice",
                };
                let from = if number < consts {
                    0
                } else if number < carries {
                    consts
                } else {
                    carries
                };
                let inherited = region.inherited(unit.inputs[number], number < consts);
                let (name, given) =
                    inherited.unwrap_or_else(|| (format!("{kind}{}", number - from), false));
                body.name_param(param, name, given);
                let name = body.value(lines, param).text;
                let equal = if name == operand.text {
                    String::new()
                } else {
                    format!(" = {}", operand.text)
                };
                heads.push(format!("{kind} {name}: {}{equal}", scan.body.ty(param)));
            }
            self.define(region, lines, (&unit.outputs, mnemonic), &head, eqn.loc);
            heads.iter().for_each(|head| self.line(depth + 1, head, Loc::NONE));
            let carried = &scan.body.params[consts..carries];
            let mut labels: Vec<String> = carried
                .iter()
                .map(|&param| format!("{} <- ", body.value(lines, param).text))
                .collect();
            labels.resize(scan.body.results.len(), String::new());
            self.region(body, labels);
            self.line(depth, "}", Loc::NONE);
            return;
        }
        let mut inside: Vec<String> = operands.iter().map(|operand| operand.text.clone()).collect();
        if !settings.is_empty() {
            inside.push(settings);
        }
        let head = format!("{mnemonic}({}) {{", inside.join(", "));
        self.define(region, lines, (&unit.outputs, mnemonic), &head, eqn.loc);
        for (name, func) in eqn.op.attributes().0.iter().flat_map(|(name, value)| {
            value.funcs().into_iter().cloned().map(move |func| (*name, func))
        }) {
            let mut body = Region::new(&func, depth + 1);
            // The operands before the parameters choose among bodies.
            let skipped =
                unit.inputs.len().checked_sub(func.params.len()).filter(|&skipped| skipped <= 1);
            for (number, &param) in func.params.iter().enumerate() {
                let operand = skipped.map(|skipped| unit.inputs[number + skipped]);
                let inherited = operand.and_then(|operand| region.inherited(operand, true));
                let (name, given) = inherited.unwrap_or_else(|| (format!("arg{number}"), false));
                body.name_param(param, name, given);
            }
            let typed =
                |&param: &Var| format!("{}: {}", body.value(lines, param).text, func.ty(param));
            let params: Vec<String> = func.params.iter().map(typed).collect();
            let together = params.join(", ");
            if together.len() <= LISTED {
                self.line(depth + 1, &format!("{name}({together}) {{"), Loc::NONE);
            } else {
                self.line(depth + 1, &format!("{name}("), Loc::NONE);
                params.iter().for_each(|param| self.line(depth + 2, param, Loc::NONE));
                self.line(depth + 1, ") {", Loc::NONE);
            }
            let labels = vec![String::new(); func.results.len()];
            self.region(body, labels);
            self.line(depth + 1, "}", Loc::NONE);
        }
        self.line(depth, "}", Loc::NONE);
    }
}
