//! Indexing: static slices, single positions, computed positions, updates.

use super::{IntoTensor, Operand, Tensor, emit1, fail, poison, resolve_axis};
use crate::tensor::literal::same_dtype;
use podracer_compiler::ops::{self, Combiner, Gather, Scatter};
use podracer_compiler::{DType, Extents, TensorType};
use std::ops::{Range, RangeFrom, RangeFull, RangeInclusive, RangeTo};

/// A range of one axis: `1..3`, `1..`, `..3`, `..`, or one position, which keeps the axis with extent 1. Negative
/// bounds count from the back.
pub trait SliceRange {
    /// Start and limit for an axis of this extent; negative bounds are kept as written.
    fn bounds(&self, extent: usize) -> (isize, isize);
}

macro_rules! slice_ranges {
    ($($int:ty),*) => {$(
        impl SliceRange for Range<$int> {
            fn bounds(&self, _: usize) -> (isize, isize) {
                (self.start as isize, self.end as isize)
            }
        }
        impl SliceRange for RangeInclusive<$int> {
            fn bounds(&self, _: usize) -> (isize, isize) {
                (*self.start() as isize, *self.end() as isize + 1)
            }
        }
        impl SliceRange for RangeFrom<$int> {
            fn bounds(&self, extent: usize) -> (isize, isize) {
                (self.start as isize, extent as isize)
            }
        }
        impl SliceRange for RangeTo<$int> {
            fn bounds(&self, _: usize) -> (isize, isize) {
                (0, self.end as isize)
            }
        }
    )*};
}
slice_ranges!(i32, isize, usize);

impl SliceRange for RangeFull {
    fn bounds(&self, extent: usize) -> (isize, isize) {
        (0, extent as isize)
    }
}

/// Ranges for the first axes of a tensor: a single range, or a tuple of ranges.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say a part of a tensor",
    label = "expected ranges such as `1..3` or `(.., 2..)`"
)]
pub trait SliceRanges {
    /// Start and limit for each axis that has a range.
    fn all_bounds(&self, shape: &[usize]) -> Vec<(isize, isize)>;
}

macro_rules! slice_tuples {
    ($($name:ident $position:tt),*) => {
        impl<$($name: SliceRange),*> SliceRanges for ($($name,)*) {
            fn all_bounds(&self, shape: &[usize]) -> Vec<(isize, isize)> {
                vec![$(self.$position.bounds(shape.get($position).copied().unwrap_or(0))),*]
            }
        }
    };
}
slice_tuples!(A 0);
slice_tuples!(A 0, B 1);
slice_tuples!(A 0, B 1, C 2);
slice_tuples!(A 0, B 1, C 2, D 3);
slice_tuples!(A 0, B 1, C 2, D 3, E 4);

impl<R: SliceRange> SliceRanges for R {
    fn all_bounds(&self, shape: &[usize]) -> Vec<(isize, isize)> {
        vec![self.bounds(shape.first().copied().unwrap_or(0))]
    }
}

/// A position that is known while tracing; a negative position counts from the back.
pub trait Position {
    /// The position, negative if it counts from the back.
    fn signed(self) -> isize;
}

macro_rules! positions {
    ($($int:ty),*) => {$(
        impl Position for $int {
            fn signed(self) -> isize {
                self as isize
            }
        }
    )*};
}
positions!(i32, isize, usize);

/// Slices at positions that are known while tracing.
impl Tensor {
    /// The slice of the first axes by ranges: `x.slice(1..3)`, `x.slice((.., 2..))`. The other axes stay whole.
    #[track_caller]
    pub fn slice(self, ranges: impl SliceRanges) -> Tensor {
        let ty = self.ty();
        let bounds = ranges.all_bounds(&ty.shape);
        if bounds.len() > ty.rank() {
            let message = format!("{} ranges for the {} axes of {ty}", bounds.len(), ty.rank());
            return fail("slice", message, &[self], ty);
        }
        self.slice_strided(&bounds, &vec![1; bounds.len()])
    }

