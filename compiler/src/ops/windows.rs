//! The windows of gather and scatter: an index tensor holds the starts of windows of an operand.
//!
//! A *window* is a box of the operand. One axis of the indices, `index_vector_dim`, holds the
//! components of a start; if it is one past the last axis, each index is a vector of one component.
//! The other axes of the indices are the *batch*. The result of a gather and the updates of a
//! scatter have the batch's axes, in order, with the window's axes inserted at `window_dims`.

use super::shape::check_axes;
use super::{Direction, TypeError};
use crate::array::Array;
use crate::ir::{Builder, Var};
use crate::scalar::Scalar;
use crate::types::TensorType;

/// The dimension numbers of a gather or scatter.
#[derive(Clone, Copy, Debug)]
pub(super) struct Windows<'a> {
    /// Axes of the result or the updates that come from the window, rising.
    pub window_dims: (&'static str, &'a [usize]),
    /// Operand axes of window size one that the result or the updates leave out, rising.
    pub collapsed_dims: (&'static str, &'a [usize]),
    /// Operand axes that run with the batch axes `indices_batching_dims`, rising.
    pub operand_batching_dims: (&'static str, &'a [usize]),
    /// Axes of the indices that run with `operand_batching_dims`.
    pub indices_batching_dims: (&'static str, &'a [usize]),
    /// The operand axis that each index component addresses.
    pub index_map: (&'static str, &'a [usize]),
    /// The axis of the indices that holds the components.
    pub index_vector_dim: usize,
}

impl Windows<'_> {
    /// Operand axes that the window keeps, in order.
    pub fn window_axes(&self, operand_rank: usize) -> Vec<usize> {
        let left_out = |axis| {
            self.collapsed_dims.1.contains(&axis) || self.operand_batching_dims.1.contains(&axis)
        };
        (0..operand_rank).filter(|&axis| !left_out(axis)).collect()
    }

    /// Axes of the result or the updates, of this rank, that come from the batch.
    pub fn batch_dims(&self, rank: usize) -> Vec<usize> {
        (0..rank).filter(|dim| !self.window_dims.1.contains(dim)).collect()
    }

    /// The batch's shape.
    pub fn batch_shape(&self, indices: &TensorType) -> Vec<usize> {
        (0..indices.rank())
            .filter(|&axis| axis != self.index_vector_dim)
            .map(|axis| indices.shape[axis])
            .collect()
    }

    /// Puts the batch's and the window's extents in the order of the result or the updates.
    pub fn interleave(&self, batch: &[usize], window: &[usize]) -> Vec<usize> {
        let (mut batch, mut window) = (batch.iter(), window.iter());
        let rank = batch.len() + window.len();
        (0..rank)
            .map(|dim| {
                let from = if self.window_dims.1.contains(&dim) { &mut window } else { &mut batch };
                *from.next().expect("the dimension numbers are checked")
            })
            .collect()
    }

    /// The start of the window at a position of the batch, along every axis of the operand.
    pub fn start(&self, operand_rank: usize, indices: &Array, batch: &[usize]) -> Vec<i128> {
        let mut start = vec![0; operand_rank];
        let mut index = batch.to_vec();
        let explicit = self.index_vector_dim < indices.ty().rank();
        if explicit {
            index.insert(self.index_vector_dim, 0);
        }
        for (component, &axis) in self.index_map.1.iter().enumerate() {
            if explicit {
                index[self.index_vector_dim] = component;
            }
            start[axis] = indices.at(&index).int();
        }
        for (&axis, &dim) in self.operand_batching_dims.1.iter().zip(self.indices_batching_dims.1) {
            start[axis] = batch[dim - usize::from(dim > self.index_vector_dim)] as i128;
        }
        start
    }

    /// Checks the dimension numbers for an operand, its indices and the rank of the result or the updates.
    pub fn check(
        &self,
        operand: &TensorType,
        indices: &TensorType,
        rank: usize,
    ) -> Result<(), TypeError> {
        let fail = |message: String| Err(TypeError::new(message));
        if !indices.dtype.is_integer() {
            return fail(format!("indices must be integers, got {indices}"));
        }
        if self.index_vector_dim > indices.rank() {
            return fail(format!(
                "index_vector_dim {} is beyond the axes of the indices {indices}",
                self.index_vector_dim
            ));
        }
        for (name, dims) in [self.window_dims, self.collapsed_dims, self.operand_batching_dims] {
            if !dims.is_sorted() {
                return fail(format!("{name} {dims:?} must rise"));
            }
        }
        let joined = |(first_name, first): (&str, &[usize]),
                      (second_name, second): (&str, &[usize])| {
            check_axes(
                &format!("{first_name} with {second_name}"),
                &[first, second].concat(),
                operand.rank(),
            )
        };
        check_axes(self.window_dims.0, self.window_dims.1, rank)?;
        joined(self.collapsed_dims, self.operand_batching_dims)?;
        joined(self.index_map, self.operand_batching_dims)?;
        check_axes(self.indices_batching_dims.0, self.indices_batching_dims.1, indices.rank())?;
        let kept = self.window_axes(operand.rank()).len();
        if self.window_dims.1.len() != kept {
            return fail(format!(
                "{} {:?} must have one axis for each of the {kept} that the window keeps of {operand}",
                self.window_dims.0, self.window_dims.1
            ));
        }
        let components = indices.shape.get(self.index_vector_dim).copied().unwrap_or(1);
        if self.index_map.1.len() != components {
            return fail(format!(
                "{} {:?} must have one axis for each of the {components} components of the indices",
                self.index_map.0, self.index_map.1
            ));
        }
        let (operand_dims, indices_dims) = (self.operand_batching_dims, self.indices_batching_dims);
        if indices_dims.1.contains(&self.index_vector_dim) {
            return fail(format!(
                "{} {:?} must not have index_vector_dim {}",
                indices_dims.0, indices_dims.1, self.index_vector_dim
            ));
        }
        let extents = |ty: &TensorType, dims: &[usize]| {
            dims.iter().map(|&dim| ty.shape[dim]).collect::<Vec<_>>()
        };
        if extents(operand, operand_dims.1) != extents(indices, indices_dims.1) {
            return fail(format!(
                "{} {:?} of {operand} and {} {:?} of the indices {indices} must have the same extents",
                operand_dims.0, operand_dims.1, indices_dims.0, indices_dims.1
            ));
        }
        Ok(())
    }

    /// The greatest start of each index component such that a window of these sizes fits into the
    /// operand.
    pub fn limits(&self, operand: &[usize], sizes: &[usize]) -> Vec<usize> {
        self.index_map.1.iter().map(|&axis| operand[axis] - sizes[axis]).collect()
    }
}

