//! Tensor types in MLIR: bool is `i1`, signed integers are signless, unsigned integers `ui32`.

use melior::Context;
use melior::ir::Type;
use melior::ir::r#type::{IntegerType, RankedTensorType};
use podracer_compiler::{DType, TensorType};

/// An element type.
pub fn element_type(context: &Context, dtype: DType) -> Type<'_> {
    match dtype {
        DType::F16 => Type::float16(context),
        DType::BF16 => Type::bfloat16(context),
        DType::F32 => Type::float32(context),
        DType::F64 => Type::float64(context),
        _ if dtype.is_unsigned_integer() => IntegerType::unsigned(context, dtype.bits()).into(),
        _ => IntegerType::new(context, dtype.bits()).into(),
    }
}

/// A tensor type. Extents belong to tensors in memory, and are far from the extent that MLIR reads
/// as "dynamic".
pub fn tensor_type<'c>(context: &'c Context, ty: &TensorType) -> Type<'c> {
    let extents: Vec<u64> = ty.shape.iter().map(|&extent| extent as u64).collect();
    RankedTensorType::new(&extents, element_type(context, ty.dtype), None).into()
}

/// MLIR's types of several tensors.
pub fn tensor_types<'c>(context: &'c Context, types: &[TensorType]) -> Vec<Type<'c>> {
    types.iter().map(|ty| tensor_type(context, ty)).collect()
}
