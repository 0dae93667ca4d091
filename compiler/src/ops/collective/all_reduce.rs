//! `all_reduce`: sums and extrema over the members of an axis.

use super::exchange::{carrier, combining, exchange};
use super::{REPLICAS, all_replicas, check_bound};
use crate::array::Array;
use crate::ir::{Batched, Builder, Slope, Slopes, Var};
use crate::lower::{Hlo, HloOp, HloRegion, HloResults, HloValue, hlo_op, hlo_reshape};
use crate::ops::reduce::{Max, Min, Monoid, Sum};
use crate::ops::samples::ramp;
use crate::ops::{Concatenate, Direction, Op, Operand, Rule, Sample, Slice, TypeError};
use crate::transform::VmapContext;
use crate::types::{DType, TensorType};
use crate::{op_struct, words};

words! {
    /// The binary function that [`AllReduce`] applies.
    Combination {
        /// The sum of the two.
        Sum = "sum",
        /// The greater of the two.
        Max = "max",
        /// The lesser of the two.
        Min = "min",
    }
}

op_struct! {
    /// Combines each operand, element by element, over the members of an axis; every member gets
    /// the results.
    ///
    /// Several tensors, of any shapes, in one op are combined at once if possible, because most of
    /// a collective's cost is waiting. The operator of a sum is its own transpose; the derivative
    /// of an extremum is shared equally among the members that hold it.
    AllReduce = "all_reduce" {
        /// The axis of the members that take part.
        axis: String,
        /// The function that combines elements.
        computation: Combination,
    }
}

