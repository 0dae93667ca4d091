//! The rules that all elementwise ops share: operands and results of one shape, one scalar
//! function, batching by broadcasting. An op defines its scalar function, its derivative and its
//! dtypes; the rest is here. Ops without attributes are declared with the macro `elementwise!`.

use super::op::{Op, Operand, Rule, Sample, result_types};
use super::op_struct::OpStruct;
use super::{OpRef, TypeError};
use crate::array::Array;
use crate::ir::{Batched, Builder, Slope, Slopes, Var};
use crate::lower::{Hlo, HloResults, HloValue, hlo_op};
use crate::scalar::Scalar;
use crate::transform::VmapContext;
use crate::types::{DType, TensorType};

/// An op that applies one scalar function at every element.
pub trait Elementwise: OpStruct + Clone {
    /// The corresponding StableHLO op.
    const HLO: &'static str;
    /// The number of operands.
    const ARITY: usize;

    /// The value of [`Op::exact`].
    const EXACT: bool = true;

    /// The result's dtype, or the reason why the operands' dtypes do not fit. `dtypes` has
    /// [`Self::ARITY`] entries.
    fn dtype(&self, dtypes: &[DType]) -> Result<DType, TypeError>;

    /// The function itself. `dtype` is the first operand's; the result is rounded or wrapped by the caller.
    fn scalar(&self, dtype: DType, x: &[Scalar]) -> Scalar;

    /// The tangent of the single result, as [`Op::jvp`].
    fn jvp(&self, b: &mut Builder, x: &[Var], y: Var, t: &[Slope]) -> Rule<Slope>;

    /// The cotangents of the operands, from the cotangent of the single result, as
    /// [`Op::transpose`].
    fn transpose(&self, b: &mut Builder, x: &[Operand], ct: Var) -> Rule<Slopes> {
        let _ = (b, x, ct);
        Rule::None("it is not linear in any operand")
    }

    /// Emits StableHLO; by default the op [`Self::HLO`] without attributes.
    fn lower(&self, hlo: &mut dyn Hlo, x: &[HloValue], result: &TensorType) -> HloValue {
        hlo_op(hlo, Self::HLO, x, Vec::new(), result)
    }
}

impl<T: Elementwise> Op for T {
    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        TypeError::check_arity(inputs, T::ARITY)?;
        if let Some(other) = inputs.iter().find(|input| input.shape != inputs[0].shape) {
            refuse!("operands must have one shape, got {} and {other}", inputs[0]);
        }
        let dtypes: Vec<DType> = inputs.iter().map(|input| input.dtype).collect();
        Ok(vec![inputs[0].with_dtype(self.dtype(&dtypes)?)])
    }

    fn eval(&self, inputs: &[Array]) -> Vec<Array> {
        let ty = result_types(self, inputs).remove(0);
        let dtype = inputs[0].ty().dtype;
        let mut scalars = Vec::with_capacity(T::ARITY);
        let data = (0..ty.elements()).map(|i| {
            scalars.clear();
            scalars.extend(inputs.iter().map(|input| input.get(i)));
            self.scalar(dtype, &scalars)
        });
        vec![Array::new(ty.clone(), data)]
    }

    fn vmap(&self, b: &mut Builder, cx: &VmapContext, inputs: &[Var], batched: &[bool]) -> Batched {
        let inputs = cx.batch_all(b, inputs, batched);
        vec![(b.emit_ref(OpRef::new(self.clone()), &inputs)[0], true)]
    }

    fn jvp(
        &self,
        b: &mut Builder,
        inputs: &[Var],
        outputs: &[Var],
        tangents: &[Slope],
    ) -> Rule<Slopes> {
        Elementwise::jvp(self, b, inputs, outputs[0], tangents).map(|tangent| vec![tangent])
    }

    fn transpose(&self, b: &mut Builder, inputs: &[Operand], cotangents: &[Slope]) -> Rule<Slopes> {
        let cotangent = cotangents[0].expect("transpose is called with a cotangent");
        Elementwise::transpose(self, b, inputs, cotangent)
    }

    fn pointwise(&self) -> bool {
        true
    }

    fn exact(&self) -> bool {
        T::EXACT
    }

    fn lower(&self, hlo: &mut dyn Hlo, inputs: &[HloValue], results: &[TensorType]) -> HloResults {
        vec![Elementwise::lower(self, hlo, inputs, &results[0])]
    }
}

