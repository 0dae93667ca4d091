//! Systems of linear equations, inverses and determinants, by the QR factorization.
//!
//! Householder's method is backward stable without pivoting, and each of its steps has a
//! derivative. Its loop has a step for each column, so it suits matrices of tens of rows, such as
//! in a filter or a Gaussian.

use super::create::{self, eye};
use super::linalg::householder;
use super::{Tensor, dot, fail, poison, select, triangular_solve};
use crate::control::vmap;
use crate::trace::scope;
use podracer_compiler::TensorType;
use podracer_compiler::ops::TriangularSolve;

/// Square matrices in the last two axes; leading axes are a batch.
///
/// In f32, values agree with LAPACK within a relative error of `1e-6` times the condition number,
/// and derivatives within that error times the condition number once more. The inverse of a
/// singular matrix is not finite or meaningless. So is every derivative at a singular matrix, with
/// one exception: the derivative of the determinant alone, if the first `n - 1` columns are
/// linearly independent.
impl Tensor {
    /// The solution `x` of `self x = b`. `self` is `[.., n, n]`; `b` is `[.., n, m]` with the same batch, or a vector
    /// `[n]` for one matrix.
    ///
    /// # Errors
    /// Matrices that are not square, or a right side that does not fit.
    #[track_caller]
    pub fn solve(self, b: Tensor) -> Tensor {
        let _scope = scope("solve");
        let (ty, b_ty) = (self.ty(), b.ty());
        let Some(n) = side("solve", self) else {
            return poison(b_ty);
        };
        let batch = &ty.shape[..ty.rank() - 2];
        let fits = ty.dtype == b_ty.dtype
            && match &b_ty.shape[..] {
                [rows] => batch.is_empty() && *rows == n,
                [b_batch @ .., rows, _] => b_batch == batch && *rows == n,
                [] => false,
            };
        if !fits {
            let message = format!("the right side {b_ty} does not fit the matrices {ty}");
            return fail("solve", message, &[self, b], b_ty);
        }
        if !batch.is_empty() {
            return vmap((self, b), |(a, b)| a.solve(b));
        }
        if n == 0 {
            return b;
        }
        let columns = if b_ty.rank() == 1 { b.expand_dims(1) } else { b };
        let (q, r) = self.qr();
        let x = triangular_solve(r, dot(q.transpose(), columns), TriangularSolve::upper());
        x.reshape(b_ty.shape)
    }

    /// The inverse of each matrix. [`Tensor::solve`] is faster and more accurate than multiplying
    /// by the inverse.
    ///
    /// # Errors
    /// Matrices that are not square.
    #[track_caller]
    pub fn inv(self) -> Tensor {
        let _scope = scope("inv");
        let ty = self.ty();
        match side("inv", self) {
            None => poison(ty),
            Some(_) if ty.rank() > 2 => vmap(self, |x| x.inv()),
            Some(n) => self.solve(eye(ty.dtype, n)),
        }
    }

    /// The determinant of each matrix; 1 for an empty matrix `[0, 0]`.
    ///
    /// # Errors
    /// Matrices that are not square.
    #[track_caller]
    pub fn det(self) -> Tensor {
        let _scope = scope("det");
        let ty = self.ty();
        match side("det", self) {
            None => poison(scalars(&ty)),
            Some(_) if ty.rank() > 2 => vmap(self, |x| x.det()),
            Some(_) => {
                let (sign, diagonal) = triangle(self);
                sign * diagonal.prod()
            }
        }
    }

    /// The sign of each matrix's determinant, -1, 0 or 1, and the logarithm of its magnitude, which
    /// does not overflow: -inf if the determinant is 0.
    ///
    /// # Errors
    /// Matrices that are not square.
    #[track_caller]
    pub fn slogdet(self) -> (Tensor, Tensor) {
        let _scope = scope("slogdet");
        let ty = self.ty();
        match side("slogdet", self) {
            None => (poison(scalars(&ty)), poison(scalars(&ty))),
            Some(_) if ty.rank() > 2 => vmap(self, |x| x.slogdet()),
            Some(_) => {
                let (sign, diagonal) = triangle(self);
                (sign * diagonal.sign().prod(), diagonal.abs().log().sum())
            }
        }
    }
}

/// The rows of square matrices of floats; an error and `None` for anything else.
#[track_caller]
fn side(op: &str, x: Tensor) -> Option<usize> {
    let ty = x.ty();
    match ty.shape[..] {
        [.., rows, columns] if rows == columns && ty.dtype.is_float() => Some(rows),
        _ => {
            super::report(op, format!("expected square matrices of floats, got {ty}"), &[x]);
            None
        }
    }
}

fn scalars(ty: &TensorType) -> TensorType {
    ty.with_shape(&ty.shape[..ty.rank().saturating_sub(2)])
}

/// The determinant of `q`, and the diagonal of `r`: each reflection flips the sign.
#[track_caller]
fn triangle(x: Tensor) -> (Tensor, Tensor) {
    let ty = x.ty();
    if ty.shape[0] == 0 {
        return (create::ones(ty.dtype, []), create::zeros(ty.dtype, [0]));
    }
    let (r, (vectors, _)) = householder(x);
    let turned = vectors.ne(0).any_axis(1);
    let signs = select(turned, -1, 1).astype(ty.dtype);
    (crate::stop_gradient(signs.prod()), r.diagonal(0))
}