    /// The slice of one axis by a range; the other axes stay whole.
    #[track_caller]
    pub fn slice_axis(self, axis: isize, range: impl SliceRange) -> Tensor {
        let ty = self.ty();
        let Some(axis) = resolve_axis("slice", axis, ty.rank()) else {
            return poison(ty);
        };
        let mut bounds: Vec<(isize, isize)> =
            ty.shape[..axis].iter().map(|&extent| (0, extent as isize)).collect();
        bounds.push(range.bounds(ty.shape[axis]));
        self.slice_strided(&bounds, &vec![1; axis + 1])
    }

    /// The slice of the first axes with strides: the start, the limit and the step of each axis.
    /// Negative bounds count from the back.
    #[track_caller]
    pub fn slice_strided(self, bounds: &[(isize, isize)], steps: &[usize]) -> Tensor {
        let ty = self.ty();
        let (mut start, mut limit, mut strides) =
            (vec![0; ty.rank()], ty.shape.to_vec(), vec![1; ty.rank()]);
        for (axis, (&(from, to), &step)) in bounds.iter().zip(steps).enumerate() {
            let extent = ty.shape.get(axis).copied().unwrap_or(0) as isize;
            let from_front = |bound: isize| if bound < 0 { bound + extent } else { bound };
            let (a, z) = (from_front(from), from_front(to));
            if a < 0 || z > extent || a > z || step == 0 {
                let message = format!("{from}..{to} is not a part of axis {axis} of {ty}");
                return fail("slice", message, &[self], ty);
            }
            (start[axis], limit[axis], strides[axis]) = (a as usize, z as usize, step);
        }
        let shape: Extents = (0..ty.rank())
            .map(|axis| (limit[axis] - start[axis]).div_ceil(strides[axis]))
            .collect();
        if shape == ty.shape {
            return self;
        }
        emit1(ops::Slice { start, limit, strides }, &[self], ty.with_shape(shape))
    }

    /// The slice at a known position of the leading axis, which disappears; a negative position
    /// counts from the back.
    #[track_caller]
    pub fn index(self, position: impl Position) -> Tensor {
        self.index_axis(0, position)
    }

    /// The slice at a known position of an axis, which disappears.
    #[track_caller]
    pub fn index_axis(self, axis: isize, position: impl Position) -> Tensor {
        let position = position.signed();
        let ty = self.ty();
        let Some(resolved) = resolve_axis("index", axis, ty.rank()) else {
            return poison(ty);
        };
        let extent = ty.shape[resolved] as isize;
        let mut shape = ty.shape.clone();
        shape.remove(resolved);
        let from_front = if position < 0 { position + extent } else { position };
        if !(0..extent).contains(&from_front) {
            let message = format!("position {position} is outside of axis {resolved} of {ty}");
            return fail("index", message, &[self], ty.with_shape(shape));
        }
        self.slice_axis(axis, from_front..from_front + 1).reshape(shape)
    }

    /// All slices along the leading axis, which disappears.
    #[track_caller]
    pub fn unstack(self) -> Vec<Tensor> {
        let mut parts = Vec::new();
        for i in 0..self.len() {
            parts.push(self.index(i));
        }
        parts
    }
}

/// Slices and updates at computed positions. A read clamps an index to the nearest index in range.
/// So does an update at one position; an update at several positions drops the indices that are out
/// of range.
impl Tensor {
    /// The slice at a computed position of the leading axis, which disappears. An index with axes gives a slice for
    /// each element.
    #[track_caller]
    pub fn at(self, index: impl IntoTensor) -> Tensor {
        self.take(index.into_tensor(), 0)
    }