/// The operands' common dtype, or an error that names both.
pub fn same_dtype(dtypes: &[DType]) -> Result<DType, TypeError> {
    match dtypes.iter().find(|&&dtype| dtype != dtypes[0]) {
        Some(other) => Err(TypeError::new(format!(
            "operands must have one dtype, got {} and {other}: cast one of them",
            dtypes[0]
        ))),
        None => Ok(dtypes[0]),
    }
}

/// The operands' common dtype, which must satisfy `fits`; `wanted` describes it in the error.
pub fn same_dtype_that(
    dtypes: &[DType],
    wanted: &str,
    fits: impl Fn(DType) -> bool,
) -> Result<DType, TypeError> {
    let dtype = same_dtype(dtypes)?;
    if fits(dtype) {
        Ok(dtype)
    } else {
        let message = format!("expected {wanted}, got {dtype}: convert it first");
        Err(TypeError::new(message))
    }
}

/// The operands' common dtype, which is not bool.
pub(super) fn numbers(dtypes: &[DType]) -> Result<DType, TypeError> {
    same_dtype_that(dtypes, "numbers", |dtype| dtype != DType::Bool)
}

/// The operands' common dtype, which has negative values.
pub(super) fn signed_numbers(dtypes: &[DType]) -> Result<DType, TypeError> {
    same_dtype_that(dtypes, "signed integers or floats", |dtype| {
        dtype.is_signed_integer() || dtype.is_float()
    })
}

/// The operands' common dtype, which is a float.
pub(super) fn floats(dtypes: &[DType]) -> Result<DType, TypeError> {
    same_dtype_that(dtypes, "floats", DType::is_float)
}

/// The operands' common dtype, which is an integer.
pub(super) fn integers(dtypes: &[DType]) -> Result<DType, TypeError> {
    same_dtype_that(dtypes, "integers", DType::is_integer)
}

/// The operands' common dtype, which is bool or an integer.
pub(super) fn bits(dtypes: &[DType]) -> Result<DType, TypeError> {
    same_dtype_that(dtypes, "bools or integers", |dtype| !dtype.is_float())
}

/// The sum of tangents or cotangents; `None` is zero.
pub(super) fn sum_of(b: &mut Builder, x: Option<Var>, y: Option<Var>) -> Option<Var> {
    match (x, y) {
        (Some(x), Some(y)) => Some(b.add(x, y)),
        (x, y) => x.or(y),
    }
}

/// The cotangents of an op with one linear operand and otherwise known operands: `cotangent` for
/// the linear operand, zero for the others.
pub(super) fn to_linear(x: &[Operand], cotangent: Var) -> Slopes {
    x.iter().map(|x| x.is_linear().then_some(cotangent)).collect()
}

/// Samples of vectors with these values, one per float dtype, and one sample with the special float
/// values, in f32.
pub(super) fn float_and_peculiar_samples<T: Elementwise>(
    op: T,
    operands: &[&[f64]],
    tolerance: f64,
) -> Vec<Sample> {
    let mut samples = float_samples(op.clone(), operands, tolerance);
    samples.push(peculiar_floats(op, DType::F32, tolerance));
    samples
}

/// Samples of vectors with these values, one per float dtype. `tolerance` is the tolerance of f32;
/// if it is zero, it is zero for every dtype.
pub(super) fn float_samples<T: Elementwise>(
    op: T,
    operands: &[&[f64]],
    tolerance: f64,
) -> Vec<Sample> {
    let sample = |dtype: DType, least: f64| {
        let inputs =
            operands.iter().map(|values| Array::floats(dtype, [values.len()], values)).collect();
        let sample =
            Sample::new(op.clone(), inputs).tolerance(if tolerance == 0.0 { 0.0 } else { least });
        // The narrow floats have too few digits for finite differences.
        if dtype.bits() == 16 { sample.not_differentiable() } else { sample }
    };
    vec![
        sample(DType::F32, tolerance),
        sample(DType::F64, 1e-14),
        sample(DType::BF16, 8e-3),
        sample(DType::F16, 1e-3),
    ]
}

/// A sample of a function of one or two floats at special float values (every pair of them, for
/// two).
pub(super) fn peculiar_floats<T: Elementwise>(op: T, dtype: DType, tolerance: f64) -> Sample {
    let values = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.5];
    let inputs = tuples(T::ARITY, &values)
        .iter()
        .map(|values| Array::floats(dtype, [values.len()], values))
        .collect();
    Sample::new(op, inputs).tolerance(tolerance).not_differentiable()
}

