//! The derivatives of scatter.
//!
//! Invariant: updates that were dropped, and updates that `set` did not keep, neither receive nor send a derivative.

use super::{Combiner, Scatter};
use crate::ir::{Builder, Slope, Slopes, Var};
use crate::ops::windows::{clamp_to, in_range};
use crate::ops::{Direction, Gather, Operand, Rule};
use crate::types::{DType, TensorType};

impl Scatter {
    /// [`Op::jvp`](crate::Op::jvp), for the single result.
    pub(super) fn tangent(
        &self,
        b: &mut Builder,
        inputs: &[Var],
        outputs: &[Var],
        tangents: &[Slope],
    ) -> Rule<Slopes> {
        let (x, updates) = (tangents[0], tangents[2]);
        let tangent = match self.combiner {
            Combiner::Add => {
                let x = x.unwrap_or_else(|| b.full_like(inputs[0], 0.0));
                let updates = updates.unwrap_or_else(|| b.full_like(inputs[2], 0.0));
                Rule::Some(b.scatter(x, inputs[1], updates, self.clone()))
            }
            Combiner::Set => Rule::Some(self.jvp_set(b, inputs, outputs[0], x, updates)),
            Combiner::Multiply => self.jvp_multiply(b, inputs, x, updates),
            Combiner::Min | Combiner::Max => {
                Rule::Some(self.jvp_extremum(b, inputs, outputs[0], x, updates))
            }
        };
        tangent.map(|tangent| vec![Some(tangent)])
    }