    /// The slices at computed positions of an axis: shape `x[..axis] ++ indices ++ x[axis + 1..]`.
    #[track_caller]
    pub fn take(self, indices: impl IntoTensor, axis: isize) -> Tensor {
        let (ty, indices) = (self.ty(), indices.into_tensor());
        let index_ty = indices.ty();
        let Some(axis) = resolve_axis("take", axis, ty.rank()) else {
            return poison(ty);
        };
        let mut shape = ty.shape[..axis].to_vec();
        shape.extend(&index_ty.shape);
        shape.extend(&ty.shape[axis + 1..]);
        let guess = ty.with_shape(shape);
        if let Some(error) = bad_index(&index_ty) {
            return fail("take", error, &[indices], guess);
        }
        if index_ty.rank() == 0 {
            // One window: a dynamic slice compiles better than a gather.
            let mut starts = vec![super::create::zeros(index_ty.dtype, []); ty.rank()];
            starts[axis] = indices;
            let mut sizes = ty.shape.clone();
            sizes[axis] = 1;
            return dynamic_slice(self, &starts, &sizes).reshape(guess.shape);
        }
        emit1(Gather::take(&ty, &index_ty, axis), &[self, indices], guess)
    }

    /// Gathers one element for each index along an axis: `result[.., i, ..] = x[.., indices[.., i, ..], ..]`. The other
    /// axes have the same extents.
    #[track_caller]
    pub fn take_along_axis(self, indices: Tensor, axis: isize) -> Tensor {
        let (ty, index_ty) = (self.ty(), indices.ty());
        let guess = ty.with_shape(index_ty.shape.clone());
        let Some(axis) = resolve_axis("take_along_axis", axis, ty.rank()) else {
            return poison(guess);
        };
        if let Some(error) = bad_index(&index_ty) {
            return fail("take_along_axis", error, &[indices], guess);
        }
        let others = |shape: &[usize]| {
            shape
                .iter()
                .enumerate()
                .filter(|&(i, _)| i != axis)
                .map(|(_, &n)| n)
                .collect::<Vec<_>>()
        };
        if index_ty.rank() != ty.rank() || others(&index_ty.shape) != others(&ty.shape) {
            let message =
                format!("the indices {index_ty} and {ty} must agree in all axes but {axis}");
            return fail("take_along_axis", message, &[self, indices], guess);
        }
        let batch: Vec<usize> = (0..ty.rank()).filter(|&i| i != axis).collect();
        let op = Gather {
            offset_dims: Vec::new(),
            collapsed_slice_dims: vec![axis],
            operand_batching_dims: batch.clone(),
            start_indices_batching_dims: batch,
            start_index_map: vec![axis],
            index_vector_dim: ty.rank(),
            slice_sizes: vec![1; ty.rank()],
        };
        emit1(op, &[self, indices], guess)
    }

    /// A copy with the slice at a position (or the slices at several positions) of the leading axis replaced.
    #[track_caller]
    pub fn set(self, index: impl IntoTensor, value: impl IntoTensor) -> Tensor {
        let ty = self.ty();
        let Some((&extent, rest)) = ty.shape.split_first() else {
            return fail("set", format!("{ty} has no axis to index"), &[self], ty);
        };
        let index = index.into_tensor();
        let tensors = same_dtype("set", vec![Operand::Tensor(self), value.operand()]);
        if index.rank() > 0 {
            return self.update_many("set", index, tensors[1], Combiner::Set, extent);
        }
        if let Some(error) = bad_index(&index.ty()) {
            return fail("set", error, &[index], ty);
        }
        let value_ty = tensors[1].ty();
        if super::broadcast_pair(&value_ty.shape, rest).ok().as_deref() != Some(rest) {
            let slice = ty.with_shape(rest);
            let message = format!("{value_ty} does not broadcast to a slice, {slice}");
            return fail("set", message, &[self, tensors[1]], ty);
        }
        let value = tensors[1].broadcast_to(rest).reshape([&[1], rest].concat());
        let mut starts = vec![super::create::zeros(index.dtype(), []); ty.rank()];
        starts[0] = index;
        dynamic_update_slice(self, value, &starts)
    }

    /// A copy with `value` added to the slice at a position of the leading axis. An index with axes
    /// adds one slice for each of its elements; repeated indices add all their slices.
    #[track_caller]
    pub fn add_at(self, index: impl IntoTensor, value: impl IntoTensor) -> Tensor {
        self.update_at("add_at", index.into_tensor(), value.operand(), Combiner::Add)
    }

