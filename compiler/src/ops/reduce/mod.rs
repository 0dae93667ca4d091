//! Reductions over axes: sums, products, extrema, logic, and the positions of extrema.
//!
//! A reduction is an operation with a neutral element ([`Monoid`]) and its derivative
//! ([`Reduction`]); [`Reduce`] is the op. The cumulative ops and the collectives use the same
//! monoids.

mod arg;
mod kinds;

pub use arg::{ArgMax, ArgMin};
pub use kinds::{All, Any, LogSumExp, Max, Min, Prod, Sum};

use super::shape::{check_axes, shifted};
use super::{Elementwise, Op, Operand, Rule, Sample, TypeError};
use crate::array::{Array, for_each_index, ravel};
use crate::ir::{Builder, Slope, Slopes, Var};
use crate::lower::{Hlo, HloOp, HloRegion, HloResults, HloValue, hlo_axes, hlo_splat};
use crate::op_struct;
use crate::ops::rules::batched_as;
use crate::scalar::Scalar;
use crate::types::{DType, TensorType};
use std::fmt::Debug;
use std::marker::PhantomData;

/// An associative and commutative operation with a neutral element.
pub trait Monoid: Clone + Debug + Send + Sync + 'static {
    /// The binary op that combines two elements.
    type Combine: Elementwise;

    /// The op that combines two elements.
    const COMBINE: Self::Combine;

    /// The neutral element.
    fn identity(dtype: DType) -> Scalar;

    /// Combines two elements; a float is not rounded here, so that a reduction is rounded once.
    fn combine(dtype: DType, x: Scalar, y: Scalar) -> Scalar {
        match Self::COMBINE.scalar(dtype, &[x, y]) {
            Scalar::Int(value) => Scalar::Int(dtype.wrap(value)),
            other => other,
        }
    }

    /// Emits the region that combines two scalars.
    fn region(hlo: &mut dyn Hlo, dtype: DType) -> HloRegion {
        let scalar = TensorType::scalar(dtype);
        let arguments = hlo.begin_region(&[scalar.clone(), scalar.clone()]);
        let result = Elementwise::lower(&Self::COMBINE, hlo, &arguments, &scalar);
        hlo.end_region(&[result])
    }
}

/// A [`Monoid`] with the name and derivative of its reduction.
pub trait Reduction: Monoid {
    /// The name in the IR's text.
    const MNEMONIC: &'static str;

    /// The tangent of `y`, which is `x` reduced over `axes`, from the tangent of `x`.
    fn jvp(b: &mut Builder, axes: &[usize], x: Var, y: Var, t: Var) -> Option<Var>;

    /// The cotangent of an operand of type `ty`, from the cotangent of the result.
    fn transpose(b: &mut Builder, axes: &[usize], ty: &TensorType, ct: Var) -> Rule<Var> {
        let _ = (b, axes, ty, ct);
        Rule::None("it is not linear in its operand")
    }
}

op_struct! {
    /// Combines all elements along `axes`, which the result leaves out, by the [`Monoid`] `K`. The
    /// result over no elements is the neutral element. Floats may be combined in any order.
    Reduce<K: Reduction> {
        /// The reduced axes, in any order, each once.
        axes: Vec<usize>,
    }
}

/// Sums along axes.
pub type ReduceSum = Reduce<Sum>;
/// Products along axes.
pub type ReduceProd = Reduce<Prod>;
/// The greatest element along axes; NaN if any is NaN. Its derivative is shared equally among all
/// greatest elements.
pub type ReduceMax = Reduce<Max>;
/// The least element along axes; NaN if any is NaN. Its derivative is shared equally among all
/// least elements.
pub type ReduceMin = Reduce<Min>;
/// Bitwise and along axes; "all" on bools.
pub type ReduceAnd = Reduce<All>;
/// Bitwise or along axes; "any" on bools.
pub type ReduceOr = Reduce<Any>;

impl<K> Reduce<K> {
    /// The reduction over these axes.
    pub fn new(axes: impl Into<Vec<usize>>) -> Self {
        Reduce { axes: axes.into(), kind: PhantomData }
    }
}

impl<K: Reduction> Reduce<K> {
    /// Examples for the generic tests.
    pub fn samples() -> Vec<Sample> {
        kinds::samples::<K>()
    }
}

