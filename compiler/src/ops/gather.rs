//! `gather`: windows of a tensor at computed positions, one for each index.

use super::TypeError;
use super::op::{Op, Operand, Rule, Sample, result_types};
use super::samples::ramp;
use super::shape::{shifted, shifted_with_batch};
use super::windows::{Windows, clamp_to};
use super::{Combiner, Scatter};
use crate::array::Array;
use crate::ir::{Batched, Builder, Slope, Slopes, Var};
use crate::lower::{Hlo, HloAttribute, HloResults, HloValue, hlo_axes, hlo_op};
use crate::op_struct;
use crate::transform::VmapContext;
use crate::types::{DType, TensorType};

op_struct! {
    /// Windows of an operand, one for each index, as in StableHLO's gather.
    ///
    /// Operands: `x`, and the integer start indices. One axis of the indices, `index_vector_dim`,
    /// holds the components of an index. The result has the other axes, in order, with the axes of
    /// the window inserted at `offset_dims`. A start is clamped first, so that every window lies
    /// inside `x`.
    Gather = "gather" {
        /// Axes of the result that come from the window, rising.
        offset_dims: Vec<usize>,
        /// Axes of `x`, of window size 1, that the result leaves out, rising.
        collapsed_slice_dims: Vec<usize>,
        /// Axes of `x` that run with `start_indices_batching_dims`; the window has size 1 along
        /// them, and the result leaves them out. Rising.
        operand_batching_dims: Vec<usize>,
        /// Axes of the indices that run with `operand_batching_dims`.
        start_indices_batching_dims: Vec<usize>,
        /// The axis of `x` for each index component's start.
        start_index_map: Vec<usize>,
        /// The axis of the indices that holds the components; the indices' rank if each index is a
        /// single component.
        index_vector_dim: usize,
        /// The window's extent along each axis of `x`.
        slice_sizes: Vec<usize>,
    }
}

impl Gather {
    /// Examples for the generic tests.
    pub fn samples() -> Vec<Sample> {
        let ints = |shape: &[usize], values: &[i128]| Array::ints(DType::I32, shape, values);
        let f32s = |shape: &[usize]| ramp(DType::F32, shape);
        let take = |x: Array, indices: Array, axis| {
            Sample::new(Gather::take(x.ty(), indices.ty(), axis), vec![x, indices])
        };
        vec![
            take(f32s(&[5]), ints(&[], &[3]), 0),
            take(f32s(&[4, 3]), ints(&[2], &[2, 0]), 0),
            take(f32s(&[4, 3]), ints(&[2, 2], &[2, 0, 2, 1]), 1),
            take(f32s(&[3]), ints(&[4], &[-5, 1, 7, 1]), 0),
            take(f32s(&[3, 2]), Array::ints(DType::U8, [2], &[200, 1]), 0),
            take(f32s(&[200]), Array::ints(DType::I8, [2], &[127, -128]), 0),
            take(ramp(DType::I64, [3]), ints(&[2], &[2, 0]), 0),
            // Two components along the first axis, windows of two rows, window axes around the
            // batch's axes.
            Sample::new(
                Gather {
                    offset_dims: vec![0, 2],
                    collapsed_slice_dims: vec![1],
                    operand_batching_dims: vec![],
                    start_indices_batching_dims: vec![],
                    start_index_map: vec![1, 0],
                    index_vector_dim: 0,
                    slice_sizes: vec![2, 1, 3],
                },
                vec![f32s(&[4, 2, 3]), ints(&[2, 3], &[1, 0, 5, 0, 3, 1])],
            ),
            // A separate row for each index.
            Sample::new(
                Gather {
                    offset_dims: vec![1],
                    collapsed_slice_dims: vec![],
                    operand_batching_dims: vec![1],
                    start_indices_batching_dims: vec![0],
                    start_index_map: vec![0],
                    index_vector_dim: 1,
                    slice_sizes: vec![2, 1],
                },
                vec![f32s(&[4, 3]), ints(&[3, 1], &[2, 0, 9])],
            ),
        ]
    }

