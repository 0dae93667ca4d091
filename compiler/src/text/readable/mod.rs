//! The readable text of a program: calls of library functions in place of their equations, numbers
//! at their readers, and values with a single reader inside this reader.
//!
//! # Invariants
//! - The text depends only on the program: it contains no line of the source, and does not depend
//!   on the order of tracing.
//! - A value's name depends on its op and on the preceding equations with the same op in its
//!   function, never on every preceding equation: an inserted equation changes few lines.
//! - Equal texts do not imply equal programs: a call does not show its equations. The text is not
//!   parsed.

mod expression;
mod names;
mod units;

use crate::ir::{Eqn, Func, Loc, Var};
use crate::ops::{Effect, Scan};
use expression::{Expression, attributes, expression};
use std::collections::BTreeSet;
use std::fmt::{self, Display, Formatter};
use units::{Lines, Unit};

/// The most characters of an expression that is written inside another expression.
const NESTED: usize = 60;

/// The most characters of a list on one line.
const LISTED: usize = 80;

/// A function's readable text, returned by [`Func::readable`].
#[derive(Clone, Debug)]
pub struct Readable<'a> {
    func: &'a Func,
    params: Vec<String>,
    results: Vec<String>,
    lines: bool,
}

impl Func {
    /// The readable text:
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
    /// Names the parameters, such as by their paths in a tree; the remaining parameters are
    /// numbered.
    #[must_use]
    pub fn params(self, params: impl IntoIterator<Item = String>) -> Self {
        Readable { params: params.into_iter().collect(), ..self }
    }

    /// Names the results.
    #[must_use]
    pub fn results(self, results: impl IntoIterator<Item = String>) -> Self {
        Readable { results: results.into_iter().collect(), ..self }
    }

    /// Adds the line of the source as a comment, if it is known.
    #[must_use]
    pub fn with_lines(self) -> Self {
        Readable { lines: true, ..self }
    }
}

impl Display for Readable<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut printer = Printer { text: String::new(), lines: self.lines };
        let mut region = Region::new(self.func, 0);
        let mut names = names::short(&self.params).into_iter().filter(|name| !name.is_empty());
        for (number, &param) in self.func.params.iter().enumerate() {
            let name = names.next().unwrap_or_else(|| number.to_string());
            let is_number = name.starts_with(|c: char| c.is_ascii_digit());
            let name = if is_number { format!("arg{name}") } else { name };
            region.name_param(param, name, true);
        }
        let name = if self.func.name.is_empty() { "func" } else { &self.func.name };
        printer.head(0, name, &typed_params(self.func, &region));
        let short = names::short(&self.results);
        let labels = self.func.results.iter().enumerate().map(|(number, &result)| {
            let known = self.results.get(number).filter(|path| !path.is_empty());
            let param = known.and_then(|path| self.params.iter().position(|other| other == path));
            let ty = self.func.ty(result);
            match (known, param.and_then(|param| self.func.params.get(param))) {
                (None, _) => format!("{ty} = "),
                (Some(_), Some(&param)) => format!("{}: {ty} = ", region.name(param)),
                (Some(_), None) => format!("{}: {ty} = ", short[number]),
            }
        });
        let labels = labels.collect();
        printer.region(region, labels);
        f.write_str(&printer.text)?;
        f.write_str("}")
    }
}

/// The parameters of a function with their types.
fn typed_params(func: &Func, region: &Region<'_>) -> Vec<String> {
    func.params.iter().map(|&param| format!("{}: {}", region.name(param), func.ty(param))).collect()
}

/// A function that is being printed, with the names of its values.
struct Region<'a> {
    func: &'a Func,
    depth: usize,
    /// The text of each value so far, with true if it is a name that was given from outside.
    names: Vec<Option<(Expression, bool)>>,
    taken: BTreeSet<String>,
}

