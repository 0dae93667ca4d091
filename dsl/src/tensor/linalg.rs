//! Linear algebra: factors of matrices, and solving triangular systems.

use super::create::{eye, iota};
use super::{Tensor, dot, emit1, fail, outer, poison, select};
use crate::control::{scan, scan_reverse};
use crate::trace::scope;
use podracer_compiler::DType;
use podracer_compiler::ops::{Cholesky, TriangularSolve};

/// Solves triangular systems, for each pair of matrices in the last two axes; see [`TriangularSolve`].
///
/// ```
/// # use podracer_dsl::prelude::*;
/// # let traced = trace((f32([3, 3]), f32([3, 2])), |(a, b)| {
/// // x with tril(a) x = b, and with x tril(a)^T = b^T.
/// let x = triangular_solve(a, b, TriangularSolve::lower());
/// let y = triangular_solve(a, b.transpose(), TriangularSolve {
///     left_side: false,
///     transpose_a: true,
///     ..TriangularSolve::lower()
/// });
/// # (x, y)
/// # });
/// # traced.unwrap();
/// ```
///
/// # Errors
/// Matrices that are not square, or do not fit each other.
#[track_caller]
pub fn triangular_solve(a: Tensor, b: Tensor, system: TriangularSolve) -> Tensor {
    emit1(system, &[a, b], b.ty())
}

/// Factorizations of matrices.
impl Tensor {
    /// The Cholesky factor of each matrix in the last two axes: the lower triangular `L` with a
    /// positive diagonal and `L L^T` equal to the matrix. Only lower triangles are read. If a
    /// matrix is not positive definite, some entries are NaN.
    #[track_caller]
    pub fn cholesky(self) -> Tensor {
        emit1(Cholesky {}, &[self], self.ty())
    }

    /// The QR factorization `(q, r)` of a matrix `[m, n]`, with `k` the lesser of `m` and `n`. `q`
    /// `[m, k]` has orthonormal columns, `r` `[k, n]` is upper triangular, and their product is the
    /// matrix. Signs are LAPACK's. The derivative is finite if the first `k` columns are linearly
    /// independent.
    ///
    /// The method is Householder's ("Unitary triangularization of a nonsymmetric matrix", 1958), as
    /// two loops over the columns. It needs no LAPACK, which some devices lack.
    #[track_caller]
    pub fn qr(self) -> (Tensor, Tensor) {
        let _scope = scope("qr");
        let ty = self.ty();
        let &[m, n] = &ty.shape[..] else {
            let q = fail("qr", format!("expected a matrix, got {ty}"), &[self], ty.clone());
            return (q, poison(ty));
        };
        let k = m.min(n);
        let (r, reflectors) = householder(self);
        let columns = eye(ty.dtype, m).slice((.., ..k as isize));
        let (q, ()) = scan_reverse(columns, reflectors, |q, (vector, scale)| {
            (reflected(q, vector, scale), ())
        });
        (q, r.slice(..k as isize).triu(0))
    }
}

/// The upper triangle of a matrix `[m, n]`, with rounding errors below it, and the reflections that
/// lead to it. The reflections are vectors `[k, m]` and scales `[k]`; a vector of zeros has no
/// effect.
#[track_caller]
pub(super) fn householder(x: Tensor) -> (Tensor, (Tensor, Tensor)) {
    let shape = x.shape();
    scan(x, 0..shape[0].min(shape[1]), |r, i| {
        let (vector, scale) = reflector(r.take(i, 1), i);
        (reflected(r, vector, scale), (vector, scale))
    })
}

/// The vector `v` and the scale `s` of a reflection `1 - s v v^T`. It keeps the elements before `i`
/// of a column, and makes the elements after `i` zero. A column that already has zeros after `i` is
/// unchanged.
#[track_caller]
fn reflector(column: Tensor, i: Tensor) -> (Tensor, Tensor) {
    let place = iota(DType::I32, column.shape(), 0);
    let zero = column.zeros_like();
    let head = select(place.eq(i), column, zero);
    let tail = select(place.gt(i), column, zero);
    let rest = tail.square().sum();
    // The side that is not selected must not divide by zero, or the gradient is NaN.
    let done = rest.eq(0);
    let length = select(done, 1, head.square().sum() + rest).sqrt();
    let sign = select(head.sum().ge(0), length.ones_like(), -length.ones_like());
    let unit = place.eq(i).astype(column.dtype());
    let vector = select(done, zero, tail + head + sign * length * unit);
    (vector, 2.0 / select(done, 1, vector.square().sum()))
}

/// `(1 - scale vector vector^T) x`.
#[track_caller]
fn reflected(x: Tensor, vector: Tensor, scale: Tensor) -> Tensor {
    x - outer(vector * scale, dot(vector, x))
}
