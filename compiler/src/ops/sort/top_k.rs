//! `top_k`: the greatest elements along the last axis.

use super::{for_each_line, one_nan, order, take_along};
use crate::array::Array;
use crate::ir::{Batched, Builder, Slope, Slopes, Var};
use crate::lower::{Hlo, HloAttribute, HloOp, HloResults, HloValue};
use crate::op_struct;
use crate::ops::op::result_types;
use crate::ops::rules::no_transpose;
use crate::ops::samples::ramp;
use crate::ops::{Op, Rule, Sample, TypeError};
use crate::scalar::Scalar;
use crate::transform::VmapContext;
use crate::types::{DType, TensorType};
use std::cmp::Ordering;

op_struct! {
    /// The `k` greatest elements along the last axis, the greatest first, and their positions as
    /// `i32`. Among equal elements the first comes first. NaN of either sign counts as greatest,
    /// and 0 as greater than -0.
    TopK = "top_k" {
        /// The number of elements to take.
        k: usize,
    }
}

impl TopK {
    /// Examples for the generic tests.
    pub fn samples() -> Vec<Sample> {
        let peculiar = [f64::NAN, 0.0, f64::INFINITY, -0.0, -1.0, f64::NAN, f64::NEG_INFINITY, 0.0];
        let rows = [3.5, -1.0, 2.0, 0.25, 7.0, -6.0, 1.5, 0.5];
        let sample = |k, x| Sample::new(TopK { k }, vec![x]);
        vec![
            sample(2, ramp(DType::F32, [5])),
            sample(3, Array::floats(DType::F32, [2, 4], &rows)),
            sample(2, ramp(DType::I32, [2, 3, 2])),
            sample(6, Array::ints(DType::I32, [8], &[1, 0, 1, 2, 0, 2, 1, 0])),
            sample(8, Array::floats(DType::F32, [8], &peculiar)).not_differentiable(),
            sample(8, Array::floats(DType::F32, [8], &peculiar.map(|x| -x))).not_differentiable(),
            sample(1, Array::floats(DType::BF16, [2], &[1.0, -f64::NAN])).not_differentiable(),
            sample(1, ramp(DType::F64, [3])),
        ]
    }
}

impl Op for TopK {
    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        TypeError::check_arity(inputs, 1)?;
        let x = &inputs[0];
        if x.dtype == DType::Bool {
            refuse!("expected numbers, got {x}");
        }
        let mut shape = x.shape.clone();
        match shape.last_mut() {
            Some(extent) if self.k <= *extent => *extent = self.k,
            Some(extent) => refuse!("the last axis of {x} has {extent} elements, not {}", self.k),
            None => refuse!("expected an operand with an axis, got {x}"),
        }
        Ok(vec![x.with_shape(&shape), TensorType::new(DType::I32, shape)])
    }

    fn eval(&self, inputs: &[Array]) -> Vec<Array> {
        let x = &inputs[0];
        let types = result_types(self, inputs);
        let last = x.ty().rank() - 1;
        let (mut values, mut positions) = (Vec::new(), Vec::new());
        for_each_line(&x.ty().shape, last, |line| {
            let mut sorted = line.to_vec();
            sorted.sort_by(|left, right| total_order(x.at(right), x.at(left)));
            for index in &sorted[..self.k] {
                values.push(x.at(index));
                positions.push(Scalar::Int(index[last] as i128));
            }
        });
        let [values_ty, positions_ty] = [types[0].clone(), types[1].clone()];
        vec![Array::new(values_ty, values), Array::new(positions_ty, positions)]
    }

    fn vmap(&self, b: &mut Builder, _: &VmapContext, inputs: &[Var], _: &[bool]) -> Batched {
        b.emit(self.clone(), inputs).into_iter().map(|var| (var, true)).collect()
    }

    fn jvp(&self, b: &mut Builder, _: &[Var], outputs: &[Var], tangents: &[Slope]) -> Rule<Slopes> {
        let axis = b.ty(outputs[0]).rank() - 1;
        Rule::Some(vec![tangents[0].map(|t| take_along(b, t, outputs[1], axis)), None])
    }

    no_transpose! { "it is not linear in its operand" }

    fn reads_many(&self) -> bool {
        true
    }

    fn lower(&self, hlo: &mut dyn Hlo, inputs: &[HloValue], results: &[TensorType]) -> HloResults {
        let attributes = vec![("k", HloAttribute::I64(self.k as i64))];
        // XLA compares in IEEE 754's total order. In that order, a NaN with a sign, such as the log of -1, is the least.
        let x = one_nan(hlo, inputs[0]);
        hlo.op(HloOp::new("chlo.top_k", &[x], results).attributes(attributes))
    }
}

impl Builder {
    /// Emits [`TopK`]: values and positions.
    #[track_caller]
    pub fn top_k(&mut self, x: Var, k: usize) -> (Var, Var) {
        let results = self.emit(TopK { k }, &[x]);
        (results[0], results[1])
    }
}

/// The order of [`TopK`].
fn total_order(x: Scalar, y: Scalar) -> Ordering {
    match (x, y) {
        (Scalar::Float(x), Scalar::Float(y)) if !x.is_nan() && !y.is_nan() => x.total_cmp(&y),
        (x, y) => order(x, y),
    }
}
