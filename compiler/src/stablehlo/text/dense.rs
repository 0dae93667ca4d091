//! Constants as MLIR prints them: `dense<...> : tensor<...>`, bit-exact.

use super::float::float;
use super::types::Tensor;
use crate::array::Array;
use crate::scalar::Scalar;
use crate::stablehlo::constant::MOST_PRINTED_ELEMENTS;
use crate::types::DType;

/// One value if all elements are equal; hexadecimal bytes beyond [`MOST_PRINTED_ELEMENTS`], except
/// for bools: their bytes depend on MLIR's version.
pub(super) fn dense(array: &Array) -> String {
    let ty = array.ty();
    let (bytes, size) = (array.bytes(), ty.dtype.size());
    let mut values = String::new();
    if array.splat_value().is_some() {
        element(ty.dtype, &bytes[..size], &mut values);
    } else if ty.elements() > MOST_PRINTED_ELEMENTS && ty.dtype != DType::Bool {
        hexadecimal(bytes, &mut values);
    } else if !bytes.is_empty() {
        nested(ty.dtype, &ty.shape, bytes, &mut values);
    }
    format!("dense<{values}> : {}", Tensor(ty))
}

/// `"0x0123..."`, the bytes in memory order.
fn hexadecimal(bytes: &[u8], text: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    text.reserve(2 * bytes.len() + 4);
    text.push_str("\"0x");
    for byte in bytes {
        for digit in [byte >> 4, byte & 15] {
            text.push(char::from(DIGITS[usize::from(digit)]));
        }
    }
    text.push('"');
}

/// `[[1, 2], [3, 4]]`. There is at least one element.
fn nested(dtype: DType, shape: &[usize], bytes: &[u8], text: &mut String) {
    let Some((&extent, rest)) = shape.split_first() else {
        return element(dtype, bytes, text);
    };
    text.push('[');
    for (i, part) in bytes.chunks_exact(bytes.len() / extent).enumerate() {
        if i > 0 {
            text.push_str(", ");
        }
        nested(dtype, rest, part, text);
    }
    text.push(']');
}

fn element(dtype: DType, bytes: &[u8], text: &mut String) {
    match Scalar::read(dtype, bytes) {
        Scalar::Bool(value) => text.push_str(if value { "true" } else { "false" }),
        Scalar::Int(value) => text.push_str(&value.to_string()),
        Scalar::Float(value) => {
            let bits = bytes.iter().rev().fold(0, |bits, &byte| bits << 8 | u64::from(byte));
            text.push_str(&float(dtype, value, bits));
        }
    }
}