/// Indices with every component clamped to the range from 0 to its limit; the components lie along
/// the axis `vector_dim`.
pub(super) fn clamp_to(b: &mut Builder, indices: Var, vector_dim: usize, limits: &[usize]) -> Var {
    let ty = b.ty(indices).clone();
    // A limit that the dtype cannot represent is no limit.
    let greatest = ty.dtype.integer_range().1;
    let limits: Vec<i128> = limits.iter().map(|&limit| (limit as i128).min(greatest)).collect();
    let mut clamped = indices;
    if ty.dtype.is_signed_integer() {
        let zeros = b.zeros(&ty);
        clamped = b.maximum(clamped, zeros);
    }
    if limits.iter().all(|&limit| limit == greatest) {
        return clamped;
    }
    let limits = match limits.split_first() {
        Some((&first, rest)) if rest.iter().all(|&limit| limit == first) => {
            let limit = b.constant(Array::single(ty.dtype, Scalar::Int(first)));
            b.broadcast_in_dim(limit, &ty.shape, &[])
        }
        _ => {
            let limits = b.constant(Array::ints(ty.dtype, [limits.len()], &limits));
            b.broadcast_in_dim(limits, &ty.shape, &[vector_dim])
        }
    };
    b.minimum(clamped, limits)
}

/// True where every component of an index vector lies between 0 and its limit: bools with the
/// batch's shape. `clamped` is the result of [`clamp_to`]. `None` if there are no components, so
/// that nothing can be out of range.
pub(super) fn in_range(
    b: &mut Builder,
    indices: Var,
    clamped: Var,
    vector_dim: usize,
) -> Option<Var> {
    let same = b.compare(Direction::Eq, indices, clamped);
    let shape = b.ty(same).shape.clone();
    let Some(&components) = shape.get(vector_dim) else {
        return Some(same);
    };
    let mut batch = shape;
    batch.remove(vector_dim);
    let columns: Vec<Var> = (0..components)
        .map(|i| {
            let column = b.slice_axis(same, vector_dim, i, i + 1);
            b.reshape(column, &batch)
        })
        .collect();
    columns.into_iter().reduce(|x, y| b.and(x, y))
}
