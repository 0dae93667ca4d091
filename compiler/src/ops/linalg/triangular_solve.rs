//! `triangular_solve`: systems of equations with a triangular matrix.

use super::{check_square, entries, product, transposed};
use crate::array::{Array, for_each_index};
use crate::ir::{Batched, Builder, Slope, Slopes, Var};
use crate::lower::{Hlo, HloAttribute, HloResults, HloValue, hlo_op};
use crate::op_struct;
use crate::ops::{Direction, Op, Operand, Rule, Sample, TypeError};
use crate::scalar::Scalar;
use crate::transform::VmapContext;
use crate::types::{DType, TensorType};

op_struct! {
    /// Solves `op(a) x = b`, or `x op(a) = b` if not `left_side`, for `x`, for each pair of
    /// matrices in the last two axes. `a` is a triangular matrix, and `op(a)` is `a` or its
    /// transpose. The other triangle of `a` is not read. If the diagonal has a zero, `x` is not
    /// finite.
    TriangularSolve = "triangular_solve" {
        /// True to solve `op(a) x = b`, false to solve `x op(a) = b`.
        left_side: bool,
        /// True to read the lower triangle of `a`, false to read the upper.
        lower: bool,
        /// True to assume a diagonal of 1 without reading it.
        unit_diagonal: bool,
        /// True if `op(a)` is the transpose of `a`, false if it is `a`.
        transpose_a: bool,
    }
}

impl TriangularSolve {
    /// `a x = b` with the lower triangle of `a`.
    pub fn lower() -> TriangularSolve {
        TriangularSolve { left_side: true, lower: true, unit_diagonal: false, transpose_a: false }
    }

    /// `a x = b` with the upper triangle of `a`.
    pub fn upper() -> TriangularSolve {
        TriangularSolve { lower: false, ..TriangularSolve::lower() }
    }

    /// Examples for the generic tests: every choice of attributes, and a batch.
    pub fn samples() -> Vec<Sample> {
        let matrix = |dtype, shape: &[usize]| {
            let count = shape.iter().product::<usize>();
            let values: Vec<f64> = (0..count).map(|i| 1.0 + ((5 * i) % 7) as f64 * 0.25).collect();
            Array::floats(dtype, shape, &values)
        };
        let mut samples = Vec::new();
        for choice in 0..16 {
            let op = TriangularSolve {
                left_side: choice & 1 == 0,
                lower: choice & 2 == 0,
                unit_diagonal: choice & 4 != 0,
                transpose_a: choice & 8 != 0,
            };
            let b = if op.left_side { [3, 2] } else { [2, 3] };
            let inputs = vec![matrix(DType::F32, &[3, 3]), matrix(DType::F32, &b)];
            samples.push(Sample::new(op, inputs).tolerance(1e-6));
        }
        let inputs = vec![matrix(DType::F64, &[2, 2, 2]), matrix(DType::F64, &[2, 2, 1])];
        samples.push(Sample::new(TriangularSolve::lower(), inputs).tolerance(1e-14));
        samples
    }
}

