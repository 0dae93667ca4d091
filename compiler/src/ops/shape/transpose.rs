//! `transpose`: the axes in another order.

use super::{check_axes, shifted_with_batch};
use crate::array::Array;
use crate::ir::{Builder, Slope, Slopes, Var};
use crate::lower::{Hlo, HloResults, HloValue, hlo_transpose};
use crate::op_struct;
use crate::ops::rules::{batched_as, linear_jvp};
use crate::ops::samples::ramp;
use crate::ops::{Op, Operand, Rule, Sample, TypeError};
use crate::types::{DType, TensorType};

op_struct! {
    /// The axes in another order: axis `i` of the result is axis `permutation[i]` of the operand.
    Transpose = "transpose" {
        /// The operand's axes in the result's order.
        permutation: Vec<usize>,
    }
}

impl Transpose {
    /// Examples for the generic tests.
    pub fn samples() -> Vec<Sample> {
        let sample = |x: Array, permutation: &[usize]| {
            Sample::new(Transpose { permutation: permutation.to_vec() }, vec![x])
        };
        vec![
            sample(ramp(DType::F32, [2, 3]), &[1, 0]),
            sample(ramp(DType::F32, [2, 3, 4]), &[2, 0, 1]),
            sample(ramp(DType::F32, [2, 1, 3]), &[0, 2, 1]),
            sample(ramp(DType::I8, [2, 2]), &[1, 0]),
            sample(ramp(DType::Bool, [3]), &[0]),
            sample(ramp(DType::F32, []), &[]),
        ]
    }
}

/// The permutation that undoes `permutation`.
fn inverse(permutation: &[usize]) -> Vec<usize> {
    let mut inverse = vec![0; permutation.len()];
    for (to, &from) in permutation.iter().enumerate() {
        inverse[from] = to;
    }
    inverse
}

impl Op for Transpose {
    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        TypeError::check_arity(inputs, 1)?;
        let (x, permutation) = (&inputs[0], &self.permutation);
        if permutation.len() != x.rank() {
            refuse!("permutation {permutation:?} must name each axis of {x} once");
        }
        check_axes("permutation", permutation, x.rank())?;
        Ok(vec![x.with_shape(permutation.iter().map(|&axis| x.shape[axis]).collect::<Vec<_>>())])
    }

    fn eval(&self, inputs: &[Array]) -> Vec<Array> {
        let x = &inputs[0];
        let shape: Vec<usize> = self.permutation.iter().map(|&axis| x.ty().shape[axis]).collect();
        let mut source = vec![0; shape.len()];
        vec![Array::from_fn(x.ty().with_shape(shape), |index| {
            for (&axis, &i) in self.permutation.iter().zip(index) {
                source[axis] = i;
            }
            x.at(&source)
        })]
    }

    batched_as! { |op, _cx| Transpose { permutation: shifted_with_batch(&op.permutation) } }

    linear_jvp! {}

    fn transpose(&self, b: &mut Builder, _: &[Operand], cotangents: &[Slope]) -> Rule<Slopes> {
        Rule::Some(vec![cotangents[0].map(|ct| b.permute(ct, &inverse(&self.permutation)))])
    }

    fn recompute(&self) -> bool {
        true
    }

    fn lower(&self, hlo: &mut dyn Hlo, inputs: &[HloValue], _: &[TensorType]) -> HloResults {
        vec![hlo_transpose(hlo, inputs[0], &self.permutation)]
    }
}

impl Builder {
    /// The axes of `x` in the order `permutation`. Returns the same variable if that is their
    /// order.
    #[track_caller]
    pub fn permute(&mut self, x: Var, permutation: &[usize]) -> Var {
        if permutation.iter().copied().eq(0..self.ty(x).rank()) {
            return x;
        }
        self.emit1(Transpose { permutation: permutation.to_vec() }, &[x])
    }

    /// Axis `from` of `x` becomes axis `to`; the others keep their order.
    #[track_caller]
    pub fn move_axis(&mut self, x: Var, from: usize, to: usize) -> Var {
        let mut permutation: Vec<usize> = (0..self.ty(x).rank()).collect();
        let axis = permutation.remove(from);
        permutation.insert(to, axis);
        self.permute(x, &permutation)
    }
}
