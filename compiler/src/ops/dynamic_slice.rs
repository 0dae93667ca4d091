//! `dynamic_slice` and `dynamic_update_slice`: a box of a tensor, with known sizes, at a computed
//! position.

use super::TypeError;
use super::op::{Op, Operand, Rule, Sample};
use super::samples::ramp;
use super::shape::{prepended, shifted};
use super::windows::clamp_to;
use super::{Combiner, Gather, Scatter};
use crate::array::{Array, for_each_index};
use crate::ir::{Batched, Builder, Slope, Slopes, Var};
use crate::lower::{Hlo, HloResults, HloValue, hlo_axes, hlo_op};
use crate::op_struct;
use crate::transform::VmapContext;
use crate::types::{DType, TensorType};

op_struct! {
    /// The box of shape `sizes` that starts at a computed position.
    ///
    /// Operands: `x`, then for each of its axes the scalar index of the first element, all with one
    /// integer dtype. A start is clamped first, so that the box always lies inside `x`.
    DynamicSlice = "dynamic_slice" {
        /// The result's shape; no extent exceeds the extent of `x`.
        sizes: Vec<usize>,
    }
}

op_struct! {
    /// A tensor with one box replaced; the box starts at a computed position.
    ///
    /// Operands: `x`; the update, with the dtype of `x` and no extent greater than in `x`; then one
    /// scalar index for each axis, for the first element. All indices have the same integer dtype.
    /// A start is clamped first, so that the whole update is written.
    DynamicUpdateSlice = "dynamic_update_slice" {}
}

/// Scalar indices of one dtype.
fn indices(dtype: DType, values: &[i128]) -> impl Iterator<Item = Array> {
    values.iter().map(move |&value| Array::ints(dtype, [], &[value]))
}

impl DynamicSlice {
    /// Examples for the generic tests.
    pub fn samples() -> Vec<Sample> {
        let sample = |x: Array, dtype, starts: &[i128], sizes: &[usize]| {
            let inputs = [x].into_iter().chain(indices(dtype, starts)).collect();
            Sample::new(DynamicSlice { sizes: sizes.to_vec() }, inputs)
        };
        vec![
            sample(ramp(DType::F32, [5]), DType::I32, &[1], &[2]),
            sample(ramp(DType::F32, [4, 3]), DType::I32, &[2, 0], &[1, 3]),
            sample(ramp(DType::F32, [4, 3]), DType::I64, &[9, -2], &[2, 2]),
            sample(ramp(DType::F32, [200]), DType::I8, &[-3], &[2]),
            sample(ramp(DType::F32, [4]), DType::U8, &[255], &[3]),
            sample(ramp(DType::I32, [2, 2]), DType::I32, &[1, 1], &[2, 2]),
            sample(ramp(DType::F32, []), DType::I32, &[], &[]),
        ]
    }
}

impl DynamicUpdateSlice {
    /// Examples for the generic tests.
    pub fn samples() -> Vec<Sample> {
        let sample = |x: Array, update: Array, dtype, starts: &[i128]| {
            let inputs = [x, update].into_iter().chain(indices(dtype, starts)).collect();
            Sample::new(DynamicUpdateSlice {}, inputs)
        };
        let f32s = |shape: &[usize]| ramp(DType::F32, shape);
        vec![
            sample(f32s(&[5]), f32s(&[2]), DType::I32, &[1]),
            sample(f32s(&[4, 3]), f32s(&[1, 3]), DType::I32, &[2, 0]),
            sample(f32s(&[4, 3]), f32s(&[2, 2]), DType::I64, &[9, -2]),
            sample(f32s(&[200]), f32s(&[2]), DType::I8, &[-3]),
            sample(f32s(&[4]), f32s(&[3]), DType::U8, &[255]),
            sample(f32s(&[2]), f32s(&[2]), DType::I32, &[1]),
            sample(ramp(DType::I32, [3]), ramp(DType::I32, [1]), DType::I32, &[2]),
            sample(f32s(&[]), f32s(&[]), DType::I32, &[]),
        ]
    }
}

