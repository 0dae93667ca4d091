//! Values without operands: constants and index ramps.

use super::op::{Op, Sample};
use super::{OpRef, TypeError};
use crate::array::Array;
use crate::ir::{Batched, Builder, Var};
use crate::lower::{Hlo, HloAttribute, HloResults, HloValue, hlo_constant, hlo_op};
use crate::op_struct;
use crate::ops::rules::nullary_derivative;
use crate::scalar::Scalar;
use crate::transform::VmapContext;
use crate::types::{DType, TensorType};
use std::sync::Arc;

op_struct! {
    /// A value known at compile time.
    ///
    /// No operands; the result has the value's type.
    Constant = "constant" {
        /// The value, with its type.
        value: Arc<Array>,
    }
}

impl Constant {
    /// Examples for the generic tests.
    pub fn samples() -> Vec<Sample> {
        let values = [
            Array::floats(DType::F32, [2, 3], &[0.0, -0.0, 1.5, f64::INFINITY, f64::NAN, -2.25]),
            Array::floats(DType::BF16, [], &[0.125]),
            Array::ints(DType::U8, [3], &[0, 128, 255]),
            Array::ints(DType::I64, [2], &[i128::from(i64::MIN), 7]),
            Array::bools([2, 1], &[true, false]),
            Array::splat(TensorType::new(DType::F64, [4, 4]), Scalar::Float(1.0)),
            Array::floats(DType::F32, [0, 2], &[]),
        ];
        values
            .into_iter()
            .map(|value| Sample::new(Constant { value: Arc::new(value) }, vec![]))
            .collect()
    }
}

impl Op for Constant {
    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        TypeError::check_arity(inputs, 0)?;
        Ok(vec![self.value.ty().clone()])
    }

    fn eval(&self, _: &[Array]) -> Vec<Array> {
        vec![(*self.value).clone()]
    }

    fn vmap(&self, b: &mut Builder, _: &VmapContext, _: &[Var], _: &[bool]) -> Batched {
        vec![(b.emit1(self.clone(), &[]), false)]
    }

    nullary_derivative! {}

    fn recompute(&self) -> bool {
        true
    }

    fn lower(&self, hlo: &mut dyn Hlo, _: &[HloValue], _: &[TensorType]) -> HloResults {
        vec![hlo_constant(hlo, self.value.clone())]
    }
}

op_struct! {
    /// The index along one axis: the element at `i` is `i[dimension]`, converted to the dtype.
    ///
    /// No operands; the result has the dtype `dtype`, which is not bool, and the shape `shape`.
    Iota = "iota" {
        /// The result's element type.
        dtype: DType,
        /// The result's shape.
        shape: Vec<usize>,
        /// The axis that is counted.
        dimension: usize,
    }
}

impl Iota {
    /// Examples for the generic tests.
    pub fn samples() -> Vec<Sample> {
        let iota = |dtype, shape: &[usize], dimension| {
            Sample::new(Iota { dtype, shape: shape.to_vec(), dimension }, vec![])
        };
        vec![
            iota(DType::I32, &[5], 0),
            iota(DType::F32, &[2, 3], 1),
            iota(DType::U8, &[300, 2], 0),
            iota(DType::BF16, &[3, 1, 2], 0),
        ]
    }
}

impl Op for Iota {
    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        TypeError::check_arity(inputs, 0)?;
        let ty = TensorType::new(self.dtype, &self.shape);
        if self.dtype == DType::Bool {
            refuse!("an index has a number as its dtype, got bool");
        }
        if self.dimension >= self.shape.len() {
            refuse!("dimension {} is not an axis of {ty}", self.dimension);
        }
        Ok(vec![ty])
    }

    fn eval(&self, _: &[Array]) -> Vec<Array> {
        let ty = TensorType::new(self.dtype, &self.shape);
        vec![Array::from_fn(ty, |index| {
            let i = index[self.dimension];
            if self.dtype.is_float() { Scalar::Float(i as f64) } else { Scalar::Int(i as i128) }
        })]
    }

    fn vmap(&self, b: &mut Builder, _: &VmapContext, _: &[Var], _: &[bool]) -> Batched {
        vec![(b.emit1(self.clone(), &[]), false)]
    }

    nullary_derivative! {}

    fn recompute(&self) -> bool {
        true
    }

    fn lower(&self, hlo: &mut dyn Hlo, _: &[HloValue], results: &[TensorType]) -> HloResults {
        let dimension = HloAttribute::I64(self.dimension as i64);
        vec![hlo_op(hlo, "stablehlo.iota", &[], vec![("iota_dimension", dimension)], &results[0])]
    }
}

impl Builder {
    /// A value known at compile time.
    pub fn constant(&mut self, value: Array) -> Var {
        self.emit_ref(OpRef::new(Constant { value: Arc::new(value) }), &[])[0]
    }

    /// Zeros (`false` for bool).
    pub fn zeros(&mut self, ty: &TensorType) -> Var {
        self.full(ty, 0.0)
    }

    /// `value` everywhere: rounded to a float dtype; truncated to a whole number and wrapped for an
    /// integer; true for bool if it is nonzero.
    pub fn full(&mut self, ty: &TensorType, value: f64) -> Var {
        let scalar = match ty.dtype {
            dtype if dtype.is_float() => Scalar::Float(value),
            DType::Bool => Scalar::Bool(value != 0.0),
            _ => Scalar::Int(value as i128),
        };
        // A large constant would be stored element by element in the IR.
        if ty.elements() <= 1024 {
            return self.constant(Array::splat(ty.clone(), scalar));
        }
        let value = self.constant(Array::single(ty.dtype, scalar));
        self.broadcast_in_dim(value, &ty.shape, &[])
    }

    /// [`Builder::full`] of the type of `x`.
    pub fn full_like(&mut self, x: Var, value: f64) -> Var {
        let ty = self.ty(x).clone();
        self.full(&ty, value)
    }

    /// The index along axis `dimension` of `shape`.
    #[track_caller]
    pub fn iota(&mut self, dtype: DType, shape: &[usize], dimension: usize) -> Var {
        self.emit1(Iota { dtype, shape: shape.to_vec(), dimension }, &[])
    }
}
