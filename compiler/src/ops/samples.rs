//! Values that samples use.

use crate::array::Array;
use crate::scalar::Scalar;
use crate::types::{DType, TensorType};

/// Distinct values without symmetry, in row-major order: floats rise by 0.375 from -1.125, integers
/// by 3 from -4 (from 1 if unsigned), every third bool is true.
pub(super) fn ramp(dtype: DType, shape: impl AsRef<[usize]>) -> Array {
    let ty = TensorType::new(dtype, shape);
    let start = if dtype.is_unsigned_integer() { 1 } else { -4 };
    let data = (0..ty.elements()).map(|i| match dtype {
        DType::Bool => Scalar::Bool(i % 3 == 0),
        dtype if dtype.is_float() => Scalar::Float(0.375 * i as f64 - 1.125),
        _ => Scalar::Int(start + 3 * i as i128),
    });
    Array::new(ty, data)
}
