//! Writes a module's tree as MLIR prints it.
//!
//! # Invariants
//! - A block numbers its arguments and values after all values of the enclosing block. So two
//!   sibling regions use the same numbers.
//! - With locations, every op, argument, function and the module has a location: MLIR would use the
//!   line of the text for a missing location.

use super::types::{Tensor, quoted, symbol};
use super::{Block, FunctionText, Location, Op, TextBackend, Value};
use crate::ir::Loc;
use crate::stablehlo::ModuleSpec;
use crate::types::TensorType;
use std::collections::HashMap;
use std::fmt::{self, Display, Formatter, Write};

/// The text of the module, with or without locations.
pub(super) fn module(tree: &TextBackend, spec: &ModuleSpec, with_locations: bool) -> String {
    let mut printer = Printer {
        types: &tree.types,
        names: vec![Name::Argument(0); tree.types.len()],
        text: String::new(),
        locations: with_locations.then(Locations::default),
    };
    printer.module(tree, spec).expect("writing into a string does not fail");
    printer.text
}

/// Name of a value.
#[derive(Clone, Copy)]
enum Name {
    /// `%arg0`: an argument of a block.
    Argument(usize),
    /// `%0`: the only result of an op.
    Result(usize),
    /// `%0#1`: one of several results.
    Part(usize, usize),
}

impl Display for Name {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Name::Argument(number) => write!(f, "%arg{number}"),
            Name::Result(number) => write!(f, "%{number}"),
            Name::Part(number, part) => write!(f, "%{number}#{part}"),
        }
    }
}

/// Places in the source, in order of first use. They are printed at the end of the text, as
/// `#loc1 = loc("file":1:2)`.
#[derive(Default)]
struct Locations {
    places: Vec<Loc>,
    numbers: HashMap<Loc, usize>,
}

struct Printer<'m> {
    types: &'m [TensorType],
    names: Vec<Name>,
    text: String,
    locations: Option<Locations>,
}

