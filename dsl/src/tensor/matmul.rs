//! Products of matrices.

use super::{Tensor, broadcast_pair, broadcast_to, emit1, fail};
use podracer_compiler::TensorType;
use podracer_compiler::ops::DotGeneral;

/// Contracts axes of two tensors, with batch axes that run together: StableHLO's `dot_general`. The
/// result has the batch axes, then the other axes of the left operand, then the other axes of the
/// right operand.
#[track_caller]
pub fn dot_general(
    left: Tensor,
    right: Tensor,
    (lhs_contract, rhs_contract): (&[usize], &[usize]),
    (lhs_batch, rhs_batch): (&[usize], &[usize]),
) -> Tensor {
    let (l, r) = (left.ty(), right.ty());
    let rest = |ty: &TensorType, batch: &[usize], contract: &[usize]| {
        (0..ty.rank())
            .filter(|axis| !batch.contains(axis) && !contract.contains(axis))
            .map(|axis| ty.shape[axis])
            .collect::<Vec<_>>()
    };
    let mut shape: Vec<usize> =
        lhs_batch.iter().filter_map(|&axis| l.shape.get(axis).copied()).collect();
    shape.extend(rest(&l, lhs_batch, lhs_contract));
    shape.extend(rest(&r, rhs_batch, rhs_contract));
    let op = DotGeneral {
        lhs_batch: lhs_batch.to_vec(),
        rhs_batch: rhs_batch.to_vec(),
        lhs_contract: lhs_contract.to_vec(),
        rhs_contract: rhs_contract.to_vec(),
    };
    emit1(op, &[left, right], l.with_shape(shape))
}

/// The matrix product by NumPy's rules. A vector counts as a row on the left and as a column on the
/// right. Axes before the last two are batch axes that broadcast.
#[track_caller]
pub fn matmul(left: Tensor, right: Tensor) -> Tensor {
    let (l, r) = (left.ty(), right.ty());
    let mismatch = |what: &str| format!("{l} and {r} {what}");
    if l.rank() == 0 || r.rank() == 0 {
        let message = mismatch("must both have axes: scale with `*`");
        return fail("matmul", message, &[left, right], l.clone());
    }
    if l.dtype != r.dtype {
        let message = mismatch("must have one dtype: cast one of them");
        return fail("matmul", message, &[left, right], l.clone());
    }
    let (inner, outer) = (l.rank() - 1, r.rank().saturating_sub(2));
    if l.shape[inner] != r.shape[outer] {
        let message = mismatch(&format!(
            "do not multiply (axis {inner} of the left is {}, axis {outer} of the right is {})",
            l.shape[inner], r.shape[outer]
        ));
        let mut shape = l.shape[..inner].to_vec();
        shape.extend(r.shape.last().filter(|_| r.rank() > 1));
        return fail("matmul", message, &[left, right], l.with_shape(shape));
    }
    let (l_batch, r_batch) = (l.rank().saturating_sub(2), outer);
    // Without batch axes on one side, the other side's are just further rows (left) or one plain contraction.
    if r_batch == 0 {
        return dot_general(left, right, (&[inner], &[outer]), (&[], &[]));
    }
    let Ok(batch) = broadcast_pair(&l.shape[..l_batch], &r.shape[..r_batch]) else {
        let message = mismatch("have batch axes that do not broadcast");
        return fail("matmul", message, &[left, right], l.clone());
    };
    let spread = |x: Tensor, ty: &TensorType, own: usize| {
        let shape: Vec<usize> = batch.iter().chain(&ty.shape[own..]).copied().collect();
        broadcast_to(x, &shape)
    };
    let n = batch.len();
    let axes: Vec<usize> = (0..n).collect();
    let left = spread(left, &l, l_batch);
    let right = spread(right, &r, r_batch);
    dot_general(left, right, (&[n + inner - l_batch], &[n]), (&axes, &axes))
}

/// NumPy's `dot`: the inner product of vectors, or the product of matrices. With more axes, it
/// contracts the last axis of `left` with the second to last axis of `right`, without batching.
#[track_caller]
pub fn dot(left: Tensor, right: Tensor) -> Tensor {
    let (l, r) = (left.ty(), right.ty());
    if l.rank() == 0 || r.rank() == 0 {
        return left * right;
    }
    let (inner, outer) = (l.rank() - 1, r.rank().saturating_sub(2));
    if l.shape[inner] != r.shape[outer] || l.dtype != r.dtype {
        let of_dtypes = format!("{l} and {r} must have one dtype: cast one of them");
        let of_shapes = format!(
            "{l} and {r} do not multiply (axis {inner} of the left against axis {outer} of the right)"
        );
        return fail(
            "dot",
            if l.dtype == r.dtype { of_shapes } else { of_dtypes },
            &[left, right],
            l.with_shape(&l.shape[..inner]),
        );
    }
    dot_general(left, right, (&[inner], &[outer]), (&[], &[]))
}

/// The outer product of two vectors: `[n]` and `[m]` give `[n, m]`.
#[track_caller]
pub fn outer(left: Tensor, right: Tensor) -> Tensor {
    left.flatten().expand_dims(1) * right.flatten().expand_dims(0)
}

/// Products of matrices.
impl Tensor {
    /// The matrix product with `right`; see [`matmul`].
    #[track_caller]
    pub fn matmul(self, right: Tensor) -> Tensor {
        matmul(self, right)
    }

    /// The product with `right` by NumPy's `dot`; see [`dot`].
    #[track_caller]
    pub fn dot(self, right: Tensor) -> Tensor {
        dot(self, right)
    }
}
