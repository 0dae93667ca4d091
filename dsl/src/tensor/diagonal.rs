//! Diagonals of matrices, and products that lay out matrices: Kronecker's and the cross product.

use super::create::{iota, zeros};
use super::{IntoTensor, Operand, Tensor, align, fail, select};
use podracer_compiler::DType;

/// Diagonals of matrices.
impl Tensor {
    /// The diagonal `offset` of each matrix in the last two axes: 0 is the main diagonal, positive
    /// offsets lie above it. `[.., m, n]` gives `[.., d]`. Empty if the matrix has no such
    /// diagonal.
    #[track_caller]
    pub fn diagonal(self, offset: i32) -> Tensor {
        let ty = self.ty();
        let &[ref batch @ .., rows, columns] = &ty.shape[..] else {
            return fail("diagonal", format!("expected at least 2 axes, got {ty}"), &[self], ty);
        };
        let below = offset.min(0).unsigned_abs() as usize;
        let above = offset.max(0) as usize;
        let count = rows.saturating_sub(below).min(columns.saturating_sub(above));
        let flat = self.reshape([batch, &[rows * columns]].concat());
        // Neighbours on a diagonal are a row and a column apart.
        let start = if count == 0 { 0 } else { below * columns + above };
        let limit = if count == 0 { 0 } else { start + (count - 1) * (columns + 1) + 1 };
        let mut bounds: Vec<(isize, isize)> =
            batch.iter().map(|&extent| (0, extent as isize)).collect();
        bounds.push((start as isize, limit as isize));
        let mut steps = vec![1; batch.len()];
        steps.push(columns + 1);
        flat.slice_strided(&bounds, &steps)
    }

    /// A matrix with this vector as its diagonal `offset` and zeros elsewhere; for a matrix, its
    /// diagonal. NumPy's `diag`.
    ///
    /// # Errors
    /// Other ranks: [`Tensor::diagonal`] takes batches of matrices, and [`vmap`](crate::vmap) batches of vectors.
    #[track_caller]
    pub fn diag(self, offset: i32) -> Tensor {
        let ty = self.ty();
        match ty.shape[..] {
            [_, _] => self.diagonal(offset),
            [n] => {
                let beside = offset.unsigned_abs() as usize;
                let side = n + beside;
                let shape = [side, side];
                let row = iota(DType::I32, shape, 0);
                let on = iota(DType::I32, shape, 1).eq(row + offset);
                let padded = self.pad(&[(0, beside as i64)], zeros(ty.dtype, []));
                let spread = padded.expand_dims(if offset < 0 { 0 } else { 1 });
                let spread = spread.broadcast_to(shape);
                select(on, spread, spread.zeros_like())
            }
            _ => fail("diag", format!("expected a vector or a matrix, got {ty}"), &[self], ty),
        }
    }

    /// The sum of the diagonal of each matrix in the last two axes.
    #[track_caller]
    pub fn trace(self) -> Tensor {
        self.diagonal(0).sum_axis(-1)
    }

    /// The Kronecker product: every element of `self` times the whole `right`, in blocks. If the
    /// ranks differ, the smaller shape gets leading axes of extent 1.
    #[track_caller]
    pub fn kron(self, right: Tensor) -> Tensor {
        let (a, b) = (self.shape(), right.shape());
        let rank = a.len().max(b.len());
        let full = |shape: &[usize]| [&vec![1; rank - shape.len()], shape].concat();
        let (a, b) = (full(&a), full(&b));
        let pairs = |left: bool| {
            let pair = |i: usize| if left { [a[i], 1] } else { [1, b[i]] };
            (0..rank).flat_map(pair).collect::<Vec<_>>()
        };
        let product = self.reshape(pairs(true)) * right.reshape(pairs(false));
        product.reshape(a.iter().zip(&b).map(|(a, b)| a * b).collect::<Vec<_>>())
    }

    /// The cross product of vectors of three elements in the last axis; the other axes broadcast.
    #[track_caller]
    pub fn cross(self, right: impl IntoTensor) -> Tensor {
        let [a, b] = align("cross", vec![Operand::Tensor(self), right.operand()])[..] else {
            return self;
        };
        if a.shape().last() != Some(&3) {
            let message = format!("expected 3 elements in the last axis, got {}", a.ty());
            return fail("cross", message, &[a, b], a.ty());
        }
        let (one, two) = (|x: Tensor| x.roll(-1, -1), |x: Tensor| x.roll(-2, -1));
        one(a) * two(b) - two(a) * one(b)
    }
}
