//! Products of matrices and their generalizations.

use super::op::result_types;
use super::reduce::other_axes;
use super::samples::ramp;
use super::shape::{check_axes, shifted, shifted_with_batch};
use super::{Elementwise, Op, Operand, Rule, Sample, Save, TypeError};
use crate::array::Array;
use crate::ir::{Batched, Builder, Slope, Slopes, Var};
use crate::lower::{Hlo, HloAttribute, HloResults, HloValue, hlo_op};
use crate::op_struct;
use crate::scalar::Scalar;
use crate::transform::VmapContext;
use crate::types::{DType, TensorType};

op_struct! {
    /// Multiplies two tensors and sums over the contracted axes. Batch axes of both operands run
    /// together; all other axes are free. The result has the batch axes, then the free axes of the
    /// left operand, then the free axes of the right operand.
    ///
    /// `[m, k]` by `[k, n]` is `lhs_contract = [1], rhs_contract = [0]`. Integers wrap. XLA chooses
    /// the order of the sum. On accelerators it multiplies f32 in a faster and less accurate way,
    /// unless configured otherwise.
    DotGeneral = "dot_general" {
        /// Batch axes of the left operand.
        lhs_batch: Vec<usize>,
        /// Batch axes of the right operand, each with the extent of its counterpart on the left.
        rhs_batch: Vec<usize>,
        /// Contracted axes of the left operand.
        lhs_contract: Vec<usize>,
        /// Contracted axes of the right operand, each with the extent of its counterpart on the
        /// left.
        rhs_contract: Vec<usize>,
    }
}

/// The axes that [`DotGeneral`] batches and contracts: the op itself, under the name of its role.
pub type DotDimensions = DotGeneral;

impl Default for DotGeneral {
    /// The outer product: no axes are contracted and none run together.
    fn default() -> Self {
        DotGeneral::contracting([], [])
    }
}

impl DotGeneral {
    /// The product of matrices, `[m, k]` by `[k, n]`.
    pub fn matmul() -> DotGeneral {
        DotGeneral::contracting([1], [0])
    }

    /// The product that contracts these axes and has no batch axes.
    pub fn contracting(lhs: impl Into<Vec<usize>>, rhs: impl Into<Vec<usize>>) -> DotGeneral {
        DotGeneral {
            lhs_batch: Vec::new(),
            rhs_batch: Vec::new(),
            lhs_contract: lhs.into(),
            rhs_contract: rhs.into(),
        }
    }

    /// The same product with the operands exchanged; its result has the free axes of the right operand first.
    fn swapped(&self) -> DotGeneral {
        let DotGeneral { lhs_batch, rhs_batch, lhs_contract, rhs_contract } = self.clone();
        DotGeneral {
            lhs_batch: rhs_batch,
            rhs_batch: lhs_batch,
            lhs_contract: rhs_contract,
            rhs_contract: lhs_contract,
        }
    }

    fn lhs_free(&self, rank: usize) -> Vec<usize> {
        other_axes(rank, &[&self.lhs_batch[..], &self.lhs_contract].concat())
    }

    fn rhs_free(&self, rank: usize) -> Vec<usize> {
        other_axes(rank, &[&self.rhs_batch[..], &self.rhs_contract].concat())
    }

    /// The cotangent of the left operand, which has `rank` axes, if the right operand is `known`.
    /// `ct_contract` are the axes of `ct` that come from the free axes of `known`.
    fn lhs_cotangent(
        &self,
        b: &mut Builder,
        rank: usize,
        known: Var,
        ct: Var,
        ct_contract: Vec<usize>,
    ) -> Var {
        let free = self.lhs_free(rank);
        let dot = DotGeneral {
            lhs_batch: (0..self.lhs_batch.len()).collect(),
            rhs_batch: self.rhs_batch.clone(),
            lhs_contract: ct_contract,
            rhs_contract: self.rhs_free(b.ty(known).rank()),
        };
        // The remaining axes of `known` are its contracted axes in order of position; each belongs
        // to an axis of the left operand.
        let mut contracted: Vec<(usize, usize)> =
            self.rhs_contract.iter().copied().zip(self.lhs_contract.iter().copied()).collect();
        contracted.sort_unstable();
        let contracted: Vec<usize> = contracted.into_iter().map(|(_, lhs)| lhs).collect();
        // Exchanging the operands exchanges the free and the contracted axes, which may avoid a
        // transpose.
        let exchanged = [&self.lhs_batch[..], &contracted, &free].concat();
        if exchanged.is_sorted() {
            return b.dot_general(known, ct, dot.swapped());
        }
        let product = b.dot_general(ct, known, dot);
        let axes = [&self.lhs_batch[..], &free, &contracted].concat();
        let mut permutation = vec![0; rank];
        for (from, &to) in axes.iter().enumerate() {
            permutation[to] = from;
        }
        b.permute(product, &permutation)
    }

