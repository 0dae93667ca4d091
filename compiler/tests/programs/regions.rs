//! Steps that open a function inside the function: loops, branches, calls, batches, derivatives.

use super::generate::{Frame, Value};
use podracer_compiler::ops::{Call, CallForm, Cond, Direction, Scan, While};
use podracer_compiler::transform::{VmapContext, jvp, vjp, vmap};
use podracer_compiler::{DType, Func, TensorType, Var};
use std::sync::Arc;

/// A parameter of a body: its type and its bound.
type Param = (TensorType, f64);

fn index() -> TensorType {
    TensorType::scalar(DType::I32)
}

fn vars(values: &[Value]) -> Vec<Var> {
    values.iter().map(|value| value.var).collect()
}

impl Frame<'_, '_> {
    fn some(&mut self, least: usize, most: usize) -> Vec<Value> {
        let count = least + self.choices.below(most - least + 1);
        (0..count).map(|_| self.any()).collect()
    }

    fn params(&self, values: &[Value]) -> Vec<Param> {
        values.iter().map(|&value| (self.ty(value), value.bound)).collect()
    }

    /// A function with results of some types, none of them above 1, and of some more as they come.
    fn body(&mut self, params: &[Param], results: &[TensorType], more: usize) -> (Func, Vec<f64>) {
        let steps = 1 + self.choices.below(3);
        let mut frame = Frame::new(self.choices, params, self.depth - 1);
        if params.is_empty() {
            let one = frame.b.full(&TensorType::scalar(DType::F64), 1.0);
            frame.push(one, 1.0);
        }
        (0..steps).for_each(|_| frame.step());
        let mut given = Vec::new();
        for ty in results {
            let mut value = frame.of(ty);
            if ty.dtype.is_float() && value.bound > 1.0 {
                let var = frame.b.tanh(value.var);
                value = Value { var, bound: 1.0 };
            }
            given.push(value);
        }
        given.extend((0..more).map(|_| frame.any()).collect::<Vec<_>>());
        let bounds = given.iter().map(|value| value.bound).collect();
        (frame.b.finish("body", vars(&given)), bounds)
    }

    fn push_all(&mut self, results: &[Var], bounds: &[f64]) {
        for (&var, &bound) in results.iter().zip(bounds) {
            self.push(var, bound);
        }
    }

    pub fn scan(&mut self) {
        let consts = self.some(0, 2);
        let carries = self.some(1, 2);
        let arrays: Vec<Value> = self.some(0, 2);
        let rank = |value: &&Value| self.b.ty(value.var).rank() > 0;
        let length = match arrays.iter().find(rank) {
            Some(array) => self.b.ty(array.var).shape[0],
            None => self.choices.below(4),
        };
        let fits = |value: &Value| self.b.ty(value.var).shape.first() == Some(&length);
        let arrays: Vec<Value> = arrays.into_iter().filter(fits).collect();
        let mut params = self.params(&[&consts[..], &carries[..]].concat());
        for (_, bound) in &mut params[consts.len()..] {
            *bound = bound.max(1.0);
        }
        let slices = self.params(&arrays);
        params.extend(slices.iter().map(|(ty, bound)| (ty.unstacked(), *bound)));
        let types: Vec<TensorType> = carries.iter().map(|&value| self.ty(value)).collect();
        let more = self.choices.below(2);
        let (body, mut bounds) = self.body(&params, &types, more);
        for (bound, carry) in bounds.iter_mut().zip(&carries) {
            *bound = bound.max(carry.bound);
        }
        let scan = Scan {
            body: Arc::new(body),
            length,
            reverse: self.choices.below(2) == 1,
            consts: consts.len(),
            carries: carries.len(),
        };
        let operands = [consts, carries, arrays].concat();
        let results = self.b.emit(scan, &vars(&operands));
        self.push_all(&results, &bounds);
    }

    pub fn cond(&mut self) {
        let operands = self.some(0, 3);
        let types = [self.any(), self.any()].map(|value| self.ty(value));
        let types = &types[..1 + self.choices.below(2)];
        let (choice, count) = match self.choices.below(2) {
            0 => (self.predicate(), 2),
            _ => (self.integer(), 1 + self.choices.below(3)),
        };
        let params = self.params(&operands);
        let branches = (0..count).map(|_| Arc::new(self.body(&params, types, 0).0)).collect();
        let operands = [&[choice], &vars(&operands)[..]].concat();
        let results = self.b.emit(Cond { branches, rarely: false }, &operands);
        self.push_all(&results, &[1.0, 1.0]);
    }

