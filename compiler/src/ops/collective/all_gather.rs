//! `all_gather`: the values from all members of an axis, along a new axis.

use super::exchange::{GATHER, exchange};
use super::{REPLICAS, all_replicas, check_bound};
use crate::array::Array;
use crate::ir::{Batched, Builder, Slope, Slopes, Var};
use crate::lower::{Hlo, HloAttribute, HloResults, HloValue, hlo_op, hlo_reshape, hlo_transpose};
use crate::op_struct;
use crate::ops::op::result_types;
use crate::ops::rules::linear_jvp;
use crate::ops::samples::ramp;
use crate::ops::{Op, Operand, Rule, Sample, TypeError};
use crate::transform::VmapContext;
use crate::types::{DType, TensorType};

op_struct! {
    /// The operand of every member of an axis, stacked along a new axis; every member gets the result.
    AllGather = "all_gather" {
        /// The axis of the members that take part.
        axis: String,
        /// The number of members: the extent of the new axis.
        size: usize,
        /// The position of the new axis in the result.
        dimension: usize,
    }
}

impl AllGather {
    /// Examples for the generic tests.
    pub fn samples() -> Vec<Sample> {
        let all = |dimension, x| {
            Sample::new(AllGather { axis: REPLICAS.into(), size: 1, dimension }, vec![x])
        };
        vec![
            all(0, ramp(DType::F32, [2, 3])),
            all(1, ramp(DType::F32, [2, 3])),
            all(0, ramp(DType::I32, [])),
            all(1, ramp(DType::Bool, [2])),
        ]
    }
}

impl Op for AllGather {
    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        TypeError::check_arity(inputs, 1)?;
        if self.dimension > inputs[0].rank() {
            refuse!(
                "a new axis of {} stands at 0 to {}, not at {}",
                inputs[0],
                inputs[0].rank(),
                self.dimension
            );
        }
        let mut shape = inputs[0].shape.clone();
        shape.insert(self.dimension, self.size);
        Ok(vec![inputs[0].with_shape(shape)])
    }

    over_axis! {}

    /// The result as if all members had this member's operand.
    fn eval(&self, inputs: &[Array]) -> Vec<Array> {
        let ty = result_types(self, inputs).remove(0);
        vec![Array::from_fn(ty, |index| {
            let mut index = index.to_vec();
            index.remove(self.dimension);
            inputs[0].at(&index)
        })]
    }

    fn vmap(&self, b: &mut Builder, cx: &VmapContext, inputs: &[Var], batched: &[bool]) -> Batched {
        if !self.names_axis(cx) {
            let op =
                AllGather { dimension: self.dimension + usize::from(batched[0]), ..self.clone() };
            return vec![(b.emit1(op, inputs), batched[0])];
        }
        assert_eq!(
            self.size, cx.size,
            "all_gather over the axis `{}` counts its members",
            self.axis
        );
        let stacked = cx.batch(b, inputs[0], batched[0]);
        vec![(b.move_axis(stacked, 0, self.dimension), false)]
    }

    linear_jvp! {}

    /// The sum over the members' cotangents of this member's operand.
    fn transpose(&self, b: &mut Builder, _: &[Operand], cotangents: &[Slope]) -> Rule<Slopes> {
        let cotangent = cotangents[0].expect("transpose is called with a cotangent");
        let total = b.psum(&[cotangent], &self.axis)[0];
        let place = b.axis_index(&self.axis);
        // The index is in range, so that it is used unchanged.
        Rule::Some(vec![Some(b.take(total, place, self.dimension))])
    }

    fn lower(&self, hlo: &mut dyn Hlo, inputs: &[HloValue], results: &[TensorType]) -> HloResults {
        check_bound(hlo, Self::MNEMONIC, &self.axis, Some(self.size));
        if hlo.processes() > 1 {
            let stacked = hlo.ty(inputs[0]).stacked(self.size);
            let all = exchange(hlo, GATHER, Some(inputs[0]), &stacked);
            // The new axis moves from the front to its place.
            let mut order: Vec<usize> = (1..stacked.rank()).collect();
            order.insert(self.dimension, 0);
            return vec![hlo_transpose(hlo, all, &order)];
        }
        let mut shape = hlo.ty(inputs[0]).shape;
        shape.insert(self.dimension, 1);
        let one = hlo_reshape(hlo, inputs[0], &results[0].with_shape(shape));
        if self.size == 1 {
            return vec![one];
        }
        let attributes = vec![
            ("all_gather_dim", HloAttribute::I64(self.dimension as i64)),
            ("replica_groups", all_replicas(hlo)),
        ];
        vec![hlo_op(hlo, "stablehlo.all_gather", &[one], attributes, &results[0])]
    }
}