impl AllReduce {
    /// Examples for the generic tests.
    pub fn samples() -> Vec<Sample> {
        let all = |computation, inputs| {
            Sample::new(AllReduce { axis: REPLICAS.into(), computation }, inputs)
        };
        vec![
            all(Combination::Sum, vec![ramp(DType::F32, [2, 3])]),
            all(
                Combination::Sum,
                vec![ramp(DType::F32, [3]), ramp(DType::F32, []), ramp(DType::I32, [2])],
            ),
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

impl AllReduce {
    /// Replaces a process's own values by the combined values. It makes one exchange for each
    /// carrier dtype, because most of an exchange's cost is waiting.
    fn lower_over_processes(
        &self,
        hlo: &mut dyn Hlo,
        inputs: &[HloValue],
        values: &mut [HloValue],
    ) {
        let converted = |hlo: &mut dyn Hlo, value, dtype| match hlo.ty(value) {
            ty if ty.dtype == dtype => value,
            ty => hlo_op(hlo, "stablehlo.convert", &[value], Vec::new(), &ty.with_dtype(dtype)),
        };
        let carried: Vec<HloValue> = (inputs.iter())
            .map(|&value| {
                let dtype = carrier(hlo.ty(value).dtype);
                converted(hlo, value, dtype)
            })
            .collect();
        for dtype in DType::ALL {
            let those: Vec<usize> =
                (0..carried.len()).filter(|&i| hlo.ty(carried[i]).dtype == dtype).collect();
            let Some(packed) = pack(hlo, &carried, &those) else {
                continue;
            };
            let ty = hlo.ty(packed);
            let combined = exchange(hlo, combining(self.computation), Some(packed), &ty);
            let mut parts = carried.clone();
            unpack(hlo, combined, &those, &mut parts);
            for i in those {
                let dtype = hlo.ty(inputs[i]).dtype;
                values[i] = converted(hlo, parts[i], dtype);
            }
        }
    }
}

impl Op for AllReduce {
    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        if inputs.is_empty() {
            refuse!("expected at least one operand, got none");
        }
        match inputs.iter().find(|input| input.dtype == DType::Bool) {
            Some(flags) => Err(TypeError::new(format!(
                "expected numbers, got {flags}: convert bools to an integer"
            ))),
            None => Ok(inputs.to_vec()),
        }
    }

    over_axis! {}

    fn joins(&self) -> bool {
        true
    }

    fn eval(&self, inputs: &[Array]) -> Vec<Array> {
        inputs.to_vec()
    }

    fn vmap(&self, b: &mut Builder, cx: &VmapContext, inputs: &[Var], batched: &[bool]) -> Batched {
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

    fn jvp(
        &self,
        b: &mut Builder,
        inputs: &[Var],
        outputs: &[Var],
        tangents: &[Slope],
    ) -> Rule<Slopes> {
        let given: Vec<usize> = (0..tangents.len()).filter(|&i| tangents[i].is_some()).collect();
        let given_tangents: Vec<Var> = tangents.iter().copied().flatten().collect();
        let totals = if self.computation == Combination::Sum {
            b.emit(self.clone(), &given_tangents)
        } else {
            let shares: Vec<Var> = (given.iter())
                .map(|&i| {
                    let holds = b.compare(Direction::Eq, inputs[i], outputs[i]);
                    let dtype = b.ty(inputs[i]).dtype;
                    b.convert(holds, dtype)
                })
                .collect();
            let counts = b.emit(self.sum(), &shares);
            let weighted: Vec<Var> =
                shares.iter().zip(&given_tangents).map(|(&share, &t)| b.mul(share, t)).collect();
            b.emit(self.sum(), &weighted)
                .iter()
                .zip(&counts)
                .map(|(&total, &count)| b.div(total, count))
                .collect()
        };
        let mut results = vec![None; tangents.len()];
        given.iter().zip(totals).for_each(|(&i, total)| results[i] = Some(total));
        Rule::Some(results)
    }

    fn transpose(&self, b: &mut Builder, inputs: &[Operand], cotangents: &[Slope]) -> Rule<Slopes> {
        if self.computation != Combination::Sum {
            return Rule::None("an extremum is not linear in its operands");
        }
        let wanted: Vec<usize> = (0..inputs.len())
            .filter(|&i| inputs[i].is_linear() && cotangents[i].is_some())
            .collect();
        let mut results = vec![None; inputs.len()];
        if !wanted.is_empty() {
            let given: Vec<Var> = wanted.iter().filter_map(|&i| cotangents[i]).collect();
            let totals = b.emit(self.clone(), &given);
            wanted.iter().zip(totals).for_each(|(&i, total)| results[i] = Some(total));
        }
        Rule::Some(results)
    }

    fn lower(&self, hlo: &mut dyn Hlo, inputs: &[HloValue], results: &[TensorType]) -> HloResults {
        check_bound(hlo, Self::MNEMONIC, &self.axis, None);
        if hlo.replicas() == 1 {
            return inputs.to_vec();
        }
        let mut values = inputs.to_vec();
        if hlo.processes() > 1 {
            self.lower_over_processes(hlo, inputs, &mut values);
            return values;
        }
        // One StableHLO op combines operands of one dtype.
        for dtype in DType::ALL {
            let (small, large): (Vec<usize>, Vec<usize>) = (0..inputs.len())
                .filter(|&i| results[i].dtype == dtype)
                .partition(|&i| results[i].elements() <= SMALL);
            let packed = pack(hlo, inputs, &small);
            let operands: Vec<HloValue> =
                packed.into_iter().chain(large.iter().map(|&i| inputs[i])).collect();
            if operands.is_empty() {
                continue;
            }
            let types: Vec<TensorType> = operands.iter().map(|&value| hlo.ty(value)).collect();
            let region = self.region(hlo, dtype);
            let attributes = vec![("replica_groups", all_replicas(hlo))];
            let combined = hlo.op(HloOp::new("stablehlo.all_reduce", &operands, &types)
                .attributes(attributes)
                .regions(vec![region]));
            let (packed, rest) = combined.split_at(combined.len() - large.len());
            large.iter().zip(rest).for_each(|(&i, &value)| values[i] = value);
            for &packed in packed {
                unpack(hlo, packed, &small, &mut values);
            }
        }
        values
    }
}

/// Operands of at most `SMALL` elements are sent together. XLA:CPU synchronizes all replicas once
/// for every operand of a collective, which takes tens of microseconds; copying `SMALL` elements
/// takes one.
const SMALL: usize = 1 << 16;

/// Joins the values with these indices to one vector. A single value stays as it is; without values
/// it returns `None`.
fn pack(hlo: &mut dyn Hlo, values: &[HloValue], indices: &[usize]) -> Option<HloValue> {
    if let [] | [_] = indices {
        return indices.first().map(|&i| values[i]);
    }
    let flat: Vec<HloValue> = (indices.iter())
        .map(|&i| {
            let ty = hlo.ty(values[i]);
            let vector = TensorType::new(ty.dtype, [ty.elements()]);
            hlo_reshape(hlo, values[i], &vector)
        })
        .collect();
    let types: Vec<TensorType> = flat.iter().map(|&value| hlo.ty(value)).collect();
    let joined = Concatenate { dimension: 0 };
    let ty = joined.infer(&types).ok()?;
    joined.lower(hlo, &flat, &ty).pop()
}

/// Puts the parts of the result of [`pack`] back in their places.
fn unpack(hlo: &mut dyn Hlo, packed: HloValue, indices: &[usize], values: &mut [HloValue]) {
    if let [only] = indices {
        values[*only] = packed;
        return;
    }
    let mut start = 0;
    for &i in indices {
        let ty = hlo.ty(values[i]);
        let limit = start + ty.elements();
        let part = TensorType::new(ty.dtype, [ty.elements()]);
        let slice = Slice { start: vec![start], limit: vec![limit], strides: vec![1] };
        for value in slice.lower(hlo, &[packed], &[part]) {
            values[i] = hlo_reshape(hlo, value, &ty);
        }
        start = limit;
    }
}
