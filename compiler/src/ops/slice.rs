//! `slice`: a box of a tensor at positions that are known at compile time.

use super::TypeError;
use super::op::{Op, Operand, Rule, Sample};
use super::samples::ramp;
use super::shape::prepended;
use crate::array::Array;
use crate::ir::{Builder, Slope, Slopes, Var};
use crate::lower::{Hlo, HloResults, HloValue, hlo_axes, hlo_op};
use crate::op_struct;
use crate::ops::rules::{batched_as, linear_jvp};
use crate::types::{DType, TensorType};

op_struct! {
    /// Along each axis the elements at `start`, `start + stride`, ... below `limit`.
    Slice = "slice" {
        /// The first element along each axis.
        start: Vec<usize>,
        /// The exclusive end along each axis; at least `start` and at most the extent.
        limit: Vec<usize>,
        /// The step along each axis; at least 1.
        strides: Vec<usize>,
    }
}

impl Slice {
    /// Examples for the generic tests.
    pub fn samples() -> Vec<Sample> {
        let sample = |x: Array, start: &[usize], limit: &[usize], strides: &[usize]| {
            let op =
                Slice { start: start.to_vec(), limit: limit.to_vec(), strides: strides.to_vec() };
            Sample::new(op, vec![x])
        };
        vec![
            sample(ramp(DType::F32, [5]), &[1], &[4], &[1]),
            sample(ramp(DType::F32, [7, 4]), &[1, 0], &[6, 4], &[2, 3]),
            sample(ramp(DType::F32, [2, 3]), &[1, 1], &[1, 3], &[1, 1]),
            sample(ramp(DType::F32, []), &[], &[], &[]),
            sample(ramp(DType::I32, [4]), &[0], &[4], &[3]),
            sample(ramp(DType::Bool, [4]), &[2], &[3], &[1]),
        ]
    }

    /// The result's shape.
    fn shape(&self) -> Vec<usize> {
        (0..self.start.len())
            .map(|axis| (self.limit[axis] - self.start[axis]).div_ceil(self.strides[axis]))
            .collect()
    }
}

impl Op for Slice {
    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        TypeError::check_arity(inputs, 1)?;
        let x = &inputs[0];
        for (name, values) in
            [("start", &self.start), ("limit", &self.limit), ("strides", &self.strides)]
        {
            if values.len() != x.rank() {
                refuse!("{name} must have one number for each axis of {x}, got {values:?}");
            }
        }
        for (axis, &extent) in x.shape.iter().enumerate() {
            let (start, limit) = (self.start[axis], self.limit[axis]);
            if start > limit || limit > extent {
                refuse!("{start}..{limit} is not a range within axis {axis} of {x}");
            }
            if self.strides[axis] == 0 {
                refuse!("the stride along axis {axis} must be at least 1, got 0");
            }
        }
        Ok(vec![x.with_shape(self.shape())])
    }

    fn eval(&self, inputs: &[Array]) -> Vec<Array> {
        let x = &inputs[0];
        let mut source = vec![0; x.ty().rank()];
        vec![Array::from_fn(x.ty().with_shape(self.shape()), |index| {
            for (axis, &i) in index.iter().enumerate() {
                source[axis] = self.start[axis] + i * self.strides[axis];
            }
            x.at(&source)
        })]
    }

    batched_as! { |op, cx| Slice {
        start: prepended(0, &op.start),
        limit: prepended(cx.size, &op.limit),
        strides: prepended(1, &op.strides),
    } }

    linear_jvp! {}

    fn transpose(&self, b: &mut Builder, inputs: &[Operand], cotangents: &[Slope]) -> Rule<Slopes> {
        let (Some(x), Some(ct)) = (inputs[0].linear(), cotangents[0]) else {
            return Rule::Some(vec![None]);
        };
        let zero = b.zeros(&TensorType::scalar(x.dtype));
        let shape = self.shape();
        let mut amounts = (Vec::new(), Vec::new(), Vec::new());
        for (axis, &extent) in x.shape.iter().enumerate() {
            let spread =
                shape[axis].saturating_sub(1) * self.strides[axis] + usize::from(shape[axis] > 0);
            amounts.0.push(self.start[axis] as i64);
            amounts.1.push((extent - self.start[axis] - spread) as i64);
            amounts.2.push(self.strides[axis] as i64 - 1);
        }
        Rule::Some(vec![Some(b.pad(ct, zero, &amounts.0, &amounts.1, &amounts.2))])
    }

    fn lower(&self, hlo: &mut dyn Hlo, inputs: &[HloValue], results: &[TensorType]) -> HloResults {
        let attributes = vec![
            ("start_indices", hlo_axes(&self.start)),
            ("limit_indices", hlo_axes(&self.limit)),
            ("strides", hlo_axes(&self.strides)),
        ];
        vec![hlo_op(hlo, "stablehlo.slice", inputs, attributes, &results[0])]
    }
}

impl Builder {
    /// The elements of `x` from `start` below `limit` in steps of `strides`. Returns the same
    /// variable if that is the whole tensor.
    #[track_caller]
    pub fn slice(&mut self, x: Var, start: &[usize], limit: &[usize], strides: &[usize]) -> Var {
        let whole = *limit == self.ty(x).shape[..]
            && start.iter().all(|&i| i == 0)
            && strides.iter().all(|&i| i == 1);
        if whole {
            return x;
        }
        self.emit1(
            Slice { start: start.to_vec(), limit: limit.to_vec(), strides: strides.to_vec() },
            &[x],
        )
    }

    /// The elements of `x` from `start` below `limit` along one axis.
    #[track_caller]
    pub fn slice_axis(&mut self, x: Var, axis: usize, start: usize, limit: usize) -> Var {
        let mut limits = self.ty(x).shape.clone();
        let mut starts = vec![0; limits.len()];
        (starts[axis], limits[axis]) = (start, limit);
        let strides = vec![1; limits.len()];
        self.slice(x, &starts, &limits, &strides)
    }
}