/// Checks the scalar indices of a box of shape `sizes` in a tensor of type `x`.
fn check_box(x: &TensorType, sizes: &[usize], starts: &[TensorType]) -> Result<(), TypeError> {
    if sizes.len() != x.rank() || sizes.iter().zip(&x.shape).any(|(size, extent)| size > extent) {
        refuse!("a box of shape {sizes:?} does not fit into {x}");
    }
    if starts.len() != x.rank() {
        refuse!("expected one start for each axis of {x}, got {}", starts.len());
    }
    match starts
        .iter()
        .find(|start| !start.dtype.is_integer() || start.rank() != 0 || **start != starts[0])
    {
        Some(start) => {
            Err(TypeError::new(format!("starts must be scalars of one integer dtype, got {start}")))
        }
        None => Ok(()),
    }
}

/// The start of a box, clamped so that the box lies in `x`.
fn clamped(x: &TensorType, sizes: &[usize], starts: &[Array]) -> Vec<usize> {
    x.shape
        .iter()
        .zip(sizes)
        .zip(starts)
        .map(|((extent, size), start)| {
            start.get(0).int().clamp(0, (extent - size) as i128) as usize
        })
        .collect()
}

/// The axes along which a box fits in several positions.
fn free_axes(x: &[usize], sizes: &[usize]) -> Vec<usize> {
    (0..x.len()).filter(|&axis| sizes[axis] < x[axis]).collect()
}

/// The shape of one example of an operand of a vmap.
fn example_shape(b: &Builder, x: Var, batched: bool) -> Vec<usize> {
    b.ty(x).shape[usize::from(batched)..].to_vec()
}

/// The starts of every example along some axes, as rows: `[batch, axes]`.
fn stacked_starts(
    b: &mut Builder,
    cx: &VmapContext,
    starts: &[Var],
    batched: &[bool],
    axes: &[usize],
) -> Var {
    let column = |&axis: &usize| {
        let start = cx.batch(b, starts[axis], batched[axis]);
        b.reshape(start, &[cx.size, 1])
    };
    let columns: Vec<Var> = axes.iter().map(column).collect();
    b.concatenate(&columns, 1)
}

/// The same starts for a whole batch: 0 along the batch's axis, which is the first axis.
fn starts_with_batch(b: &mut Builder, starts: &[Var]) -> Vec<Var> {
    let dtype = starts.first().map_or(DType::I32, |&start| b.ty(start).dtype);
    let zero = b.zeros(&TensorType::scalar(dtype));
    prepended(zero, starts)
}

