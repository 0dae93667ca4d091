//! `scan`: a loop of known length with a carry, slices in and slices out. It is the only loop with
//! a reverse derivative.

mod derivative;
mod launches;
mod sample;
mod slimmer;

use super::TypeError;
use super::loops::fixpoint;
use super::op::{Op, OpRef, Pruned, Sample};
use super::{Concatenate, Slice, Sort};
use crate::array::Array;
use crate::ir::{Batched, Builder, Func, Var};
use crate::lower::{
    Hlo, HloOp, HloResults, HloValue, hlo_axes, hlo_broadcast, hlo_compare, hlo_op, hlo_reshape,
    hlo_simple, hlo_splat, lower_func,
};
use crate::op_struct;
use crate::ops::rules::region_derivative;
use crate::scalar::Scalar;
use crate::transform::{VmapContext, needed, vmap};
use crate::types::{DType, TensorType};
use std::convert::Infallible;
use std::ops::Range;
use std::slice;
use std::sync::Arc;

op_struct! {
    /// Runs `body` `length` times.
    ///
    /// Operands: `consts` loop constants, `carries` initial carries, then arrays with a leading
    /// axis of `length`. The body takes the consts, the carries and one slice of each array; it
    /// gives the next carries and the slices of the outputs. Results: the final carries, then the
    /// output slices stacked along a new leading axis. With `reverse`, slices are read and written
    /// from the last to the first.
    Scan = "scan" {
        /// One iteration: consts ++ carries ++ slices -> carries ++ output slices.
        body: Arc<Func>,
        /// The number of iterations.
        length: usize,
        /// True to run from the last slice to the first.
        reverse: bool,
        /// The number of operands that stay the same in every iteration.
        consts: usize,
        /// The number of carries.
        carries: usize,
    }
}

impl Scan {
    /// Splits a list with one entry per operand into the entries of consts, carries and arrays.
    fn split<'a, T>(&self, operands: &'a [T]) -> (&'a [T], &'a [T], &'a [T]) {
        let (consts, rest) = operands.split_at(self.consts);
        let (carries, xs) = rest.split_at(self.carries);
        (consts, carries, xs)
    }

    /// The positions of the carries among the operands.
    fn carried(&self) -> Range<usize> {
        self.consts..self.consts + self.carries
    }

    /// The positions of the slices in time order.
    fn positions(&self) -> Box<dyn Iterator<Item = usize>> {
        if self.reverse { Box::new((0..self.length).rev()) } else { Box::new(0..self.length) }
    }
}