    /// A `while` that counts to a limit, which may depend on an integer.
    pub fn repeat(&mut self) {
        let (consts, carries) = (self.some(0, 1), self.some(1, 2));
        let integer = self.integer();
        let [zero, three] = [0.0, 3.0].map(|value| self.b.full(&index(), value));
        let limit = self.b.clamp(zero, integer, three);
        let condition = {
            let mut b = podracer_compiler::Builder::new();
            let (limit, counter) = (b.param(index()), b.param(index()));
            for &carry in &carries {
                b.param(self.ty(carry));
            }
            let less = b.compare(Direction::Lt, counter, limit);
            b.finish("condition", vec![less])
        };
        let mut params = self.params(&[&consts[..], &carries[..]].concat());
        for (_, bound) in &mut params[consts.len()..] {
            *bound = bound.max(1.0);
        }
        let types: Vec<TensorType> = carries.iter().map(|&value| self.ty(value)).collect();
        let (inner, mut bounds) = self.body(&params, &types, 0);
        for (bound, carry) in bounds.iter_mut().zip(&carries) {
            *bound = bound.max(carry.bound);
        }
        let body = {
            let mut b = podracer_compiler::Builder::new();
            let mut declare = |values: &[Value]| -> Vec<Var> {
                values.iter().map(|&value| b.param(self.ty(value))).collect()
            };
            let constants = declare(&consts);
            let counter = declare(&[Value { var: zero, bound: 0.0 }])[0];
            let operands = [constants, declare(&carries)].concat();
            let one = b.full(&index(), 1.0);
            let next = b.add(counter, one);
            let results = b.inline(&inner, &operands);
            b.finish("body", [&[next], &results[..]].concat())
        };
        let op = While {
            condition: Arc::new(condition),
            body: Arc::new(body),
            condition_consts: 1,
            body_consts: consts.len(),
        };
        let operands = [&[limit], &vars(&consts)[..], &[zero], &vars(&carries)].concat();
        let results = self.b.emit(op, &operands);
        self.push_all(&results[1..], &bounds);
    }

    pub fn call(&mut self) {
        let operands = self.some(0, 3);
        let (body, bounds) = self.body(&self.params(&operands), &[], 1);
        let body = Arc::new(body);
        // Twice, as a function that is shared is.
        for _ in 0..1 + self.choices.below(2) {
            let call = Call { body: body.clone(), form: CallForm::Inlined };
            let results = self.b.emit(call, &vars(&operands));
            self.push_all(&results, &bounds);
        }
    }

    /// A function of slices, over a batch.
    pub fn batch(&mut self) {
        let operands = self.some(1, 3);
        let extent = |value: &Value| self.b.ty(value.var).shape.first().copied();
        let Some(size) = operands.iter().find_map(extent).filter(|&size| size > 0) else {
            return self.call();
        };
        let whole = self.choices.below(2) == 1;
        let mut seen = false;
        let batched: Vec<bool> = (operands.iter())
            .map(|value| {
                let is = extent(value) == Some(size) && !(whole && seen);
                seen |= is;
                is
            })
            .collect();
        let mut params = self.params(&operands);
        for ((ty, _), _) in params.iter_mut().zip(&batched).filter(|(_, is)| **is) {
            *ty = ty.unstacked();
        }
        let (body, bounds) = self.body(&params, &[], 2);
        let (wide, _) = vmap(&body, &VmapContext::new(size), &batched, &[true, false]);
        let results = self.b.inline(&wide, &vars(&operands));
        self.push_all(&results, &bounds);
    }

    /// A gradient or tangents inside the program. A loop that cannot run backward leaves the program as it is.
    pub fn derivative(&mut self) {
        let operands = self.some(1, 2);
        let (body, _) = self.body(&self.params(&operands), &[TensorType::scalar(DType::F64)], 0);
        let float = |value: &Value| self.b.ty(value.var).dtype.is_float();
        let wrt: Vec<bool> = operands.iter().map(float).collect();
        let operands = vars(&operands);
        let results = match self.choices.below(2) {
            0 => match vjp(&body, &wrt) {
                Ok(vjp) => {
                    let residuals = self.b.inline(&vjp.primal, &operands).split_off(1);
                    let one = self.b.full(&TensorType::scalar(DType::F64), 1.0);
                    self.b.inline(&vjp.pullback, &[residuals, vec![one]].concat())
                }
                Err(_) => Vec::new(),
            },
            _ => {
                let (forward, _) = jvp(&body, &wrt).expect("every op has a forward derivative");
                let tangents: Vec<Var> =
                    operands.iter().zip(&wrt).filter(|(_, is)| **is).map(|(&var, _)| var).collect();
                let values = self.b.inline(&forward, &[operands, tangents].concat());
                values[1..].to_vec()
            }
        };
        for slope in results {
            let bounded = self.b.tanh(slope);
            self.push(bounded, 1.0);
        }
    }
}