/// Samples of a function of one or two integers at the ends of their ranges and near zero (every pair, for two).
pub(super) fn integer_samples<T: Elementwise>(op: T, dtypes: &[DType]) -> Vec<Sample> {
    let sample = |&dtype: &DType| {
        let (least, greatest) = dtype.integer_range();
        let values = [least, greatest, 0, 1, 2, 3, 7, greatest / 3, dtype.wrap(-1), dtype.wrap(-3)];
        let inputs = tuples(T::ARITY, &values)
            .iter()
            .map(|values| Array::ints(dtype, [values.len()], values))
            .collect();
        Sample::new(op.clone(), inputs)
    };
    dtypes.iter().map(sample).collect()
}

/// The operands that run through every tuple of `values`.
fn tuples<T: Copy>(arity: usize, values: &[T]) -> Vec<Vec<T>> {
    let count = values.len().pow(arity as u32);
    (0..arity)
        .map(|operand| {
            (0..count)
                .map(|i| values[i / values.len().pow(operand as u32) % values.len()])
                .collect()
        })
        .collect()
}

/// Declares an elementwise op without attributes: `Name = "mnemonic"(arity, dtypes)` and its
/// functions as closures. The closures have the forms of [`Elementwise`], except that `jvp` and
/// `transpose` return the bare result. `samples` gets the op. The StableHLO op has the name of the
/// mnemonic.
macro_rules! elementwise {
    (
        $(#[$meta:meta])*
        $name:ident = $mnemonic:literal($arity:literal, $dtype:expr),
        $(exact: $exact:literal,)?
        scalar: $scalar:expr,
        jvp: $jvp:expr,
        $(transpose: $transpose:expr,)?
        $(lower: $lower:expr,)?
        samples: $samples:expr $(,)?
    ) => {
        $crate::op_struct! {
            $(#[$meta])*
            $name = $mnemonic {}
        }

        impl $name {
            /// Examples for the generic tests.
            pub fn samples() -> Vec<$crate::Sample> {
                let samples: fn($name) -> Vec<$crate::Sample> = $samples;
                samples($name {})
            }
        }

        impl $crate::ops::Elementwise for $name {
            const HLO: &'static str = concat!("stablehlo.", $mnemonic);
            const ARITY: usize = $arity;
            $(const EXACT: bool = $exact;)?

            fn dtype(&self, dtypes: &[$crate::DType]) -> Result<$crate::DType, $crate::TypeError> {
                $dtype(dtypes)
            }

            fn scalar(&self, dtype: $crate::DType, x: &[$crate::Scalar]) -> $crate::Scalar {
                let scalar: fn($crate::DType, &[$crate::Scalar]) -> $crate::Scalar = $scalar;
                scalar(dtype, x)
            }

            fn jvp(
                &self,
                b: &mut $crate::Builder,
                x: &[$crate::Var],
                y: $crate::Var,
                t: &[$crate::ir::Slope],
            ) -> $crate::Rule<$crate::ir::Slope> {
                let jvp: fn(&mut $crate::Builder, &[$crate::Var], $crate::Var, &[$crate::ir::Slope]) -> $crate::ir::Slope = $jvp;
                $crate::Rule::Some(jvp(b, x, y, t))
            }

            $(fn transpose(&self, b: &mut $crate::Builder, x: &[$crate::Operand], ct: $crate::Var) -> $crate::Rule<$crate::ir::Slopes> {
                let transpose: fn(&mut $crate::Builder, &[$crate::Operand], $crate::Var) -> $crate::ir::Slopes = $transpose;
                $crate::Rule::Some(transpose(b, x, ct))
            })?

            $(fn lower(&self, hlo: &mut dyn $crate::Hlo, x: &[$crate::HloValue], result: &$crate::TensorType) -> $crate::HloValue {
                let lower: fn(&mut dyn $crate::Hlo, &[$crate::HloValue], &$crate::TensorType) -> $crate::HloValue = $lower;
                lower(hlo, x, result)
            })?
        }
    };
}
pub(super) use elementwise;

/// Declares `Builder` methods that emit one op without attributes: `method = Op(x, y);`.
macro_rules! builder_methods {
    ($($method:ident = $op:ident($($x:ident),+);)+) => {
        impl $crate::Builder {
            $(#[doc = concat!("Emits [`", stringify!($op), "`].")]
            #[track_caller]
            pub fn $method(&mut self, $($x: $crate::Var),+) -> $crate::Var {
                self.emit1($op {}, &[$($x),+])
            })+
        }
    };
}
pub(super) use builder_methods;
