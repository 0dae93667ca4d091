//! Reductions and scans along axes. Without `_axis` they reduce all axes to a scalar. `_axis` takes
//! axes, which disappear, or `keepdims(axes)`, which stay with extent 1.
//!
//! Sums, products and statistics of f16 and bf16 are computed in f32 and rounded once, as in `jax.numpy`. Running
//! reductions are computed in the tensor's own type.

use super::{Axes, Tensor, emit1, poison, resolve_axes, resolve_axis, unary};
use crate::trace::called;
use podracer_compiler::{DType, Op, TensorType, ops};

/// The axes of a reduction, which stay in the result with extent 1; from [`keepdims`].
#[derive(Clone, Copy, Debug)]
pub struct Keepdims<A>(A);

/// The axes of a reduction, which stay in the result with extent 1: `x - x.mean_axis(keepdims(-1))`.
pub fn keepdims<A: Axes>(axes: A) -> Keepdims<A> {
    Keepdims(axes)
}

/// The axes of a reduction: as [`Axes`], where they disappear, or `keepdims(axes)`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not name axes to reduce",
    label = "expected an integer, an array of integers, or `keepdims(..)` of these"
)]
pub trait ReducedAxes {
    /// The axes, with negative numbers as written, and whether the axes stay.
    fn into_reduced(self) -> (Vec<isize>, bool);
}

impl<A: Axes> ReducedAxes for A {
    fn into_reduced(self) -> (Vec<isize>, bool) {
        (self.into_axes(), false)
    }
}

impl<A: Axes> ReducedAxes for Keepdims<A> {
    fn into_reduced(self) -> (Vec<isize>, bool) {
        (self.0.into_axes(), true)
    }
}

/// A reduced tensor, with its axes back in place if they stay.
#[track_caller]
pub(super) fn restored(reduced: Tensor, x: Tensor, axes: &[isize], stay: bool) -> Tensor {
    if stay { keep_axes(reduced, x, axes) } else { reduced }
}

/// The type with some axes removed.
fn reduced(ty: &TensorType, axes: &[usize]) -> TensorType {
    ty.with_shape(
        (0..ty.rank())
            .filter(|axis| !axes.contains(axis))
            .map(|axis| ty.shape[axis])
            .collect::<Vec<_>>(),
    )
}

#[track_caller]
fn reduce<O: Op>(
    name: &str,
    x: Tensor,
    axes: Vec<isize>,
    op: impl FnOnce(Vec<usize>) -> O,
) -> Tensor {
    let ty = x.ty();
    let Some(axes) = resolve_axes(name, axes, ty.rank()) else {
        return poison(TensorType::scalar(ty.dtype));
    };
    // A reduction over no axes is the identity, as in NumPy.
    if axes.is_empty() {
        return x;
    }
    let guess = reduced(&ty, &axes);
    emit1(op(axes), &[x], guess)
}

/// [`reduce`] in the dtype of [`Tensor::accumulator`], rounded once at the end.
#[track_caller]
fn accumulate<O: Op>(
    name: &str,
    x: Tensor,
    axes: Vec<isize>,
    op: impl FnOnce(Vec<usize>) -> O,
) -> Tensor {
    reduce(name, x.accumulator(), axes, op).astype(x.dtype())
}

fn all(x: Tensor) -> Vec<isize> {
    (0..x.rank() as isize).collect()
}

macro_rules! reductions {
    ($($all:ident, $axis:ident: $reduce:ident $op:ident, $doc:literal;)*) => {
        /// Reductions of axes by one op.
        impl Tensor {
            $(
                #[doc = concat!($doc, " over all axes.")]
                #[track_caller]
                pub fn $all(self) -> Tensor {
                    $reduce(stringify!($all), self, all(self), ops::$op::new)
                }

                #[doc = concat!($doc, " over some axes, which disappear unless in [`keepdims`].")]
                #[track_caller]
                pub fn $axis(self, axes: impl ReducedAxes) -> Tensor {
                    let (axes, stay) = axes.into_reduced();
                    let reduced = $reduce(stringify!($axis), self, axes.clone(), ops::$op::new);
                    restored(reduced, self, &axes, stay)
                }
            )*
        }
    };
}