    /// Examples for the generic tests.
    pub fn samples() -> Vec<Sample> {
        let dot = |lhs_batch: &[usize],
                   rhs_batch: &[usize],
                   lhs_contract: &[usize],
                   rhs_contract: &[usize]| DotGeneral {
            lhs_batch: lhs_batch.to_vec(),
            rhs_batch: rhs_batch.to_vec(),
            lhs_contract: lhs_contract.to_vec(),
            rhs_contract: rhs_contract.to_vec(),
        };
        // The sums of these numbers are exact in any order, except for the sign of a zero.
        let sample = |op, dtype, lhs: &[usize], rhs: &[usize]| {
            Sample::new(op, vec![ramp(dtype, lhs), ramp(dtype, rhs)]).tolerance(1e-15)
        };
        let f32_sample = |op, lhs: &[usize], rhs: &[usize]| sample(op, DType::F32, lhs, rhs);
        vec![
            f32_sample(DotGeneral::matmul(), &[2, 3], &[3, 4]),
            f32_sample(DotGeneral::contracting([0], [1]), &[3, 2], &[4, 3]),
            f32_sample(DotGeneral::contracting([0], [0]), &[3], &[3]),
            f32_sample(DotGeneral::contracting([1], [0]), &[2, 3], &[3]),
            f32_sample(DotGeneral::contracting([], []), &[2], &[3]),
            f32_sample(DotGeneral::contracting([2, 0], [1, 2]), &[2, 3, 4], &[3, 4, 2]),
            f32_sample(dot(&[0], &[0], &[2], &[1]), &[2, 3, 4], &[2, 4, 2]),
            f32_sample(dot(&[1], &[2], &[0], &[0]), &[3, 2, 2], &[3, 4, 2]),
            f32_sample(dot(&[2, 0], &[0, 2], &[1], &[1]), &[2, 3, 4], &[4, 3, 2]),
            f32_sample(dot(&[0], &[0], &[], &[]), &[3], &[3]),
            f32_sample(DotGeneral::matmul(), &[2, 0], &[0, 2]).not_differentiable(),
            sample(DotGeneral::matmul(), DType::F64, &[2, 3], &[3, 2]),
            sample(DotGeneral::matmul(), DType::BF16, &[2, 3], &[3, 2]).not_differentiable(),
            sample(DotGeneral::matmul(), DType::I32, &[2, 3], &[3, 2]),
        ]
    }
}

impl Op for DotGeneral {
    fn library_work(&self, inputs: &[TensorType]) -> usize {
        let free = |ty: &TensorType, axes: Vec<usize>| -> usize {
            axes.iter().map(|&axis| ty.shape[axis]).product()
        };
        let (lhs, rhs) = (&inputs[0], &inputs[1]);
        let rows = free(lhs, self.lhs_free(lhs.rank()));
        let columns = free(rhs, self.rhs_free(rhs.rank()));
        // XLA multiplies a matrix and a vector in its own code.
        if rows > 1 && columns > 1 { lhs.elements().saturating_mul(columns) } else { 0 }
    }

    fn saved_by(&self, policy: &Save) -> bool {
        matches!(policy, Save::Everything | Save::Dots)
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        TypeError::check_arity(inputs, 2)?;
        let [lhs, rhs] = [&inputs[0], &inputs[1]];
        super::elementwise::numbers(&[lhs.dtype, rhs.dtype])?;
        check_axes(
            "lhs_batch and lhs_contract",
            &[&self.lhs_batch[..], &self.lhs_contract].concat(),
            lhs.rank(),
        )?;
        check_axes(
            "rhs_batch and rhs_contract",
            &[&self.rhs_batch[..], &self.rhs_contract].concat(),
            rhs.rank(),
        )?;
        for (what, left, right) in [
            ("batch", &self.lhs_batch, &self.rhs_batch),
            ("contracted", &self.lhs_contract, &self.rhs_contract),
        ] {
            if left.len() != right.len() {
                refuse!("expected as many {what} axes on both sides, got {left:?} and {right:?}");
            }
            if let Some((l, r)) =
                left.iter().zip(right).find(|&(&l, &r)| lhs.shape[l] != rhs.shape[r])
            {
                refuse!(
                    "{what} axes must have one extent: axis {l} of {lhs} and axis {r} of {rhs} differ"
                );
            }
        }
        let batch = self.lhs_batch.iter().map(|&axis| lhs.shape[axis]);
        let lhs_free = self.lhs_free(lhs.rank()).into_iter().map(|axis| lhs.shape[axis]);
        let rhs_free = self.rhs_free(rhs.rank()).into_iter().map(|axis| rhs.shape[axis]);
        Ok(vec![lhs.with_shape(batch.chain(lhs_free).chain(rhs_free).collect::<Vec<usize>>())])
    }

