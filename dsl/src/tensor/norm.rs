//! Norms of vectors and matrices.

use super::reduce::restored;
use super::{ReducedAxes, Tensor, fail};

/// A norm of matrices, for [`Tensor::matrix_norm`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatrixNorm {
    /// The square root of the sum of the squared elements.
    Frobenius,
    /// The greatest sum of magnitudes in a column.
    One,
    /// The greatest sum of magnitudes in a row.
    Infinity,
}

/// Norms. If all elements are 0, the derivative of the Euclidean norm is NaN, and the derivative of
/// the other norms is 0 or 1, as in NumPy's formulas. To avoid it, add a small number to the
/// elements, or choose with [`select`](super::select) before the norm.
impl Tensor {
    /// The Euclidean norm over all axes.
    #[track_caller]
    pub fn norm(self) -> Tensor {
        self.accumulator().square().sum().sqrt().astype(self.dtype())
    }

    /// The norm of order `order` over some axes, which disappear unless in
    /// [`keepdims`](super::keepdims): `(sum |x|^order)^(1/order)`. 2 is the Euclidean norm,
    /// infinity the greatest magnitude, minus infinity the least magnitude, and 0 counts the
    /// nonzero elements. `jnp.linalg.vector_norm`.
    #[track_caller]
    pub fn vector_norm(self, order: f64, axes: impl ReducedAxes) -> Tensor {
        let ty = self.ty();
        if !ty.dtype.is_float() {
            let message = format!("expected floats, got {ty}: cast with `.astype(F32)`");
            return fail("vector_norm", message, &[self], ty);
        }
        let (axes, stay) = axes.into_reduced();
        let wide = self.accumulator();
        let norm = match order {
            0.0 => wide.ne(0).astype(wide.dtype()).sum_axis(axes.clone()),
            1.0 => wide.abs().sum_axis(axes.clone()),
            2.0 => wide.square().sum_axis(axes.clone()).sqrt(),
            f64::INFINITY => wide.abs().max_axis(axes.clone()),
            f64::NEG_INFINITY => wide.abs().min_axis(axes.clone()),
            order => wide.abs().pow(order).sum_axis(axes.clone()).pow(1.0 / order),
        };
        restored(norm, self, &axes, stay).astype(ty.dtype)
    }

    /// The norm of each matrix in the last two axes. The spectral and nuclear norms need singular
    /// values, which are not implemented. `jnp.linalg.matrix_norm`.
    #[track_caller]
    pub fn matrix_norm(self, norm: MatrixNorm) -> Tensor {
        let ty = self.ty();
        if ty.rank() < 2 || !ty.dtype.is_float() {
            let message = format!("expected matrices of floats in the last two axes, got {ty}");
            return fail("matrix_norm", message, &[self], ty);
        }
        match norm {
            MatrixNorm::Frobenius => self.vector_norm(2.0, [-2, -1]),
            MatrixNorm::One => self.abs().sum_axis(-2).max_axis(-1),
            MatrixNorm::Infinity => self.abs().sum_axis(-1).max_axis(-1),
        }
    }
}
