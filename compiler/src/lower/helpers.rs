//! Short forms of the StableHLO ops that lowerings use most.

use super::{Hlo, HloAttribute, HloOp, HloValue};
use crate::array::Array;
use crate::scalar::Scalar;
use crate::types::{DType, TensorType};
use std::sync::Arc;

/// An op without regions and with one result.
pub fn hlo_op(
    hlo: &mut dyn Hlo,
    name: &'static str,
    operands: &[HloValue],
    attributes: Vec<(&'static str, HloAttribute)>,
    result: &TensorType,
) -> HloValue {
    hlo.op(HloOp::new(name, operands, std::slice::from_ref(result)).attributes(attributes))[0]
}

/// An op without attributes; its result has the type of its first operand.
pub fn hlo_simple(hlo: &mut dyn Hlo, name: &'static str, operands: &[HloValue]) -> HloValue {
    let ty = hlo.ty(operands[0]);
    hlo_op(hlo, name, operands, Vec::new(), &ty)
}

/// Emits `stablehlo.constant`.
pub fn hlo_constant(hlo: &mut dyn Hlo, value: Arc<Array>) -> HloValue {
    let ty = value.ty().clone();
    hlo_op(hlo, "stablehlo.constant", &[], vec![("value", HloAttribute::Dense(value))], &ty)
}

/// Above this many elements, a constant with one value everywhere is a broadcast scalar.
const MOST_SPLAT_ELEMENTS: usize = 1024;

/// A constant with one value everywhere. The size of the emitted text does not grow with the
/// tensor.
pub fn hlo_splat(hlo: &mut dyn Hlo, ty: &TensorType, value: Scalar) -> HloValue {
    if ty.elements() <= MOST_SPLAT_ELEMENTS {
        return hlo_constant(hlo, Arc::new(Array::splat(ty.clone(), value)));
    }
    let scalar = hlo_constant(hlo, Arc::new(Array::single(ty.dtype, value)));
    hlo_broadcast(hlo, scalar, &[], ty)
}

/// `stablehlo.compare` with the comparison type for the operands' dtype.
pub fn hlo_compare(
    hlo: &mut dyn Hlo,
    direction: &'static str,
    lhs: HloValue,
    rhs: HloValue,
) -> HloValue {
    let ty = hlo.ty(lhs);
    let kind = match ty.dtype {
        dtype if dtype.is_float() => "FLOAT",
        dtype if dtype.is_signed_integer() => "SIGNED",
        _ => "UNSIGNED",
    };
    let attributes = vec![
        ("comparison_direction", HloAttribute::Enum("comparison_direction", direction)),
        ("compare_type", HloAttribute::Enum("comparison_type", kind)),
    ];
    hlo_op(hlo, "stablehlo.compare", &[lhs, rhs], attributes, &ty.with_dtype(DType::Bool))
}

/// Emits `stablehlo.select`.
pub fn hlo_select(
    hlo: &mut dyn Hlo,
    predicate: HloValue,
    on_true: HloValue,
    on_false: HloValue,
) -> HloValue {
    let ty = hlo.ty(on_true);
    let operands = [predicate, on_true, on_false];
    hlo_op(hlo, "stablehlo.select", &operands, Vec::new(), &ty)
}

/// `stablehlo.reshape` to the given type.
pub fn hlo_reshape(hlo: &mut dyn Hlo, value: HloValue, ty: &TensorType) -> HloValue {
    if hlo.ty(value) == *ty {
        value
    } else {
        hlo_op(hlo, "stablehlo.reshape", &[value], Vec::new(), ty)
    }
}

/// `stablehlo.broadcast_in_dim` to the given type.
pub fn hlo_broadcast(
    hlo: &mut dyn Hlo,
    value: HloValue,
    dimensions: &[usize],
    ty: &TensorType,
) -> HloValue {
    let dimensions = HloAttribute::I64Array(dimensions.iter().map(|&axis| axis as i64).collect());
    hlo_op(
        hlo,
        "stablehlo.broadcast_in_dim",
        &[value],
        vec![("broadcast_dimensions", dimensions)],
        ty,
    )
}

/// `stablehlo.transpose`; the same value if the axes keep their order.
pub fn hlo_transpose(hlo: &mut dyn Hlo, value: HloValue, permutation: &[usize]) -> HloValue {
    if permutation.is_sorted() {
        return value;
    }
    let ty = hlo.ty(value);
    let shape: Vec<usize> = permutation.iter().map(|&axis| ty.shape[axis]).collect();
    let attributes = vec![("permutation", hlo_axes(permutation))];
    hlo_op(hlo, "stablehlo.transpose", &[value], attributes, &ty.with_shape(shape))
}

/// Axes as an attribute.
pub fn hlo_axes(axes: &[usize]) -> HloAttribute {
    HloAttribute::I64Array(axes.iter().map(|&axis| axis as i64).collect())
}
