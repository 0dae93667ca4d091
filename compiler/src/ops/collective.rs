//! What the members of an axis do together: reducing and gathering values, knowing their own place.
//!
//! An axis has a name. [`REPLICAS`] is the axis of the module's replicas, one per device; any other name is the axis of a
//! surrounding vmap, which turns the collective into ordinary ops along the batch. The reference semantics runs one replica
//! alone, which is all there is.

use super::samples::ramp;
use super::{Effect, Op, OpStruct, Operand, Rule, Sample, TypeError};
use crate::array::{Array, Scalar};
use crate::attributes::Attributes;
use crate::ir::{Builder, Var};
use crate::lower::{Hlo, HloAttribute, HloOp, HloRegion, HloValue, hlo_op, hlo_reshape, hlo_splat};
use crate::ops::reduce::{Max, Min, Monoid, Sum};
use crate::transform::VmapContext;
use crate::types::{DType, TensorType};
use crate::{op_struct, words};

/// The name of the axis of the module's replicas.
pub const REPLICAS: &str = "replicas";

words! {
    /// How [`AllReduce`] combines.
    Combination {
        /// By adding.
        Sum = "sum",
        /// By taking the greater.
        Max = "max",
        /// By taking the lesser.
        Min = "min",
    }
}

op_struct! {
    /// Combines each operand, element by element, with those of all members of an axis; every member gets the results.
    ///
    /// Several tensors, of any shapes, in one op are combined in one go where that is possible: a collective costs about as
    /// much as it waits. The operator of a sum is its own transpose; the derivative of an extremum is shared equally among
    /// the members that hold it.
    AllReduce {
        /// The axis whose members take part.
        axis: String,
        /// How elements are combined.
        computation: Combination,
    }
}

impl AllReduce {
    /// Examples for the generic tests.
    pub fn samples() -> Vec<Sample> {
        let all = |computation, inputs| Sample::new(AllReduce { axis: REPLICAS.to_string(), computation }, inputs);
        vec![
            all(Combination::Sum, vec![ramp(DType::F32, [2, 3])]),
            all(Combination::Sum, vec![ramp(DType::F32, [3]), ramp(DType::F32, []), ramp(DType::I32, [2])]),
            all(Combination::Max, vec![ramp(DType::F32, [3]), ramp(DType::F64, [2])]),
            all(Combination::Min, vec![ramp(DType::U8, [3])]),
        ]
    }

    fn sum(&self) -> AllReduce {
        AllReduce { computation: Combination::Sum, ..self.clone() }
    }

    fn region(&self, hlo: &mut dyn Hlo, dtype: DType) -> HloRegion {
        match self.computation {
            Combination::Sum => Sum::region(hlo, dtype),
            Combination::Max => Max::region(hlo, dtype),
            Combination::Min => Min::region(hlo, dtype),
        }
    }
}

