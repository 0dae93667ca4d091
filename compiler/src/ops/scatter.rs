//! `scatter`: windows of a tensor at computed places replaced by updates or combined with them.

use super::op::{Op, OpStruct, Operand, Rule, Sample};
use super::samples::ramp;
use super::shape::{prepended, shifted, shifted_with_batch};
use super::windows::{Windows, clamp_to, in_range};
use super::{Direction, Gather, TypeError};
use crate::array::{Array, Scalar, for_each_index};
use crate::attributes::Attributes;
use crate::ir::{Builder, Var};
use crate::lower::{Hlo, HloAttribute, HloOp, HloValue, hlo_simple};
use crate::transform::VmapContext;
use crate::types::{DType, TensorType};
use crate::{op_struct, words};

words! {
    /// What [`Scatter`] makes of an element and its update.
    Combiner {
        /// The update.
        Set = "set",
        /// Their sum.
        Add = "add",
        /// Their product.
        Multiply = "multiply",
        /// The lesser; NaN if one of them is.
        Min = "min",
        /// The greater; NaN if one of them is.
        Max = "max",
    }
}

impl Combiner {
    fn scalar(self, x: Scalar, update: Scalar) -> Scalar {
        match (self, x, update) {
            (Combiner::Set, _, update) => update,
            (Combiner::Add, Scalar::Int(x), Scalar::Int(y)) => Scalar::Int(x.wrapping_add(y)),
            (Combiner::Multiply, Scalar::Int(x), Scalar::Int(y)) => Scalar::Int(x.wrapping_mul(y)),
            (Combiner::Min, Scalar::Int(x), Scalar::Int(y)) => Scalar::Int(x.min(y)),
            (Combiner::Max, Scalar::Int(x), Scalar::Int(y)) => Scalar::Int(x.max(y)),
            (Combiner::Add, x, y) => Scalar::Float(x.float() + y.float()),
            (Combiner::Multiply, x, y) => Scalar::Float(x.float() * y.float()),
            (_, x, y) if x.float().is_nan() || y.float().is_nan() => Scalar::Float(f64::NAN),
            (Combiner::Min, x, y) => Scalar::Float(x.float().min(y.float())),
            (Combiner::Max, x, y) => Scalar::Float(x.float().max(y.float())),
        }
    }

    /// The StableHLO op in the region, if there is one.
    fn hlo(self) -> Option<&'static str> {
        match self {
            Combiner::Set => None,
            Combiner::Add => Some("stablehlo.add"),
            Combiner::Multiply => Some("stablehlo.multiply"),
            Combiner::Min => Some("stablehlo.minimum"),
            Combiner::Max => Some("stablehlo.maximum"),
        }
    }
}

op_struct! {
    /// A tensor with windows of it, one for each index, combined with updates, as StableHLO's scatter has it.
    ///
    /// Operands: `x`, the integer indices, and the updates of the dtype of `x`. One axis of the indices,
    /// `index_vector_dim`, holds the components of an index; the updates have the others, in order, with the axes of the
    /// window in between at `update_window_dims`. The result has the type of `x`. A window that does not lie wholly inside
    /// `x` is dropped. Where several updates meet, `set` keeps one of them (the reference semantics: the last), the others
    /// combine all.
    ///
    /// Derivatives: all combiners have one. `multiply` has none with respect to the updates unless `unique_indices`. `set`
    /// sends the derivative through the update that was kept; ties of `min` and `max` share it evenly.
    Scatter {
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
        /// The axis of the indices that holds the components; their rank if each index is one component.
        index_vector_dim: usize,
        /// What becomes of an element and its update.
        combiner: Combiner,
        /// A promise that no two windows meet, which makes it faster; the result is anything if it is broken.
        unique_indices: bool,
    }
}

