//! The canonical text of the IR: exact, parseable, without locations.
//!
//! ```text
//! func step(%0: f32[], %1: i32[]) -> (f32[]) {
//!   %2: f32[] = convert[dtype=f32] %1
//!   %3: f32[] = add %0 %2
//!   return %3
//! }
//! ```
//! Variables are numbered in order of definition, so that the text depends on nothing but the program.

use super::{Func, Var};
use crate::array::{Array, Scalar};
use crate::attributes::Attribute;
use std::fmt::{self, Write};

impl fmt::Display for Func {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        write_func(&mut text, self, 0)?;
        f.write_str(&text)
    }
}

fn write_func(out: &mut String, func: &Func, depth: usize) -> fmt::Result {
    let mut numbers = vec![None; func.types.len()];
    let mut next = 0u32;
    let mut number = |var: Var, numbers: &mut Vec<Option<u32>>| {
        if let Some(slot) = numbers.get_mut(var.index()) {
            *slot = Some(next);
        }
        next += 1;
    };
    for &param in &func.params {
        number(param, &mut numbers);
    }
    for eqn in &func.eqns {
        for &output in &eqn.outputs {
            number(output, &mut numbers);
        }
    }
    // A malformed function must print too: the verifier shows it.
    let show = |var: Var| {
        numbers
            .get(var.index())
            .copied()
            .flatten()
            .map_or(format!("%undefined{}", var.0), |n| format!("%{n}"))
    };
    let ty = |var: Var| {
        func.types
            .get(var.index())
            .map_or("untyped".to_string(), ToString::to_string)
    };
    let typed = |vars: &[Var]| {
        vars.iter()
            .map(|&var| format!("{}: {}", show(var), ty(var)))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let indent = "  ".repeat(depth);
    let results = func
        .results
        .iter()
        .map(|&var| ty(var))
        .collect::<Vec<_>>()
        .join(", ");
    let space = if func.name.is_empty() { "" } else { " " };
    writeln!(
        out,
        "func{space}{}({}) -> ({results}) {{",
        func.name,
        typed(&func.params)
    )?;
    for eqn in &func.eqns {
        write!(
            out,
            "{indent}  {} = {}",
            typed(&eqn.outputs),
            eqn.op.mnemonic()
        )?;
        let attributes = eqn.op.attributes();
        if !attributes.0.is_empty() {
            out.push('[');
            for (i, (name, value)) in attributes.0.iter().enumerate() {
                write!(out, "{}{name}=", if i > 0 { ", " } else { "" })?;
                write_attribute(out, value, depth + 1)?;
            }
            out.push(']');
        }
        for &input in &eqn.inputs {
            write!(out, " {}", show(input))?;
        }
        out.push('\n');
    }
    writeln!(
        out,
        "{indent}  return {}",
        func.results
            .iter()
            .map(|&var| show(var))
            .collect::<Vec<_>>()
            .join(" ")
    )?;
    write!(out, "{indent}}}")
}

fn write_attribute(out: &mut String, attribute: &Attribute, depth: usize) -> fmt::Result {
    match attribute {
        Attribute::Bool(value) => write!(out, "{value}"),
        Attribute::Int(value) => write!(out, "{value}"),
        Attribute::Ints(values) => {
            let values: Vec<String> = values.iter().map(ToString::to_string).collect();
            write!(out, "[{}]", values.join(", "))
        }
        Attribute::DType(dtype) => write!(out, "{dtype}"),
        Attribute::Word(word) => write!(out, "{word}"),
        Attribute::Array(array) => write!(out, "{array}"),
        Attribute::Func(func) => write_func(out, func, depth),
        Attribute::Funcs(funcs) => {
            out.push('{');
            for (i, func) in funcs.iter().enumerate() {
                out.push_str(if i > 0 { ", " } else { "" });
                write_func(out, func, depth)?;
            }
            out.push('}');
            Ok(())
        }
    }
}

/// `f32[2](1.5, -0.0)`, or `f32[2](splat 1.0)`. Floats print shortest and read back exactly.
impl fmt::Display for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}(", self.ty)?;
        match self.splat_value() {
            Some(value) if self.data.len() > 1 => write!(f, "splat {}", show_scalar(self, value))?,
            _ => {
                for (i, &value) in self.data.iter().enumerate() {
                    write!(
                        f,
                        "{}{}",
                        if i > 0 { ", " } else { "" },
                        show_scalar(self, value)
                    )?;
                }
            }
        }
        f.write_str(")")
    }
}

fn show_scalar(array: &Array, value: Scalar) -> String {
    match value {
        Scalar::Bool(value) => value.to_string(),
        Scalar::Int(value) => value.to_string(),
        Scalar::Float(value) if value.is_nan() => "nan".to_string(),
        Scalar::Float(value) if value.is_infinite() => {
            if value > 0.0 { "inf" } else { "-inf" }.to_string()
        }
        // Shortest digits that give the value back in its own type.
        Scalar::Float(value) if array.ty.dtype == crate::DType::F64 => format!("{value:?}"),
        Scalar::Float(value) => format!("{:?}", value as f32),
    }
}