    fn eval(&self, inputs: &[Array]) -> Vec<Array> {
        let [lhs, rhs] = [&inputs[0], &inputs[1]];
        let ty = result_types(self, inputs).remove(0);
        let (lhs_free, rhs_free) = (self.lhs_free(lhs.ty().rank()), self.rhs_free(rhs.ty().rank()));
        let of_lhs = [&self.lhs_batch, &lhs_free, &self.lhs_contract];
        let of_rhs = [&self.rhs_batch, &rhs_free, &self.rhs_contract];
        let [lhs_batch, lhs_free, lhs_sum] = of_lhs.map(|axes| positions(&lhs.ty().shape, axes));
        let [rhs_batch, rhs_free, rhs_sum] = of_rhs.map(|axes| positions(&rhs.ty().shape, axes));
        let [lhs, rhs] = [lhs, rhs].map(|array| array.scalars().collect::<Vec<_>>());
        let mut data = Vec::with_capacity(ty.elements());
        for (l, r) in lhs_batch.iter().zip(&rhs_batch) {
            for l in lhs_free.iter().map(|free| l + free) {
                for r in rhs_free.iter().map(|free| r + free) {
                    let mut sum = Scalar::zero(ty.dtype);
                    for (x, y) in lhs_sum.iter().zip(&rhs_sum) {
                        sum = multiply_add(ty.dtype, sum, lhs[l + x], rhs[r + y]);
                    }
                    data.push(sum);
                }
            }
        }
        vec![Array::new(ty, data)]
    }

    fn vmap(&self, b: &mut Builder, _: &VmapContext, inputs: &[Var], batched: &[bool]) -> Batched {
        let mut op = self.clone();
        if batched[0] {
            op.lhs_contract = shifted(&self.lhs_contract);
            op.lhs_batch = shifted(&self.lhs_batch);
        }
        if batched[1] {
            op.rhs_contract = shifted(&self.rhs_contract);
            op.rhs_batch = shifted(&self.rhs_batch);
        }
        if batched[0] && batched[1] {
            op.lhs_batch = shifted_with_batch(&self.lhs_batch);
            op.rhs_batch = shifted_with_batch(&self.rhs_batch);
            return vec![(b.dot_general(inputs[0], inputs[1], op), true)];
        }
        // The batch is a free axis of its operand, and the first axis.
        let batch = self.lhs_batch.len();
        if batched[0] {
            let product = b.dot_general(inputs[0], inputs[1], op);
            return vec![(b.move_axis(product, batch, 0), true)];
        }
        let free = op.rhs_free(b.ty(inputs[1]).rank());
        if batch == 0 && free.len() == 1 {
            // A matrix times a batch of vectors is the batch, as a matrix, times the transposed
            // matrix: the result needs no transpose.
            return vec![(b.dot_general(inputs[1], inputs[0], op.swapped()), true)];
        }
        let before = batch + op.lhs_free(b.ty(inputs[0]).rank()).len();
        let product = b.dot_general(inputs[0], inputs[1], op);
        vec![(b.move_axis(product, before, 0), true)]
    }

    fn jvp(&self, b: &mut Builder, inputs: &[Var], _: &[Var], tangents: &[Slope]) -> Rule<Slopes> {
        let left = tangents[0].map(|t| b.dot_general(t, inputs[1], self.clone()));
        let right = tangents[1].map(|t| b.dot_general(inputs[0], t, self.clone()));
        Rule::Some(vec![super::elementwise::sum_of(b, left, right)])
    }

    fn transpose(&self, b: &mut Builder, inputs: &[Operand], cotangents: &[Slope]) -> Rule<Slopes> {
        let ct = cotangents[0].expect("transpose is called with a cotangent");
        // The cotangent's axes: batch, free of the left, free of the right.
        let batch = self.lhs_batch.len();
        let free = |rank: usize| rank - batch - self.lhs_contract.len();
        match (&inputs[0], &inputs[1]) {
            (Operand::Linear(lhs), Operand::Known(rhs)) => {
                let middle = batch + free(lhs.rank());
                let contract = (middle..b.ty(ct).rank()).collect();
                Rule::Some(vec![Some(self.lhs_cotangent(b, lhs.rank(), *rhs, ct, contract)), None])
            }
            (Operand::Known(lhs), Operand::Linear(rhs)) => {
                let middle = batch + free(b.ty(*lhs).rank());
                let contract = (batch..middle).collect();
                Rule::Some(vec![
                    None,
                    Some(self.swapped().lhs_cotangent(b, rhs.rank(), *lhs, ct, contract)),
                ])
            }
            _ => unreachable!("a linear equation has exactly one linear factor"),
        }
    }

