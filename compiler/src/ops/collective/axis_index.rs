//! `axis_index`: the number of this member of an axis.

use super::exchange::{INDEX, exchange};
use super::{REPLICAS, check_bound};
use crate::array::Array;
use crate::ir::{Batched, Builder, Var};
use crate::lower::{Hlo, HloResults, HloValue, hlo_op, hlo_splat};
use crate::op_struct;
use crate::ops::rules::nullary_derivative;
use crate::ops::{Op, Sample, TypeError};
use crate::scalar::Scalar;
use crate::transform::VmapContext;
use crate::types::{DType, TensorType};

op_struct! {
    /// The place of this member along an axis, from 0, as an `i32` scalar. No operands.
    AxisIndex = "axis_index" {
        /// The name of the axis.
        axis: String,
    }
}

impl AxisIndex {
    /// Examples for the generic tests.
    pub fn samples() -> Vec<Sample> {
        vec![Sample::new(AxisIndex { axis: REPLICAS.into() }, vec![])]
    }
}

impl Op for AxisIndex {
    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        TypeError::check_arity(inputs, 0)?;
        Ok(vec![TensorType::scalar(DType::I32)])
    }

    // It is an effect although it waits for no member: each member has another value, so it must
    // not be folded.
    over_axis! {}

    fn eval(&self, _: &[Array]) -> Vec<Array> {
        vec![Array::single(DType::I32, Scalar::Int(0))]
    }

    fn vmap(&self, b: &mut Builder, cx: &VmapContext, _: &[Var], _: &[bool]) -> Batched {
        if self.names_axis(cx) {
            vec![(b.iota(DType::I32, &[cx.size], 0), true)]
        } else {
            vec![(b.emit1(self.clone(), &[]), false)]
        }
    }

    nullary_derivative! {}

    fn lower(&self, hlo: &mut dyn Hlo, _: &[HloValue], results: &[TensorType]) -> HloResults {
        check_bound(hlo, Self::MNEMONIC, &self.axis, None);
        if hlo.replicas() == 1 {
            return vec![hlo_splat(hlo, &results[0], Scalar::Int(0))];
        }
        if hlo.processes() > 1 {
            return vec![exchange(hlo, INDEX, None, &results[0])];
        }
        let id =
            hlo_op(hlo, "stablehlo.replica_id", &[], Vec::new(), &TensorType::scalar(DType::U32));
        vec![hlo_op(hlo, "stablehlo.convert", &[id], Vec::new(), &results[0])]
    }
}
