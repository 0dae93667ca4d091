//! `broadcast_in_dim`: repeats elements along new or unit axes.

use super::{check_axes, prepended, shifted_with_batch};
use crate::array::Array;
use crate::ir::{Builder, Slope, Slopes, Var};
use crate::lower::{Hlo, HloResults, HloValue, hlo_broadcast};
use crate::op_struct;
use crate::ops::rules::{batched_as, linear_jvp};
use crate::ops::samples::ramp;
use crate::ops::{Op, Operand, Rule, Sample, TypeError};
use crate::types::{DType, TensorType};

op_struct! {
    /// Repeats elements: axis `i` of the operand becomes axis `broadcast_dimensions[i]` of the result, and the other
    /// axes of the result repeat.
    ///
    /// The operand's extent along its axis equals the result's extent, or is 1 and repeats.
    BroadcastInDim = "broadcast_in_dim" {
        /// The result's shape.
        shape: Vec<usize>,
        /// The result's axis for each of the operand's axes; all are distinct.
        broadcast_dimensions: Vec<usize>,
    }
}

impl BroadcastInDim {
    /// Examples for the generic tests.
    pub fn samples() -> Vec<Sample> {
        let sample = |x: Array, shape: &[usize], dims: &[usize]| {
            let op = BroadcastInDim { shape: shape.to_vec(), broadcast_dimensions: dims.to_vec() };
            Sample::new(op, vec![x])
        };
        vec![
            sample(ramp(DType::F32, []), &[2, 3], &[]),
            sample(ramp(DType::F32, [3]), &[2, 3], &[1]),
            sample(ramp(DType::F32, [2, 3]), &[3, 4, 2], &[2, 0]),
            sample(ramp(DType::F32, [2, 1, 3]), &[2, 4, 3], &[0, 1, 2]),
            sample(ramp(DType::F32, [1, 1]), &[1, 5], &[0, 1]),
            sample(ramp(DType::Bool, [2]), &[2, 2], &[0]),
            sample(ramp(DType::U16, [2]), &[2, 0], &[0]),
        ]
    }

    /// True if the operand's axis `i`, of extent `extent`, repeats.
    fn repeats(&self, i: usize, extent: usize) -> bool {
        extent == 1 && self.shape[self.broadcast_dimensions[i]] != 1
    }
}

impl Op for BroadcastInDim {
    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        TypeError::check_arity(inputs, 1)?;
        let (x, dims) = (&inputs[0], &self.broadcast_dimensions);
        if dims.len() != x.rank() {
            refuse!(
                "broadcast_dimensions must name one result axis for each axis of {x}, got {dims:?}"
            );
        }
        check_axes("broadcast_dimensions", dims, self.shape.len())?;
        for (axis, (&extent, &dim)) in x.shape.iter().zip(dims).enumerate() {
            if extent != 1 && extent != self.shape[dim] {
                refuse!(
                    "axis {axis} of {x} cannot become axis {dim} of shape {:?}: {extent} is neither 1 nor {}",
                    self.shape,
                    self.shape[dim]
                );
            }
        }
        Ok(vec![x.with_shape(self.shape.clone())])
    }

    fn eval(&self, inputs: &[Array]) -> Vec<Array> {
        let x = &inputs[0];
        let mut source = vec![0; x.ty().rank()];
        vec![Array::from_fn(x.ty().with_shape(self.shape.clone()), |index| {
            for (axis, &dim) in self.broadcast_dimensions.iter().enumerate() {
                source[axis] = if x.ty().shape[axis] == 1 { 0 } else { index[dim] };
            }
            x.at(&source)
        })]
    }

    batched_as! { |op, cx| BroadcastInDim {
        shape: prepended(cx.size, &op.shape),
        broadcast_dimensions: shifted_with_batch(&op.broadcast_dimensions),
    } }

    linear_jvp! {}

    fn transpose(&self, b: &mut Builder, inputs: &[Operand], cotangents: &[Slope]) -> Rule<Slopes> {
        let (Some(x), Some(ct)) = (inputs[0].linear(), cotangents[0]) else {
            return Rule::Some(vec![None]);
        };
        // Repeated axes are summed; the remaining axes are in the result's order, not yet in the
        // operand's.
        let mut kept: Vec<(usize, usize)> = Vec::new();
        for (axis, &extent) in x.shape.iter().enumerate() {
            if !self.repeats(axis, extent) {
                kept.push((self.broadcast_dimensions[axis], axis));
            }
        }
        let summed: Vec<usize> =
            (0..self.shape.len()).filter(|dim| kept.iter().all(|(d, _)| d != dim)).collect();
        let sum = if summed.is_empty() { ct } else { b.reduce_sum(ct, &summed) };
        let mut order: Vec<usize> = (0..kept.len()).collect();
        order.sort_by_key(|&i| kept[i].0);
        let permutation: Vec<usize> = (0..kept.len())
            .map(|i| order.iter().position(|&o| o == i).expect("a permutation"))
            .collect();
        let permuted = b.permute(sum, &permutation);
        Rule::Some(vec![Some(b.reshape(permuted, &x.shape))])
    }

    fn recompute(&self) -> bool {
        true
    }

    fn lower(&self, hlo: &mut dyn Hlo, inputs: &[HloValue], results: &[TensorType]) -> HloResults {
        vec![hlo_broadcast(hlo, inputs[0], &self.broadcast_dimensions, &results[0])]
    }
}

impl Builder {
    /// Repeats `x` to `shape`, its axis `i` becoming axis `dims[i]`. Returns the same variable if
    /// nothing changes.
    #[track_caller]
    pub fn broadcast_in_dim(&mut self, x: Var, shape: &[usize], dims: &[usize]) -> Var {
        if self.ty(x).shape[..] == *shape && dims.iter().copied().eq(0..shape.len()) {
            return x;
        }
        self.emit1(
            BroadcastInDim { shape: shape.to_vec(), broadcast_dimensions: dims.to_vec() },
            &[x],
        )
    }

    /// `size` copies of `x` along a new leading axis.
    pub fn broadcast_leading(&mut self, x: Var, size: usize) -> Var {
        let shape = self.ty(x).stacked(size).shape;
        let dims: Vec<usize> = (1..shape.len()).collect();
        self.emit1(BroadcastInDim { shape: shape.into_vec(), broadcast_dimensions: dims }, &[x])
    }
}
