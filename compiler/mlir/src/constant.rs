//! Constants as dense attributes.
//!
//! melior's constructors of dense attributes trust their caller for the number of elements and give a null attribute
//! where MLIR refuses; here the count is checked first and the null after.

use crate::types::tensor_type;
use melior::Context;
use melior::ir::Attribute;
use melior::ir::attribute::{AttributeLike, DenseElementsAttribute};
use podracer_compiler::{Array, DType, Scalar, TensorType};

/// Beyond this many elements MLIR prints a dense attribute as hexadecimal bytes.
const MOST_PRINTED_ELEMENTS: usize = 100;

/// `dense<...> : tensor<...>`, exact to the bit; one printed value if all elements are the same.
pub fn dense<'c>(context: &'c Context, array: &Array) -> Result<Attribute<'c>, String> {
    let ty = array.ty();
    let mlir = tensor_type(context, ty);
    let splat = array.splat_value().is_some();
    let attribute = if ty.dtype == DType::Bool {
        let values: Vec<i32> = array.scalars().map(|value| i32::from(value.int() != 0)).collect();
        DenseElementsAttribute::bool_values(mlir, &values)
    } else {
        // One element's bytes stand for a splat.
        let bytes = array.bytes();
        DenseElementsAttribute::raw_buffer(
            mlir,
            if splat { &bytes[..ty.dtype.size()] } else { bytes },
        )
    };
    if attribute.to_raw().ptr.is_null() {
        return Err(format!("MLIR takes no constant of type {ty} with {} elements", ty.elements()));
    }
    Ok(attribute.into())
}

/// `dense<...> : tensor<...xi64>`.
pub fn dense_i64<'c>(
    context: &'c Context,
    shape: &[usize],
    values: &[i64],
) -> Result<Attribute<'c>, String> {
    let ty = TensorType::new(DType::I64, shape);
    let data = values.iter().map(|&value| Scalar::Int(i128::from(value)));
    if values.len() != ty.elements() {
        return Err(format!("a constant of type {ty} has {} elements", values.len()));
    }
    dense(context, &Array::new(ty, data))
}

/// A bool constant that would print as packed bits or as bytes, depending on MLIR's version, which may not be the one
/// that the plugin reads it with: the same as `u8`, to be converted. `None` where the constant prints in words.
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
