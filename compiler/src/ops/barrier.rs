//! `optimization_barrier`: values that XLA neither moves nor joins across it.

use super::samples::ramp;
use super::{Op, Operand, Rule, Sample, TypeError};
use crate::array::Array;
use crate::ir::{Batched, Builder, Slope, Slopes, Var};
use crate::lower::{Hlo, HloOp, HloResults, HloValue};
use crate::op_struct;
use crate::transform::VmapContext;
use crate::types::{DType, TensorType};

op_struct! {
    /// Returns its operands, of any types, and keeps XLA from moving work across it: no reader of a
    /// result runs before all operands are available. Linear in every operand.
    OptimizationBarrier = "optimization_barrier" {
        /// The number of operands.
        operands: usize,
    }
}

impl OptimizationBarrier {
    /// Examples for the generic tests.
    pub fn samples() -> Vec<Sample> {
        let inputs = vec![ramp(DType::F32, [2, 3]), ramp(DType::I32, []), ramp(DType::F32, [2])];
        vec![
            Sample::new(OptimizationBarrier { operands: 3 }, inputs),
            Sample::new(OptimizationBarrier { operands: 1 }, vec![ramp(DType::Bool, [3])]),
        ]
    }
}

impl Op for OptimizationBarrier {
    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        TypeError::check_arity(inputs, self.operands)?;
        Ok(inputs.to_vec())
    }

    fn eval(&self, inputs: &[Array]) -> Vec<Array> {
        inputs.to_vec()
    }

    fn vmap(&self, b: &mut Builder, _: &VmapContext, inputs: &[Var], batched: &[bool]) -> Batched {
        b.optimization_barrier(inputs).into_iter().zip(batched.iter().copied()).collect()
    }

    fn jvp(&self, b: &mut Builder, _: &[Var], _: &[Var], tangents: &[Slope]) -> Rule<Slopes> {
        Rule::Some(through(b, tangents))
    }

    fn transpose(&self, b: &mut Builder, inputs: &[Operand], cotangents: &[Slope]) -> Rule<Slopes> {
        let wanted: Vec<Option<Var>> = inputs
            .iter()
            .zip(cotangents)
            .map(|(input, ct)| ct.filter(|_| input.is_linear()))
            .collect();
        Rule::Some(through(b, &wanted))
    }

    fn lower(&self, hlo: &mut dyn Hlo, inputs: &[HloValue], results: &[TensorType]) -> HloResults {
        hlo.op(HloOp::new("stablehlo.optimization_barrier", inputs, results))
    }
}

/// Passes the tangents or cotangents that are present through one barrier.
fn through(b: &mut Builder, vars: &[Slope]) -> Slopes {
    let given: Vec<Var> = vars.iter().copied().flatten().collect();
    if given.is_empty() {
        return vec![None; vars.len()];
    }
    let mut results = b.optimization_barrier(&given).into_iter();
    vars.iter().map(|var| var.and_then(|_| results.next())).collect()
}

impl Builder {
    /// Emits [`OptimizationBarrier`].
    #[track_caller]
    pub fn optimization_barrier(&mut self, operands: &[Var]) -> Vec<Var> {
        self.emit(OptimizationBarrier { operands: operands.len() }, operands)
    }
}