impl Op for AllReduce {
    fn mnemonic(&self) -> &'static str {
        "all_reduce"
    }

    fn attributes(&self) -> Attributes {
        self.struct_attributes()
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        if inputs.is_empty() {
            return Err(TypeError::new("expected at least one operand, got none"));
        }
        match inputs.iter().find(|input| input.dtype == DType::Bool) {
            Some(flags) => Err(TypeError::new(format!("expected numbers, got {flags}: convert bools to an integer"))),
            None => Ok(inputs.to_vec()),
        }
    }

    fn effect(&self) -> Effect {
        Effect::Collective
    }

    fn eval(&self, inputs: &[Array]) -> Vec<Array> {
        inputs.to_vec()
    }

    fn vmap(&self, b: &mut Builder, cx: &VmapContext, inputs: &[Var], batched: &[bool]) -> Vec<(Var, bool)> {
        if !self.names_axis(cx) {
            return b.emit(self.clone(), inputs).into_iter().zip(batched.iter().copied()).collect();
        }
        let combine = |(&x, &is_batched): (&Var, &bool)| {
            let combined = match (self.computation, is_batched) {
                (Combination::Sum, true) => b.reduce_sum(x, &[0]),
                (Combination::Max, true) => b.reduce_max(x, &[0]),
                (Combination::Min, true) => b.reduce_min(x, &[0]),
                (Combination::Sum, false) => {
                    let members = b.full_like(x, cx.size as f64);
                    b.mul(x, members)
                }
                (_, false) => x,
            };
            (combined, false)
        };
        inputs.iter().zip(batched).map(combine).collect()
    }

    fn names_axis(&self, cx: &VmapContext) -> bool {
        cx.axis.as_ref() == Some(&self.axis)
    }

    fn jvp(&self, b: &mut Builder, inputs: &[Var], outputs: &[Var], tangents: &[Option<Var>]) -> Rule<Vec<Option<Var>>> {
        let given: Vec<usize> = (0..tangents.len()).filter(|&i| tangents[i].is_some()).collect();
        let given_tangents: Vec<Var> = tangents.iter().copied().flatten().collect();
        let totals = if self.computation == Combination::Sum {
            b.emit(self.clone(), &given_tangents)
        } else {
            let shares: Vec<Var> = (given.iter())
                .map(|&i| {
                    let holds = b.compare(super::Direction::Eq, inputs[i], outputs[i]);
                    let dtype = b.ty(inputs[i]).dtype;
                    b.convert(holds, dtype)
                })
                .collect();
            let counts = b.emit(self.sum(), &shares);
            let weighted: Vec<Var> = shares.iter().zip(&given_tangents).map(|(&share, &t)| b.mul(share, t)).collect();
            let totals = b.emit(self.sum(), &weighted);
            totals.iter().zip(&counts).map(|(&total, &count)| b.div(total, count)).collect()
        };
        let mut results = vec![None; tangents.len()];
        given.iter().zip(totals).for_each(|(&i, total)| results[i] = Some(total));
        Rule::Some(results)
    }

    fn transpose(&self, b: &mut Builder, inputs: &[Operand], cotangents: &[Option<Var>]) -> Rule<Vec<Option<Var>>> {
        if self.computation != Combination::Sum {
            return Rule::None("an extremum is not linear in its operands");
        }
        let wanted: Vec<usize> = (0..inputs.len()).filter(|&i| inputs[i].is_linear() && cotangents[i].is_some()).collect();
        let mut results = vec![None; inputs.len()];
        if !wanted.is_empty() {
            let given: Vec<Var> = wanted.iter().filter_map(|&i| cotangents[i]).collect();
            let totals = b.emit(self.clone(), &given);
            wanted.iter().zip(totals).for_each(|(&i, total)| results[i] = Some(total));
        }
        Rule::Some(results)
    }

    fn lower(&self, hlo: &mut dyn Hlo, inputs: &[HloValue], results: &[TensorType]) -> Vec<HloValue> {
        check_bound(&self.axis);
        if hlo.replicas() == 1 {
            return inputs.to_vec();
        }
        // One StableHLO op combines operands of one dtype.
        let mut values = inputs.to_vec();
        for dtype in DType::ALL {
            let group: Vec<usize> = (0..inputs.len()).filter(|&i| results[i].dtype == dtype).collect();
            if group.is_empty() {
                continue;
            }
            let operands: Vec<HloValue> = group.iter().map(|&i| inputs[i]).collect();
            let types: Vec<TensorType> = group.iter().map(|&i| results[i].clone()).collect();
            let region = self.region(hlo, dtype);
            let attributes = vec![("replica_groups", all_replicas(hlo))];
            let op = HloOp { name: "stablehlo.all_reduce", operands: &operands, attributes, regions: vec![region], results: &types };
            group.iter().zip(hlo.op(op)).for_each(|(&i, value)| values[i] = value);
        }
        values
    }
}

op_struct! {
    /// The operand of every member of an axis, stacked along a new axis; every member gets the result.
    AllGather {
        /// The axis whose members take part.
        axis: String,
        /// How many members it has: the extent of the new axis.
        size: usize,
        /// Where the new axis stands in the result.
        dimension: usize,
    }
}

