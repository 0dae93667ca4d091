//! Random orthogonal matrices.
//!
//! Let A = Q R with a positive diagonal of R, and let the elements of A be independent standard
//! normals. Then Q is uniformly (Haar) distributed: Mezzadri, "How to generate random matrices from
//! the classical compact groups", 2007. With this sign convention Q is unique, so any accurate
//! method computes the same Q.

use podracer_dsl::prelude::*;

/// A random orthogonal matrix, f32 of shape `[.., in, out]`, seen as a matrix with `out` columns.
/// Its columns are orthogonal if it has at least as many rows, otherwise its rows, each of norm
/// `scale`.
#[track_caller]
pub fn orthogonal(key: Key, shape: &[usize], scale: f64) -> Tensor {
    let _scope = scope("orthogonal");
    let outputs = shape.last().copied().unwrap_or(1);
    let inputs: usize = shape.iter().rev().skip(1).product();
    // The draw has the long side first, as in JAX. Then its columns are the vectors to make
    // orthonormal.
    let (long, short) = (inputs.max(outputs), inputs.min(outputs));
    let normals = key.normal([long, short]);
    let columns = if short == 1 {
        normals / normals.square().sum().sqrt()
    } else {
        let (q, r) = normals.qr();
        q * (r * eye(F32, short)).sum_axis(0).sign()
    };
    let matrix = if outputs >= inputs { columns.transpose() } else { columns };
    (matrix * scale).reshape(shape)
}
