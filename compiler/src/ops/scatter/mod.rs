//! `scatter`: windows of a tensor at computed positions, replaced by updates or combined with them.

mod combiner;
mod derivative;
mod rows;
mod samples;

pub use combiner::Combiner;

use super::TypeError;
use super::op::{Op, Operand, Rule, Sample};
use super::shape::{shifted, shifted_with_batch};
use super::windows::Windows;
use crate::array::{Array, for_each_index};
use crate::ir::{Batched, Builder, Slope, Slopes, Var};
use crate::lower::{Hlo, HloAttribute, HloOp, HloResults, HloValue, hlo_simple};
use crate::op_struct;
use crate::transform::VmapContext;
use crate::types::{DType, TensorType};

op_struct! {
    /// A tensor with windows, one for each index, combined with updates, as in StableHLO's scatter.
    ///
    /// Operands: `x`, the integer indices, and the updates, with the dtype of `x`. One axis of the
    /// indices, `index_vector_dim`, holds the components of an index. The updates have the other
    /// axes, in order, with the axes of the window inserted at `update_window_dims`. The result has
    /// the type of `x`. A window that does not lie entirely inside `x` is dropped. If several
    /// updates meet, `set` keeps one of them (in the reference semantics the last); the other
    /// combiners combine them all.
    ///
    /// Derivatives: every combiner has a derivative. `multiply` has none with respect to the
    /// updates unless `unique_indices`. `set` sends the derivative through the update that was
    /// kept; ties of `min` and `max` share it evenly.
    Scatter = "scatter" {
        /// Axes of the updates that come from the window, rising.
        update_window_dims: Vec<usize>,
        /// Axes of `x`, of window size 1, that the updates leave out, rising.
        inserted_window_dims: Vec<usize>,
        /// Axes of `x` that run with `scatter_indices_batching_dims` and that the updates leave out, rising.
        input_batching_dims: Vec<usize>,
        /// Axes of the indices that run with `input_batching_dims`.
        scatter_indices_batching_dims: Vec<usize>,
        /// The axis of `x` that each index component addresses.
        scatter_dims_to_operand_dims: Vec<usize>,
        /// The axis of the indices that holds the components; the indices' rank if each index is a
        /// single component.
        index_vector_dim: usize,
        /// The function that combines an element and its update.
        combiner: Combiner,
        /// A promise that no two windows meet, which makes it faster; if the promise is broken, the
        /// result is arbitrary.
        unique_indices: bool,
    }
}

impl Scatter {
    /// Examples for the generic tests.
    pub fn samples() -> Vec<Sample> {
        samples::samples()
    }

    /// The scatter that writes where [`Gather::take`](super::Gather::take) reads: update `i` goes
    /// to index `i` along `axis` of an operand of this rank. The updates have the shape
    /// `x[..axis] ++ indices ++ x[axis + 1..]`.
    pub fn at(
        operand_rank: usize,
        indices_rank: usize,
        axis: usize,
        combiner: Combiner,
    ) -> Scatter {
        let after = axis + indices_rank;
        Scatter {
            update_window_dims: (0..axis).chain(after..after + operand_rank - axis - 1).collect(),
            inserted_window_dims: vec![axis],
            input_batching_dims: vec![],
            scatter_indices_batching_dims: vec![],
            scatter_dims_to_operand_dims: vec![axis],
            index_vector_dim: indices_rank,
            combiner,
            unique_indices: false,
        }
    }

    fn windows(&self) -> Windows<'_> {
        Windows {
            window_dims: ("update_window_dims", &self.update_window_dims),
            collapsed_dims: ("inserted_window_dims", &self.inserted_window_dims),
            operand_batching_dims: ("input_batching_dims", &self.input_batching_dims),
            indices_batching_dims: (
                "scatter_indices_batching_dims",
                &self.scatter_indices_batching_dims,
            ),
            index_map: ("scatter_dims_to_operand_dims", &self.scatter_dims_to_operand_dims),
            index_vector_dim: self.index_vector_dim,
        }
    }

    /// The window's extent along each axis of `x`.
    fn window_sizes(&self, x: &[usize], updates: &[usize]) -> Vec<usize> {
        let mut sizes: Vec<usize> = x.iter().map(|&extent| extent.min(1)).collect();
        for (axis, &dim) in
            self.windows().window_axes(x.len()).into_iter().zip(&self.update_window_dims)
        {
            sizes[axis] = updates[dim];
        }
        sizes
    }

    fn with(&self, combiner: Combiner) -> Scatter {
        Scatter { combiner, ..self.clone() }
    }
}

