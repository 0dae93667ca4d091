//! The compiler's typed attributes as MLIR's.
//!
//! melior's constructors of dense attributes trust the caller's number of elements, and return a
//! null attribute if MLIR rejects it. This module checks the count first and the null afterwards.

use crate::types::tensor_type;
use melior::Context;
use melior::ir::attribute::{
    AttributeLike, BoolAttribute, DenseElementsAttribute, DenseI64ArrayAttribute,
    DictionaryAttribute, IntegerAttribute, StringAttribute,
};
use melior::ir::r#type::IntegerType;
use melior::ir::{Attribute, Identifier};
use podracer_compiler::stablehlo::constant::i64_tensor;
use podracer_compiler::stablehlo::opaque;
use podracer_compiler::{Array, DType, HloAttribute};

/// Makes the MLIR attribute; the error describes the problem.
pub fn attribute<'c>(
    context: &'c Context,
    attribute: &HloAttribute,
) -> Result<Attribute<'c>, String> {
    match attribute {
        HloAttribute::I64Array(values) => Ok(DenseI64ArrayAttribute::new(context, values).into()),
        HloAttribute::I64Tensor(shape, values) => dense(context, &i64_tensor(shape, values)?),
        HloAttribute::I64(value) => Ok(integer(context, 64, *value)),
        HloAttribute::I32(value) => Ok(integer(context, 32, i64::from(*value))),
        HloAttribute::Bool(value) => Ok(BoolAttribute::new(context, *value).into()),
        HloAttribute::Text(text) => Ok(string(context, text)),
        HloAttribute::Texts(entries) => {
            let named =
                |(key, text): &(&str, &str)| (Identifier::new(context, key), string(context, text));
            let entries: Vec<_> = entries.iter().map(named).collect();
            Ok(DictionaryAttribute::new(context, &entries).into())
        }
        HloAttribute::Dense(array) => dense(context, array),
        own => {
            let text = opaque(own)?.ok_or("it has no text")?;
            Attribute::parse(context, &text)
                .ok_or_else(|| format!("MLIR does not read the attribute `{text}`"))
        }
    }
}

/// A string attribute.
pub fn string<'c>(context: &'c Context, text: &str) -> Attribute<'c> {
    StringAttribute::new(context, text).into()
}

fn integer(context: &Context, bits: u32, value: i64) -> Attribute<'_> {
    IntegerAttribute::new(IntegerType::new(context, bits).into(), value).into()
}

/// `dense<...> : tensor<...>`, bit-exact; a single printed value if all elements are equal.
fn dense<'c>(context: &'c Context, array: &Array) -> Result<Attribute<'c>, String> {
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
