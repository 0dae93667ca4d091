//! Linear algebra on matrices, which are the last two axes: the Cholesky factor and solving triangular systems.

mod cholesky;
mod triangular_solve;

pub use cholesky::Cholesky;
pub use triangular_solve::TriangularSolve;

use super::{Direction, DotGeneral, TypeError};
use crate::ir::{Builder, Var};
use crate::types::{DType, TensorType};

/// Checks that `x` consists of square float matrices.
fn check_square(x: &TensorType) -> Result<(), TypeError> {
    super::elementwise::floats(&[x.dtype])?;
    match x.shape[..] {
        [.., rows, columns] if rows == columns => Ok(()),
        _ => Err(TypeError::new(format!("expected square matrices, got {x}"))),
    }
}

/// The transposes of matrices: the last two axes exchanged.
fn transposed(b: &mut Builder, x: Var) -> Var {
    let rank = b.ty(x).rank();
    b.move_axis(x, rank - 1, rank - 2)
}

/// The products of matrices `x` and `y`, one by one over the axes before the last two.
fn product(b: &mut Builder, x: Var, y: Var) -> Var {
    let batch = b.ty(x).rank() - 2;
    let axes: Vec<usize> = (0..batch).collect();
    let dot = DotGeneral {
        lhs_batch: axes.clone(),
        rhs_batch: axes,
        lhs_contract: vec![batch + 1],
        rhs_contract: vec![batch],
    };
    b.dot_general(x, y, dot)
}

/// The matrices with only the entries that have the relation `rows` between row and column number;
/// 0 elsewhere.
fn entries(b: &mut Builder, x: Var, rows: Direction) -> Var {
    let shape = b.ty(x).shape.clone();
    let row = b.iota(DType::I32, &shape, shape.len() - 2);
    let column = b.iota(DType::I32, &shape, shape.len() - 1);
    let keep = b.compare(rows, row, column);
    let zeros = b.full_like(x, 0.0);
    b.select(keep, x, zeros)
}