impl AllGather {
    /// Examples for the generic tests.
    pub fn samples() -> Vec<Sample> {
        let all = |dimension, x| Sample::new(AllGather { axis: REPLICAS.to_string(), size: 1, dimension }, vec![x]);
        vec![all(0, ramp(DType::F32, [2, 3])), all(1, ramp(DType::F32, [2, 3])), all(0, ramp(DType::I32, [])), all(1, ramp(DType::Bool, [2]))]
    }
}

impl Op for AllGather {
    fn mnemonic(&self) -> &'static str {
        "all_gather"
    }

    fn attributes(&self) -> Attributes {
        self.struct_attributes()
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        TypeError::check_arity(inputs, 1)?;
        if self.dimension > inputs[0].rank() {
            return Err(TypeError::new(format!("a new axis of {} stands at 0 to {}, not at {}", inputs[0], inputs[0].rank(), self.dimension)));
        }
        let mut shape = inputs[0].shape.clone();
        shape.insert(self.dimension, self.size);
        Ok(vec![inputs[0].with_shape(shape)])
    }

    fn effect(&self) -> Effect {
        Effect::Collective
    }

    /// All members have what this one has.
    fn eval(&self, inputs: &[Array]) -> Vec<Array> {
        let ty = self.infer(&[inputs[0].ty.clone()]).expect("eval is given well-typed operands").remove(0);
        vec![Array::from_fn(ty, |index| {
            let mut index = index.to_vec();
            index.remove(self.dimension);
            inputs[0].at(&index)
        })]
    }

    fn vmap(&self, b: &mut Builder, cx: &VmapContext, inputs: &[Var], batched: &[bool]) -> Vec<(Var, bool)> {
        if !self.names_axis(cx) {
            let op = AllGather { dimension: self.dimension + usize::from(batched[0]), ..self.clone() };
            return vec![(b.emit1(op, inputs), batched[0])];
        }
        assert_eq!(self.size, cx.size, "all_gather over the axis `{}` counts its members", self.axis);
        let stacked = cx.batch(b, inputs[0], batched[0]);
        vec![(b.move_axis(stacked, 0, self.dimension), false)]
    }

    fn names_axis(&self, cx: &VmapContext) -> bool {
        cx.axis.as_ref() == Some(&self.axis)
    }

    fn jvp(&self, b: &mut Builder, _: &[Var], _: &[Var], tangents: &[Option<Var>]) -> Rule<Vec<Option<Var>>> {
        Rule::Some(vec![tangents[0].map(|t| b.emit1(self.clone(), &[t]))])
    }

    /// Every member's cotangent of what this one gave, added up.
    fn transpose(&self, b: &mut Builder, _: &[Operand], cotangents: &[Option<Var>]) -> Rule<Vec<Option<Var>>> {
        let cotangent = cotangents[0].expect("transpose is called with a cotangent");
        let total = b.psum(&[cotangent], &self.axis)[0];
        let place = b.axis_index(&self.axis);
        // The place is in range, so that it is taken as it is.
        Rule::Some(vec![Some(b.take(total, place, self.dimension))])
    }

    fn lower(&self, hlo: &mut dyn Hlo, inputs: &[HloValue], results: &[TensorType]) -> Vec<HloValue> {
        check_bound(&self.axis);
        assert_eq!(self.size, hlo.replicas(), "all_gather over the replicas counts them");
        let mut shape = hlo.ty(inputs[0]).shape;
        shape.insert(self.dimension, 1);
        let one = hlo_reshape(hlo, inputs[0], &results[0].with_shape(shape));
        if hlo.replicas() == 1 {
            return vec![one];
        }
        let attributes = vec![("all_gather_dim", HloAttribute::I64(self.dimension as i64)), ("replica_groups", all_replicas(hlo))];
        vec![hlo_op(hlo, "stablehlo.all_gather", &[one], attributes, &results[0])]
    }
}