impl Op for TriangularSolve {
    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        TypeError::check_arity(inputs, 2)?;
        let [a, b] = [&inputs[0], &inputs[1]];
        check_square(a)?;
        let n = a.rank() - 2;
        let (axis, side) = if self.left_side { (n, "rows") } else { (n + 1, "columns") };
        let fits = b.dtype == a.dtype
            && b.rank() == a.rank()
            && b.shape[..n] == a.shape[..n]
            && b.shape[axis] == a.shape[n];
        if !fits {
            refuse!(
                "expected matrices of {} {side} of the same dtype and batch as {a}, got {b}",
                a.shape[n]
            );
        }
        Ok(vec![b.clone()])
    }

    /// Substitution, from the end with the known coefficients.
    fn eval(&self, inputs: &[Array]) -> Vec<Array> {
        let [a, b] = [&inputs[0], &inputs[1]];
        let rank = b.ty().rank();
        let n = a.ty().shape[rank - 1];
        let (along, across) =
            if self.left_side { (rank - 2, rank - 1) } else { (rank - 1, rank - 2) };
        // The system of one vector has the matrix op(a), or its transpose if the vector is a row.
        let flipped = self.transpose_a == self.left_side;
        let from_front = self.lower != flipped;
        let mut result = b.clone();
        let mut starts = b.ty().shape.clone();
        starts[along] = 1;
        for_each_index(&starts, |start| {
            let coefficient = |i: usize, j: usize| {
                let mut index = start.to_vec();
                (index[rank - 2], index[rank - 1]) = if flipped { (j, i) } else { (i, j) };
                a.at(&index).float()
            };
            let place = |i: usize| {
                let mut index = start.to_vec();
                (index[along], index[across]) = (i, start[across]);
                index
            };
            let mut solved: Vec<(usize, f64)> = Vec::with_capacity(n);
            for step in 0..n {
                let i = if from_front { step } else { n - 1 - step };
                let known: f64 = solved.iter().map(|&(j, x)| coefficient(i, j) * x).sum();
                let rest = b.at(&place(i)).float() - known;
                let x = if self.unit_diagonal { rest } else { rest / coefficient(i, i) };
                solved.push((i, x));
                result.set(&place(i), Scalar::Float(x));
            }
        });
        vec![result]
    }

    fn vmap(&self, b: &mut Builder, cx: &VmapContext, inputs: &[Var], batched: &[bool]) -> Batched {
        let operands = cx.batch_all(b, inputs, batched);
        vec![(b.emit1(self.clone(), &operands), true)]
    }

    /// `op(a) dx = db - op(da) x`.
    fn jvp(
        &self,
        b: &mut Builder,
        inputs: &[Var],
        outputs: &[Var],
        tangents: &[Slope],
    ) -> Rule<Slopes> {
        let change = tangents[0].map(|t| {
            let rows = match (self.lower, self.unit_diagonal) {
                (true, false) => Direction::Ge,
                (true, true) => Direction::Gt,
                (false, false) => Direction::Le,
                (false, true) => Direction::Lt,
            };
            let t = entries(b, t, rows);
            let t = if self.transpose_a { transposed(b, t) } else { t };
            if self.left_side { product(b, t, outputs[0]) } else { product(b, outputs[0], t) }
        });
        let right = match (tangents[1], change) {
            (Some(t), Some(change)) => Some(b.sub(t, change)),
            (t, change) => t.or_else(|| change.map(|change| b.neg(change))),
        };
        Rule::Some(vec![right.map(|right| b.emit1(self.clone(), &[inputs[0], right]))])
    }

    fn transpose(&self, b: &mut Builder, inputs: &[Operand], cotangents: &[Slope]) -> Rule<Slopes> {
        let ct = cotangents[0].expect("transpose is called with a cotangent");
        let a = inputs[0].known().expect("linear in the right side only");
        let op = TriangularSolve { transpose_a: !self.transpose_a, ..self.clone() };
        Rule::Some(vec![None, Some(b.emit1(op, &[a, ct]))])
    }

    fn lower(&self, hlo: &mut dyn Hlo, inputs: &[HloValue], results: &[TensorType]) -> HloResults {
        let transpose = if self.transpose_a { "TRANSPOSE" } else { "NO_TRANSPOSE" };
        let attributes = vec![
            ("left_side", HloAttribute::Bool(self.left_side)),
            ("lower", HloAttribute::Bool(self.lower)),
            ("unit_diagonal", HloAttribute::Bool(self.unit_diagonal)),
            ("transpose_a", HloAttribute::Enum("transpose", transpose)),
        ];
        vec![hlo_op(hlo, "stablehlo.triangular_solve", inputs, attributes, &results[0])]
    }
}

impl Builder {
    /// Emits [`TriangularSolve`] with the lower triangle of `a`.
    #[track_caller]
    pub fn triangular_solve(&mut self, a: Var, b: Var, left_side: bool, transpose_a: bool) -> Var {
        let op = TriangularSolve { left_side, transpose_a, ..TriangularSolve::lower() };
        self.emit1(op, &[a, b])
    }
}
