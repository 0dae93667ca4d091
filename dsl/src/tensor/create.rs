//! Tensors out of nothing: constants, ranges, patterns.

use super::{IntoTensor, Shape, Tensor, broadcast_to, emit1, materialize};
use crate::tensor::literal::constant_array;
use podracer_compiler::ops::{self, Constant};
use podracer_compiler::{Array, DType, Loc, Scalar, TensorType};
use std::sync::Arc;

/// A literal as a tensor: a number, a bool, or a nested array of them. `constant([[1.0, 2.0], [3.0, 4.0]])` is
/// `f32[2,2]`.
#[track_caller]
pub fn constant(value: impl IntoTensor) -> Tensor {
    materialize(value.operand())
}

/// A scalar, a tensor of shape `[]`. The same function as [`constant`], under a name that reads better for
/// hyper-parameters.
#[track_caller]
pub fn scalar(value: impl IntoTensor) -> Tensor {
    materialize(value.operand())
}

/// A constant with the values of a host array. They become part of the program: pass large ones as arguments instead.
#[track_caller]
pub fn constant_of(value: &Array) -> Tensor {
    constant_array(value.clone())
}

/// A tensor of zeros; of false for bool.
#[track_caller]
pub fn zeros(dtype: DType, shape: impl Shape) -> Tensor {
    filled(dtype, shape.into_shape(), Scalar::zero(dtype))
}

/// A tensor of ones; of true for bool.
#[track_caller]
pub fn ones(dtype: DType, shape: impl Shape) -> Tensor {
    filled(dtype, shape.into_shape(), Scalar::number(dtype, 1))
}

/// A tensor with one value everywhere, which decides the dtype.
#[track_caller]
pub fn full(shape: impl Shape, value: impl IntoTensor) -> Tensor {
    materialize(value.operand()).broadcast_to(shape)
}

#[track_caller]
fn filled(dtype: DType, shape: Vec<usize>, value: Scalar) -> Tensor {
    let scalar = emit1(
        Constant { value: Arc::new(Array::scalar(dtype, value)) },
        &[],
        TensorType::scalar(dtype),
    );
    if scalar.trace() == 0 {
        return Tensor::dead(Loc::caller());
    }
    broadcast_to(scalar, &shape)
}

/// A tensor of this shape whose elements are their positions along `axis`.
#[track_caller]
pub fn iota(dtype: DType, shape: impl Shape, axis: isize) -> Tensor {
    let shape = shape.into_shape();
    let ty = TensorType::new(dtype, &shape);
    match super::resolve_axis("iota", axis, shape.len()) {
        Some(dimension) => emit1(ops::Iota { dtype, shape, dimension }, &[], ty),
        None => super::poison(ty),
    }
}

/// The numbers 0, 1, .., n - 1: i32 `[n]`.
#[track_caller]
pub fn arange(n: usize) -> Tensor {
    iota(DType::I32, [n], 0)
}

/// `count` evenly spaced numbers from `start` to `stop`, both included: f32 `[count]`.
#[track_caller]
pub fn linspace(start: f64, stop: f64, count: usize) -> Tensor {
    let last = count.saturating_sub(1).max(1) as f64;
    let values: Vec<f64> = (0..count).map(|i| start + (stop - start) * (i as f64 / last)).collect();
    constant_array(Array::floats(DType::F32, [count], &values))
}

/// The identity matrix, `[n, n]`.
#[track_caller]
pub fn eye(dtype: DType, n: usize) -> Tensor {
    iota(DType::I32, [n, n], 0).eq(iota(DType::I32, [n, n], 1)).astype(dtype)
}

/// One-hot vectors: 1.0 at the index and 0.0 elsewhere, along a new last axis of extent `classes`. f32; an index out of
/// range gives zeros.
#[track_caller]
pub fn one_hot(index: Tensor, classes: usize) -> Tensor {
    let ty = index.ty();
    let mut shape = ty.shape.clone();
    shape.push(classes);
    let guess = TensorType::new(DType::F32, shape.clone());
    if !ty.dtype.is_integer() {
        let message = format!("expected an integer index, got {ty}");
        return super::fail("one_hot", message, &[index], guess);
    }
    let positions = iota(ty.dtype, shape.clone(), -1);
    positions.eq(broadcast_to(index.expand_dims(-1), &shape)).astype(DType::F32)
}

/// Tensors of the type of another.
impl Tensor {
    /// A tensor of zeros of this tensor's type.
    #[track_caller]
    pub fn zeros_like(self) -> Tensor {
        let ty = self.ty();
        zeros(ty.dtype, ty.shape)
    }

    /// A tensor of ones of this tensor's type.
    #[track_caller]
    pub fn ones_like(self) -> Tensor {
        let ty = self.ty();
        ones(ty.dtype, ty.shape)
    }

    /// A tensor of this tensor's type with one value everywhere.
    #[track_caller]
    pub fn full_like(self, value: impl IntoTensor) -> Tensor {
        let ty = self.ty();
        let tensors = super::literal::same_dtype(
            "full_like",
            vec![super::Operand::Tensor(self), value.operand()],
        );
        tensors[1].broadcast_to(ty.shape)
    }

    /// [`one_hot`] of this tensor's elements: f32, along a new last axis.
    #[track_caller]
    pub fn one_hot(self, classes: usize) -> Tensor {
        one_hot(self, classes)
    }

    /// The lower triangle of the last two axes, with the diagonals up to `diagonal`; zeros above.
    #[track_caller]
    pub fn tril(self, diagonal: i32) -> Tensor {
        self.triangle("tril", |row, column| (row + diagonal).ge(column))
    }

    /// The upper triangle of the last two axes, with the diagonals from `diagonal` on; zeros below.
    #[track_caller]
    pub fn triu(self, diagonal: i32) -> Tensor {
        self.triangle("triu", |row, column| (row + diagonal).le(column))
    }

    #[track_caller]
    fn triangle(self, op: &str, keep: impl FnOnce(Tensor, Tensor) -> Tensor) -> Tensor {
        let ty = self.ty();
        let &[.., rows, columns] = &ty.shape[..] else {
            return super::fail(op, format!("expected at least 2 axes, got {ty}"), &[self], ty);
        };
        let mask = keep(iota(DType::I32, [rows, columns], 0), iota(DType::I32, [rows, columns], 1));
        super::select(mask, self, self.zeros_like())
    }
}
