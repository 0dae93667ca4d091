//! The f64 version of a sample, for finite differences.

use podracer_compiler::ops::registry;
use podracer_compiler::{
    Array, Attribute, Attributes, DType, Eqn, Func, OpRef, Sample, TensorType,
};
use std::sync::Arc;

/// The sample with f32 replaced by f64 in operands, attributes and bodies; `None` where it has narrower floats.
pub fn widened(sample: &Sample) -> Result<Option<(OpRef, Vec<Array>)>, String> {
    if sample.inputs.iter().any(|input| matches!(input.ty().dtype, DType::F16 | DType::BF16)) {
        return Ok(None);
    }
    Ok(Some((op(&sample.op)?, sample.inputs.iter().map(array).collect())))
}

fn dtype(dtype: DType) -> DType {
    if dtype == DType::F32 { DType::F64 } else { dtype }
}

fn array(array: &Array) -> Array {
    Array::new(array.ty().with_dtype(dtype(array.ty().dtype)), array.scalars())
}

fn op(op: &OpRef) -> Result<OpRef, String> {
    let attributes = op
        .attributes()
        .0
        .into_iter()
        .map(|(name, value)| Ok((name, attribute(&value)?)))
        .collect::<Result<Vec<_>, String>>()?;
    let entry = registry::find(op.mnemonic())
        .ok_or_else(|| format!("{} is not in the registry", op.mnemonic()))?;
    (entry.parse)(&Attributes(attributes))
}

fn attribute(value: &Attribute) -> Result<Attribute, String> {
    Ok(match value {
        Attribute::DType(of) => Attribute::DType(dtype(*of)),
        Attribute::Array(value) => Attribute::Array(Arc::new(array(value))),
        Attribute::Func(body) => Attribute::Func(Arc::new(func(body)?)),
        Attribute::Funcs(bodies) => Attribute::Funcs(
            bodies.iter().map(|body| func(body).map(Arc::new)).collect::<Result<_, _>>()?,
        ),
        other => other.clone(),
    })
}

fn func(func: &Func) -> Result<Func, String> {
    let types: Vec<TensorType> =
        func.types.iter().map(|ty| ty.with_dtype(dtype(ty.dtype))).collect();
    let eqns = func
        .eqns
        .iter()
        .map(|eqn| Ok(Eqn { op: op(&eqn.op)?, ..eqn.clone() }))
        .collect::<Result<Vec<_>, String>>()?;
    Ok(Func { types, eqns, ..func.clone() })
}