impl Op for Scan {
    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        let body = &self.body;
        TypeError::check_arity(inputs, body.params.len())?;
        if self.consts + self.carries > inputs.len() || self.carries > body.results.len() {
            refuse!("more consts and carries than operands or results of the body");
        }
        let (_, _, xs) = self.split(inputs);
        if let Some(x) = xs.iter().find(|x| x.shape.first() != Some(&self.length)) {
            refuse!("a scanned array needs a leading axis of {}, got {x}", self.length);
        }
        let slices = self.consts + self.carries;
        for (i, (param, input)) in body.param_types().iter().zip(inputs).enumerate() {
            let given = if i < slices { input.clone() } else { input.unstacked() };
            if *param != given {
                refuse!("operand {i} gives the body {given}, which takes {param}");
            }
        }
        let results = body.result_types();
        for (i, (out, carry)) in results.iter().zip(&inputs[self.consts..slices]).enumerate() {
            if out != carry {
                refuse!("carry {i} goes in as {carry} and comes out as {out}");
            }
        }
        let (carries, ys) = results.split_at(self.carries);
        Ok(carries.iter().cloned().chain(ys.iter().map(|y| y.stacked(self.length))).collect())
    }

    fn eval(&self, inputs: &[Array]) -> Vec<Array> {
        let (consts, carries, xs) = self.split(inputs);
        let mut carries = carries.to_vec();
        let y_types = self.body.result_types().split_off(self.carries);
        let mut ys: Vec<Vec<Array>> = vec![Vec::new(); y_types.len()];
        for position in self.positions() {
            let slices = xs.iter().map(|x| x.index_leading(position));
            let arguments: Vec<Array> =
                consts.iter().cloned().chain(carries).chain(slices).collect();
            let mut results = self.body.eval(&arguments);
            let outputs = results.split_off(self.carries);
            carries = results;
            ys.iter_mut().zip(outputs).for_each(|(stack, y)| stack.push(y));
        }
        let stacked = ys.into_iter().zip(&y_types).map(|(mut stack, ty)| {
            if self.reverse {
                stack.reverse();
            }
            Array::stack(ty, &stack)
        });
        let stacked: Vec<Array> = stacked.collect();
        carries.into_iter().chain(stacked).collect()
    }

    fn turns(&self) -> Option<usize> {
        Some(self.length)
    }

    fn vmap(&self, b: &mut Builder, cx: &VmapContext, inputs: &[Var], batched: &[bool]) -> Batched {
        let mut flags = batched.to_vec();
        let slots = self.carried();
        // A carry is batched if its initial value is batched, or if the body makes it batched.
        let Ok((body, outputs)) =
            fixpoint(&mut flags, slots.clone(), self.body.results.len(), |flags, force| {
                Ok::<_, Infallible>(vmap(&self.body, cx, flags, force))
            });
        let operands = inputs.iter().enumerate().map(|(i, &input)| match (batched[i], flags[i]) {
            (true, _) if i >= slots.end => b.move_axis(input, 1, 0),
            (false, true) => b.broadcast_leading(input, cx.size),
            _ => input,
        });
        let operands: Vec<Var> = operands.collect();
        let scan = Scan { body: Arc::new(body), ..self.clone() };
        let mut results: Batched = b.emit(scan, &operands).into_iter().zip(outputs).collect();
        for (stack, _) in results[self.carries..].iter_mut().filter(|(_, batched)| *batched) {
            *stack = b.move_axis(*stack, 0, 1);
        }
        results
    }

    region_derivative! { derivative::forward, derivative::linearized, derivative::transposed }

    fn lower(&self, hlo: &mut dyn Hlo, inputs: &[HloValue], results: &[TensorType]) -> HloResults {
        let counter_ty = TensorType::scalar(DType::I32);
        let number = |hlo: &mut dyn Hlo, value: usize| {
            hlo_splat(hlo, &counter_ty, Scalar::Int(value as i128))
        };
        let zero = number(hlo, 0);
        let ys: Vec<HloValue> = results[self.carries..]
            .iter()
            .map(|ty| hlo_splat(hlo, ty, Scalar::zero(ty.dtype)))
            .collect();
        if self.length == 0 {
            // StableHLO has no slice of an empty axis, not even in a loop that never runs.
            let (_, carries, _) = self.split(inputs);
            return carries.iter().copied().chain(ys).collect();
        }
        // counter, consts, carries, arrays, outputs
        let state: Vec<HloValue> =
            std::iter::once(zero).chain(inputs.iter().copied()).chain(ys).collect();
        let types: Vec<TensorType> = state.iter().map(|&value| hlo.ty(value)).collect();

        let arguments = hlo.begin_region(&types);
        let length = number(hlo, self.length);
        let more = hlo_compare(hlo, "LT", arguments[0], length);
        let condition = hlo.end_region(&[more]);

        let arguments = hlo.begin_region(&types);
        let counter = match hlo.whole_loops() && self.body.library_work().0 > 0 {
            true => unfused(hlo, arguments[0]),
            false => arguments[0],
        };
        let operands = &arguments[1..1 + inputs.len()];
        let buffers = &arguments[1 + inputs.len()..];
        let position = if self.reverse {
            let last = number(hlo, self.length.saturating_sub(1));
            hlo_simple(hlo, "stablehlo.subtract", &[last, counter])
        } else {
            counter
        };
        let (consts, carries, xs) = self.split(operands);
        let slices: Vec<HloValue> = xs.iter().map(|&x| slice_at(hlo, x, position)).collect();
        let body_inputs: Vec<HloValue> =
            consts.iter().chain(carries).copied().chain(slices).collect();
        let outputs = lower_func(hlo, &self.body, &body_inputs);
        let (next, slices) = outputs.split_at(self.carries);
        let buffers: Vec<HloValue> = buffers
            .iter()
            .zip(slices)
            .map(|(&buffer, &y)| update_at(hlo, buffer, y, position))
            .collect();
        let one = number(hlo, 1);
        let counter = hlo_simple(hlo, "stablehlo.add", &[counter, one]);
        let state_out: Vec<HloValue> = std::iter::once(counter)
            .chain(consts.iter().copied())
            .chain(next.iter().copied())
            .chain(xs.iter().copied())
            .chain(buffers)
            .collect();
        let body = hlo.end_region(&state_out);

        let outputs =
            hlo.op(HloOp::new("stablehlo.while", &state, &types).regions(vec![condition, body]));
        let carries = &outputs[1 + self.consts..1 + self.consts + self.carries];
        carries.iter().chain(&outputs[1 + inputs.len()..]).copied().collect()
    }

    fn prune(&self, used: &[bool]) -> Option<Pruned> {
        // A carry is needed if its final value is needed, or if a needed result reads it in a later
        // iteration.
        let mut wanted = used.to_vec();
        let (inputs, outputs) = loop {
            let needed = needed(&self.body, &wanted);
            let inputs: Vec<bool> =
                self.body.params.iter().map(|param| needed[param.index()]).collect();
            let carries = &inputs[self.carried()];
            let more = (0..self.carries).any(|i| carries[i] && !wanted[i]);
            (0..self.carries).for_each(|i| wanted[i] |= carries[i]);
            if !more {
                break (inputs, wanted);
            }
        };
        // A carry that is only passed through, and kept for its final value, keeps its operand.
        let keep: Vec<usize> =
            (0..inputs.len())
                .filter(|&i| {
                    if self.carried().contains(&i) { outputs[i - self.consts] } else { inputs[i] }
                })
                .collect();
        let kept_outputs: Vec<usize> = (0..outputs.len()).filter(|&i| outputs[i]).collect();
        let mut body = (*self.body).clone();
        body.results = kept_outputs.iter().map(|&i| self.body.results[i]).collect();
        body = crate::transform::dce(&body);
        if keep.len() == inputs.len() && kept_outputs.len() == outputs.len() && body == *self.body {
            return None;
        }
        body.params = keep.iter().map(|&i| body.params[i]).collect();
        let op = Scan {
            consts: keep.iter().filter(|&&i| i < self.consts).count(),
            carries: kept_outputs.iter().filter(|&&i| i < self.carries).count(),
            body: Arc::new(body),
            ..self.clone()
        };
        Some(Pruned { op: OpRef::new(op), inputs: keep, outputs: kept_outputs })
    }

    fn launch_less(&self, b: &mut Builder, inputs: &[Var]) -> Option<Vec<Var>> {
        launches::fewer(self, b, inputs)
    }
}

