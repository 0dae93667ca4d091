//! Random orthogonal matrices.
//!
//! The factor Q of A = Q R, for A of independent standard normals and the diagonal of R positive, is uniformly (Haar)
//! distributed: Mezzadri, "How to generate random matrices from the classical compact groups", 2007. With that sign it is
//! unique, so that any accurate method gives the same Q.
//!
//! The method is Gram and Schmidt's, twice for each column ("twice is enough": Giraud et al., "Rounding error analysis of
//! the classical Gram-Schmidt orthogonalization process", 2005), as a scan over columns: four matrix-vector products a
//! column, one small loop to compile, and no LAPACK, which not every device has.

use podracer_dsl::prelude::*;

/// f32 of shape `[.., in, out]`, read as a matrix with `out` columns: its columns are orthogonal if it has at least as
/// many rows, else its rows, each of norm `scale`.
#[track_caller]
pub fn orthogonal(key: Key, shape: &[usize], scale: f64) -> Tensor {
    let _scope = scope("orthogonal");
    let outputs = shape.last().copied().unwrap_or(1);
    let inputs: usize = shape.iter().rev().skip(1).product();
    // The draw has the long side first, as in JAX; then the vectors to make orthonormal are its columns.
    let (long, short) = (inputs.max(outputs), inputs.min(outputs));
    let normals = key.normal([long, short]);
    let rows = orthonormal_rows(normals.transpose());
    let matrix = if outputs >= inputs {
        rows
    } else {
        rows.transpose()
    };
    (matrix * scale).reshape(shape)
}

/// Orthonormal rows `[n, m]` spanning, one after the other, what the rows of `vectors` `[n, m]` span; n <= m.
#[track_caller]
fn orthonormal_rows(vectors: Tensor) -> Tensor {
    let n = vectors.len();
    let m = vectors.dim(1);
    let (rows, ()) = scan(zeros(F32, [n, m]), (vectors, 0..n), |done, (vector, i)| {
        // Rows that are still to come are zeros and take nothing away.
        let without = |vector: Tensor| vector - dot(dot(done, vector), done);
        let rest = without(without(vector));
        let unit = rest / rest.norm();
        let here = iota(I32, [n, 1], 0).eq(i);
        (select(here, unit, done), ())
    });
    rows
}
