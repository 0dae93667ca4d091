//! Sorting along an axis. Stable; NaN comes last.

use super::create::iota;
use super::{Tensor, emit_as, fail, poison, resolve_axis};
use podracer_compiler::ops::{Sort, TopK};
use podracer_compiler::{DType, Loc, TensorType};

/// Sorts tensors of one shape together along an axis. The order is by the first tensor, ties by the
/// next, up to `num_keys` of them; the other tensors are permuted along.
#[track_caller]
pub fn sort_together(tensors: &[Tensor], num_keys: usize, axis: isize) -> Vec<Tensor> {
    let types: Vec<TensorType> = tensors.iter().map(|tensor| tensor.ty()).collect();
    let rank = types.first().map_or(0, TensorType::rank);
    match resolve_axis("sort", axis, rank) {
        Some(dimension) => emit_as(Sort { dimension, stable: true, num_keys }, tensors, &types),
        None => types.into_iter().map(poison).collect(),
    }
}

/// Sorting of one tensor.
impl Tensor {
    /// Sorts the elements along an axis in rising order.
    #[track_caller]
    pub fn sort(self, axis: isize) -> Tensor {
        first(&sort_together(&[self], 1, axis))
    }

    /// The positions of the elements along an axis in rising order, in i32; equal elements keep
    /// their order.
    #[track_caller]
    pub fn argsort(self, axis: isize) -> Tensor {
        let ty = self.ty();
        let Some(resolved) = resolve_axis("argsort", axis, ty.rank()) else {
            return poison(ty.with_dtype(DType::I32));
        };
        let positions = iota(DType::I32, ty.shape, resolved as isize);
        sort_together(&[self, positions], 1, axis)[1]
    }

    /// The `k` greatest elements along the last axis, in falling order, and their positions in i32.
    /// Among equal elements the first comes first, and NaN counts as greatest.
    #[track_caller]
    pub fn top_k(self, k: usize) -> (Tensor, Tensor) {
        let ty = self.ty();
        let extent = ty.shape.last().copied().unwrap_or(0);
        if ty.rank() == 0 || k > extent {
            let message = format!("{ty} has no {k} elements along its last axis");
            return (
                fail("top_k", message, &[self], ty.clone()),
                poison(ty.with_dtype(DType::I32)),
            );
        }
        let mut guess = ty.clone();
        guess.shape[ty.rank() - 1] = k;
        let results = emit_as(TopK { k }, &[self], &[guess.clone(), guess.with_dtype(DType::I32)]);
        (results[0], results[1])
    }
}

#[track_caller]
fn first(tensors: &[Tensor]) -> Tensor {
    tensors.first().copied().unwrap_or(Tensor::dead(Loc::caller()))
}