impl Scan {
    /// Examples for the generic tests.
    pub fn samples() -> Vec<Sample> {
        sample::samples()
    }
}

/// The lesser of a counter and its successor, by a sort. This is the counter, but XLA does not know
/// it, and does not fuse the sort into a kernel.
fn unfused(hlo: &mut dyn Hlo, counter: HloValue) -> HloValue {
    let ty = TensorType::new(DType::I32, [1]);
    let one = hlo_splat(hlo, &ty, Scalar::Int(1));
    let first = hlo_reshape(hlo, counter, &ty);
    let second = hlo_simple(hlo, "stablehlo.add", &[first, one]);
    let both = TensorType::new(DType::I32, [2]);
    let pair = Concatenate { dimension: 0 }.lower(hlo, &[first, second], slice::from_ref(&both));
    let sort = Sort { dimension: 0, stable: false, num_keys: 1 };
    let sorted = sort.lower(hlo, &pair, &[both]);
    let lesser = Slice { start: vec![0], limit: vec![1], strides: vec![1] };
    let lesser = lesser.lower(hlo, &sorted, slice::from_ref(&ty));
    hlo_reshape(hlo, lesser[0], &TensorType::scalar(DType::I32))
}

/// The indices of a slice that starts at `position` of the leading axis.
fn starts(hlo: &mut dyn Hlo, rank: usize, position: HloValue) -> HloResults {
    let zero = hlo_splat(hlo, &TensorType::scalar(DType::I32), Scalar::Int(0));
    (0..rank).map(|axis| if axis == 0 { position } else { zero }).collect()
}

/// The slice of `x` at `position` of its leading axis, without that axis.
fn slice_at(hlo: &mut dyn Hlo, x: HloValue, position: HloValue) -> HloValue {
    let ty = hlo.ty(x);
    let one = ty.unstacked().stacked(1);
    let operands: Vec<HloValue> =
        std::iter::once(x).chain(starts(hlo, ty.rank(), position)).collect();
    let attributes = vec![("slice_sizes", hlo_axes(&one.shape))];
    let slice = hlo_op(hlo, "stablehlo.dynamic_slice", &operands, attributes, &one);
    hlo_reshape(hlo, slice, &ty.unstacked())
}

/// `buffer` with `y` at `position` of its leading axis.
fn update_at(hlo: &mut dyn Hlo, buffer: HloValue, y: HloValue, position: HloValue) -> HloValue {
    let ty = hlo.ty(buffer);
    let axes: Vec<usize> = (1..ty.rank()).collect();
    let y = hlo_broadcast(hlo, y, &axes, &ty.unstacked().stacked(1));
    let operands: Vec<HloValue> =
        [buffer, y].into_iter().chain(starts(hlo, ty.rank(), position)).collect();
    hlo_op(hlo, "stablehlo.dynamic_update_slice", &operands, Vec::new(), &ty)
}
