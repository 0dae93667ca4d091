//! Constants, before a backend gives them a form.

use crate::array::Array;
use crate::scalar::Scalar;
use crate::types::{DType, TensorType};

/// The greatest number of elements in a dense attribute that MLIR prints element by element; beyond
/// it MLIR prints hexadecimal bytes.
pub const MOST_PRINTED_ELEMENTS: usize = 100;

/// The `u8` array with the same values as 0 and 1, to be converted, for a bool constant that would
/// print as packed bits or as bytes. Which of the two depends on MLIR's version, and the plugin may
/// read it with another version. `None` if the constant prints in words.
#[must_use]
pub fn portable_bools(array: &Array) -> Option<Array> {
    if array.ty().dtype != DType::Bool
        || array.ty().elements() <= MOST_PRINTED_ELEMENTS
        || array.splat_value().is_some()
    {
        return None;
    }
    let data = array.scalars().map(|value| Scalar::Int(value.int()));
    Some(Array::new(array.ty().with_dtype(DType::U8), data))
}

/// The array of an attribute `dense<...> : tensor<...xi64>`.
///
/// # Errors
/// A sentence, if the number of values differs from the number of elements.
pub fn i64_tensor(shape: &[usize], values: &[i64]) -> Result<Array, String> {
    let ty = TensorType::new(DType::I64, shape);
    if values.len() != ty.elements() {
        return Err(format!("a constant of type {ty} has {} elements", values.len()));
    }
    Ok(Array::new(ty, values.iter().map(|&value| Scalar::Int(i128::from(value)))))
}
