//! New tensors: constants, ranges, patterns.

use super::{IntoTensor, Shape, Tensor, broadcast_to, emit1, materialize};
use crate::tensor::literal::constant_array;
use podracer_compiler::ops::{self, Constant};
use podracer_compiler::{Array, DType, Loc, Scalar, TensorType};
use std::ops::Range;
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

/// A constant with the values of a host array. The values become part of the program: pass large
/// arrays as arguments instead.
#[track_caller]
pub fn constant_of(value: &Array) -> Tensor {
    constant_array(value.clone())
}

/// A tensor filled with 0; with false for bool.
#[track_caller]
pub fn zeros(dtype: DType, shape: impl Shape) -> Tensor {
    filled(dtype, shape.into_shape(), Scalar::zero(dtype))
}

/// A tensor filled with 1; with true for bool.
#[track_caller]
pub fn ones(dtype: DType, shape: impl Shape) -> Tensor {
    filled(dtype, shape.into_shape(), Scalar::number(dtype, 1))
}

/// A tensor filled with one value, which decides the dtype.
#[track_caller]
pub fn full(shape: impl Shape, value: impl IntoTensor) -> Tensor {
    materialize(value.operand()).broadcast_to(shape)
}

#[track_caller]
fn filled(dtype: DType, shape: Vec<usize>, value: Scalar) -> Tensor {
    let scalar = emit1(
        Constant { value: Arc::new(Array::single(dtype, value)) },
        &[],
        TensorType::scalar(dtype),
    );
    if scalar.trace_id() == 0 {
        return Tensor::dead(Loc::caller());
    }
    broadcast_to(scalar, &shape)
}

/// A tensor with each element's position along `axis`.
#[track_caller]
pub fn iota(dtype: DType, shape: impl Shape, axis: isize) -> Tensor {
    let shape = shape.into_shape();
    let ty = TensorType::new(dtype, &shape);
    match super::resolve_axis("iota", axis, shape.len()) {
        Some(dimension) => emit1(ops::Iota { dtype, shape, dimension }, &[], ty),
        None => super::poison(ty),
    }
}

/// Evenly spaced numbers: `arange(n)` for 0 to n - 1, `arange(2..6)`, `arange((start, stop, step))`. Whole numbers are
/// i32, floats f32; `stop` is left out. NumPy's `arange`.
///
/// # Errors
/// A step of 0 or NaN; numbers outside of i32.
///
/// ```
/// # use podracer_dsl::prelude::*;
/// # let traced = trace((), |()| {
/// let down = arange((6, 0, -2)); // 6, 4, 2
/// let quarters = arange((0.0, 1.0, 0.25)); // 0.0, 0.25, 0.5, 0.75
/// # (down, quarters)
/// # })?;
/// # assert_eq!(traced.eval(&[]).unwrap()[0].to_f64(), [6.0, 4.0, 2.0]);
/// # Ok::<(), TraceErrors>(())
/// ```
#[track_caller]
pub fn arange(numbers: impl Progression) -> Tensor {
    let (dtype, [start, stop, step]) = numbers.bounds();
    let count = ((stop - start) / step).ceil();
    let shown = || format!("from {start} to {stop} in steps of {step}");
    let wrong = if step == 0.0 || !count.is_finite() {
        Some(format!("there are no numbers {}: the step must not be 0", shown()))
    } else if dtype == DType::I32 && [start, stop].iter().any(|&end| end.abs() > 2f64.powi(31)) {
        Some(format!("the numbers {} are outside of i32", shown()))
    } else if count > 2f64.powi(31) {
        Some(format!("there are too many numbers {}", shown()))
    } else {
        None
    };
    if let Some(message) = wrong {
        return super::fail("arange", message, &[], TensorType::new(dtype, [0]));
    }
    let count = count.max(0.0) as usize;
    if dtype.is_float() {
        let values: Vec<f64> = (0..count).map(|i| start + step * i as f64).collect();
        return constant_array(Array::floats(dtype, [count], &values));
    }
    let positions = iota(dtype, [count], 0);
    let steps = if step == 1.0 { positions } else { positions * step as i32 };
    if start == 0.0 { steps } else { steps + start as i32 }
}

/// The bounds of an [`arange`]: `n`, `start..stop` or `(start, stop, step)`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say numbers to count through",
    label = "expected `n`, `start..stop`, or `(start, stop, step)` of integers or of floats"
)]
pub trait Progression {
    /// The dtype of the numbers, and start, stop and step.
    fn bounds(self) -> (DType, [f64; 3]);
}

macro_rules! progressions {
    ($($int:ty),*) => {$(
        impl Progression for $int {
            fn bounds(self) -> (DType, [f64; 3]) {
                (DType::I32, [0.0, self as f64, 1.0])
            }
        }
        impl Progression for Range<$int> {
            fn bounds(self) -> (DType, [f64; 3]) {
                (DType::I32, [self.start as f64, self.end as f64, 1.0])
            }
        }
    )*};
}
progressions!(i32, isize, usize);

impl Progression for (i32, i32, i32) {
    fn bounds(self) -> (DType, [f64; 3]) {
        (DType::I32, [self.0, self.1, self.2].map(f64::from))
    }
}

impl Progression for (f64, f64, f64) {
    fn bounds(self) -> (DType, [f64; 3]) {
        (DType::F32, [self.0, self.1, self.2])
    }
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
    let _call = crate::trace::called("one_hot");
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
    /// A tensor filled with 0, with this tensor's type.
    #[track_caller]
    pub fn zeros_like(self) -> Tensor {
        let ty = self.ty();
        zeros(ty.dtype, ty.shape)
    }

    /// A tensor filled with 1, with this tensor's type.
    #[track_caller]
    pub fn ones_like(self) -> Tensor {
        let ty = self.ty();
        ones(ty.dtype, ty.shape)
    }

    /// A tensor filled with one value, with this tensor's type.
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

    /// The upper triangle of the last two axes, from the diagonal `diagonal` upward; zeros below.
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