impl Scatter {
    /// Examples for the generic tests.
    pub fn samples() -> Vec<Sample> {
        let ints = |shape: &[usize], values: &[i128]| Array::ints(DType::I32, shape, values);
        let f32s = |shape: &[usize]| ramp(DType::F32, shape);
        let sample = |op: &Scatter, x: &Array, indices: &Array, updates: &Array| {
            Sample::new(op.clone(), vec![x.clone(), indices.clone(), updates.clone()])
        };
        let updates = Array::floats(DType::F32, [4], &[5.0, -3.0, 2.5, 0.75]);
        let mut samples = Vec::new();
        for &combiner in Combiner::ALL {
            let op = Scatter::at(1, 1, 0, combiner);
            let unique = Scatter { unique_indices: true, ..op.clone() };
            samples.push(sample(&unique, &f32s(&[5]), &ints(&[4], &[3, 0, 9, 1]), &updates));
            samples.push(sample(&op, &ramp(DType::I32, [3]), &ints(&[2], &[2, 2]), &ramp(DType::I32, [2])));
            let met = sample(&op, &f32s(&[3]), &ints(&[4], &[2, 0, -1, 2]), &updates);
            samples.push(if combiner == Combiner::Multiply { met.not_differentiable() } else { met });
        }
        for combiner in [Combiner::Set, Combiner::Add] {
            // Rows; windows that meet in part; one that hangs over the edge.
            let rows = Scatter::at(2, 1, 0, combiner);
            samples.push(sample(&rows, &f32s(&[4, 3]), &Array::ints(DType::U8, [2], &[200, 1]), &f32s(&[2, 3])));
            let pairs = Scatter {
                update_window_dims: vec![0],
                inserted_window_dims: vec![],
                input_batching_dims: vec![],
                scatter_indices_batching_dims: vec![],
                scatter_dims_to_operand_dims: vec![0],
                index_vector_dim: 0,
                combiner,
                unique_indices: false,
            };
            samples.push(sample(&pairs, &f32s(&[5]), &ints(&[1, 3], &[1, 2, 4]), &f32s(&[2, 3])));
            // A column of its own for each index, two components.
            let columns = Scatter {
                update_window_dims: vec![1],
                inserted_window_dims: vec![2],
                input_batching_dims: vec![1],
                scatter_indices_batching_dims: vec![0],
                scatter_dims_to_operand_dims: vec![2, 0],
                index_vector_dim: 1,
                combiner,
                unique_indices: true,
            };
            samples.push(sample(&columns, &f32s(&[3, 2, 2]), &ints(&[2, 2], &[1, 0, 0, 1]), &f32s(&[2, 2])));
        }
        samples.push(sample(&Scatter::at(1, 0, 0, Combiner::Set), &ramp(DType::Bool, [3]), &ints(&[], &[1]), &Array::bools([], &[true])));
        samples
    }