op_struct! {
    /// The place of this member along an axis, from 0, as an `i32` scalar. No operands.
    AxisIndex {
        /// The axis.
        axis: String,
    }
}

impl AxisIndex {
    /// Examples for the generic tests.
    pub fn samples() -> Vec<Sample> {
        vec![Sample::new(AxisIndex { axis: REPLICAS.to_string() }, vec![])]
    }
}

impl Op for AxisIndex {
    fn mnemonic(&self) -> &'static str {
        "axis_index"
    }

    fn attributes(&self) -> Attributes {
        self.struct_attributes()
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        TypeError::check_arity(inputs, 0)?;
        Ok(vec![TensorType::scalar(DType::I32)])
    }

    /// It waits for nobody, but it is no constant either, whatever `eval` says.
    fn effect(&self) -> Effect {
        Effect::Collective
    }

    fn eval(&self, _: &[Array]) -> Vec<Array> {
        vec![Array::scalar(DType::I32, Scalar::Int(0))]
    }

    fn vmap(&self, b: &mut Builder, cx: &VmapContext, _: &[Var], _: &[bool]) -> Vec<(Var, bool)> {
        if self.names_axis(cx) { vec![(b.iota(DType::I32, &[cx.size], 0), true)] } else { vec![(b.emit1(self.clone(), &[]), false)] }
    }

    fn names_axis(&self, cx: &VmapContext) -> bool {
        cx.axis.as_ref() == Some(&self.axis)
    }

    fn jvp(&self, _: &mut Builder, _: &[Var], _: &[Var], _: &[Option<Var>]) -> Rule<Vec<Option<Var>>> {
        Rule::Some(vec![None])
    }

    fn transpose(&self, _: &mut Builder, _: &[Operand], _: &[Option<Var>]) -> Rule<Vec<Option<Var>>> {
        Rule::Some(vec![])
    }

    fn lower(&self, hlo: &mut dyn Hlo, _: &[HloValue], results: &[TensorType]) -> Vec<HloValue> {
        check_bound(&self.axis);
        if hlo.replicas() == 1 {
            return vec![hlo_splat(hlo, &results[0], Scalar::Int(0))];
        }
        let id = hlo_op(hlo, "stablehlo.replica_id", &[], Vec::new(), &TensorType::scalar(DType::U32));
        vec![hlo_op(hlo, "stablehlo.convert", &[id], Vec::new(), &results[0])]
    }
}

impl Builder {
    /// The sums of some tensors over an axis, in one [`AllReduce`].
    #[track_caller]
    pub fn psum(&mut self, operands: &[Var], axis: &str) -> Vec<Var> {
        self.emit(AllReduce { axis: axis.to_string(), computation: Combination::Sum }, operands)
    }

    /// Emits [`AllReduce`].
    #[track_caller]
    pub fn all_reduce(&mut self, operands: &[Var], axis: &str, computation: Combination) -> Vec<Var> {
        self.emit(AllReduce { axis: axis.to_string(), computation }, operands)
    }

    /// Emits [`AllGather`].
    #[track_caller]
    pub fn all_gather(&mut self, x: Var, axis: &str, size: usize, dimension: usize) -> Var {
        self.emit1(AllGather { axis: axis.to_string(), size, dimension }, &[x])
    }

    /// Emits [`AxisIndex`].
    #[track_caller]
    pub fn axis_index(&mut self, axis: &str) -> Var {
        self.emit1(AxisIndex { axis: axis.to_string() }, &[])
    }
}

/// One group of all replicas.
fn all_replicas(hlo: &dyn Hlo) -> HloAttribute {
    let replicas = hlo.replicas();
    HloAttribute::I64Tensor(vec![1, replicas], (0..replicas as i64).collect())
}

/// The vmaps are gone by now: what is left can only mean the replicas.
fn check_bound(axis: &str) {
    assert_eq!(axis, REPLICAS, "a collective over the axis `{axis}` is surrounded by no vmap of that name");
}