impl Op for DynamicSlice {
    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        let Some((x, starts)) = inputs.split_first() else {
            refuse!("expected an operand, got none");
        };
        check_box(x, &self.sizes, starts)?;
        Ok(vec![x.with_shape(self.sizes.clone())])
    }

    fn eval(&self, inputs: &[Array]) -> Vec<Array> {
        let (x, starts) = inputs.split_first().expect("eval is given well-typed operands");
        let start = clamped(x.ty(), &self.sizes, starts);
        vec![Array::from_fn(x.ty().with_shape(self.sizes.clone()), |index| {
            let source: Vec<usize> = index.iter().zip(&start).map(|(i, start)| i + start).collect();
            x.at(&source)
        })]
    }

    fn vmap(&self, b: &mut Builder, cx: &VmapContext, inputs: &[Var], batched: &[bool]) -> Batched {
        let (x, starts) = (inputs[0], &inputs[1..]);
        if !batched[1..].contains(&true) {
            let starts = starts_with_batch(b, starts);
            return vec![(b.dynamic_slice(x, &starts, &prepended(cx.size, &self.sizes)), true)];
        }
        let x_shape = example_shape(b, x, batched[0]);
        let axes = free_axes(&x_shape, &self.sizes);
        if axes.is_empty() {
            return vec![(x, batched[0])];
        }
        let indices = stacked_starts(b, cx, starts, &batched[1..], &axes);
        let rank = x_shape.len();
        let mut op = Gather {
            offset_dims: (1..=rank).collect(),
            collapsed_slice_dims: vec![],
            operand_batching_dims: vec![],
            start_indices_batching_dims: vec![],
            start_index_map: axes,
            index_vector_dim: 1,
            slice_sizes: self.sizes.clone(),
        };
        if batched[0] {
            op.operand_batching_dims = vec![0];
            op.start_indices_batching_dims = vec![0];
            op.start_index_map = shifted(&op.start_index_map);
            op.slice_sizes = prepended(cx.size.min(1), &op.slice_sizes);
        }
        vec![(b.gather(x, indices, op), true)]
    }

    fn jvp(&self, b: &mut Builder, inputs: &[Var], _: &[Var], tangents: &[Slope]) -> Rule<Slopes> {
        Rule::Some(vec![tangents[0].map(|t| b.dynamic_slice(t, &inputs[1..], &self.sizes))])
    }

    fn transpose(&self, b: &mut Builder, inputs: &[Operand], cotangents: &[Slope]) -> Rule<Slopes> {
        let mut result = vec![None; inputs.len()];
        if let (Some(x), Some(ct)) = (inputs[0].linear(), cotangents[0]) {
            let zeros = b.zeros(x);
            result[0] = Some(b.dynamic_update_slice(zeros, ct, &known_starts(&inputs[1..])));
        }
        Rule::Some(result)
    }

    fn lower(&self, hlo: &mut dyn Hlo, inputs: &[HloValue], results: &[TensorType]) -> HloResults {
        let operands = with_wide_starts(hlo, inputs, 1);
        let attributes = vec![("slice_sizes", hlo_axes(&self.sizes))];
        vec![hlo_op(hlo, "stablehlo.dynamic_slice", &operands, attributes, &results[0])]
    }
}

/// The operands, with the starts, from position `first`, in at least 32 bits. XLA clamps a start in
/// the start's dtype, which may not represent the greatest allowed start.
fn with_wide_starts(hlo: &mut dyn Hlo, operands: &[HloValue], first: usize) -> HloResults {
    let (tensors, starts) = operands.split_at(first);
    let widen = |&start: &HloValue| match hlo.ty(start) {
        ty if ty.dtype.bits() < 32 => {
            hlo_op(hlo, "stablehlo.convert", &[start], vec![], &ty.with_dtype(DType::I32))
        }
        _ => start,
    };
    let starts: Vec<HloValue> = starts.iter().map(widen).collect();
    [tensors, &starts].concat()
}

/// The starts of a linear equation.
fn known_starts(starts: &[Operand]) -> Vec<Var> {
    starts.iter().map(|start| start.known().expect("integers are never linear")).collect()
}