    /// The scatter that is to [`Gather::take`] as writing is to reading: update `i` goes to index `i` along `axis` of an
    /// operand of this rank. The updates have the shape `x[..axis] ++ indices ++ x[axis + 1..]`.
    pub fn at(operand_rank: usize, indices_rank: usize, axis: usize, combiner: Combiner) -> Scatter {
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
            indices_batching_dims: ("scatter_indices_batching_dims", &self.scatter_indices_batching_dims),
            index_map: ("scatter_dims_to_operand_dims", &self.scatter_dims_to_operand_dims),
            index_vector_dim: self.index_vector_dim,
        }
    }

    /// The window's extent along each axis of `x`.
    fn window_sizes(&self, x: &[usize], updates: &[usize]) -> Vec<usize> {
        let mut sizes: Vec<usize> = x.iter().map(|&extent| extent.min(1)).collect();
        for (axis, &dim) in self.windows().window_axes(x.len()).into_iter().zip(&self.update_window_dims) {
            sizes[axis] = updates[dim];
        }
        sizes
    }

    fn with(&self, combiner: Combiner) -> Scatter {
        Scatter { combiner, ..self.clone() }
    }

    /// What stands in `x`, which has the operand's shape, where the updates go. For dropped updates it is what the nearest
    /// window that fits has; [`Scatter::read_back`] gives zero there.
    fn gather(&self, b: &mut Builder, x: Var, indices: Var, updates: &[usize]) -> Var {
        let op = Gather {
            offset_dims: self.update_window_dims.clone(),
            collapsed_slice_dims: self.inserted_window_dims.clone(),
            operand_batching_dims: self.input_batching_dims.clone(),
            start_indices_batching_dims: self.scatter_indices_batching_dims.clone(),
            start_index_map: self.scatter_dims_to_operand_dims.clone(),
            index_vector_dim: self.index_vector_dim,
            slice_sizes: self.window_sizes(&b.ty(x).shape, updates),
        };
        b.gather(x, indices, op)
    }

    /// As [`Scatter::gather`], with zeros for dropped updates: the transpose of adding updates.
    fn read_back(&self, b: &mut Builder, x: Var, indices: Var, updates: &[usize]) -> Var {
        let read = self.gather(b, x, indices, updates);
        let windows = self.windows();
        let x_shape = b.ty(x).shape.clone();
        let limits = windows.limits(&x_shape, &self.window_sizes(&x_shape, updates));
        let clamped = clamp_to(b, indices, self.index_vector_dim, &limits);
        let Some(kept) = in_range(b, indices, clamped, self.index_vector_dim) else { return read };
        let kept = b.broadcast_in_dim(kept, updates, &windows.batch_dims(updates.len()));
        let zeros = b.full_like(read, 0.0);
        b.select(kept, read, zeros)
    }

    /// Which elements of the operand no update reaches, and which elements of the updates are the ones that `set` kept.
    fn winners(&self, b: &mut Builder, x: &[usize], indices: Var, updates: &[usize]) -> (Var, Var) {
        let windows = self.windows();
        let batch_dims = windows.batch_dims(updates.len());
        let batch: Vec<usize> = batch_dims.iter().map(|&dim| updates[dim]).collect();
        // Scatter the updates' numbers, from 1 on, the way the updates went; an update that finds its own number won.
        let numbers = b.iota(DType::U32, &[batch.iter().product()], 0);
        let one = b.full_like(numbers, 1.0);
        let numbers = b.add(numbers, one);
        let numbers = b.reshape(numbers, &batch);
        let numbers = b.broadcast_in_dim(numbers, updates, &batch_dims);
        let zeros = b.zeros(&TensorType::new(DType::U32, x));
        let scattered = b.scatter(zeros, indices, numbers, self.with(Combiner::Set));
        let found = self.gather(b, scattered, indices, updates);
        (b.compare(Direction::Eq, scattered, zeros), b.compare(Direction::Eq, found, numbers))
    }

    /// [`Op::jvp`] of `set`.
    fn jvp_set(&self, b: &mut Builder, inputs: &[Var], x: Option<Var>, updates: Option<Var>) -> Var {
        let x = x.unwrap_or_else(|| b.full_like(inputs[0], 0.0));
        let Some(updates) = updates.filter(|_| !self.unique_indices) else {
            let updates = updates.unwrap_or_else(|| b.full_like(inputs[2], 0.0));
            return b.scatter(x, inputs[1], updates, self.clone());
        };
        // Setting again might keep another update than the first time.
        let (x_shape, updates_shape) = (b.ty(x).shape.clone(), b.ty(updates).shape.clone());
        let (untouched, won) = self.winners(b, &x_shape, inputs[1], &updates_shape);
        let zeros = b.full_like(x, 0.0);
        let x = b.select(untouched, x, zeros);
        let zeros = b.full_like(updates, 0.0);
        let updates = b.select(won, updates, zeros);
        b.scatter(x, inputs[1], updates, self.with(Combiner::Add))
    }

    /// [`Op::jvp`] of `multiply`.
    fn jvp_multiply(&self, b: &mut Builder, inputs: &[Var], x: Option<Var>, updates: Option<Var>) -> Rule<Var> {
        let from_x = x.map(|x| b.scatter(x, inputs[1], inputs[2], self.clone()));
        let Some(updates) = updates else { return Rule::Some(from_x.expect("jvp is called with a tangent")) };
        if !self.unique_indices {
            return Rule::None("updates that are multiplied into the same element have no derivative; set unique_indices if none are");
        }
        let shape = b.ty(updates).shape.clone();
        let read = self.gather(b, inputs[0], inputs[1], &shape);
        let updates = b.mul(read, updates);
        let from_x = from_x.unwrap_or_else(|| b.full_like(inputs[0], 0.0));
        Rule::Some(b.scatter(from_x, inputs[1], updates, self.with(Combiner::Add)))
    }

    /// [`Op::jvp`] of `min` and `max`: the mean of the tangents of all that have the result's value.
    fn jvp_extremum(&self, b: &mut Builder, inputs: &[Var], output: Var, x: Option<Var>, updates: Option<Var>) -> Var {
        let dtype = b.ty(output).dtype;
        let add = self.with(Combiner::Add);
        let x_attains = b.compare(Direction::Eq, inputs[0], output);
        let shape = b.ty(inputs[2]).shape.clone();
        let read = self.gather(b, output, inputs[1], &shape);
        let update_attains = b.compare(Direction::Eq, inputs[2], read);
        let (x_count, update_count) = (b.convert(x_attains, dtype), b.convert(update_attains, dtype));
        let count = b.scatter(x_count, inputs[1], update_count, add.clone());
        let mut tangent = |attains: Var, value: Var, tangent: Option<Var>| {
            let zeros = b.full_like(value, 0.0);
            tangent.map_or(zeros, |tangent| b.select(attains, tangent, zeros))
        };
        let x = tangent(x_attains, inputs[0], x);
        let updates = tangent(update_attains, inputs[2], updates);
        let sum = b.scatter(x, inputs[1], updates, add);
        b.div(sum, count)
    }
}