impl<K: Reduction> Op for Reduce<K> {
    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        TypeError::check_arity(inputs, 1)?;
        K::COMBINE.dtype(&[inputs[0].dtype])?;
        check_axes("axes", &self.axes, inputs[0].rank())?;
        Ok(vec![inputs[0].with_shape(without(&inputs[0].shape, &self.axes))])
    }

    fn eval(&self, inputs: &[Array]) -> Vec<Array> {
        let x = &inputs[0];
        let ty = x.ty().with_shape(without(&x.ty().shape, &self.axes));
        let mut data = vec![K::identity(ty.dtype); ty.elements()];
        let mut position = 0;
        for_each_index(&x.ty().shape, |index| {
            let slot = &mut data[ravel(&ty.shape, &without(index, &self.axes))];
            *slot = K::combine(ty.dtype, *slot, x.get(position));
            position += 1;
        });
        vec![Array::new(ty, data)]
    }

    batched_as! { |op, _cx| Reduce::<K>::new(shifted(&op.axes)) }

    fn jvp(
        &self,
        b: &mut Builder,
        inputs: &[Var],
        outputs: &[Var],
        tangents: &[Slope],
    ) -> Rule<Slopes> {
        Rule::Some(vec![tangents[0].and_then(|t| K::jvp(b, &self.axes, inputs[0], outputs[0], t))])
    }

    fn transpose(&self, b: &mut Builder, inputs: &[Operand], cotangents: &[Slope]) -> Rule<Slopes> {
        let cotangent = cotangents[0].expect("transpose is called with a cotangent");
        let ty = inputs[0].linear().expect("the only operand of a linear equation is linear");
        K::transpose(b, &self.axes, ty, cotangent).map(|cotangent| vec![Some(cotangent)])
    }

    fn reads_many(&self) -> bool {
        true
    }

    fn lower(&self, hlo: &mut dyn Hlo, inputs: &[HloValue], results: &[TensorType]) -> HloResults {
        vec![lower::<K>(hlo, inputs[0], &self.axes, &results[0])]
    }
}

/// Emits `stablehlo.reduce` of one operand.
fn lower<K: Monoid>(
    hlo: &mut dyn Hlo,
    x: HloValue,
    axes: &[usize],
    result: &TensorType,
) -> HloValue {
    let identity = hlo_splat(hlo, &TensorType::scalar(result.dtype), K::identity(result.dtype));
    let region = K::region(hlo, result.dtype);
    hlo.op(HloOp::new("stablehlo.reduce", &[x, identity], std::slice::from_ref(result))
        .attributes(vec![("dimensions", hlo_axes(axes))])
        .regions(vec![region]))[0]
}

/// The entries at positions that are not in `axes`.
pub(super) fn without(entries: &[usize], axes: &[usize]) -> Vec<usize> {
    entries
        .iter()
        .enumerate()
        .filter(|(axis, _)| !axes.contains(axis))
        .map(|(_, &entry)| entry)
        .collect()
}

/// The axes of a tensor of this rank that are not among `axes`.
pub(super) fn other_axes(rank: usize, axes: &[usize]) -> Vec<usize> {
    (0..rank).filter(|axis| !axes.contains(axis)).collect()
}

/// A result of reducing `axes` spread along these axes again, to `shape`.
pub(super) fn spread(b: &mut Builder, y: Var, shape: &[usize], axes: &[usize]) -> Var {
    b.broadcast_in_dim(y, shape, &other_axes(shape.len(), axes))
}

macro_rules! builder_reductions {
    ($($method:ident = $op:ident),+) => {
        impl Builder {
            $(#[doc = concat!("Emits [`", stringify!($op), "`], unless there are no axes.")]
            #[track_caller]
            pub fn $method(&mut self, x: Var, axes: &[usize]) -> Var {
                if axes.is_empty() { x } else { self.emit1($op::new(axes), &[x]) }
            })+
        }
    };
}

builder_reductions!(
    reduce_sum = ReduceSum,
    reduce_prod = ReduceProd,
    reduce_max = ReduceMax,
    reduce_min = ReduceMin,
    reduce_and = ReduceAnd,
    reduce_or = ReduceOr
);