impl Op for Scatter {
    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        TypeError::check_arity(inputs, 3)?;
        let (x, indices, updates) = (&inputs[0], &inputs[1], &inputs[2]);
        if x.dtype != updates.dtype {
            refuse!("the updates of {x} must have its dtype, got {updates}: cast one of them");
        }
        if x.dtype == DType::Bool && self.combiner != Combiner::Set {
            refuse!("combiner {} takes numbers, got {x}", self.combiner.word());
        }
        let windows = self.windows();
        windows.check(x, indices, updates.rank())?;
        if let Some(axis) = self.inserted_window_dims.iter().find(|&&axis| x.shape[axis] == 0) {
            refuse!("axis {axis} of {x} has no element to update");
        }
        let batch = windows.batch_shape(indices);
        let axes = windows.window_axes(x.rank());
        let expected_rank = batch.len() + axes.len();
        let fits = updates.rank() == expected_rank && {
            let window: Vec<usize> =
                self.update_window_dims.iter().map(|&dim| updates.shape[dim]).collect();
            windows.interleave(&batch, &window) == updates.shape[..]
                && axes.iter().zip(&window).all(|(&axis, &size)| size <= x.shape[axis])
        };
        if !fits {
            let window: Vec<usize> = axes.iter().map(|&axis| x.shape[axis]).collect();
            refuse!(
                "the updates must have the batch {batch:?} of the indices and, at update_window_dims {:?}, at most {window:?} of {x}, got {updates}",
                self.update_window_dims
            );
        }
        Ok(vec![x.clone()])
    }

    fn eval(&self, inputs: &[Array]) -> Vec<Array> {
        let (x, indices, updates) = (&inputs[0], &inputs[1], &inputs[2]);
        let windows = self.windows();
        let sizes = self.window_sizes(&x.ty().shape, &updates.ty().shape);
        let axes = windows.window_axes(x.ty().rank());
        let window_shape: Vec<usize> =
            self.update_window_dims.iter().map(|&dim| updates.ty().shape[dim]).collect();
        let mut result = x.clone();
        // Window by window, as in XLA: if windows meet, the later window is written last.
        for_each_index(&windows.batch_shape(indices.ty()), |batch| {
            let start = windows.start(x.ty().rank(), indices, batch);
            let fits = |axis: usize| {
                start[axis] >= 0 && start[axis] + sizes[axis] as i128 <= x.ty().shape[axis] as i128
            };
            if !(0..x.ty().rank()).all(fits) {
                return;
            }
            for_each_index(&window_shape, |window| {
                let index = windows.interleave(batch, window);
                let mut target: Vec<usize> = start.iter().map(|&start| start as usize).collect();
                for (&axis, &within) in axes.iter().zip(window) {
                    target[axis] += within;
                }
                result.set(&target, self.combiner.scalar(result.at(&target), updates.at(&index)));
            });
        });
        vec![result]
    }

    fn vmap(&self, b: &mut Builder, cx: &VmapContext, inputs: &[Var], batched: &[bool]) -> Batched {
        let x = cx.batch(b, inputs[0], batched[0]);
        let updates = cx.batch(b, inputs[2], batched[2]);
        let mut op = self.clone();
        op.inserted_window_dims = shifted(&op.inserted_window_dims);
        op.scatter_dims_to_operand_dims = shifted(&op.scatter_dims_to_operand_dims);
        if batched[1] {
            op.update_window_dims = shifted(&op.update_window_dims);
            op.input_batching_dims = shifted_with_batch(&op.input_batching_dims);
            op.scatter_indices_batching_dims =
                shifted_with_batch(&op.scatter_indices_batching_dims);
            op.index_vector_dim += 1;
        } else {
            // Every window covers the whole batch.
            op.update_window_dims = shifted_with_batch(&op.update_window_dims);
            op.input_batching_dims = shifted(&op.input_batching_dims);
        }
        vec![(b.emit1(op, &[x, inputs[1], updates]), true)]
    }

    fn jvp(
        &self,
        b: &mut Builder,
        inputs: &[Var],
        outputs: &[Var],
        tangents: &[Slope],
    ) -> Rule<Slopes> {
        self.tangent(b, inputs, outputs, tangents)
    }

    fn transpose(&self, b: &mut Builder, inputs: &[Operand], cotangents: &[Slope]) -> Rule<Slopes> {
        self.cotangents(b, inputs, cotangents)
    }

    fn lower(&self, hlo: &mut dyn Hlo, inputs: &[HloValue], results: &[TensorType]) -> HloResults {
        if hlo.whole_loops() {
            let types: Vec<TensorType> = inputs.iter().map(|&input| hlo.ty(input)).collect();
            if let Some(scan) = self.row_by_row(&types) {
                return scan.lower(hlo, inputs, results);
            }
        }
        let scalar = TensorType::scalar(results[0].dtype);
        let arguments = hlo.begin_region(&[scalar.clone(), scalar]);
        let combined = match self.combiner.hlo() {
            Some(name) => hlo_simple(hlo, name, &arguments),
            None => arguments[1],
        };
        let region = hlo.end_region(&[combined]);
        let dimension_numbers = HloAttribute::Scatter {
            update_window_dims: self.update_window_dims.clone(),
            inserted_window_dims: self.inserted_window_dims.clone(),
            input_batching_dims: self.input_batching_dims.clone(),
            scatter_indices_batching_dims: self.scatter_indices_batching_dims.clone(),
            scatter_dims_to_operand_dims: self.scatter_dims_to_operand_dims.clone(),
            index_vector_dim: self.index_vector_dim,
        };
        let attributes = vec![
            ("scatter_dimension_numbers", dimension_numbers),
            ("indices_are_sorted", HloAttribute::Bool(false)),
            ("unique_indices", HloAttribute::Bool(self.unique_indices)),
        ];
        hlo.op(HloOp::new("stablehlo.scatter", inputs, results)
            .attributes(attributes)
            .regions(vec![region]))
    }
}

