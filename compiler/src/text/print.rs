//! The canonical text of the IR. Variables are numbered in order of definition, so that the text
//! depends only on the program.

use super::is_reserved;
use crate::array::Array;
use crate::attributes::Attribute;
use crate::ir::{Eqn, Func, Var};
use crate::scalar::Scalar;
use crate::types::DType;
use std::fmt::{self, Display, Formatter};

/// The canonical text; `{:#}` adds to each equation its place in the user's source, if it is known.
impl Display for Func {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write_func(f, self, 0)
    }
}

fn write_func(f: &mut Formatter<'_>, func: &Func, depth: usize) -> fmt::Result {
    let numbers = func.numbers();
    // A malformed function must be printable too: the verifier shows it.
    let show = |f: &mut Formatter<'_>, var: Var| match numbers.get(var.index()) {
        Some(Some(number)) => write!(f, "%{number}"),
        _ => write!(f, "%undefined{}", var.0),
    };
    let ty = |f: &mut Formatter<'_>, var: Var| match func.types.get(var.index()) {
        Some(ty) => write!(f, "{ty}"),
        None => f.write_str("untyped"),
    };
    let typed = |f: &mut Formatter<'_>, &var: &Var| {
        show(f, var)?;
        f.write_str(": ")?;
        ty(f, var)
    };
    let indent = 2 * depth;
    f.write_str("func")?;
    if !func.name.is_empty() {
        f.write_str(" ")?;
        write_word(f, &func.name, is_identifier(&func.name))?;
    }
    f.write_str("(")?;
    list(f, &func.params, typed)?;
    f.write_str(") -> (")?;
    list(f, &func.results, |f, &var| ty(f, var))?;
    f.write_str(") {\n")?;
    for eqn in &func.eqns {
        write!(f, "{:indent$}  ", "")?;
        list(f, &eqn.outputs, typed)?;
        let space = if eqn.outputs.is_empty() { "" } else { " " };
        write!(f, "{space}= {}", eqn.op.mnemonic())?;
        write_attributes(f, eqn, depth + 1)?;
        for &input in &eqn.inputs {
            f.write_str(" ")?;
            show(f, input)?;
        }
        if let (true, Some((file, line, column))) = (f.alternate(), eqn.loc.parts()) {
            f.write_str(" loc(")?;
            write_word(f, file, false)?;
            write!(f, ":{line}:{column})")?;
        }
        f.write_str("\n")?;
    }
    write!(f, "{:indent$}  return", "")?;
    for &result in &func.results {
        f.write_str(" ")?;
        show(f, result)?;
    }
    write!(f, "\n{:indent$}}}", "")
}

fn write_attributes(f: &mut Formatter<'_>, eqn: &Eqn, depth: usize) -> fmt::Result {
    let attributes = eqn.op.attributes().0;
    if attributes.is_empty() {
        return Ok(());
    }
    f.write_str("[")?;
    list(f, &attributes, |f, (name, value)| {
        write!(f, "{name}=")?;
        write_attribute(f, value, depth)
    })?;
    f.write_str("]")
}

impl Display for Attribute {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write_attribute(f, self, 0)
    }
}

fn write_attribute(f: &mut Formatter<'_>, attribute: &Attribute, depth: usize) -> fmt::Result {
    match attribute {
        Attribute::Bool(value) => write!(f, "{value}"),
        Attribute::Int(value) => write!(f, "{value}"),
        Attribute::Ints(values) => {
            f.write_str("[")?;
            list(f, values, |f, value| write!(f, "{value}"))?;
            f.write_str("]")
        }
        Attribute::DType(dtype) => write!(f, "{dtype}"),
        Attribute::Word(word) => write_word(f, word, is_identifier(word) && !is_reserved(word)),
        Attribute::Array(array) => write!(f, "{array}"),
        Attribute::Func(func) => write_func(f, func, depth),
        Attribute::Funcs(funcs) => {
            f.write_str("{")?;
            list(f, funcs, |f, func| write_func(f, func, depth))?;
            f.write_str("}")
        }
    }
}

fn list<T>(
    f: &mut Formatter<'_>,
    items: &[T],
    mut item: impl FnMut(&mut Formatter<'_>, &T) -> fmt::Result,
) -> fmt::Result {
    for (i, value) in items.iter().enumerate() {
        f.write_str(if i > 0 { ", " } else { "" })?;
        item(f, value)?;
    }
    Ok(())
}

fn is_identifier(word: &str) -> bool {
    let letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
    word.chars().all(letter) && !word.starts_with(|c: char| c.is_ascii_digit()) && !word.is_empty()
}

/// A word as it is, or in quotes, with backslashes before quotes and backslashes.
fn write_word(f: &mut Formatter<'_>, word: &str, bare: bool) -> fmt::Result {
    if bare {
        return f.write_str(word);
    }
    write!(f, "\"{}\"", word.replace('\\', "\\\\").replace('"', "\\\""))
}

/// `f32[2](1.5, -0.0)`, or `f32[2](splat 1.0)`. Floats print with the fewest digits and read back
/// exactly.
impl Display for Array {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}(", self.ty())?;
        let scalar =
            |f: &mut Formatter<'_>, &value: &Scalar| write_scalar(f, self.ty().dtype, value);
        match self.splat_value() {
            Some(value) if self.ty().elements() > 1 => {
                f.write_str("splat ")?;
                scalar(f, &value)?;
            }
            _ => list(f, &self.scalars().collect::<Vec<_>>(), scalar)?,
        }
        f.write_str(")")
    }
}

fn write_scalar(f: &mut Formatter<'_>, dtype: DType, value: Scalar) -> fmt::Result {
    match value {
        Scalar::Bool(value) => write!(f, "{value}"),
        Scalar::Int(value) => write!(f, "{value}"),
        Scalar::Float(value) if value.is_nan() => f.write_str("nan"),
        // The fewest digits that read back as the value in its own type.
        Scalar::Float(value) if dtype == DType::F64 => write!(f, "{value:?}"),
        Scalar::Float(value) => write!(f, "{:?}", value as f32),
    }
}
