//! `cholesky`: the triangular factor of a positive definite matrix.

use super::{check_square, entries, product, transposed};
use crate::array::{Array, for_each_index};
use crate::ir::{Batched, Builder, Slope, Slopes, Var};
use crate::lower::{
    Hlo, HloAttribute, HloResults, HloValue, hlo_compare, hlo_op, hlo_select, hlo_splat,
};
use crate::op_struct;
use crate::ops::rules::no_transpose;
use crate::ops::{Direction, Op, Rule, Sample, TypeError};
use crate::scalar::Scalar;
use crate::transform::VmapContext;
use crate::types::{DType, TensorType};

op_struct! {
    /// The lower triangular `L` with a positive diagonal and `L L^T` equal to the operand, for each
    /// matrix in the last two axes. Only the lower triangles are read: the rest is assumed to be
    /// symmetric. If a matrix is not positive definite, some entries are NaN.
    Cholesky = "cholesky" {}
}

impl Cholesky {
    /// Examples for the generic tests. They stay positive definite when their elements are rolled.
    pub fn samples() -> Vec<Sample> {
        let sample = |dtype, shape: &[usize], values: &[f64], tolerance| {
            let x = Array::floats(dtype, shape, values);
            Sample::new(Cholesky {}, vec![x]).tolerance(tolerance)
        };
        vec![
            sample(DType::F32, &[1, 1], &[2.25], 1e-6),
            sample(DType::F32, &[2, 2], &[2.0, 9.0, 1.0, 2.0], 1e-6),
            sample(DType::F32, &[3, 3], &SQUARE, 1e-6),
            sample(DType::F64, &[3, 3], &SQUARE, 1e-14),
            sample(DType::F32, &[2, 2, 2], &BATCH, 1e-6),
        ]
    }
}

const SQUARE: [f64; 9] = [1.125, 4.125, 4.125, 0.0, 0.125, 1.125, 0.875, 0.0, 0.875];
const BATCH: [f64; 8] = [1.5, 4.375, 1.25, 1.75, 1.5, 4.375, 1.25, 1.75];

/// The entries below the diagonal and half of the diagonal: `half + half^T` is the symmetric matrix
/// of a lower triangle.
fn half(b: &mut Builder, x: Var) -> Var {
    let below = entries(b, x, Direction::Gt);
    let diagonal = entries(b, x, Direction::Eq);
    let one_half = b.full_like(x, 0.5);
    let diagonal = b.mul(diagonal, one_half);
    b.add(below, diagonal)
}

impl Op for Cholesky {
    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        TypeError::check_arity(inputs, 1)?;
        check_square(&inputs[0])?;
        Ok(inputs.to_vec())
    }

    fn eval(&self, inputs: &[Array]) -> Vec<Array> {
        let x = &inputs[0];
        let (batch, matrix) = x.ty().shape.split_at(x.ty().rank() - 2);
        let n = matrix[0];
        let mut result = Array::splat(x.ty().clone(), Scalar::Float(0.0));
        for_each_index(batch, |batch| {
            let at = |i: usize, j: usize| [batch, &[i, j]].concat();
            let mut factor = vec![vec![0.0; n]; n];
            for i in 0..n {
                for j in 0..=i {
                    let known: f64 = (0..j).map(|k| factor[i][k] * factor[j][k]).sum();
                    let rest = x.at(&at(i, j)).float() - known;
                    factor[i][j] = if i == j { rest.sqrt() } else { rest / factor[j][j] };
                    result.set(&at(i, j), Scalar::Float(factor[i][j]));
                }
            }
        });
        vec![result]
    }

    fn vmap(&self, b: &mut Builder, _: &VmapContext, inputs: &[Var], _: &[bool]) -> Batched {
        vec![(b.cholesky(inputs[0]), true)]
    }

    /// `dL = L half(L^-1 dA L^-T)`: Murray, "Differentiation of the Cholesky decomposition", 2016, eq. 8.
    fn jvp(&self, b: &mut Builder, _: &[Var], outputs: &[Var], tangents: &[Slope]) -> Rule<Slopes> {
        let tangent = tangents[0].map(|t| {
            let lower = half(b, t);
            let upper = transposed(b, lower);
            let symmetric = b.add(lower, upper);
            let left = b.triangular_solve(outputs[0], symmetric, true, false);
            let both = b.triangular_solve(outputs[0], left, false, true);
            let inner = half(b, both);
            product(b, outputs[0], inner)
        });
        Rule::Some(vec![tangent])
    }

    no_transpose! { "it is not linear in its operand" }

    /// StableHLO does not define the elements above the diagonal; this sets them to zero.
    fn lower(&self, hlo: &mut dyn Hlo, inputs: &[HloValue], results: &[TensorType]) -> HloResults {
        let ty = &results[0];
        let lower = vec![("lower", HloAttribute::Bool(true))];
        let factor = hlo_op(hlo, "stablehlo.cholesky", inputs, lower, ty);
        let [row, column] = [2, 1].map(|back| {
            let axis = HloAttribute::I64((ty.rank() - back) as i64);
            let attributes = vec![("iota_dimension", axis)];
            hlo_op(hlo, "stablehlo.iota", &[], attributes, &ty.with_dtype(DType::I32))
        });
        let keep = hlo_compare(hlo, "GE", row, column);
        let zeros = hlo_splat(hlo, ty, Scalar::Float(0.0));
        vec![hlo_select(hlo, keep, factor, zeros)]
    }
}

impl Builder {
    /// Emits [`Cholesky`].
    #[track_caller]
    pub fn cholesky(&mut self, x: Var) -> Var {
        self.emit1(Cholesky {}, &[x])
    }
}