impl Builder {
    /// Windows of `x` at `indices` combined with `updates`, see [`Scatter`].
    #[track_caller]
    pub fn scatter(&mut self, x: Var, indices: Var, updates: Var, op: Scatter) -> Var {
        self.emit1(op, &[x, indices, updates])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transform::jvp;

    #[test]
    fn ties_of_max_share_the_tangent_evenly() {
        let mut b = Builder::new();
        let x = b.param(TensorType::new(DType::F32, [2]));
        let updates = b.param(TensorType::new(DType::F32, [3]));
        let indices = b.constant(Array::ints(DType::I32, [3], &[1, 1, 0]));
        let result = b.scatter(x, indices, updates, Scatter::at(1, 1, 0, Combiner::Max));
        let (forward, _) =
            jvp(&b.finish("max", vec![result]), &[true, true]).expect("max has a derivative");
        let floats = |values: &[f64]| Array::floats(DType::F32, [values.len()], values);
        let results = forward.eval(&[
            floats(&[1.0, 5.0]),
            floats(&[5.0, 5.0, 3.0]),
            floats(&[7.0, 3.0]),
            floats(&[6.0, 9.0, 2.0]),
        ]);
        assert_eq!(results, [floats(&[3.0, 5.0]), floats(&[2.0, 6.0])]);
    }

    #[test]
    fn a_window_over_the_edge_is_dropped_whole() {
        let pairs = Scatter {
            update_window_dims: vec![0],
            inserted_window_dims: vec![],
            index_vector_dim: 0,
            ..Scatter::at(1, 0, 0, Combiner::Set)
        };
        let ints = |values: &[i128]| Array::ints(DType::I32, [values.len()], values);
        assert_eq!(pairs.eval(&[ints(&[1, 2, 3]), ints(&[2]), ints(&[8, 9])]), [ints(&[1, 2, 3])]);
        assert_eq!(pairs.eval(&[ints(&[1, 2, 3]), ints(&[1]), ints(&[8, 9])]), [ints(&[1, 8, 9])]);
    }
}
