//! Random well-typed programs: shapes, arithmetic, loops, branches, calls, batches and derivatives inside each other.
//!
//! # Invariants
//! - Floats are f64 and every function of them is smooth, so that differences can stand for derivatives. Predicates,
//!   positions and lengths depend on integers, which have no derivative.
//! - A bound is known of every float, and kept small: no value is infinite, and differences keep most of their digits.
//! - A program is a function of its choices, and fewer or smaller choices make simpler programs: proptest shrinks those.

use super::Random;
use podracer_compiler::ops::{Direction, DotDimensions};
use podracer_compiler::{Array, Builder, DType, Func, Scalar, TensorType, Var};

/// Numbers that decide; zeros when there are no more.
pub struct Choices<'a> {
    numbers: std::slice::Iter<'a, u32>,
}

impl Choices<'_> {
    /// A number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        self.numbers.next().map_or(0, |&number| number as usize % n)
    }

    /// One of some things.
    pub fn one<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())].clone()
    }
}

/// A value in sight, and the greatest magnitude that it can have if it is a float.
#[derive(Clone, Copy, Debug)]
pub struct Value {
    pub var: Var,
    pub bound: f64,
}

/// Bounds above this limit are reduced to 1.
const MOST: f64 = 50.0;

/// The most elements of what steps make.
const MOST_ELEMENTS: usize = 64;

/// A function under construction.
pub struct Frame<'a, 'c> {
    pub choices: &'a mut Choices<'c>,
    pub b: Builder,
    pub values: Vec<Value>,
    /// The number of regions that may still be opened inside each other.
    pub depth: usize,
}

/// A program of at least `least_steps` steps, and arguments for it.
pub fn program(numbers: &[u32], least_steps: usize) -> (Func, Vec<Array>) {
    let mut choices = Choices { numbers: numbers.iter() };
    let mut types = vec![TensorType::scalar(DType::F64), TensorType::scalar(DType::I32)];
    for _ in 0..choices.below(3) {
        types.push(any_type(&mut choices));
    }
    let steps = least_steps + choices.below(8);
    let params: Vec<(TensorType, f64)> = types.iter().map(|ty| (ty.clone(), 1.0)).collect();
    let mut frame = Frame::new(&mut choices, &params, 2);
    (0..steps).for_each(|_| frame.step());
    let last = frame.values[frame.values.len() - 1];
    let some = frame.any();
    let results = vec![last.var, some.var];
    let func = frame.b.finish("program", results);
    let mut random = Random::new(numbers.iter().map(|&number| u64::from(number)).sum());
    let argument = |ty: &TensorType| match ty.dtype {
        DType::F64 => random.array(ty),
        _ => Array::from_fn(ty.clone(), |_| Scalar::Int((3.0 * random.float()) as i128)),
    };
    (func, types.iter().map(argument).collect())
}

fn any_type(choices: &mut Choices) -> TensorType {
    let shapes: [&[usize]; 6] = [&[], &[2], &[3], &[2, 3], &[3, 2], &[2, 2]];
    let shape = choices.one(&shapes);
    let dtype = if choices.below(4) == 3 { DType::I32 } else { DType::F64 };
    TensorType::new(dtype, shape)
}

impl<'a, 'c> Frame<'a, 'c> {
    /// A function of parameters with types and bounds.
    pub fn new(choices: &'a mut Choices<'c>, params: &[(TensorType, f64)], depth: usize) -> Self {
        let mut b = Builder::new();
        let values =
            params.iter().map(|(ty, bound)| Value { var: b.param(ty.clone()), bound: *bound });
        let values = values.collect();
        Frame { choices, b, values, depth }
    }

    pub fn ty(&self, value: Value) -> TensorType {
        self.b.ty(value.var).clone()
    }

    pub fn push(&mut self, var: Var, bound: f64) {
        let float = self.b.ty(var).dtype.is_float();
        self.values.push(if float && bound > MOST {
            let var = self.b.tanh(var);
            Value { var, bound: 1.0 }
        } else {
            Value { var, bound }
        });
    }

    pub fn any(&mut self) -> Value {
        let at = self.choices.below(self.values.len());
        self.values[self.values.len() - 1 - at]
    }