    fn reads_many(&self) -> bool {
        true
    }

    fn lower(&self, hlo: &mut dyn Hlo, inputs: &[HloValue], results: &[TensorType]) -> HloResults {
        let DotGeneral { lhs_batch, rhs_batch, lhs_contract, rhs_contract } = self.clone();
        let dimensions = HloAttribute::Dot { lhs_batch, rhs_batch, lhs_contract, rhs_contract };
        vec![hlo_op(
            hlo,
            "stablehlo.dot_general",
            inputs,
            vec![("dot_dimension_numbers", dimensions)],
            &results[0],
        )]
    }
}

impl Builder {
    /// Emits [`DotGeneral`].
    #[track_caller]
    pub fn dot_general(&mut self, lhs: Var, rhs: Var, dimensions: DotDimensions) -> Var {
        self.emit1(dimensions, &[lhs, rhs])
    }

    /// The product of matrices, `[m, k]` by `[k, n]`.
    #[track_caller]
    pub fn matmul(&mut self, lhs: Var, rhs: Var) -> Var {
        self.dot_general(lhs, rhs, DotGeneral::matmul())
    }
}

/// `sum + x y`; a float is not rounded here, so that a sum is rounded once.
pub(super) fn multiply_add(dtype: DType, sum: Scalar, x: Scalar, y: Scalar) -> Scalar {
    match sum {
        Scalar::Float(sum) => Scalar::Float(sum + x.float() * y.float()),
        sum => {
            let product = super::Multiply {}.scalar(dtype, &[x, y]);
            Scalar::Int(dtype.wrap(sum.int() + dtype.wrap(product.int())))
        }
    }
}

/// The positions of the elements along some axes, in row-major order of these axes, with all other indices 0.
fn positions(shape: &[usize], axes: &[usize]) -> Vec<usize> {
    let mut positions = vec![0];
    for &axis in axes {
        let stride: usize = shape[axis + 1..].iter().product();
        let along = |position: usize| (0..shape[axis]).map(move |i| position + i * stride);
        positions = positions.into_iter().flat_map(along).collect();
    }
    positions
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transform::{vjp, vmap};

    fn product(dimensions: DotDimensions, lhs: &[usize], rhs: &[usize]) -> crate::Func {
        let mut b = Builder::new();
        let x = b.param(TensorType::new(DType::F32, lhs));
        let y = b.param(TensorType::new(DType::F32, rhs));
        let z = b.dot_general(x, y, dimensions);
        b.finish("product", vec![z])
    }

    fn ops_of_batch(func: &crate::Func, batched: [bool; 2]) -> Vec<&'static str> {
        let (wide, _) = vmap(func, &VmapContext::new(8), &batched, &[true]);
        wide.eqns.iter().map(|eqn| eqn.op.mnemonic()).collect()
    }

    #[test]
    fn a_layer_over_a_batch_is_one_product() {
        let row_by_matrix = product(DotGeneral::contracting([0], [0]), &[3], &[3, 4]);
        assert_eq!(ops_of_batch(&row_by_matrix, [true, false]), ["dot_general"]);
        let matrix_by_column = product(DotGeneral::contracting([1], [0]), &[4, 3], &[3]);
        assert_eq!(ops_of_batch(&matrix_by_column, [false, true]), ["dot_general"]);
        let matrices = product(DotGeneral::matmul(), &[2, 3], &[3, 4]);
        assert_eq!(ops_of_batch(&matrices, [true, false]), ["dot_general"]);
        assert_eq!(ops_of_batch(&matrices, [true, true]), ["dot_general"]);
        assert_eq!(ops_of_batch(&matrices, [false, true]), ["dot_general", "transpose"]);
    }

    #[test]
    fn the_gradient_of_a_product_is_two_products() {
        for (dimensions, lhs, rhs) in [
            (DotGeneral::matmul(), [2, 3], [3, 4]),
            (DotGeneral::contracting([1], [1]), [2, 3], [4, 3]),
            (DotGeneral::contracting([0], [0]), [3, 2], [3, 4]),
            (DotGeneral::contracting([0], [1]), [3, 2], [4, 3]),
        ] {
            let gradient = vjp(&product(dimensions, &lhs, &rhs), &[true, true])
                .expect("a product has a gradient");
            let ops: Vec<&str> =
                gradient.pullback.eqns.iter().map(|eqn| eqn.op.mnemonic()).collect();
            assert_eq!(ops, ["dot_general", "dot_general"]);
        }
    }
}
