//! Attributes as MLIR prints them.

use super::dense::dense;
use super::opaque;
use super::types::quoted;
use crate::lower::HloAttribute;
use crate::stablehlo::constant::i64_tensor;

/// ` {a = 1 : i64, b = true}`, the attributes sorted by name; empty without attributes.
///
/// # Errors
/// A sentence that names the attribute and its problem.
pub(super) fn dictionary(attributes: &[(&'static str, HloAttribute)]) -> Result<String, String> {
    if attributes.is_empty() {
        return Ok(String::new());
    }
    let mut sorted: Vec<_> = attributes.iter().collect();
    sorted.sort_by_key(|(name, _)| *name);
    let mut parts = Vec::with_capacity(sorted.len());
    for (name, value) in sorted {
        let value = attribute(value).map_err(|error| format!("attribute `{name}`: {error}"))?;
        parts.push(format!("{name} = {value}"));
    }
    Ok(format!(" {{{}}}", parts.join(", ")))
}

fn attribute(attribute: &HloAttribute) -> Result<String, String> {
    Ok(match attribute {
        HloAttribute::I64Array(values) if values.is_empty() => "array<i64>".to_owned(),
        HloAttribute::I64Array(values) => {
            let values: Vec<String> = values.iter().map(i64::to_string).collect();
            format!("array<i64: {}>", values.join(", "))
        }
        HloAttribute::I64Tensor(shape, values) => dense(&i64_tensor(shape, values)?),
        HloAttribute::I64(value) => format!("{value} : i64"),
        HloAttribute::I32(value) => format!("{value} : i32"),
        HloAttribute::Bool(value) => value.to_string(),
        HloAttribute::Text(text) => quoted(text),
        HloAttribute::Texts(entries) => {
            let entries: Vec<String> =
                entries.iter().map(|(key, text)| format!("{key} = {}", quoted(text))).collect();
            format!("{{{}}}", entries.join(", "))
        }
        HloAttribute::Dense(array) => dense(array),
        other => opaque(other)?.ok_or("it has no text")?,
    })
}