    /// Some value of the type, or one that is made of others.
    pub fn of(&mut self, ty: &TensorType) -> Value {
        let fit: Vec<Value> = (self.values.iter().rev().copied())
            .filter(|value| self.b.ty(value.var) == ty)
            .collect();
        if !fit.is_empty() {
            return self.choices.one(&fit);
        }
        let same: Vec<Value> = self
            .values
            .iter()
            .rev()
            .copied()
            .filter(|value| self.b.ty(value.var).dtype == ty.dtype)
            .collect();
        if same.is_empty() {
            let var = self.b.full(ty, 1.0);
            return Value { var, bound: 1.0 };
        }
        // Any value of the dtype, summed and repeated.
        let value = self.choices.one(&same);
        let axes: Vec<usize> = (0..self.b.ty(value.var).rank()).collect();
        let elements = self.b.ty(value.var).elements() as f64;
        let sum = self.b.reduce_sum(value.var, &axes);
        let var = self.b.broadcast_in_dim(sum, &ty.shape, &[]);
        let bound = value.bound * elements;
        if ty.dtype.is_float() && bound > MOST {
            let var = self.b.tanh(var);
            return Value { var, bound: 1.0 };
        }
        Value { var, bound }
    }

    pub fn float(&mut self) -> Value {
        let floats: Vec<Value> = self
            .values
            .iter()
            .rev()
            .copied()
            .filter(|value| self.b.ty(value.var).dtype.is_float())
            .collect();
        match floats.is_empty() {
            false => self.choices.one(&floats),
            true => self.of(&TensorType::scalar(DType::F64)),
        }
    }

    pub fn integer(&mut self) -> Var {
        self.of(&TensorType::scalar(DType::I32)).var
    }

    /// Less-than of two integers.
    pub fn predicate(&mut self) -> Var {
        let (x, y) = (self.integer(), self.integer());
        let direction = self.choices.one(&[Direction::Lt, Direction::Ge, Direction::Eq]);
        self.b.compare(direction, x, y)
    }

    /// Emits something.
    pub fn step(&mut self) {
        let kinds = if self.depth > 0 { 15 } else { 8 };
        match self.choices.below(kinds) {
            0 => self.unary(),
            1 => self.binary(),
            2 => self.binary(),
            3 => self.reduction(),
            4 => self.rearrangement(),
            5 => self.slice(),
            6 => self.integers(),
            7 => self.product(),
            8 | 9 => self.scan(),
            10 => self.cond(),
            11 => self.repeat(),
            12 => self.call(),
            13 => self.batch(),
            _ => self.derivative(),
        }
    }

    fn unary(&mut self) {
        let Value { var: x, bound } = self.float();
        let b = &mut self.b;
        let (var, bound) = match self.choices.below(9) {
            0 => (b.sin(x), 1.0),
            1 => (b.neg(x), bound),
            2 => (b.cos(x), 1.0),
            3 => (b.tanh(x), 1.0),
            4 => (b.logistic(x), 1.0),
            5 => (b.erf(x), 1.0),
            6 => {
                let bounded = b.tanh(x);
                (b.exp(bounded), 3.0)
            }
            7 => {
                let square = b.mul(x, x);
                (b.log1p(square), bound)
            }
            _ => (b.optimization_barrier(&[x])[0], bound),
        };
        self.push(var, bound);
    }

    fn binary(&mut self) {
        let x = self.float();
        let y = self.of(&self.ty(x));
        let b = &mut self.b;
        let (var, bound) = match self.choices.below(6) {
            0 => (b.add(x.var, y.var), x.bound + y.bound),
            1 => (b.sub(x.var, y.var), x.bound + y.bound),
            2 | 3 => (b.mul(x.var, y.var), x.bound * y.bound),
            4 => {
                let cosine = b.cos(y.var);
                let two = b.full_like(cosine, 2.0);
                let positive = b.add(two, cosine);
                (b.div(x.var, positive), x.bound)
            }
            _ => {
                let predicate = self.predicate();
                (self.b.select(predicate, x.var, y.var), x.bound.max(y.bound))
            }
        };
        self.push(var, bound);
    }

    fn reduction(&mut self) {
        let x = self.float();
        let ty = self.ty(x);
        let bound = x.bound * ty.elements() as f64;
        if ty.rank() == 0 {
            return self.unary();
        }
        let axis = self.choices.below(ty.rank());
        let var = match self.choices.below(3) {
            0 => self.b.reduce_sum(x.var, &[axis]),
            1 => self.b.reduce_sum(x.var, &(0..ty.rank()).collect::<Vec<_>>()),
            _ => {
                let reverse = self.choices.below(2) == 1;
                self.b.cumsum(x.var, axis, reverse)
            }
        };
        self.push(var, bound);
    }