impl Op for DynamicUpdateSlice {
    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        let [x, update, starts @ ..] = inputs else {
            refuse!("expected an operand, an update and the starts, got {}", inputs.len());
        };
        if x.dtype != update.dtype {
            refuse!("the update of {x} must have its dtype, got {update}: cast one of them");
        }
        check_box(x, &update.shape, starts)?;
        Ok(vec![x.clone()])
    }

    fn eval(&self, inputs: &[Array]) -> Vec<Array> {
        let [x, update, starts @ ..] = inputs else {
            unreachable!("eval is given well-typed operands")
        };
        let start = clamped(x.ty(), &update.ty().shape, starts);
        let mut result = x.clone();
        for_each_index(&update.ty().shape, |index| {
            let target: Vec<usize> = index.iter().zip(&start).map(|(i, start)| i + start).collect();
            result.set(&target, update.at(index));
        });
        vec![result]
    }

    fn vmap(&self, b: &mut Builder, cx: &VmapContext, inputs: &[Var], batched: &[bool]) -> Batched {
        let starts = &inputs[2..];
        if !batched[2..].contains(&true) {
            let x = cx.batch(b, inputs[0], batched[0]);
            let update = cx.batch(b, inputs[1], batched[1]);
            let starts = starts_with_batch(b, starts);
            return vec![(b.dynamic_update_slice(x, update, &starts), true)];
        }
        let sizes = example_shape(b, inputs[1], batched[1]);
        let x_shape = example_shape(b, inputs[0], batched[0]);
        let axes = free_axes(&x_shape, &sizes);
        if axes.is_empty() {
            return vec![(inputs[1], batched[1])];
        }
        let x = cx.batch(b, inputs[0], batched[0]);
        let update = cx.batch(b, inputs[1], batched[1]);
        // A scatter drops an update that does not fit, but this op moves it.
        let indices = stacked_starts(b, cx, starts, &batched[2..], &axes);
        let limits: Vec<usize> = axes.iter().map(|&axis| x_shape[axis] - sizes[axis]).collect();
        let indices = clamp_to(b, indices, 1, &limits);
        let op = Scatter {
            update_window_dims: (1..=sizes.len()).collect(),
            inserted_window_dims: vec![],
            input_batching_dims: vec![0],
            scatter_indices_batching_dims: vec![0],
            scatter_dims_to_operand_dims: shifted(&axes),
            index_vector_dim: 1,
            combiner: Combiner::Set,
            unique_indices: true,
        };
        vec![(b.scatter(x, indices, update, op), true)]
    }

    fn jvp(&self, b: &mut Builder, inputs: &[Var], _: &[Var], tangents: &[Slope]) -> Rule<Slopes> {
        let x = tangents[0].unwrap_or_else(|| b.full_like(inputs[0], 0.0));
        let update = tangents[1].unwrap_or_else(|| b.full_like(inputs[1], 0.0));
        Rule::Some(vec![Some(b.dynamic_update_slice(x, update, &inputs[2..]))])
    }

    fn transpose(&self, b: &mut Builder, inputs: &[Operand], cotangents: &[Slope]) -> Rule<Slopes> {
        let mut result = vec![None; inputs.len()];
        let Some(ct) = cotangents[0] else {
            return Rule::Some(result);
        };
        let starts = known_starts(&inputs[2..]);
        let update = inputs[1].ty(b).clone();
        if inputs[0].is_linear() {
            let zeros = b.zeros(&update);
            result[0] = Some(b.dynamic_update_slice(ct, zeros, &starts));
        }
        if inputs[1].is_linear() {
            result[1] = Some(b.dynamic_slice(ct, &starts, &update.shape));
        }
        Rule::Some(result)
    }

    fn lower(&self, hlo: &mut dyn Hlo, inputs: &[HloValue], results: &[TensorType]) -> HloResults {
        let operands = with_wide_starts(hlo, inputs, 2);
        vec![hlo_op(hlo, "stablehlo.dynamic_update_slice", &operands, vec![], &results[0])]
    }
}

impl Builder {
    /// The box of `x` of shape `sizes` that starts at `starts`, one scalar integer for each axis; see [`DynamicSlice`].
    #[track_caller]
    pub fn dynamic_slice(&mut self, x: Var, starts: &[Var], sizes: &[usize]) -> Var {
        self.emit1(DynamicSlice { sizes: sizes.to_vec() }, &prepended(x, starts))
    }

    /// `x` with the box that starts at `starts` replaced by `update`; see [`DynamicUpdateSlice`].
    #[track_caller]
    pub fn dynamic_update_slice(&mut self, x: Var, update: Var, starts: &[Var]) -> Var {
        self.emit1(DynamicUpdateSlice {}, &prepended(x, &prepended(update, starts)))
    }
}
