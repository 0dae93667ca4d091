//! What all elementwise ops share: operands and results of one shape, one scalar function, batching by broadcasting.
//! An op gives its scalar function, its derivative and its dtypes; the rest is here.

use super::op::{Op, OpStruct, Operand, Rule};
use super::{OpRef, TypeError};
use crate::array::{Array, Scalar};
use crate::attributes::Attributes;
use crate::ir::{Builder, Var};
use crate::lower::{Hlo, HloValue, hlo_op};
use crate::transform::VmapContext;
use crate::types::{DType, TensorType};
use std::fmt::Debug;

/// An op that applies one scalar function at every element.
pub trait Elementwise: OpStruct + Clone + Debug + Send + Sync + 'static {
    /// The name in the IR's text.
    const MNEMONIC: &'static str;
    /// The StableHLO op that does it.
    const HLO: &'static str;
    /// The number of operands.
    const ARITY: usize;

    /// The result's dtype, or why the operands' dtypes do not fit. `dtypes` has [`Self::ARITY`] entries.
    fn dtype(&self, dtypes: &[DType]) -> Result<DType, TypeError>;

    /// The function itself. `dtype` is the first operand's; the result is rounded or wrapped by the caller.
    fn scalar(&self, dtype: DType, x: &[Scalar]) -> Scalar;

    /// As [`Op::jvp`], for the one result.
    fn jvp(&self, b: &mut Builder, x: &[Var], y: Var, t: &[Option<Var>]) -> Rule<Option<Var>>;

    /// As [`Op::transpose`], for the one cotangent.
    fn transpose(&self, b: &mut Builder, x: &[Operand], ct: Var) -> Rule<Vec<Option<Var>>> {
        let _ = (b, x, ct);
        Rule::None("it is not linear in any operand")
    }

    /// Emits StableHLO; by default the op [`Self::HLO`] without attributes.
    fn lower(&self, hlo: &mut dyn Hlo, x: &[HloValue], result: &TensorType) -> HloValue {
        hlo_op(hlo, Self::HLO, x, Vec::new(), result)
    }
}

impl<T: Elementwise> Op for T {
    fn mnemonic(&self) -> &'static str {
        T::MNEMONIC
    }

    fn attributes(&self) -> Attributes {
        self.struct_attributes()
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        TypeError::check_arity(inputs, T::ARITY)?;
        if let Some(other) = inputs.iter().find(|input| input.shape != inputs[0].shape) {
            return Err(TypeError::new(format!("operands must have one shape, got {} and {other}", inputs[0])));
        }
        let dtypes: Vec<DType> = inputs.iter().map(|input| input.dtype).collect();
        Ok(vec![inputs[0].with_dtype(self.dtype(&dtypes)?)])
    }

    fn eval(&self, inputs: &[Array]) -> Vec<Array> {
        let types: Vec<TensorType> = inputs.iter().map(|input| input.ty.clone()).collect();
        let ty = self.infer(&types).expect("eval is given well-typed operands").remove(0);
        let dtype = inputs[0].ty.dtype;
        let mut scalars = Vec::with_capacity(T::ARITY);
        let data = (0..ty.elements()).map(|i| {
            scalars.clear();
            scalars.extend(inputs.iter().map(|input| input.data[i]));
            self.scalar(dtype, &scalars)
        });
        vec![Array::new(ty.clone(), data.collect())]
    }

    fn vmap(&self, b: &mut Builder, cx: &VmapContext, inputs: &[Var], batched: &[bool]) -> Vec<(Var, bool)> {
        let inputs: Vec<Var> = inputs.iter().zip(batched).map(|(&x, &is)| cx.batch(b, x, is)).collect();
        vec![(b.emit_ref(OpRef::new(self.clone()), &inputs)[0], true)]
    }

    fn jvp(&self, b: &mut Builder, inputs: &[Var], outputs: &[Var], tangents: &[Option<Var>]) -> Rule<Vec<Option<Var>>> {
        Elementwise::jvp(self, b, inputs, outputs[0], tangents).map(|tangent| vec![tangent])
    }

    fn transpose(&self, b: &mut Builder, inputs: &[Operand], cotangents: &[Option<Var>]) -> Rule<Vec<Option<Var>>> {
        let cotangent = cotangents[0].expect("transpose is called with a cotangent");
        Elementwise::transpose(self, b, inputs, cotangent)
    }

    fn lower(&self, hlo: &mut dyn Hlo, inputs: &[HloValue], results: &[TensorType]) -> Vec<HloValue> {
        vec![Elementwise::lower(self, hlo, inputs, &results[0])]
    }
}

/// The operands' common dtype, or an error that names both.
pub fn same_dtype(dtypes: &[DType]) -> Result<DType, TypeError> {
    match dtypes.iter().find(|&&dtype| dtype != dtypes[0]) {
        Some(other) => Err(TypeError::new(format!("operands must have one dtype, got {} and {other}: cast one of them", dtypes[0]))),
        None => Ok(dtypes[0]),
    }
}

/// The operands' common dtype, which must satisfy `fits`; `wanted` describes it in the error.
pub fn same_dtype_that(dtypes: &[DType], wanted: &str, fits: impl Fn(DType) -> bool) -> Result<DType, TypeError> {
    let dtype = same_dtype(dtypes)?;
    if fits(dtype) { Ok(dtype) } else { Err(TypeError::new(format!("expected {wanted}, got {dtype}"))) }
}
