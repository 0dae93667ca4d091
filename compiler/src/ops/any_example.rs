//! `any_example`: tests if a predicate holds in any example of any enclosing batch.

use super::rules::{no_tangent, no_transpose};
use super::{Op, Sample, TypeError};
use crate::array::Array;
use crate::ir::{Batched, Builder, Var};
use crate::lower::{Hlo, HloResults, HloValue};
use crate::op_struct;
use crate::transform::VmapContext;
use crate::types::{DType, TensorType};

op_struct! {
    /// Returns its operand, `bool[]`. Under `vmap` the result is a single value for the whole
    /// batch: true if the operand is true in any example. A `while` with such a condition runs
    /// until the last example has ended, and selects nothing: its body leaves ended examples
    /// unchanged.
    AnyExample = "any_example" {}
}

impl AnyExample {
    /// None: a single result for a batch does not equal the stacked results of its examples, which
    /// the generic tests compare.
    pub fn samples() -> Vec<Sample> {
        Vec::new()
    }
}

impl Op for AnyExample {
    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        TypeError::check_arity(inputs, 1)?;
        if inputs[0] != TensorType::scalar(DType::Bool) {
            return Err(TypeError::new(format!("expected bool[], got {}", inputs[0])));
        }
        Ok(inputs.to_vec())
    }

    fn eval(&self, inputs: &[Array]) -> Vec<Array> {
        inputs.to_vec()
    }

    fn vmap(&self, b: &mut Builder, _: &VmapContext, inputs: &[Var], _: &[bool]) -> Batched {
        let any = b.reduce_or(inputs[0], &[0]);
        // An outer vmap has its own examples.
        vec![(b.emit1(AnyExample {}, &[any]), false)]
    }

    no_tangent! {}

    no_transpose! { "a bool has no derivative" }

    fn lower(&self, _: &mut dyn Hlo, inputs: &[HloValue], _: &[TensorType]) -> HloResults {
        inputs.to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transform::vmap;

    #[test]
    fn a_batch_has_one_result() {
        let mut b = Builder::new();
        let holds = b.param(TensorType::scalar(DType::Bool));
        let any = b.emit1(AnyExample {}, &[holds]);
        let func = b.finish("any", vec![any]);
        // Two batches, one in the other.
        let (inner, flags) = vmap(&func, &VmapContext::new(2), &[true], &[false]);
        assert_eq!(flags, [false]);
        let (outer, flags) = vmap(&inner, &VmapContext::new(3), &[true], &[false]);
        assert_eq!(flags, [false]);
        for (at, expected) in [(None, false), (Some(0), true), (Some(5), true)] {
            let mut holds = [0; 6];
            if let Some(at) = at {
                holds[at] = 1;
            }
            let given = Array::ints(DType::Bool, [3, 2], &holds);
            assert_eq!(outer.eval(&[given])[0].get(0).bool(), expected);
        }
    }
}