    /// [`Op::transpose`](crate::Op::transpose).
    pub(super) fn cotangents(
        &self,
        b: &mut Builder,
        inputs: &[Operand],
        cotangents: &[Slope],
    ) -> Rule<Slopes> {
        let Some(ct) = cotangents[0] else {
            return Rule::Some(vec![None; 3]);
        };
        let indices = inputs[1].known().expect("integers are never linear");
        let updates = match &inputs[2] {
            Operand::Known(var) => b.ty(*var).clone(),
            Operand::Linear(ty) => ty.clone(),
        };
        let of_x = |b: &mut Builder, with: Var| {
            inputs[0].is_linear().then(|| b.scatter(ct, indices, with, self.clone()))
        };
        match (self.combiner, inputs[2].known()) {
            (Combiner::Add, known) => {
                let of_updates =
                    known.is_none().then(|| self.read_back(b, ct, indices, &updates.shape));
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
                    let (_, won) = self.winners(b, &x_shape, indices, &updates.shape, None);
                    let read = self.gather(b, ct, indices, &updates.shape);
                    b.select(won, read, zeros)
                });
                Rule::Some(vec![of_x, None, of_updates])
            }
            (Combiner::Multiply, Some(known)) => Rule::Some(vec![of_x(b, known), None, None]),
            (Combiner::Multiply, None) => {
                Rule::None("multiplying updates in is not linear in them")
            }
            (Combiner::Min | Combiner::Max, _) => {
                Rule::None("taking the lesser or greater is not linear")
            }
        }
    }

    /// The elements of `x`, which has the operand's shape, at the positions of the updates. A
    /// dropped update gets the elements of the nearest window that fits; [`Scatter::read_back`]
    /// gives zero for it.
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

    /// [`Scatter::gather`] with zeros for dropped updates: the transpose of adding updates.
    fn read_back(&self, b: &mut Builder, x: Var, indices: Var, updates: &[usize]) -> Var {
        let read = self.gather(b, x, indices, updates);
        let windows = self.windows();
        let x_shape = b.ty(x).shape.clone();
        let limits = windows.limits(&x_shape, &self.window_sizes(&x_shape, updates));
        let clamped = clamp_to(b, indices, self.index_vector_dim, &limits);
        let Some(kept) = in_range(b, indices, clamped, self.index_vector_dim) else {
            return read;
        };
        let kept = b.broadcast_in_dim(kept, updates, &windows.batch_dims(updates.len()));
        let zeros = b.full_like(read, 0.0);
        b.select(kept, read, zeros)
    }

    /// Two bool tensors: the elements of the operand that no update reaches, and the elements of
    /// the updates that `set` kept. If several updates meet, `set` keeps the last. Platforms differ
    /// in this choice: if `kept` has the updates and the result, only updates that occur in the
    /// result count.
    fn winners(
        &self,
        b: &mut Builder,
        x: &[usize],
        indices: Var,
        updates: &[usize],
        kept: Option<(Var, Var)>,
    ) -> (Var, Var) {
        let batch_dims = self.windows().batch_dims(updates.len());
        let batch: Vec<usize> = batch_dims.iter().map(|&dim| updates[dim]).collect();
        // Scatter the updates' numbers, from 1 on, in the same way as the updates; an update that
        // finds its own number won. The number 0 changes nothing.
        let numbers = b.iota(DType::U32, &[batch.iter().product()], 0);
        let one = b.full_like(numbers, 1.0);
        let numbers = b.add(numbers, one);
        let numbers = b.reshape(numbers, &batch);
        let mut numbers = b.broadcast_in_dim(numbers, updates, &batch_dims);
        if let Some((values, output)) = kept {
            let read = self.gather(b, output, indices, updates);
            let same = b.compare(Direction::Eq, read, values);
            let [no_number, nowhere] =
                [read, values].map(|value| b.compare(Direction::Ne, value, value));
            let both = b.and(no_number, nowhere);
            let same = b.or(same, both);
            let none = b.full_like(numbers, 0.0);
            numbers = b.select(same, numbers, none);
        }
        let zeros = b.zeros(&TensorType::new(DType::U32, x));
        let scattered = b.scatter(zeros, indices, numbers, self.with(Combiner::Max));
        let found = self.gather(b, scattered, indices, updates);
        (b.compare(Direction::Eq, scattered, zeros), b.compare(Direction::Eq, found, numbers))
    }

    /// The tangent of a scatter that sets elements.
    fn jvp_set(
        &self,
        b: &mut Builder,
        inputs: &[Var],
        output: Var,
        x: Option<Var>,
        updates: Option<Var>,
    ) -> Var {
        let x = x.unwrap_or_else(|| b.full_like(inputs[0], 0.0));
        let Some(updates) = updates.filter(|_| !self.unique_indices) else {
            let updates = updates.unwrap_or_else(|| b.full_like(inputs[2], 0.0));
            return b.scatter(x, inputs[1], updates, self.clone());
        };
        // A second `set` might keep another update than the first.
        let (x_shape, updates_shape) = (b.ty(x).shape.clone(), b.ty(updates).shape.clone());
        let kept = Some((inputs[2], output));
        let (untouched, won) = self.winners(b, &x_shape, inputs[1], &updates_shape, kept);
        let zeros = b.full_like(x, 0.0);
        let x = b.select(untouched, x, zeros);
        let zeros = b.full_like(updates, 0.0);
        let updates = b.select(won, updates, zeros);
        b.scatter(x, inputs[1], updates, self.with(Combiner::Add))
    }

    /// The tangent of `multiply`.
    fn jvp_multiply(
        &self,
        b: &mut Builder,
        inputs: &[Var],
        x: Option<Var>,
        updates: Option<Var>,
    ) -> Rule<Var> {
        let from_x = x.map(|x| b.scatter(x, inputs[1], inputs[2], self.clone()));
        let Some(updates) = updates else {
            return Rule::Some(from_x.expect("jvp is called with a tangent"));
        };
        if !self.unique_indices {
            return Rule::None(
                "updates that are multiplied into the same element have no derivative; set unique_indices if none are",
            );
        }
        let shape = b.ty(updates).shape.clone();
        let read = self.gather(b, inputs[0], inputs[1], &shape);
        let updates = b.mul(read, updates);
        let from_x = from_x.unwrap_or_else(|| b.full_like(inputs[0], 0.0));
        Rule::Some(b.scatter(from_x, inputs[1], updates, self.with(Combiner::Add)))
    }

    /// The tangent of `min` and `max`: the mean of the tangents at all elements with the result's
    /// value.
    fn jvp_extremum(
        &self,
        b: &mut Builder,
        inputs: &[Var],
        output: Var,
        x: Option<Var>,
        updates: Option<Var>,
    ) -> Var {
        let dtype = b.ty(output).dtype;
        let add = self.with(Combiner::Add);
        let x_attains = b.compare(Direction::Eq, inputs[0], output);
        let shape = b.ty(inputs[2]).shape.clone();
        let read = self.gather(b, output, inputs[1], &shape);
        let update_attains = b.compare(Direction::Eq, inputs[2], read);
        let (x_count, update_count) =
            (b.convert(x_attains, dtype), b.convert(update_attains, dtype));
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
