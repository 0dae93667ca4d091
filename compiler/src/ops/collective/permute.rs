//! `collective_permute`: members of an axis send their values to one another.

use super::exchange::{GATHER, INDEX, exchange};
use super::{REPLICAS, check_bound};
use std::sync::Arc;

use crate::array::Array;
use crate::ir::{Batched, Builder, Slope, Slopes, Var};
use crate::lower::{
    Hlo, HloAttribute, HloResults, HloValue, hlo_constant, hlo_op, hlo_reshape, hlo_splat,
};
use crate::op_struct;
use crate::ops::rules::linear_jvp;
use crate::ops::samples::ramp;
use crate::ops::{Concatenate, DynamicSlice, Op, Operand, Rule, Sample, TypeError};
use crate::scalar::Scalar;
use crate::transform::VmapContext;
use crate::types::{DType, TensorType};

op_struct! {
    /// Member `targets[i]` of an axis gets the operand of member `sources[i]`; a member that is no target gets zeros.
    CollectivePermute = "collective_permute" {
        /// The axis of the members that take part.
        axis: String,
        /// The numbers of the members that send, each at most once.
        sources: Vec<usize>,
        /// The number of the member that receives from each of `sources`, each at most once.
        targets: Vec<usize>,
    }
}

impl CollectivePermute {
    /// Examples for the generic tests. The only replica sends to itself, or sends nothing.
    pub fn samples() -> Vec<Sample> {
        let among = |members: Vec<usize>, x| {
            let op = CollectivePermute {
                axis: REPLICAS.into(),
                sources: members.clone(),
                targets: members,
            };
            Sample::new(op, vec![x])
        };
        vec![
            among(vec![0], ramp(DType::F32, [2, 3])),
            among(vec![0], ramp(DType::Bool, [2])),
            among(vec![], ramp(DType::I32, [])),
        ]
    }
}

impl CollectivePermute {
    /// The sender's row in the members' gathered rows. A row of zeros follows them, for a member
    /// that receives nothing.
    fn lower_over_processes(&self, hlo: &mut dyn Hlo, operand: HloValue) -> HloValue {
        let (ty, replicas) = (hlo.ty(operand), hlo.replicas());
        let all = exchange(hlo, GATHER, Some(operand), &ty.stacked(replicas));
        let zeros = hlo_splat(hlo, &ty.stacked(1), Scalar::zero(ty.dtype));
        let rows = ty.stacked(replicas + 1);
        let rows = Concatenate { dimension: 0 }.lower(hlo, &[all, zeros], &[rows])[0];
        let mut from = vec![replicas as i128; replicas];
        for (&source, &target) in self.sources.iter().zip(&self.targets) {
            from[target] = source as i128;
        }
        let scalar = TensorType::scalar(DType::I32);
        let from = hlo_constant(hlo, Arc::new(Array::ints(DType::I32, [replicas], &from)));
        let mine = exchange(hlo, INDEX, None, &scalar);
        let from = row(hlo, from, mine);
        let from = hlo_reshape(hlo, from, &scalar);
        let sent = row(hlo, rows, from);
        hlo_reshape(hlo, sent, &ty)
    }
}

/// One row of the leading axis, which stays with the extent 1.
fn row(hlo: &mut dyn Hlo, rows: HloValue, index: HloValue) -> HloValue {
    let ty = hlo.ty(rows);
    let mut shape = ty.shape.clone();
    shape[0] = 1;
    let number = hlo.ty(index);
    let zero = hlo_splat(hlo, &number, Scalar::Int(0));
    let mut operands = vec![rows, index];
    operands.resize(1 + ty.rank(), zero);
    let one = DynamicSlice { sizes: shape.to_vec() };
    one.lower(hlo, &operands, &[ty.with_shape(shape)])[0]
}

impl Op for CollectivePermute {
    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        TypeError::check_arity(inputs, 1)?;
        if self.sources.len() != self.targets.len() {
            refuse!("expected one target for each source");
        }
        for (what, members) in [("source", &self.sources), ("target", &self.targets)] {
            if let Some(i) = (0..members.len()).find(|&i| members[..i].contains(&members[i])) {
                refuse!("member {} is a {what} twice", members[i]);
            }
        }
        Ok(inputs.to_vec())
    }

    over_axis! {}

    fn eval(&self, inputs: &[Array]) -> Vec<Array> {
        let from = self.targets.iter().position(|&target| target == 0);
        if from.is_some_and(|i| self.sources[i] == 0) {
            return inputs.to_vec();
        }
        let ty = inputs[0].ty();
        vec![Array::from_fn(ty.clone(), |_| Scalar::zero(ty.dtype))]
    }

    fn vmap(&self, b: &mut Builder, cx: &VmapContext, inputs: &[Var], batched: &[bool]) -> Batched {
        if !self.names_axis(cx) {
            return vec![(b.emit1(self.clone(), inputs), batched[0])];
        }
        let rows = cx.batch(b, inputs[0], batched[0]);
        let mut from = vec![0; cx.size];
        let mut gets = vec![false; cx.size];
        for (&source, &target) in self.sources.iter().zip(&self.targets) {
            (from[target], gets[target]) = (source as i128, true);
        }
        let from = b.constant(Array::ints(DType::I32, [cx.size], &from));
        let sent = b.take(rows, from, 0);
        if !gets.contains(&false) {
            return vec![(sent, true)];
        }
        let ty = b.ty(rows).clone();
        let gets = b.constant(Array::bools([cx.size], &gets));
        let gets = b.broadcast_in_dim(gets, &ty.shape, &[0]);
        let zeros = b.zeros(&ty);
        vec![(b.select(gets, sent, zeros), true)]
    }

    linear_jvp! {}

    /// Cotangents go from `targets` back to `sources`.
    fn transpose(&self, b: &mut Builder, _: &[Operand], cotangents: &[Slope]) -> Rule<Slopes> {
        let back = CollectivePermute {
            axis: self.axis.clone(),
            sources: self.targets.clone(),
            targets: self.sources.clone(),
        };
        Rule::Some(vec![cotangents[0].map(|ct| b.emit1(back, &[ct]))])
    }

    fn lower(&self, hlo: &mut dyn Hlo, inputs: &[HloValue], results: &[TensorType]) -> HloResults {
        check_bound(hlo, Self::MNEMONIC, &self.axis, None);
        let replicas = hlo.replicas();
        let members = self.sources.iter().chain(&self.targets);
        if let Some(member) = members.copied().find(|&member| member >= replicas) {
            let message = format!("it names replica {member} and the module is for {replicas}");
            hlo.refuse(Self::MNEMONIC, message);
        }
        if self.sources.is_empty() {
            let zero = Scalar::zero(results[0].dtype);
            return vec![hlo_splat(hlo, &results[0], zero)];
        }
        if replicas == 1 {
            return inputs.to_vec();
        }
        if hlo.processes() > 1 {
            return vec![self.lower_over_processes(hlo, inputs[0])];
        }
        let pairs: Vec<i64> = self
            .sources
            .iter()
            .zip(&self.targets)
            .flat_map(|(&source, &target)| [source as i64, target as i64])
            .collect();
        let attributes = vec![(
            "source_target_pairs",
            HloAttribute::I64Tensor(vec![self.sources.len(), 2], pairs),
        )];
        let name = "stablehlo.collective_permute";
        vec![hlo_op(hlo, name, inputs, attributes, &results[0])]
    }
}
