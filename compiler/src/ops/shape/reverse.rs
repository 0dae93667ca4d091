//! `reverse`: elements in reverse order along some axes.

use super::{check_axes, shifted};
use crate::array::Array;
use crate::ir::{Builder, Slope, Slopes, Var};
use crate::lower::{Hlo, HloResults, HloValue, hlo_axes, hlo_op};
use crate::op_struct;
use crate::ops::rules::{batched_as, linear_jvp};
use crate::ops::samples::ramp;
use crate::ops::{Op, Operand, Rule, Sample, TypeError};
use crate::types::{DType, TensorType};

op_struct! {
    /// The elements in reverse order along each of `dimensions`.
    Reverse = "reverse" {
        /// The reversed axes; all are distinct.
        dimensions: Vec<usize>,
    }
}

impl Reverse {
    /// Examples for the generic tests.
    pub fn samples() -> Vec<Sample> {
        let sample = |x: Array, dimensions: &[usize]| {
            Sample::new(Reverse { dimensions: dimensions.to_vec() }, vec![x])
        };
        vec![
            sample(ramp(DType::F32, [3]), &[0]),
            sample(ramp(DType::F32, [2, 3]), &[1]),
            sample(ramp(DType::F32, [2, 3, 2]), &[2, 0]),
            sample(ramp(DType::I32, [2]), &[]),
        ]
    }
}

impl Op for Reverse {
    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        TypeError::check_arity(inputs, 1)?;
        check_axes("dimensions", &self.dimensions, inputs[0].rank())?;
        Ok(inputs.to_vec())
    }

    fn eval(&self, inputs: &[Array]) -> Vec<Array> {
        let x = &inputs[0];
        vec![Array::from_fn(x.ty().clone(), |index| {
            let mut source = index.to_vec();
            for &axis in &self.dimensions {
                source[axis] = x.ty().shape[axis] - 1 - index[axis];
            }
            x.at(&source)
        })]
    }

    batched_as! { |op, _cx| Reverse { dimensions: shifted(&op.dimensions) } }

    linear_jvp! {}

    fn transpose(&self, b: &mut Builder, _: &[Operand], cotangents: &[Slope]) -> Rule<Slopes> {
        Rule::Some(vec![cotangents[0].map(|ct| b.emit1(self.clone(), &[ct]))])
    }

    fn lower(&self, hlo: &mut dyn Hlo, inputs: &[HloValue], results: &[TensorType]) -> HloResults {
        let dimensions = hlo_axes(&self.dimensions);
        vec![hlo_op(
            hlo,
            "stablehlo.reverse",
            inputs,
            vec![("dimensions", dimensions)],
            &results[0],
        )]
    }
}

impl Builder {
    /// The elements of `x` in reverse order along `dims`. Returns the same variable if `dims` is
    /// empty.
    #[track_caller]
    pub fn reverse(&mut self, x: Var, dims: &[usize]) -> Var {
        if dims.is_empty() { x } else { self.emit1(Reverse { dimensions: dims.to_vec() }, &[x]) }
    }
}
