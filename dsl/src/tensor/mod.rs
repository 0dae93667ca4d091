//! The tensor: a handle into the current trace. Every operation on one tensor is a method; the
//! files of this folder group the methods by family.
//!
//! # Invariants
//! - A handle holds no value. dtype and shape are known as soon as it exists.
//! - No method panics on a mistake: it records an error at the caller's line and returns a poisoned
//!   handle.

mod activation;
mod axes;
mod convolution;
mod counting;
pub mod create;
mod diagonal;
mod einsum;
mod elementwise;
pub(crate) mod handle;
pub(crate) mod hints;
mod indexing;
mod linalg;
mod literal;
mod matmul;
mod norm;
mod operators;
mod order;
mod reduce;
mod shape;
mod solve;
mod sort;

pub use axes::{Axes, Shape};
pub use convolution::{
    Padding, avg_pool, conv_general_dilated, conv_transpose, conv1d, conv2d, max_pool,
};
pub use counting::segment_sum;
pub use einsum::einsum;
pub use elementwise::{atan2, clamp, hypot, logaddexp, maximum, minimum, pow, select};
pub use handle::Tensor;
pub use indexing::{Position, SliceRange, SliceRanges, dynamic_slice, dynamic_update_slice};
pub use linalg::triangular_solve;
pub use literal::{IntoTensor, Literal, Operand};
pub use matmul::{dot, dot_general, matmul, outer};
pub use norm::MatrixNorm;
pub use order::Side;
pub use reduce::{Keepdims, ReducedAxes, keepdims};
pub use shape::{concatenate, stack};
pub use sort::sort_together;

pub(crate) use axes::{broadcast_pair, broadcast_to, resolve_axes, resolve_axis};
pub(crate) use elementwise::{binary, unary};
pub(crate) use literal::{align, literal_pair, materialize};

use crate::trace::state;
use crate::trace::{TraceError, state::Trace};
use podracer_compiler::{DType, Loc, Op, OpRef, TensorType};
use std::fmt;

impl Tensor {
    /// Element type and shape.
    pub fn ty(self) -> TensorType {
        state::with(|trace| trace.ty(self)).unwrap_or(TensorType::scalar(DType::F32))
    }

    /// The element type.
    pub fn dtype(self) -> DType {
        self.ty().dtype
    }

    /// The shape: the extent of each axis.
    pub fn shape(self) -> Vec<usize> {
        self.ty().shape.into_vec()
    }

    /// The rank: the number of axes.
    pub fn rank(self) -> usize {
        self.ty().rank()
    }

    /// The number of elements.
    pub fn elements(self) -> usize {
        self.ty().elements()
    }

    /// The extent of one axis; a negative axis counts from the back. 1, with an error, if the axis
    /// does not exist.
    #[track_caller]
    pub fn dim(self, axis: isize) -> usize {
        let shape = self.shape();
        match resolve_axis("dim", axis, shape.len()) {
            Some(axis) => shape[axis],
            None => 1,
        }
    }

    /// The extent of the leading axis. 1, with an error, for a scalar.
    #[track_caller]
    #[allow(clippy::len_without_is_empty, reason = "the extent of an axis is not a collection's")]
    pub fn len(self) -> usize {
        self.dim(0)
    }
}

/// The type and the line that made the tensor: `f32[3,4] made at src/lib.rs:7:13`. The type is
/// missing if the tensor belongs to another trace or its trace has ended.
impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match state::type_of(*self) {
            Some(ty) => write!(f, "{ty} made at {}", self.made()),
            None => write!(f, "a tensor of another trace, made at {}", self.made()),
        }
    }
}

/// Emits an op of the compiler that has no method here. On a type error it returns `results`
/// poisoned tensors.
#[track_caller]
pub fn emit(op: impl Op, inputs: &[Tensor], results: usize) -> Vec<Tensor> {
    let guess = inputs.first().map_or(TensorType::scalar(DType::F32), |input| input.ty());
    emit_as(op, inputs, &vec![guess; results])
}

/// [`emit`] with the types that the results would have if the op accepted its operands.
#[track_caller]
pub(crate) fn emit_as(op: impl Op, inputs: &[Tensor], guess: &[TensorType]) -> Vec<Tensor> {
    let loc = Loc::caller();
    let op = OpRef::new(op);
    state::with(|trace| trace.emit(loc, op, inputs, guess))
        .unwrap_or_else(|| vec![Tensor::dead(loc); guess.len()])
}

/// [`emit_as`] for an op with one result.
#[track_caller]
pub(crate) fn emit1(op: impl Op, inputs: &[Tensor], guess: TensorType) -> Tensor {
    let results = emit_as(op, inputs, &[guess]);
    results.first().copied().unwrap_or(Tensor::dead(Loc::caller()))
}

/// Records an error at the caller's line, unless one of the tensors `about` is already poisoned.
#[track_caller]
pub(crate) fn report(op: &str, message: impl Into<String>, about: &[Tensor]) {
    report_at(Loc::caller(), op, message, about);
}

/// Records an error at a given line, unless one of the tensors `about` is already poisoned. It is
/// for mistakes of the caller of a trait's method, because `#[track_caller]` does not reach through
/// a trait.
pub fn report_at(loc: Loc, op: &str, message: impl Into<String>, about: &[Tensor]) {
    let error = TraceError::new(op, message, loc);
    state::with(|trace: &mut Trace| {
        if !about.iter().any(|&tensor| trace.is_poison(tensor)) {
            trace.error(error);
        }
    });
}

/// A poisoned tensor of type `ty`: a stand-in for a result after an error.
#[track_caller]
pub(crate) fn poison(ty: TensorType) -> Tensor {
    let loc = Loc::caller();
    state::with(|trace| trace.poison(ty, loc)).unwrap_or(Tensor::dead(loc))
}

/// Records an error at the caller's line and returns a stand-in of type `guess`, which causes no
/// further errors. For libraries that check their arguments. If one of the tensors `about` is
/// already poisoned, nothing is recorded.
///
/// ```
/// use podracer_dsl::{fail, prelude::*};
///
/// #[track_caller]
/// fn halves(x: Tensor) -> Tensor {
///     match x.elements() % 2 {
///         0 => x.reshape([2, x.elements() / 2]),
///         _ => fail("halves", format!("{} elements", x.elements()), &[x], TensorType::new(x.dtype(), [2, 1])),
///     }
/// }
/// let mistakes = trace(f32([3]), |x| halves(x)).err().map(|mistakes| mistakes.errors[0].message.clone());
/// assert_eq!(mistakes.as_deref(), Some("3 elements"));
/// ```
#[track_caller]
pub fn fail(op: &str, message: impl Into<String>, about: &[Tensor], guess: TensorType) -> Tensor {
    report(op, message, about);
    poison(guess)
}