// rustc prints these lines to a user who calls `x.sum(0)` or `x.max(0.0)`.
reductions! {
    sum, sum_axis /* along axes */: accumulate ReduceSum, "The sum";
    prod, prod_axis /* along axes */: accumulate ReduceProd, "The product";
    max, max_axis /* along axes; of two tensors: `maximum` */: reduce ReduceMax, "The greatest element (NaN if there is a NaN; -inf or the least integer of an empty axis)";
    min, min_axis /* along axes; of two tensors: `minimum` */: reduce ReduceMin, "The least element (NaN if there is a NaN; inf or the greatest integer of an empty axis)";
    all, all_axis /* along axes */: reduce ReduceAnd, "The logical and of the elements (bitwise for integers)";
    any, any_axis /* along axes */: reduce ReduceOr, "The logical or of the elements (bitwise for integers)";
}

macro_rules! cumulative {
    ($($(#[$doc:meta])* $method:ident: $op:ident;)*) => {
        /// Running reductions: each element of the result reduces all elements up to its position
        /// along an axis.
        impl Tensor {
            $($(#[$doc])*
            #[track_caller]
            pub fn $method(self, axis: isize) -> Tensor {
                match resolve_axis(stringify!($method), axis, self.rank()) {
                    Some(axis) => unary(ops::$op::new(axis, false), self),
                    None => poison(self.ty()),
                }
            })*
        }
    };
}

cumulative! {
    /// Running sums along an axis.
    cumsum: CumSum;
    /// Running products along an axis.
    cumprod: CumProd;
    /// Running maxima along an axis.
    cummax: CumMax;
    /// Running minima along an axis.
    cummin: CumMin;
    /// Running log(sum(exp(x))) along an axis, without overflow.
    cumlogsumexp: CumLogSumExp;
}

/// Statistics and positions.
impl Tensor {
    /// This tensor in the type of its sums: f32 for f16 and bf16, otherwise unchanged.
    #[doc(hidden)]
    #[track_caller]
    pub fn accumulator(self) -> Tensor {
        match self.dtype() {
            DType::F16 | DType::BF16 => self.astype(DType::F32),
            _ => self,
        }
    }

    /// The mean over all axes.
    #[track_caller]
    pub fn mean(self) -> Tensor {
        self.mean_axis(all(self))
    }

    /// The mean over some axes, which disappear unless in [`keepdims`].
    #[track_caller]
    pub fn mean_axis(self, axes: impl ReducedAxes) -> Tensor {
        let ty = self.ty();
        let (axes, stay) = axes.into_reduced();
        let sum = reduce("mean", self.accumulator(), axes.clone(), ops::ReduceSum::new);
        let sum = restored(sum, self, &axes, stay);
        let count = (ty.elements() / sum.elements().max(1)).max(1);
        if !ty.dtype.is_float() {
            let message = format!("expected floats, got {ty}: cast with `.astype(F32)`");
            return super::fail("mean", message, &[sum], sum.ty());
        }
        (sum / count as f64).astype(ty.dtype)
    }

    /// The variance over all axes: the mean of the squared differences from the mean.
    #[track_caller]
    pub fn var(self) -> Tensor {
        self.var_axis(all(self))
    }

    /// The variance over some axes, which disappear unless in [`keepdims`].
    #[track_caller]
    pub fn var_axis(self, axes: impl ReducedAxes) -> Tensor {
        let _call = called("var");
        let (axes, stay) = axes.into_reduced();
        let wide = self.accumulator();
        let centered = wide - wide.mean_axis(keepdims(axes.clone()));
        let variance = centered.square().mean_axis(axes.clone());
        restored(variance, self, &axes, stay).astype(self.dtype())
    }

    /// The standard deviation over all axes.
    #[track_caller]
    pub fn std(self) -> Tensor {
        self.accumulator().var().sqrt().astype(self.dtype())
    }

    /// The standard deviation over some axes, which disappear unless in [`keepdims`].
    #[track_caller]
    pub fn std_axis(self, axes: impl ReducedAxes) -> Tensor {
        self.accumulator().var_axis(axes).sqrt().astype(self.dtype())
    }

    /// The position of the greatest element along an axis, which disappears; the first of several. i32
    #[track_caller]
    pub fn argmax(self, axis: isize) -> Tensor {
        position("argmax", self, axis, |axis, dtype| ops::ArgMax { axis, dtype })
    }

    /// The position of the least element along an axis, which disappears; the first of several. i32
    #[track_caller]
    pub fn argmin(self, axis: isize) -> Tensor {
        position("argmin", self, axis, |axis, dtype| ops::ArgMin { axis, dtype })
    }

    /// log(sum(exp(x))) along axes, which disappear unless in [`keepdims`], without overflow. -inf if all are -inf.
    #[track_caller]
    pub fn logsumexp(self, axes: impl ReducedAxes) -> Tensor {
        let _call = called("logsumexp");
        let (axes, stay) = axes.into_reduced();
        let wide = self.accumulator();
        let max = crate::stop_gradient(wide.max_axis(axes.clone()));
        // An infinite maximum must not make inf - inf.
        let max = super::select(max.is_finite(), max, max.zeros_like());
        let shifted = wide - keep_axes(max, wide, &axes);
        let log = shifted.exp().sum_axis(axes.clone()).log() + max;
        restored(log, self, &axes, stay).astype(self.dtype())
    }

    /// The softmax along an axis: probabilities proportional to exp(x).
    #[track_caller]
    pub fn softmax(self, axis: isize) -> Tensor {
        let _call = called("softmax");
        if resolve_axis("softmax", axis, self.rank()).is_none() {
            return poison(self.ty());
        }
        let wide = self.accumulator();
        let max = crate::stop_gradient(wide.max_axis(axis));
        let weights = (wide - keep_axes(max, wide, &[axis])).exp();
        let shares = weights / keep_axes(weights.sum_axis(axis), weights, &[axis]);
        shares.astype(self.dtype())
    }

    /// The logarithm of [`Tensor::softmax`], exact for small probabilities.
    #[track_caller]
    pub fn log_softmax(self, axis: isize) -> Tensor {
        let _call = called("log_softmax");
        if resolve_axis("log_softmax", axis, self.rank()).is_none() {
            return poison(self.ty());
        }
        let wide = self.accumulator();
        let max = crate::stop_gradient(wide.max_axis(axis));
        let shifted = wide - keep_axes(max, wide, &[axis]);
        let logs = shifted - keep_axes(shifted.exp().sum_axis(axis).log(), shifted, &[axis]);
        logs.astype(self.dtype())
    }
}

/// The positions, in i32, that `op` finds along an axis.
#[track_caller]
fn position<O: Op>(name: &str, x: Tensor, axis: isize, op: fn(usize, DType) -> O) -> Tensor {
    let ty = x.ty().with_dtype(DType::I32);
    match resolve_axis(name, axis, ty.rank()) {
        Some(axis) => emit1(op(axis, ty.dtype), &[x], reduced(&ty, &[axis])),
        None => poison(TensorType::scalar(ty.dtype)),
    }
}

/// A reduced tensor with the removed axes restored with extent 1, for use next to `x`.
#[track_caller]
fn keep_axes(reduced: Tensor, x: Tensor, axes: &[isize]) -> Tensor {
    let rank = x.rank() as isize;
    let mut shape = x.shape();
    for &axis in axes {
        let axis = if axis < 0 { axis + rank } else { axis };
        // The reduction reported an axis out of range; its result is then a poisoned scalar.
        match usize::try_from(axis).ok().and_then(|axis| shape.get_mut(axis)) {
            Some(extent) => *extent = 1,
            None => return reduced,
        }
    }
    reduced.reshape(shape)
}
