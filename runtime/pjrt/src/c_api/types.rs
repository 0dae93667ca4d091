//! Element types in the C API's numbering.

use podracer_compiler::{DType, TensorType};

use super::ffi;

pub(super) fn to_c(dtype: DType) -> ffi::PJRT_Buffer_Type {
    match dtype {
        DType::Bool => ffi::PJRT_Buffer_Type_PRED,
        DType::I8 => ffi::PJRT_Buffer_Type_S8,
        DType::I16 => ffi::PJRT_Buffer_Type_S16,
        DType::I32 => ffi::PJRT_Buffer_Type_S32,
        DType::I64 => ffi::PJRT_Buffer_Type_S64,
        DType::U8 => ffi::PJRT_Buffer_Type_U8,
        DType::U16 => ffi::PJRT_Buffer_Type_U16,
        DType::U32 => ffi::PJRT_Buffer_Type_U32,
        DType::U64 => ffi::PJRT_Buffer_Type_U64,
        DType::F16 => ffi::PJRT_Buffer_Type_F16,
        DType::BF16 => ffi::PJRT_Buffer_Type_BF16,
        DType::F32 => ffi::PJRT_Buffer_Type_F32,
        DType::F64 => ffi::PJRT_Buffer_Type_F64,
    }
}

/// The element type, where podracer has it (it has no complex, 4-bit or 8-bit float types).
pub(super) fn from_c(element: ffi::PJRT_Buffer_Type) -> Option<DType> {
    DType::ALL.into_iter().find(|dtype| to_c(*dtype) == element)
}

/// The shape as the C API takes it.
pub(super) fn dims(ty: &TensorType) -> Vec<i64> {
    ty.shape.iter().map(|&extent| extent as i64).collect()
}