    /// The gather that replaces the axis `axis` of `x` by the axes of the indices: element `i`
    /// along it for each index `i`.
    pub fn take(x: &TensorType, indices: &TensorType, axis: usize) -> Gather {
        let after = axis + indices.rank();
        let mut slice_sizes = x.shape.to_vec();
        slice_sizes[axis] = 1;
        Gather {
            offset_dims: (0..axis).chain(after..after + x.rank() - axis - 1).collect(),
            collapsed_slice_dims: vec![axis],
            operand_batching_dims: vec![],
            start_indices_batching_dims: vec![],
            start_index_map: vec![axis],
            index_vector_dim: indices.rank(),
            slice_sizes,
        }
    }

    fn windows(&self) -> Windows<'_> {
        Windows {
            window_dims: ("offset_dims", &self.offset_dims),
            collapsed_dims: ("collapsed_slice_dims", &self.collapsed_slice_dims),
            operand_batching_dims: ("operand_batching_dims", &self.operand_batching_dims),
            indices_batching_dims: (
                "start_indices_batching_dims",
                &self.start_indices_batching_dims,
            ),
            index_map: ("start_index_map", &self.start_index_map),
            index_vector_dim: self.index_vector_dim,
        }
    }

    /// The scatter that writes where this gather reads.
    fn scatter(&self, combiner: Combiner) -> Scatter {
        Scatter {
            update_window_dims: self.offset_dims.clone(),
            inserted_window_dims: self.collapsed_slice_dims.clone(),
            input_batching_dims: self.operand_batching_dims.clone(),
            scatter_indices_batching_dims: self.start_indices_batching_dims.clone(),
            scatter_dims_to_operand_dims: self.start_index_map.clone(),
            index_vector_dim: self.index_vector_dim,
            combiner,
            unique_indices: false,
        }
    }
}

