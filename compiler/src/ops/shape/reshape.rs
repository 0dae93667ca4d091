//! `reshape`: the same elements in row-major order under another shape.

use super::prepended;
use crate::array::Array;
use crate::ir::{Builder, Slope, Slopes, Var};
use crate::lower::{Hlo, HloResults, HloValue, hlo_reshape};
use crate::op_struct;
use crate::ops::op::result_types;
use crate::ops::rules::{batched_as, linear_jvp};
use crate::ops::samples::ramp;
use crate::ops::{Op, Operand, Rule, Sample, TypeError};
use crate::types::{DType, TensorType};

op_struct! {
    /// The same elements in row-major order under another shape with equally many elements.
    Reshape = "reshape" {
        /// The result's shape.
        shape: Vec<usize>,
    }
}

impl Reshape {
    /// Examples for the generic tests.
    pub fn samples() -> Vec<Sample> {
        let sample =
            |x: Array, shape: &[usize]| Sample::new(Reshape { shape: shape.to_vec() }, vec![x]);
        vec![
            sample(ramp(DType::F32, [2, 3]), &[3, 2]),
            sample(ramp(DType::F32, [6]), &[1, 2, 3]),
            sample(ramp(DType::F32, []), &[1, 1]),
            sample(ramp(DType::I32, [2, 1, 2]), &[4]),
            sample(ramp(DType::Bool, [1]), &[]),
            sample(ramp(DType::F32, [0, 3]), &[5, 0]),
        ]
    }
}

impl Op for Reshape {
    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        TypeError::check_arity(inputs, 1)?;
        let result = inputs[0].with_shape(self.shape.clone());
        if result.elements() != inputs[0].elements() {
            refuse!(
                "cannot reshape {} to {result}: {} elements are not {}",
                inputs[0],
                inputs[0].elements(),
                result.elements()
            );
        }
        Ok(vec![result])
    }

    fn eval(&self, inputs: &[Array]) -> Vec<Array> {
        let ty = result_types(self, inputs).remove(0);
        vec![Array::from_bytes(ty, inputs[0].bytes()).expect("a reshape keeps the elements")]
    }

    batched_as! { |op, cx| Reshape { shape: prepended(cx.size, &op.shape) } }

    linear_jvp! {}

    fn transpose(&self, b: &mut Builder, inputs: &[Operand], cotangents: &[Slope]) -> Rule<Slopes> {
        let (Some(x), Some(ct)) = (inputs[0].linear(), cotangents[0]) else {
            return Rule::Some(vec![None]);
        };
        Rule::Some(vec![Some(b.reshape(ct, &x.shape))])
    }

    fn recompute(&self) -> bool {
        true
    }

    fn lower(&self, hlo: &mut dyn Hlo, inputs: &[HloValue], results: &[TensorType]) -> HloResults {
        vec![hlo_reshape(hlo, inputs[0], &results[0])]
    }
}

impl Builder {
    /// The same elements under another shape. Returns the same variable if `x` has that shape.
    #[track_caller]
    pub fn reshape(&mut self, x: Var, shape: &[usize]) -> Var {
        if self.ty(x).shape[..] == *shape {
            x
        } else {
            self.emit1(Reshape { shape: shape.to_vec() }, &[x])
        }
    }
}