impl Op for Scatter {
    fn mnemonic(&self) -> &'static str {
        "scatter"
    }

    fn attributes(&self) -> Attributes {
        self.struct_attributes()
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        TypeError::check_arity(inputs, 3)?;
        let (x, indices, updates) = (&inputs[0], &inputs[1], &inputs[2]);
        if x.dtype != updates.dtype {
            return Err(TypeError::new(format!("the updates of {x} must have its dtype, got {updates}: cast one of them")));
        }
        if x.dtype == DType::Bool && self.combiner != Combiner::Set {
            return Err(TypeError::new(format!("combiner {} takes numbers, got {x}", self.combiner.word())));
        }
        let windows = self.windows();
        windows.check(x, indices, updates.rank())?;
        if let Some(axis) = self.inserted_window_dims.iter().find(|&&axis| x.shape[axis] == 0) {
            return Err(TypeError::new(format!("axis {axis} of {x} has no element to update")));
        }
        let batch = windows.batch_shape(indices);
        let axes = windows.window_axes(x.rank());
        let expected_rank = batch.len() + axes.len();
        let fits = updates.rank() == expected_rank && {
            let window: Vec<usize> = self.update_window_dims.iter().map(|&dim| updates.shape[dim]).collect();
            windows.interleave(&batch, &window) == updates.shape && axes.iter().zip(&window).all(|(&axis, &size)| size <= x.shape[axis])
        };
        if !fits {
            let window: Vec<usize> = axes.iter().map(|&axis| x.shape[axis]).collect();
            return Err(TypeError::new(format!(
                "the updates must have the batch {batch:?} of the indices and, at update_window_dims {:?}, at most {window:?} of {x}, got {updates}",
                self.update_window_dims
            )));
        }
        Ok(vec![x.clone()])
    }

    fn eval(&self, inputs: &[Array]) -> Vec<Array> {
        let (x, indices, updates) = (&inputs[0], &inputs[1], &inputs[2]);
        let windows = self.windows();
        let sizes = self.window_sizes(&x.ty.shape, &updates.ty.shape);
        let (batch_dims, axes) = (windows.batch_dims(updates.ty.rank()), windows.window_axes(x.ty.rank()));
        let mut result = x.clone();
        for_each_index(&updates.ty.shape, |index| {
            let batch: Vec<usize> = batch_dims.iter().map(|&dim| index[dim]).collect();
            let start = windows.start(x.ty.rank(), indices, &batch);
            let fits = |axis: usize| start[axis] >= 0 && start[axis] + sizes[axis] as i128 <= x.ty.shape[axis] as i128;
            if !(0..x.ty.rank()).all(fits) {
                return;
            }
            let mut target: Vec<usize> = start.iter().map(|&start| start as usize).collect();
            for (&axis, &dim) in axes.iter().zip(&self.update_window_dims) {
                target[axis] += index[dim];
            }
            result.set(&target, self.combiner.scalar(result.at(&target), updates.at(index)));
        });
        vec![result]
    }

    fn vmap(&self, b: &mut Builder, cx: &VmapContext, inputs: &[Var], batched: &[bool]) -> Vec<(Var, bool)> {
        let x = cx.batch(b, inputs[0], batched[0]);
        let updates = cx.batch(b, inputs[2], batched[2]);
        let mut op = self.clone();
        op.inserted_window_dims = shifted(&op.inserted_window_dims);
        op.scatter_dims_to_operand_dims = shifted(&op.scatter_dims_to_operand_dims);
        if batched[1] {
            op.update_window_dims = shifted(&op.update_window_dims);
            op.input_batching_dims = shifted_with_batch(&op.input_batching_dims);
            op.scatter_indices_batching_dims = prepended(0, &shifted(&op.scatter_indices_batching_dims));
            op.index_vector_dim += 1;
        } else {
            // Every window reaches over the whole batch.
            op.update_window_dims = shifted_with_batch(&op.update_window_dims);
            op.input_batching_dims = shifted(&op.input_batching_dims);
        }
        vec![(b.emit1(op, &[x, inputs[1], updates]), true)]
    }

    fn jvp(&self, b: &mut Builder, inputs: &[Var], outputs: &[Var], tangents: &[Option<Var>]) -> Rule<Vec<Option<Var>>> {
        let (x, updates) = (tangents[0], tangents[2]);
        let tangent = match self.combiner {
            Combiner::Add => {
                let x = x.unwrap_or_else(|| b.full_like(inputs[0], 0.0));
                let updates = updates.unwrap_or_else(|| b.full_like(inputs[2], 0.0));
                Rule::Some(b.scatter(x, inputs[1], updates, self.clone()))
            }
            Combiner::Set => Rule::Some(self.jvp_set(b, inputs, x, updates)),
            Combiner::Multiply => self.jvp_multiply(b, inputs, x, updates),
            Combiner::Min | Combiner::Max => Rule::Some(self.jvp_extremum(b, inputs, outputs[0], x, updates)),
        };
        tangent.map(|tangent| vec![Some(tangent)])
    }

    fn transpose(&self, b: &mut Builder, inputs: &[Operand], cotangents: &[Option<Var>]) -> Rule<Vec<Option<Var>>> {
        let Some(ct) = cotangents[0] else { return Rule::Some(vec![None; 3]) };
        let indices = inputs[1].known().expect("integers are never linear");
        let updates = match &inputs[2] {
            Operand::Known(var) => b.ty(*var).clone(),
            Operand::Linear(ty) => ty.clone(),
        };
        let of_x = |b: &mut Builder, with: Var| inputs[0].is_linear().then(|| b.scatter(ct, indices, with, self.clone()));
        match (self.combiner, inputs[2].known()) {
            (Combiner::Add, known) => {
                let of_updates = known.is_none().then(|| self.read_back(b, ct, indices, &updates.shape));
                Rule::Some(vec![inputs[0].is_linear().then_some(ct), None, of_updates])
            }
            (Combiner::Set, known) => {
                let zeros = b.zeros(&updates);
                let of_x = of_x(b, zeros);
                let of_updates = known.is_none().then(|| {
                    if self.unique_indices {
                        return self.read_back(b, ct, indices, &updates.shape);
                    }
                    let x_shape = b.ty(ct).shape.clone();
                    let (_, won) = self.winners(b, &x_shape, indices, &updates.shape);
                    let read = self.gather(b, ct, indices, &updates.shape);
                    b.select(won, read, zeros)
                });
                Rule::Some(vec![of_x, None, of_updates])
            }
            (Combiner::Multiply, Some(known)) => Rule::Some(vec![of_x(b, known), None, None]),
            (Combiner::Multiply, None) => Rule::None("multiplying updates in is not linear in them"),
            (Combiner::Min | Combiner::Max, _) => Rule::None("taking the lesser or greater is not linear"),
        }
    }

    fn lower(&self, hlo: &mut dyn Hlo, inputs: &[HloValue], results: &[TensorType]) -> Vec<HloValue> {
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
        hlo.op(HloOp { name: "stablehlo.scatter", operands: inputs, attributes, regions: vec![region], results })
    }
}

impl Builder {
    /// Windows of `x` at `indices` combined with `updates`, see [`Scatter`].
    #[track_caller]
    pub fn scatter(&mut self, x: Var, indices: Var, updates: Var, op: Scatter) -> Var {
        self.emit1(op, &[x, indices, updates])
    }
}