impl Printer<'_> {
    fn module(&mut self, tree: &TextBackend, spec: &ModuleSpec) -> fmt::Result {
        self.text.push_str("module ");
        if !spec.name.is_empty() {
            write!(self.text, "{} ", symbol(&spec.name))?;
        }
        let replicas = spec.module_replicas();
        writeln!(
            self.text,
            "attributes {{mhlo.num_partitions = 1 : i32, mhlo.num_replicas = {replicas} : i32}} {{"
        )?;
        for function in &tree.functions {
            self.function(function)?;
        }
        self.text.push('}');
        self.location(&Location::Source(Loc::NONE))?;
        self.text.push('\n');
        for (i, place) in self.locations.take().unwrap_or_default().places.iter().enumerate() {
            let (file, line, column) = place.parts().unwrap_or_default();
            writeln!(self.text, "#loc{} = loc({}:{line}:{column})", i + 1, quoted(file))?;
        }
        Ok(())
    }

    fn function(&mut self, function: &FunctionText) -> fmt::Result {
        let body = &function.body;
        self.number(body, 0, 0);
        write!(self.text, "  func.func {} {}(", function.visibility, symbol(&function.name))?;
        self.arguments(body, &function.argument_attributes)?;
        self.text.push(')');
        let attributed = function.result_attributes.iter().any(|attributes| !attributes.is_empty());
        match &function.results[..] {
            [] => {}
            [ty] if !attributed => write!(self.text, " -> {}", Tensor(ty))?,
            types => {
                self.text.push_str(" -> (");
                let results = types.iter().zip(&function.result_attributes);
                self.separated(results, |this, (ty, attributes)| {
                    write!(this.text, "{}{attributes}", Tensor(ty))
                })?;
                self.text.push(')');
            }
        }
        self.text.push_str(" {\n");
        self.ops(body, 2)?;
        self.text.push_str("  }");
        self.location(&Location::Source(Loc::NONE))?;
        self.text.push('\n');
        Ok(())
    }

    /// Numbers the values of a block and of its regions, starting from these numbers of values and
    /// arguments.
    fn number(&mut self, block: &Block, mut value: usize, mut argument: usize) {
        for i in 0..block.arguments.len() {
            self.names[block.first_argument + i] = Name::Argument(argument);
            argument += 1;
        }
        for op in &block.ops {
            for part in 0..op.results {
                let name =
                    if op.results == 1 { Name::Result(value) } else { Name::Part(value, part) };
                self.names[op.first_result + part] = name;
            }
            value += usize::from(op.results > 0);
        }
        for region in block.ops.iter().flat_map(|op| &op.regions) {
            self.number(region, value, argument);
        }
    }

    /// The ops of a block at this depth. The ops of a function are at depth 2.
    fn ops(&mut self, block: &Block, depth: usize) -> fmt::Result {
        for op in &block.ops {
            self.indent(depth);
            match op.results {
                0 => {}
                1 => write!(self.text, "{} = ", self.names[op.first_result])?,
                count => match self.names[op.first_result] {
                    Name::Part(number, _) => write!(self.text, "%{number}:{count} = ")?,
                    name => write!(self.text, "{name} = ")?,
                },
            }
            self.op(op, depth)?;
            self.location(&Location::Source(op.loc))?;
            self.text.push('\n');
        }
        Ok(())
    }

    fn op(&mut self, op: &Op, depth: usize) -> fmt::Result {
        if op.name == "func.return" {
            return self.function_return(op);
        }
        match &op.callee {
            // A function's own block omits the dialect.
            Some(callee) if depth == 2 => write!(self.text, "call {}(", symbol(callee))?,
            Some(callee) => write!(self.text, "func.call {}(", symbol(callee))?,
            None => write!(self.text, "\"{}\"(", op.name)?,
        }
        self.operands(op)?;
        self.text.push(')');
        if !op.regions.is_empty() {
            self.text.push_str(" (");
            self.separated(op.regions.iter(), |this, region| this.region(region, depth))?;
            self.text.push(')');
        }
        self.text.push_str(&op.attributes);
        self.text.push_str(" : (");
        self.operand_types(op)?;
        self.text.push_str(") -> ");
        match &self.types[op.first_result..][..op.results] {
            [ty] => write!(self.text, "{}", Tensor(ty))?,
            types => {
                self.text.push('(');
                self.separated(types.iter(), |this, ty| write!(this.text, "{}", Tensor(ty)))?;
                self.text.push(')');
            }
        }
        Ok(())
    }

    fn function_return(&mut self, op: &Op) -> fmt::Result {
        self.text.push_str("return");
        if !op.operands.is_empty() {
            self.text.push(' ');
            self.operands(op)?;
            self.text.push_str(" : ");
            self.operand_types(op)?;
        }
        Ok(())
    }

    /// A region of an op at this depth.
    fn region(&mut self, region: &Block, depth: usize) -> fmt::Result {
        self.text.push_str("{\n");
        if !region.arguments.is_empty() {
            self.indent(depth);
            self.text.push_str("^bb0(");
            self.arguments(region, &[])?;
            self.text.push_str("):\n");
        }
        self.ops(region, depth + 1)?;
        self.indent(depth);
        self.text.push('}');
        Ok(())
    }

    /// `%arg0: tensor<f32> {attributes} loc(...), ...`
    fn arguments(&mut self, block: &Block, attributes: &[String]) -> fmt::Result {
        self.separated(block.arguments.iter().enumerate(), |this, (i, location)| {
            let value = block.first_argument + i;
            write!(this.text, "{}: {}", this.names[value], Tensor(&this.types[value]))?;
            this.text.push_str(attributes.get(i).map_or("", String::as_str));
            this.location(location)
        })
    }

    fn operands(&mut self, op: &Op) -> fmt::Result {
        self.separated(op.operands.iter(), |this, &Value(value)| {
            write!(this.text, "{}", this.names[value])
        })
    }

    fn operand_types(&mut self, op: &Op) -> fmt::Result {
        self.separated(op.operands.iter(), |this, &Value(value)| {
            write!(this.text, "{}", Tensor(&this.types[value]))
        })
    }

    /// ` loc(...)`, in the text that has locations.
    fn location(&mut self, location: &Location) -> fmt::Result {
        let Some(Locations { places, numbers }) = &mut self.locations else {
            return Ok(());
        };
        match location {
            Location::Name(name) => write!(self.text, " loc({})", quoted(name)),
            Location::Source(place) if place.parts().is_none() => {
                self.text.write_str(" loc(unknown)")
            }
            Location::Source(place) => {
                let number = *numbers.entry(*place).or_insert_with(|| {
                    places.push(*place);
                    places.len()
                });
                write!(self.text, " loc(#loc{number})")
            }
        }
    }

    fn indent(&mut self, depth: usize) {
        (0..depth).for_each(|_| self.text.push_str("  "));
    }

    /// Writes all items with `, ` between them.
    fn separated<T>(
        &mut self,
        all: impl Iterator<Item = T>,
        mut write: impl FnMut(&mut Self, T) -> fmt::Result,
    ) -> fmt::Result {
        for (i, one) in all.enumerate() {
            if i > 0 {
                self.text.push_str(", ");
            }
            write(self, one)?;
        }
        Ok(())
    }
}
