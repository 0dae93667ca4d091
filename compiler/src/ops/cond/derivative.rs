//! cond's derivative in its three forms: every branch is transformed in the same way, so that
//! operands and results agree.

use super::Cond;
use crate::ir::{Builder, Slope, Slopes, Var};
use crate::ops::Operand;
use crate::transform::{
    Linearized, TransformError, deal, given, jvp_with, linearize_with, transpose, with_given,
};
use crate::types::TensorType;
use std::sync::Arc;

impl Cond {
    pub(super) fn linearized(
        &self,
        b: &mut Builder,
        inputs: &[Var],
        tangents: &[Slope],
    ) -> Result<(Vec<Var>, Slopes), TransformError> {
        let wrt = given(&tangents[1..]);
        let (branches, marks) = self.agree(|branch, force| {
            linearize_with(branch, &wrt, force).map(|linearized| {
                let marks = linearized.tangent_results.clone();
                (linearized, marks)
            })
        })?;
        let results = marks.len();

        // Residuals with the same type share a slot over the branches; a branch fills its unused
        // slots with zeros. A residual that is an operand needs no slot.
        let mut slots: Vec<TensorType> = Vec::new();
        let places: Vec<Vec<ResidualSource>> =
            branches.iter().map(|branch| place_residuals(branch, results, &mut slots)).collect();
        let primal = branches.iter().zip(&places).map(|(branch, places)| {
            let mut body = Builder::new();
            let arguments = body.add_params(branch.primal.param_types());
            let outputs = body.inline(&branch.primal, &arguments);
            let mut filled: Vec<Option<Var>> = vec![None; slots.len()];
            for (place, &var) in places.iter().zip(&outputs[results..]) {
                if let ResidualSource::Slot(slot) = place {
                    filled[*slot] = Some(var);
                }
            }
            let filled: Vec<Var> = filled
                .into_iter()
                .zip(&slots)
                .map(|(var, ty)| var.unwrap_or_else(|| body.zeros(ty)))
                .collect();
            let all = outputs[..results].iter().copied().chain(filled).collect();
            Arc::new(body.finish(branch.primal.name.clone(), all))
        });
        let outputs = b.emit(self.with(primal.collect()), inputs);

        // The linear branches take all operands, all slots, the tangents.
        let linear = branches.iter().zip(&places).map(|(branch, places)| {
            let mut body = Builder::new();
            let operands = body.add_params(self.branches[0].param_types());
            let slots = body.add_params(slots.iter().cloned());
            let tangents = body.add_params(branch.linear.param_types().split_off(branch.residuals));
            let arguments = places.iter().map(|place| match place {
                ResidualSource::Operand(i) => operands[*i],
                ResidualSource::Slot(i) => slots[*i],
            });
            let arguments: Vec<Var> = arguments.chain(tangents).collect();
            let results = body.inline(&branch.linear, &arguments);
            Arc::new(body.finish(branch.linear.name.clone(), results))
        });
        let operands = with_given(inputs.iter().chain(&outputs[results..]).copied(), tangents);
        let slopes = b.emit(self.with(linear.collect()), &operands);
        Ok((outputs[..results].to_vec(), deal(&marks, slopes)))
    }

    pub(super) fn forward(
        &self,
        b: &mut Builder,
        inputs: &[Var],
        tangents: &[Slope],
    ) -> Result<(Vec<Var>, Slopes), TransformError> {
        let wrt = given(&tangents[1..]);
        let (branches, marks) = self.agree(|branch, force| jvp_with(branch, &wrt, force))?;
        let operands = with_given(inputs.iter().copied(), tangents);
        let mut values = b.emit(self.with(branches.into_iter().map(Arc::new).collect()), &operands);
        let slopes = values.split_off(marks.len());
        Ok((values, deal(&marks, slopes)))
    }

    pub(super) fn transposed(
        &self,
        b: &mut Builder,
        inputs: &[Operand],
        cotangents: &[Slope],
    ) -> Result<Slopes, TransformError> {
        let marked: Vec<bool> = inputs[1..].iter().map(Operand::is_linear).collect();
        // Every branch sends a cotangent to every linear operand, so that their results agree.
        let force = vec![true; marked.iter().filter(|is| **is).count()];
        let branches = self.branches.iter().map(|branch| {
            transpose(branch, &marked, &given(cotangents), &force).map(|(func, _)| Arc::new(func))
        });
        let branches = branches.collect::<Result<Vec<_>, _>>()?;
        let operands = with_given(inputs.iter().filter_map(Operand::known), cotangents);
        let sent = b.emit(self.with(branches), &operands);
        Ok(std::iter::once(None).chain(deal(&marked, sent)).collect())
    }
}

/// The place that provides a residual to the linear branches.
enum ResidualSource {
    Operand(usize),
    Slot(usize),
}

fn place_residuals(
    branch: &Linearized,
    results: usize,
    slots: &mut Vec<TensorType>,
) -> Vec<ResidualSource> {
    let mut taken = vec![false; slots.len()];
    let primal = &branch.primal;
    let place = |&var: &Var| {
        if let Some(i) = primal.params.iter().position(|&param| param == var) {
            return ResidualSource::Operand(i);
        }
        let ty = primal.ty(var);
        let slot = (0..slots.len()).find(|&i| !taken[i] && slots[i] == *ty).unwrap_or_else(|| {
            slots.push(ty.clone());
            taken.push(false);
            slots.len() - 1
        });
        taken[slot] = true;
        ResidualSource::Slot(slot)
    };
    primal.results[results..].iter().map(place).collect()
}