    /// The same elements at other places, some of them repeated.
    fn rearrangement(&mut self) {
        let x = self.float();
        let ty = self.ty(x);
        let rank = ty.rank();
        let axis = self.choices.below(rank.max(1));
        let var = match self.choices.below(6) {
            0 if ty.elements() <= MOST_ELEMENTS / 2 => self.b.broadcast_leading(x.var, 2),
            1 if rank > 1 => {
                let order: Vec<usize> = (0..rank).map(|i| (i + 1 + axis) % rank).collect();
                self.b.permute(x.var, &order)
            }
            2 => self.b.reshape(x.var, &[ty.elements()]),
            3 if rank > 0 => self.b.reverse(x.var, &[axis]),
            4 if rank > 0 && 2 * ty.elements() <= MOST_ELEMENTS => {
                let y = self.of(&ty);
                let bound = x.bound.max(y.bound);
                let var = self.b.concatenate(&[x.var, y.var], axis);
                return self.push(var, bound);
            }
            5 if rank > 0 && 3 * ty.elements() <= MOST_ELEMENTS => {
                let zero = self.b.zeros(&TensorType::scalar(DType::F64));
                let mut sizes = [vec![0; rank], vec![0; rank], vec![0; rank]];
                for size in &mut sizes {
                    size[axis] = self.choices.below(2) as i64;
                }
                self.b.pad(x.var, zero, &sizes[0], &sizes[1], &sizes[2])
            }
            _ => self.b.reshape(x.var, &[&[1], &ty.shape[..]].concat()),
        };
        self.push(var, x.bound);
    }

    fn slice(&mut self) {
        let x = self.float();
        let ty = self.ty(x);
        if ty.rank() == 0 || ty.elements() == 0 {
            return self.unary();
        }
        let axis = self.choices.below(ty.rank());
        let extent = ty.shape[axis];
        let mut sizes = ty.shape.clone();
        sizes[axis] = 1 + self.choices.below(extent);
        let zero = self.b.full(&TensorType::scalar(DType::I32), 0.0);
        let mut starts = vec![zero; ty.rank()];
        let var = match self.choices.below(4) {
            0 => {
                let start = extent - sizes[axis];
                self.b.slice_axis(x.var, axis, start, extent)
            }
            1 => {
                starts[axis] = self.integer();
                self.b.dynamic_slice(x.var, &starts, &sizes)
            }
            2 => {
                starts[axis] = self.integer();
                let update = self.of(&ty.with_shape(sizes));
                let bound = x.bound.max(update.bound);
                let var = self.b.dynamic_update_slice(x.var, update.var, &starts);
                return self.push(var, bound);
            }
            _ => {
                let indices = self.of(&TensorType::new(DType::I32, [2])).var;
                let zeros = self.b.full_like(indices, 0.0);
                let last = self.b.full_like(indices, (extent - 1) as f64);
                let indices = self.b.clamp(zeros, indices, last);
                self.b.take(x.var, indices, axis)
            }
        };
        self.push(var, x.bound);
    }

    fn integers(&mut self) {
        let ty = TensorType::new(DType::I32, self.choices.one(&[&[][..], &[2]]));
        let (x, y) = (self.of(&ty).var, self.of(&ty).var);
        let var = match self.choices.below(4) {
            0 => self.b.add(x, y),
            1 => self.b.sub(x, y),
            2 => self.b.mul(x, y),
            _ => {
                // Into the floats, and no further than 1.
                let float = self.b.convert(x, DType::F64);
                self.b.sin(float)
            }
        };
        self.push(var, 1.0);
    }

    fn product(&mut self) {
        let x = self.float();
        let ty = self.ty(x);
        let Some(&extent) = ty.shape.last() else {
            return self.binary();
        };
        let shape = self.choices.one(&[vec![extent], vec![extent, 2]]);
        let y = self.of(&ty.with_shape(shape));
        let dimensions = DotDimensions {
            lhs_contract: vec![ty.rank() - 1],
            rhs_contract: vec![0],
            ..DotDimensions::default()
        };
        let var = self.b.dot_general(x.var, y.var, dimensions);
        self.push(var, x.bound * y.bound * extent as f64);
    }
}
