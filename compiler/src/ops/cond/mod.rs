//! `cond`: one of several branches, chosen at run time. `switch` is the same op with an integer index.

mod derivative;
mod rarely;

pub use rarely::Rarely;

use super::TypeError;
use super::op::{Op, OpRef, Pruned, Sample};
use crate::array::Array;
use crate::ir::{Batched, Builder, Func, Var};
use crate::lower::{Hlo, HloOp, HloResults, HloValue, hlo_op, hlo_splat, lower_func};
use crate::op_struct;
use crate::ops::Direction;
use crate::ops::rules::region_derivative;
use crate::scalar::Scalar;
use crate::transform::{TransformError, VmapContext, needed, vmap};
use crate::types::{DType, TensorType};
use std::sync::Arc;

op_struct! {
    /// Runs one of `branches` on the operands.
    ///
    /// Operands: the choice, then the operands of the branches, which all take the same. The choice
    /// is a bool scalar for two branches (`false` is the first, `true` the second), or an i32
    /// scalar, clamped to the range of branches.
    Cond = "cond" {
        /// Functions with the same operand and result types.
        branches: Vec<Arc<Func>>,
        /// True if few examples of a batch take the second of two branches: then [`Rarely`] runs it
        /// only for those examples, if that is faster.
        rarely: bool,
    }
}

impl Cond {
    fn choice(&self, choice: Scalar) -> usize {
        match choice {
            Scalar::Bool(value) => usize::from(value),
            value => value.int().clamp(0, self.branches.len() as i128 - 1) as usize,
        }
    }

    /// The same choice between other branches.
    fn with(&self, branches: Vec<Arc<Func>>) -> Cond {
        Cond { branches, rarely: self.rarely }
    }

    /// Transforms every branch with the union of the branches' marks of results.
    fn agree<T>(
        &self,
        attempt: impl Fn(&Func, &[bool]) -> Result<(T, Vec<bool>), TransformError>,
    ) -> Result<(Vec<T>, Vec<bool>), TransformError> {
        let mut force = vec![false; self.branches[0].results.len()];
        loop {
            let (products, marks): (Vec<T>, Vec<Vec<bool>>) = self
                .branches
                .iter()
                .map(|branch| attempt(branch, &force))
                .collect::<Result<Vec<_>, _>>()?
                .into_iter()
                .unzip();
            let union: Vec<bool> =
                (0..force.len()).map(|i| marks.iter().any(|marks| marks[i])).collect();
            if marks.iter().all(|marks| *marks == union) {
                return Ok((products, union));
            }
            force = union;
        }
    }
}