impl Op for Gather {
    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        TypeError::check_arity(inputs, 2)?;
        let (x, indices, sizes) = (&inputs[0], &inputs[1], &self.slice_sizes);
        let windows = self.windows();
        let rank = indices.rank() - usize::from(self.index_vector_dim < indices.rank())
            + self.offset_dims.len();
        windows.check(x, indices, rank)?;
        if sizes.len() != x.rank() || sizes.iter().zip(&x.shape).any(|(size, extent)| size > extent)
        {
            refuse!("a window of shape {sizes:?} does not fit into {x}");
        }
        let wrong = |&&axis: &&usize| {
            sizes[axis]
                != if self.operand_batching_dims.contains(&axis) { x.shape[axis].min(1) } else { 1 }
        };
        if let Some(axis) =
            self.collapsed_slice_dims.iter().chain(&self.operand_batching_dims).find(wrong)
        {
            refuse!(
                "the window must have size 1 along axis {axis}, which the result leaves out, got {}",
                sizes[*axis]
            );
        }
        let window: Vec<usize> =
            windows.window_axes(x.rank()).into_iter().map(|axis| sizes[axis]).collect();
        Ok(vec![x.with_shape(windows.interleave(&windows.batch_shape(indices), &window))])
    }

    fn eval(&self, inputs: &[Array]) -> Vec<Array> {
        let (x, indices) = (&inputs[0], &inputs[1]);
        let ty = result_types(self, inputs).remove(0);
        let windows = self.windows();
        let (batch_dims, axes) =
            (windows.batch_dims(ty.rank()), windows.window_axes(x.ty().rank()));
        vec![Array::from_fn(ty, |index| {
            let batch: Vec<usize> = batch_dims.iter().map(|&dim| index[dim]).collect();
            let start = windows.start(x.ty().rank(), indices, &batch);
            let limits = x
                .ty()
                .shape
                .iter()
                .zip(&self.slice_sizes)
                .map(|(extent, size)| (extent - size) as i128);
            let mut source: Vec<usize> = start
                .into_iter()
                .zip(limits)
                .map(|(start, limit)| start.clamp(0, limit) as usize)
                .collect();
            for (&axis, &dim) in axes.iter().zip(&self.offset_dims) {
                source[axis] += index[dim];
            }
            x.at(&source)
        })]
    }

    fn vmap(&self, b: &mut Builder, cx: &VmapContext, inputs: &[Var], batched: &[bool]) -> Batched {
        let mut op = self.clone();
        if batched[0] {
            op.collapsed_slice_dims = shifted(&op.collapsed_slice_dims);
            op.operand_batching_dims = shifted(&op.operand_batching_dims);
            op.start_index_map = shifted(&op.start_index_map);
        }
        if batched[1] {
            op.start_indices_batching_dims = shifted(&op.start_indices_batching_dims);
            op.index_vector_dim += 1;
        }
        match (batched[0], batched[1]) {
            (true, true) => {
                op.offset_dims = shifted(&op.offset_dims);
                op.operand_batching_dims.insert(0, 0);
                op.start_indices_batching_dims.insert(0, 0);
                op.slice_sizes.insert(0, cx.size.min(1));
            }
            // Every window covers the whole batch.
            (true, false) => {
                op.offset_dims = shifted_with_batch(&op.offset_dims);
                op.slice_sizes.insert(0, cx.size);
            }
            (false, _) => op.offset_dims = shifted(&op.offset_dims),
        }
        vec![(b.emit1(op, inputs), true)]
    }

    fn jvp(&self, b: &mut Builder, inputs: &[Var], _: &[Var], tangents: &[Slope]) -> Rule<Slopes> {
        Rule::Some(vec![tangents[0].map(|t| b.emit1(self.clone(), &[t, inputs[1]]))])
    }

    fn transpose(&self, b: &mut Builder, inputs: &[Operand], cotangents: &[Slope]) -> Rule<Slopes> {
        let (Some(x), Some(ct)) = (inputs[0].linear(), cotangents[0]) else {
            return Rule::Some(vec![None, None]);
        };
        let indices = inputs[1].known().expect("integers are never linear");
        // A scatter drops a window that does not fit, but a gather moves it.
        let limits = self.windows().limits(&x.shape, &self.slice_sizes);
        let indices = clamp_to(b, indices, self.index_vector_dim, &limits);
        let zeros = b.zeros(x);
        Rule::Some(vec![Some(b.scatter(zeros, indices, ct, self.scatter(Combiner::Add))), None])
    }

    fn lower(&self, hlo: &mut dyn Hlo, inputs: &[HloValue], results: &[TensorType]) -> HloResults {
        let dimension_numbers = HloAttribute::Gather {
            offset_dims: self.offset_dims.clone(),
            collapsed_slice_dims: self.collapsed_slice_dims.clone(),
            operand_batching_dims: self.operand_batching_dims.clone(),
            start_indices_batching_dims: self.start_indices_batching_dims.clone(),
            start_index_map: self.start_index_map.clone(),
            index_vector_dim: self.index_vector_dim,
        };
        let attributes = vec![
            ("dimension_numbers", dimension_numbers),
            ("slice_sizes", hlo_axes(&self.slice_sizes)),
            ("indices_are_sorted", HloAttribute::Bool(false)),
        ];
        vec![hlo_op(hlo, "stablehlo.gather", inputs, attributes, &results[0])]
    }
}

impl Builder {
    /// Windows of `x` at `indices`, see [`Gather`].
    #[track_caller]
    pub fn gather(&mut self, x: Var, indices: Var, op: Gather) -> Var {
        self.emit1(op, &[x, indices])
    }

    /// The elements of `x` at `indices` along `axis`: shape
    /// `x[..axis] ++ indices ++ x[axis + 1..]`. An index out of range is clamped.
    #[track_caller]
    pub fn take(&mut self, x: Var, indices: Var, axis: usize) -> Var {
        let op = Gather::take(self.ty(x), self.ty(indices), axis);
        self.gather(x, indices, op)
    }
}
