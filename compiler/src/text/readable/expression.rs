//! Expressions of the readable text: an equation as an operator or a function of its operands.

use crate::array::Array;
use crate::attributes::Attribute;
use crate::ir::Eqn;
use crate::ops::Compare;

/// The text of a value, with true if it needs parentheses inside an operator.
#[derive(Clone, Debug)]
pub(super) struct Expression {
    pub text: String,
    pub infix: bool,
}

impl Expression {
    pub fn atom(text: impl Into<String>) -> Expression {
        Expression { text: text.into(), infix: false }
    }

    /// The number of a literal.
    pub fn number(value: &Array) -> Expression {
        Expression::atom(elements(value))
    }

    fn operand(&self) -> String {
        if self.infix { format!("({})", self.text) } else { self.text.clone() }
    }
}

/// The elements of an array: one number if all are equal.
fn elements(value: &Array) -> String {
    let text = value.to_string();
    let inside = text.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')'));
    inside.map_or_else(|| text.clone(), |it| it.strip_prefix("splat ").unwrap_or(it).to_owned())
}

/// The expression of an equation without bodies.
pub(super) fn expression(eqn: &Eqn, operands: &[Expression]) -> Expression {
    let symbol = match eqn.op.downcast::<Compare>() {
        Some(_) => match eqn.op.attributes().get("direction") {
            Some(Attribute::Word(word)) => match word.to_ascii_lowercase().as_str() {
                "eq" => "==",
                "ne" => "!=",
                "lt" => "<",
                "le" => "<=",
                "gt" => ">",
                "ge" => ">=",
                _ => "",
            },
            _ => "",
        },
        None => infix(eqn.op.mnemonic()),
    };
    if let ([left, right], false) = (operands, symbol.is_empty()) {
        let text = format!("{} {symbol} {}", left.operand(), right.operand());
        return Expression { text, infix: true };
    }
    match (eqn.op.mnemonic(), operands) {
        ("negate", [x]) => return Expression::atom(format!("-{}", x.operand())),
        ("not", [x]) => return Expression::atom(format!("!{}", x.operand())),
        ("reshape", [x]) => {
            return Expression::atom(format!("reshape({}, {})", x.text, shape(eqn, "shape")));
        }
        ("broadcast_in_dim", [x]) => {
            let [shape, axes] = ["shape", "broadcast_dimensions"].map(|name| shape(eqn, name));
            return Expression::atom(format!("broadcast_in_dim({}, {shape}, {axes})", x.text));
        }
        ("slice", [x]) => return Expression::atom(format!("{}[{}]", x.operand(), ranges(eqn))),
        ("convert", [x]) => {
            if let Some(Attribute::DType(dtype)) = eqn.op.attributes().get("dtype") {
                return Expression::atom(format!("{dtype}({})", x.text));
            }
        }
        _ => {}
    }
    let mut inside: Vec<String> = operands.iter().map(|operand| operand.text.clone()).collect();
    inside.extend(attributes(eqn));
    Expression::atom(format!("{}({})", eqn.op.mnemonic(), inside.join(", ")))
}

/// The attributes of an equation without its bodies, as `name=value`.
pub(super) fn attributes(eqn: &Eqn) -> Vec<String> {
    let shown = |(name, value): &(&'static str, Attribute)| match value {
        Attribute::Func(_) | Attribute::Funcs(_) => None,
        Attribute::Bool(false) => None,
        Attribute::Ints(values) if values.is_empty() => None,
        Attribute::Ints(values) => Some(format!("{name}={}", list(values))),
        Attribute::Array(array) => Some(format!("{name}={}", shortened(array))),
        value => Some(format!("{name}={value}")),
    };
    eqn.op.attributes().0.iter().filter_map(shown).collect()
}

fn list(values: &[i64]) -> String {
    let values: Vec<String> = values.iter().map(ToString::to_string).collect();
    format!("[{}]", values.join(","))
}

fn ints(eqn: &Eqn, name: &str) -> Vec<i64> {
    match eqn.op.attributes().get(name) {
        Some(Attribute::Ints(values)) => values.clone(),
        _ => Vec::new(),
    }
}

fn shape(eqn: &Eqn, name: &str) -> String {
    list(&ints(eqn, name))
}

/// The ranges of a slice, as `0:3,1:9:2`.
fn ranges(eqn: &Eqn) -> String {
    let [start, limit, strides] = ["start", "limit", "strides"].map(|name| ints(eqn, name));
    let range = |((start, limit), stride): ((&i64, &i64), &i64)| match stride {
        1 => format!("{start}:{limit}"),
        _ => format!("{start}:{limit}:{stride}"),
    };
    start.iter().zip(&limit).zip(&strides).map(range).collect::<Vec<_>>().join(",")
}

/// The elements of an array. A long array shows the first few elements and a hash of the bytes.
fn shortened(array: &Array) -> String {
    const SHOWN: usize = 8;
    if array.ty().elements() <= 2 * SHOWN {
        return format!("({})", elements(array));
    }
    let text = elements(array);
    let first: Vec<&str> = text.split(", ").take(SHOWN).collect();
    // FNV-1a: the text must not depend on the version of Rust.
    let hash = array.bytes().iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("({}, .., hash {:08x})", first.join(", "), hash >> 32)
}

/// The symbol of an op that is written between its operands, or nothing.
fn infix(mnemonic: &str) -> &'static str {
    match mnemonic {
        "add" => "+",
        "subtract" => "-",
        "multiply" => "*",
        "divide" => "/",
        "remainder" => "%",
        "and" => "&",
        "or" => "|",
        "xor" => "^",
        "shift_left" => "<<",
        "shift_right_logical" => ">>",
        _ => "",
    }
}