impl Op for Cond {
    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        let Some(first) = self.branches.first() else {
            refuse!("there must be at least one branch");
        };
        TypeError::check_arity(inputs, 1 + first.params.len())?;
        let choice = &inputs[0];
        let fits = match choice.dtype {
            DType::Bool => self.branches.len() == 2,
            DType::I32 => true,
            _ => false,
        };
        if !fits || choice.rank() != 0 {
            refuse!(
                "the choice must be bool[] (of two branches) or i32[], got {choice} for {} branches",
                self.branches.len()
            );
        }
        for (number, branch) in self.branches.iter().enumerate() {
            if branch.param_types() != inputs[1..] {
                refuse!("branch {number} takes other operands than it is given");
            }
            let (ours, theirs) = (branch.result_types(), first.result_types());
            if ours.len() != theirs.len() {
                refuse!(
                    "branch {number} gives {} results, branch 0 gives {}",
                    ours.len(),
                    theirs.len()
                );
            }
            if let Some(i) = (0..ours.len()).find(|&i| ours[i] != theirs[i]) {
                refuse!(
                    "result {i} is {} in branch 0 and {} in branch {number}",
                    theirs[i],
                    ours[i]
                );
            }
        }
        Ok(first.result_types())
    }

    fn eval(&self, inputs: &[Array]) -> Vec<Array> {
        self.branches[self.choice(inputs[0].get(0))].eval(&inputs[1..])
    }

    fn branch(&self, choice: Scalar) -> Option<Arc<Func>> {
        Some(self.branches[self.choice(choice)].clone())
    }

    fn vmap(&self, b: &mut Builder, cx: &VmapContext, inputs: &[Var], batched: &[bool]) -> Batched {
        if batched[0]
            && let Some(results) = self.vmap_rarely(b, cx, inputs, batched)
        {
            return results;
        }
        if batched[0] && !self.rarely {
            let message = match b.ty(inputs[0]).dtype == DType::Bool {
                true => {
                    "cond under vmap runs every branch and selects: its predicate differs over the batch (`cond(p.both(), ..)` marks an intended select)"
                }
                false => {
                    "switch under vmap runs every branch and selects: its index differs over the batch"
                }
            };
            cx.warn(b.loc(), message);
        }
        let (branches, marks) = self
            .agree(|branch, force| {
                let all = vec![true; force.len()];
                Ok(vmap(branch, cx, &batched[1..], if batched[0] { &all } else { force }))
            })
            .expect("vmap has no errors");
        if !batched[0] {
            let branches = branches.into_iter().map(Arc::new).collect();
            return b.emit(self.with(branches), inputs).into_iter().zip(marks).collect();
        }
        let results: Vec<Vec<Var>> =
            branches.iter().map(|branch| b.inline(branch, &inputs[1..])).collect();
        let choice = inputs[0];
        let mut chosen = results[0].clone();
        for (number, results) in results.iter().enumerate().skip(1) {
            let here = if b.ty(choice).dtype == DType::Bool {
                choice
            } else {
                // The last branch also takes greater indices: the index is clamped.
                let threshold = b.full_like(choice, number as f64);
                b.compare(Direction::Ge, choice, threshold)
            };
            for (kept, &new) in chosen.iter_mut().zip(results) {
                *kept = b.select_examples(here, new, *kept);
            }
        }
        chosen.into_iter().map(|var| (var, true)).collect()
    }

    region_derivative! { Self::forward, Self::linearized, Self::transposed }

    fn lower(&self, hlo: &mut dyn Hlo, inputs: &[HloValue], results: &[TensorType]) -> HloResults {
        let choice = inputs[0];
        let ty = hlo.ty(choice);
        let region = |hlo: &mut dyn Hlo, branch: &Func| {
            hlo.begin_region(&[]);
            let outputs = lower_func(hlo, branch, &inputs[1..]);
            hlo.end_region(&outputs)
        };
        if ty.dtype == DType::Bool {
            // stablehlo.if has the true branch first.
            let regions = vec![region(hlo, &self.branches[1]), region(hlo, &self.branches[0])];
            return hlo.op(HloOp::new("stablehlo.if", &[choice], results).regions(regions));
        }
        // A single branch needs no choice. (MLIR would take an op with one region, of a dialect
        // that it does not know, for a symbol table. It would then search it for the functions that
        // the branch calls.)
        if let [only] = &self.branches[..] {
            return lower_func(hlo, only, &inputs[1..]);
        }
        // stablehlo.case takes the last branch for every index outside of its range.
        let low = hlo_splat(hlo, &ty, Scalar::Int(0));
        let high = hlo_splat(hlo, &ty, Scalar::Int(self.branches.len() as i128 - 1));
        let choice = hlo_op(hlo, "stablehlo.clamp", &[low, choice, high], Vec::new(), &ty);
        let regions = self.branches.iter().map(|branch| region(hlo, branch)).collect();
        hlo.op(HloOp::new("stablehlo.case", &[choice], results).regions(regions))
    }

    fn prune(&self, used: &[bool]) -> Option<Pruned> {
        let operands = self.branches[0].params.len();
        let mut keep_operand = vec![false; operands];
        for branch in &self.branches {
            let needed = needed(branch, used);
            (0..operands).for_each(|i| keep_operand[i] |= needed[branch.params[i].index()]);
        }
        let outputs: Vec<usize> = (0..used.len()).filter(|&i| used[i]).collect();
        let branches = self.branches.iter().map(|branch| {
            let mut small = (**branch).clone();
            small.results = outputs.iter().map(|&i| branch.results[i]).collect();
            let mut small = crate::transform::dce(&small);
            small.params =
                (0..operands).filter(|&i| keep_operand[i]).map(|i| small.params[i]).collect();
            Arc::new(small)
        });
        let branches: Vec<Arc<Func>> = branches.collect();
        if !used.contains(&false) && !keep_operand.contains(&false) && branches == self.branches {
            return None;
        }
        let inputs = std::iter::once(0)
            .chain((0..operands).filter(|&i| keep_operand[i]).map(|i| i + 1))
            .collect();
        Some(Pruned { op: OpRef::new(self.with(branches)), inputs, outputs })
    }
}

impl Cond {
    /// Examples for the generic tests: a predicate, an index, an index out of range.
    pub fn samples() -> Vec<Sample> {
        let branch = |number: usize| {
            let mut b = Builder::new();
            let x = b.param(TensorType::new(DType::F32, [2]));
            let y = b.param(TensorType::new(DType::F32, [2]));
            let first = match number {
                0 => b.sin(x),
                1 => b.mul(x, y),
                _ => b.add(y, y),
            };
            Arc::new(b.finish(format!("branch{number}"), vec![first, x]))
        };
        let data = [
            Array::floats(DType::F32, [2], &[0.4, -1.2]),
            Array::floats(DType::F32, [2], &[1.5, 0.3]),
        ];
        let sample = |choice: Array, branches: usize| {
            let branches = (0..branches).map(branch).collect();
            Sample::new(
                Cond { branches, rarely: false },
                std::iter::once(choice).chain(data.clone()).collect(),
            )
            .tolerance(1e-6)
        };
        let index = |i: i128| Array::ints(DType::I32, [], &[i]);
        vec![
            sample(Array::bools([], &[false]), 2),
            sample(Array::bools([], &[true]), 2),
            sample(index(2), 3),
            sample(index(-5), 3),
            sample(index(9), 2),
        ]
    }
}