    /// A copy with the greater of `value` and the slice at a position (or positions) of the leading axis.
    #[track_caller]
    pub fn max_at(self, index: impl IntoTensor, value: impl IntoTensor) -> Tensor {
        self.update_at("max_at", index.into_tensor(), value.operand(), Combiner::Max)
    }

    /// A copy with the lesser of `value` and the slice at a position (or positions) of the leading axis.
    #[track_caller]
    pub fn min_at(self, index: impl IntoTensor, value: impl IntoTensor) -> Tensor {
        self.update_at("min_at", index.into_tensor(), value.operand(), Combiner::Min)
    }

    #[track_caller]
    fn update_at(
        self,
        op: &'static str,
        index: Tensor,
        value: Operand,
        combiner: Combiner,
    ) -> Tensor {
        let ty = self.ty();
        let Some(&extent) = ty.shape.first() else {
            return fail(op, format!("{ty} has no axis to index"), &[self], ty);
        };
        let tensors = same_dtype(op, vec![Operand::Tensor(self), value]);
        self.update_many(op, index, tensors[1], combiner, extent)
    }

    #[track_caller]
    fn update_many(
        self,
        op: &'static str,
        index: Tensor,
        value: Tensor,
        combiner: Combiner,
        extent: usize,
    ) -> Tensor {
        let (ty, index_ty) = (self.ty(), index.ty());
        if let Some(error) = bad_index(&index_ty) {
            return fail(op, error, &[index], ty);
        }
        // One index is clamped as by `set`; among several, those out of range are dropped.
        let index =
            if index_ty.rank() == 0 { index.clamp(0, extent.max(1) as i32 - 1) } else { index };
        let shape = [&index_ty.shape[..], &ty.shape[1..]].concat();
        let value_ty = value.ty();
        let fits = super::broadcast_pair(&value_ty.shape, &shape).is_ok_and(|both| both == shape);
        if !fits {
            let message = format!(
                "the value {value_ty} does not broadcast to the place it goes to, {}",
                ty.with_shape(shape)
            );
            return fail(op, message, &[self, value], ty);
        }
        let updates = super::broadcast_to(value, &shape);
        let scatter = Scatter {
            update_window_dims: (index_ty.rank()..shape.len()).collect(),
            inserted_window_dims: vec![0],
            input_batching_dims: Vec::new(),
            scatter_indices_batching_dims: Vec::new(),
            scatter_dims_to_operand_dims: vec![0],
            index_vector_dim: index_ty.rank(),
            combiner,
            unique_indices: false,
        };
        emit1(scatter, &[self, index, updates], ty)
    }
}

/// The slice of shape `sizes` that starts at `starts`, one integer scalar for each axis. The starts
/// are clamped so that the slice lies inside the tensor.
#[track_caller]
pub fn dynamic_slice(x: Tensor, starts: &[Tensor], sizes: &[usize]) -> Tensor {
    let mut inputs = vec![x];
    inputs.extend(starts);
    emit1(ops::DynamicSlice { sizes: sizes.to_vec() }, &inputs, x.ty().with_shape(sizes))
}

/// A copy of `x` with the slice at `starts` replaced by `update`. The starts are clamped as in
/// [`dynamic_slice`].
#[track_caller]
pub fn dynamic_update_slice(x: Tensor, update: Tensor, starts: &[Tensor]) -> Tensor {
    let mut inputs = vec![x, update];
    inputs.extend(starts);
    emit1(ops::DynamicUpdateSlice {}, &inputs, x.ty())
}

fn bad_index(ty: &TensorType) -> Option<String> {
    if ty.dtype.is_integer() {
        return None;
    }
    let cast = if ty.dtype == DType::Bool {
        ": to choose by a mask use `select`"
    } else {
        ": cast with `.astype(I32)`"
    };
    Some(format!("expected integer indices, got {ty}{cast}"))
}
