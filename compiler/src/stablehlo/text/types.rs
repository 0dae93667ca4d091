//! Tensor types, strings and symbols as MLIR prints them.

use crate::types::{DType, TensorType};
use std::fmt::{self, Display, Formatter, Write};

/// A tensor type, such as `tensor<2x3xf32>`: bool is `i1`, signed integers are signless, unsigned
/// integers `ui32`.
pub(super) struct Tensor<'t>(pub &'t TensorType);

impl Display for Tensor<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("tensor<")?;
        for extent in &self.0.shape {
            write!(f, "{extent}x")?;
        }
        f.write_str(element(self.0.dtype))?;
        f.write_char('>')
    }
}

fn element(dtype: DType) -> &'static str {
    match dtype {
        DType::Bool => "i1",
        DType::U8 => "ui8",
        DType::U16 => "ui16",
        DType::U32 => "ui32",
        DType::U64 => "ui64",
        // The other dtypes have StableHLO's names.
        dtype => dtype.name(),
    }
}

/// A string in quotes. Characters other than printable ASCII become `\` and two hexadecimal digits.
pub(super) fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for byte in text.bytes() {
        match byte {
            b'\\' => quoted.push_str("\\\\"),
            b' '..=b'~' if byte != b'"' => quoted.push(char::from(byte)),
            _ => quoted.push_str(&format!("\\{byte:02X}")),
        }
    }
    quoted.push('"');
    quoted
}

/// A symbol, in quotes unless it is an identifier.
pub(super) fn symbol(name: &str) -> String {
    let bare = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '.'));
    if bare { format!("@{name}") } else { format!("@{}", quoted(name)) }
}
