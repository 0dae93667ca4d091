//! `concatenate`: tensors joined along an axis.

use crate::array::Array;
use crate::ir::{Batched, Builder, Slope, Slopes, Var};
use crate::lower::{Hlo, HloAttribute, HloResults, HloValue, hlo_op};
use crate::op_struct;
use crate::ops::op::result_types;
use crate::ops::rules::linear_jvp;
use crate::ops::samples::ramp;
use crate::ops::{Op, Operand, Rule, Sample, TypeError};
use crate::transform::VmapContext;
use crate::types::{DType, TensorType};

op_struct! {
    /// One or more tensors joined along the axis `dimension`, in order. They agree in dtype and in their other axes.
    Concatenate = "concatenate" {
        /// The axis of the concatenation.
        dimension: usize,
    }
}

impl Concatenate {
    /// Examples for the generic tests.
    pub fn samples() -> Vec<Sample> {
        let sample = |dimension, xs: Vec<Array>| Sample::new(Concatenate { dimension }, xs);
        let f32s = |shape: &[usize]| ramp(DType::F32, shape);
        vec![
            sample(0, vec![f32s(&[2]), f32s(&[3])]),
            sample(1, vec![f32s(&[2, 1]), f32s(&[2, 3]), f32s(&[2, 2])]),
            sample(0, vec![f32s(&[1, 2]), f32s(&[0, 2])]),
            sample(1, vec![f32s(&[2, 2])]),
            sample(0, vec![ramp(DType::I32, [2]), ramp(DType::I32, [1])]),
        ]
    }
}

impl Op for Concatenate {
    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        let Some(first) = inputs.first() else {
            refuse!("expected at least one operand, got none");
        };
        if self.dimension >= first.rank() {
            refuse!("dimension {} is not an axis of {first}", self.dimension);
        }
        let mut result = first.clone();
        result.shape[self.dimension] = 0;
        for input in inputs {
            let mut rest = input.clone();
            if input.rank() == first.rank() {
                rest.shape[self.dimension] = first.shape[self.dimension];
            }
            if rest != *first {
                refuse!(
                    "operands must agree in dtype and in all axes but {}, got {first} and {input}",
                    self.dimension
                );
            }
            let extent = &mut result.shape[self.dimension];
            *extent = extent.saturating_add(input.shape[self.dimension]);
        }
        Ok(vec![result])
    }

    fn eval(&self, inputs: &[Array]) -> Vec<Array> {
        let ty = result_types(self, inputs).remove(0);
        vec![Array::from_fn(ty, |index| {
            let mut source = index.to_vec();
            for input in inputs {
                let extent = input.ty().shape[self.dimension];
                if source[self.dimension] < extent {
                    return input.at(&source);
                }
                source[self.dimension] -= extent;
            }
            unreachable!("the result is as long as its parts")
        })]
    }

    fn vmap(&self, b: &mut Builder, cx: &VmapContext, inputs: &[Var], batched: &[bool]) -> Batched {
        let inputs = cx.batch_all(b, inputs, batched);
        vec![(b.emit1(Concatenate { dimension: self.dimension + 1 }, &inputs), true)]
    }

    linear_jvp! { all }

    fn transpose(&self, b: &mut Builder, inputs: &[Operand], cotangents: &[Slope]) -> Rule<Slopes> {
        let Some(ct) = cotangents[0] else {
            return Rule::Some(vec![None; inputs.len()]);
        };
        let mut start = 0;
        let mut parts = Vec::with_capacity(inputs.len());
        for input in inputs {
            let limit = start + input.ty(b).shape[self.dimension];
            parts.push(input.is_linear().then(|| b.slice_axis(ct, self.dimension, start, limit)));
            start = limit;
        }
        Rule::Some(parts)
    }

    fn lower(&self, hlo: &mut dyn Hlo, inputs: &[HloValue], results: &[TensorType]) -> HloResults {
        let dimension = HloAttribute::I64(self.dimension as i64);
        vec![hlo_op(
            hlo,
            "stablehlo.concatenate",
            inputs,
            vec![("dimension", dimension)],
            &results[0],
        )]
    }
}

impl Builder {
    /// `xs` joined along the axis `dimension`; a single tensor is returned unchanged.
    #[track_caller]
    pub fn concatenate(&mut self, xs: &[Var], dimension: usize) -> Var {
        if let [x] = xs { *x } else { self.emit1(Concatenate { dimension }, xs) }
    }
}