impl<'a> Region<'a> {
    fn new(func: &'a Func, depth: usize) -> Region<'a> {
        Region { func, depth, names: vec![None; func.types.len()], taken: BTreeSet::new() }
    }

    /// A name that is not taken: `base`, or `base` with a number.
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

    /// The name of a parameter.
    fn name(&self, param: Var) -> &str {
        self.names[param.index()].as_ref().map_or("", |(expression, _)| &expression.text)
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

    /// A body's name for a variable: a given name, or a name after `outer.`, if it is no
    /// expression.
    fn captured(&self, var: Var) -> Option<(String, bool)> {
        let (expression, given) = self.names[var.index()].as_ref()?;
        let text = &expression.text;
        let word = |c: char| c.is_ascii_alphanumeric() || "_.[]".contains(c);
        let is_name = text.chars().all(word);
        let plain = *given || text.starts_with("outer.");
        is_name.then(|| (if plain { text.clone() } else { format!("outer.{text}") }, *given))
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

    /// A name with parameters behind it, and the opening brace of the body.
    fn head(&mut self, depth: usize, name: &str, params: &[String]) {
        let together = params.join(", ");
        if together.len() <= LISTED {
            self.line(depth, &format!("{name}({together}) {{"), Loc::NONE);
            return;
        }
        self.line(depth, &format!("{name}("), Loc::NONE);
        params.iter().for_each(|param| self.line(depth + 1, param, Loc::NONE));
        self.line(depth, ") {", Loc::NONE);
    }

    /// Items on as many lines as they need.
    fn wrapped(&mut self, depth: usize, items: &[String]) {
        let mut line = String::new();
        for (number, item) in items.iter().enumerate() {
            if !line.is_empty() && line.len() + item.len() > LISTED {
                self.line(depth, line.trim_end(), Loc::NONE);
                line.clear();
            }
            line += item;
            line += if number + 1 < items.len() { ", " } else { "" };
        }
        if !line.is_empty() {
            self.line(depth, &line, Loc::NONE);
        }
    }

    /// The lines of a function, and its results after their labels. The parameters already have
    /// names.
    fn region(&mut self, mut region: Region<'_>, labels: Vec<String>) {
        let lines = Lines::of(region.func);
        for unit in &lines.units {
            self.unit(&mut region, &lines, unit);
        }
        let results = region.values(&lines, &region.func.results).into_iter().zip(labels);
        let results: Vec<String> =
            results.map(|(value, label)| format!("{label}{}", value.text)).collect();
        let depth = region.depth + 1;
        if let ([] | [_], Some(only)) = (&results[..], results.first()) {
            self.line(depth, &format!("return {only}"), Loc::NONE);
            return;
        }
        self.line(depth, "return", Loc::NONE);
        results.iter().for_each(|result| self.line(depth + 1, result, Loc::NONE));
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
        let output = unit.outputs.first().map(|output| output.index());
        // A number is broadcast implicitly, as in NumPy.
        let is_number = |&input: &Var| region.func.ty(input).rank() == 0;
        if let ("broadcast_in_dim", Some(output)) = (eqn.op.mnemonic(), output)
            && eqn.inputs.iter().all(is_number)
            && (lines.reads[output] == 1 || region.captured(eqn.inputs[0]).is_some())
        {
            region.names[output] = Some((inputs[0].clone(), false));
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
        self.wrapped(depth, &typed);
        self.line(depth + 1, &format!("= {text}"), loc);
    }

    /// An equation with bodies, which are indented below it.
    fn bodies(&mut self, region: &mut Region<'_>, lines: &Lines, unit: &Unit, eqn: &Eqn) {
        if let Some(scan) = eqn.op.downcast::<Scan>() {
            self.scan(region, lines, unit, (scan, eqn.loc));
            return;
        }
        let depth = region.depth + 1;
        let operands = region.values(lines, &unit.inputs).into_iter().map(|operand| operand.text);
        let inside: Vec<String> = operands.chain(attributes(eqn)).collect();
        let head = format!("{}({}) {{", eqn.op.mnemonic(), inside.join(", "));
        self.define(region, lines, (&unit.outputs, eqn.op.mnemonic()), &head, eqn.loc);
        for (name, value) in &eqn.op.attributes().0 {
            for func in value.funcs() {
                let mut body = Region::new(func, depth + 1);
                // An operand before the operands of the bodies chooses between the bodies.
                let more = unit.inputs.len().checked_sub(func.params.len());
                let skipped = more.filter(|&skipped| skipped <= 1);
                for (number, &param) in func.params.iter().enumerate() {
                    let operand = skipped.map(|skipped| unit.inputs[number + skipped]);
                    let captured = operand.and_then(|operand| region.captured(operand));
                    let (name, given) = captured.unwrap_or_else(|| (format!("arg{number}"), false));
                    body.name_param(param, name, given);
                }
                self.head(depth + 1, name, &typed_params(func, &body));
                let labels = vec![String::new(); func.results.len()];
                self.region(body, labels);
                self.line(depth + 1, "}", Loc::NONE);
            }
        }
        self.line(depth, "}", Loc::NONE);
    }

    /// A scan. Its results are fields of its name: carries by their names, stacked outputs by numbers.
    fn scan(
        &mut self,
        region: &mut Region<'_>,
        lines: &Lines,
        unit: &Unit,
        (scan, loc): (&Scan, Loc),
    ) {
        let depth = region.depth + 1;
        let operands = region.values(lines, &unit.inputs);
        let carried = scan.consts..scan.consts + scan.carries;
        let mut body = Region::new(&scan.body, depth);
        let (mut heads, mut same) = (Vec::new(), Vec::new());
        for (number, (&param, operand)) in scan.body.params.iter().zip(&operands).enumerate() {
            let captured = region.captured(unit.inputs[number]);
            let is_const = number < scan.consts;
            let given = captured.filter(|(_, given)| *given || is_const);
            let inherits = given.is_some();
            let (name, given) = given.unwrap_or_else(|| match number {
                _ if is_const => (format!("const{number}"), false),
                _ if carried.contains(&number) => {
                    (format!("carry{}", number - carried.start), false)
                }
                _ => (format!("slice{}", number - carried.end), false),
            });
            body.name_param(param, name, given);
            let name = body.name(param);
            match inherits && number < carried.end {
                // A value that a body only reads from outside needs no line.
                true if is_const => {}
                true => same.push(name.to_owned()),
                false => heads.push(format!("{name}: {} = {}", scan.body.ty(param), operand.text)),
            }
        }
        let own = region.fresh("scan");
        let direction = if scan.reverse { ", reverse" } else { "" };
        self.line(depth, &format!("{own} = scan({} rounds{direction}) {{", scan.length), loc);
        if !same.is_empty() {
            same[0].insert_str(0, "carry ");
            self.wrapped(depth + 1, &same);
        }
        heads.iter().for_each(|head| self.line(depth + 1, head, Loc::NONE));
        let mut labels = Vec::new();
        for (number, &output) in unit.outputs.iter().enumerate() {
            let (field, label) = if number < scan.carries {
                let name = body.name(scan.body.params[scan.consts + number]).to_owned();
                let label = format!("{name} <- ");
                (name, label)
            } else {
                let field = format!("out{}", number - scan.carries);
                let label = format!("{field}: {} <- ", region.func.ty(output));
                (field, label)
            };
            labels.push(label);
            region.names[output.index()] =
                Some((Expression::atom(format!("{own}.{field}")), false));
        }
        self.region(body, labels);
        self.line(depth, "}", Loc::NONE);
    }
}
