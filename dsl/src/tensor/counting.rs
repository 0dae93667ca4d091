//! Sums and counts over groups, and positions of nonzero elements. Their extents are given: shapes
//! are static.

use super::create::{arange, full, zeros};
use super::order::Side;
use super::{Tensor, fail, select};
use crate::trace::scope;
use podracer_compiler::DType;

/// The sums of the slices of `data` `[n, ..]` with the same id: `[segments, ..]`. `ids` holds
/// integers, `[n]`. Slices with an id outside of 0 to `segments - 1` are dropped.
/// `jax.ops.segment_sum`.
#[track_caller]
pub fn segment_sum(data: Tensor, ids: Tensor, segments: usize) -> Tensor {
    let (ty, ids_ty) = (data.ty(), ids.ty());
    let mut guess = ty.clone();
    if let Some(extent) = guess.shape.first_mut() {
        *extent = segments;
    }
    if ty.rank() == 0 || ids_ty.rank() != 1 || ty.shape[0] != ids_ty.shape[0] {
        let message = format!("expected data [n, ..] and ids [n], got {ty} and {ids_ty}");
        return fail("segment_sum", message, &[data, ids], guess);
    }
    zeros(ty.dtype, guess.shape).add_at(ids, data)
}

/// Counts and positions.
impl Tensor {
    /// The count of each number from 0 to `length - 1` in this integer tensor: i32 `[length]`.
    /// Greater numbers are dropped, negative numbers count as 0. NumPy's `bincount`; with weights
    /// it is [`segment_sum`].
    #[track_caller]
    pub fn bincount(self, length: usize) -> Tensor {
        let ty = self.ty();
        if !ty.dtype.is_integer() {
            let message = format!("expected integers, got {ty}");
            return fail("bincount", message, &[self], ty);
        }
        let flat = self.flatten();
        let flat = if ty.dtype.is_signed_integer() { flat.maximum(0) } else { flat };
        segment_sum(full([ty.elements()], 1), flat, length)
    }

    /// The positions of the first `size` elements that are not 0 (or false), in row-major order:
    /// one i32 `[size]` for each axis. If there are fewer, the rest is `fill`.
    /// `jnp.nonzero(x, size=size, fill_value=fill)`.
    #[track_caller]
    pub fn nonzero(self, size: usize, fill: i32) -> Vec<Tensor> {
        let _scope = scope("nonzero");
        let ty = self.ty();
        let flat = self.flatten();
        let flags = if ty.dtype == DType::Bool { flat } else { flat.ne(0) };
        let seen = flags.astype(DType::I32).cumsum(0);
        let places = seen.searchsorted(arange(0..size) + 1, Side::Left);
        let found = places.lt(ty.elements() as i32);
        let mut positions = Vec::with_capacity(ty.rank());
        let mut stride = ty.elements();
        for &extent in &ty.shape {
            stride /= extent.max(1);
            let along = (places / stride.max(1) as i32) % extent.max(1) as i32;
            positions.push(select(found, along, fill));
        }
        positions
    }
}
