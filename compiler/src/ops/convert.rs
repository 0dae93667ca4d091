//! Changing the element type: by value (`convert`) and by bits (`bitcast_convert`).

use super::op::result_types;
use super::samples::ramp;
use super::{Elementwise, Op, Operand, Rule, Sample, TypeError};
use crate::array::Array;
use crate::ir::{Builder, Slope, Slopes, Var};
use crate::lower::{Hlo, HloResults, HloValue, hlo_op};
use crate::op_struct;
use crate::ops::rules::{batched_as, no_tangent, no_transpose};
use crate::scalar::Scalar;
use crate::types::{DType, TensorType};

op_struct! {
    /// The same values in another dtype. A float becomes the nearest float, or is truncated to an
    /// integer and clamped to its range (NaN becomes 0). Integers wrap; an integer becomes the
    /// nearest float. Anything but 0 becomes `true`, which becomes 1.
    Convert = "convert" {
        /// The result's dtype.
        dtype: DType,
    }
}

impl Convert {
    /// Examples for the generic tests: every pair of dtypes.
    pub fn samples() -> Vec<Sample> {
        let mut samples = Vec::new();
        for from in DType::ALL {
            let x = match from {
                from if from.is_float() => {
                    let (nan, inf) = (f64::NAN, f64::INFINITY);
                    let small = [0.0, -0.0, 0.4, -0.6, 1.0, 2.5, -3.5, 100.7];
                    let large = [-130.2, 300.0, 70000.0, -3e9, 1e19, inf, -inf, nan];
                    let values = [small, large].concat();
                    Array::floats(from, [values.len()], &values)
                }
                DType::Bool => Array::bools([2], &[true, false]),
                from => {
                    let (least, greatest) = from.integer_range();
                    Array::ints(from, [6], &[least, greatest, 0, 1, 77, greatest / 5])
                }
            };
            samples.extend(
                DType::ALL.map(|dtype| {
                    Sample::new(Convert { dtype }, vec![x.clone()]).not_differentiable()
                }),
            );
        }
        let x = ramp(DType::F32, [2, 3]);
        samples.push(Sample::new(Convert { dtype: DType::F64 }, vec![x.clone()]));
        samples.push(Sample::new(Convert { dtype: DType::F32 }, vec![ramp(DType::F64, [2, 3])]));
        samples
    }
}

impl Elementwise for Convert {
    const HLO: &'static str = "stablehlo.convert";
    const ARITY: usize = 1;

    fn dtype(&self, _: &[DType]) -> Result<DType, TypeError> {
        Ok(self.dtype)
    }

    fn scalar(&self, _: DType, x: &[Scalar]) -> Scalar {
        convert_scalar(x[0], self.dtype)
    }

    fn jvp(&self, b: &mut Builder, _: &[Var], _: Var, t: &[Slope]) -> Rule<Slope> {
        Rule::Some(t[0].filter(|_| self.dtype.is_float()).map(|t| b.convert(t, self.dtype)))
    }

    fn transpose(&self, b: &mut Builder, x: &[Operand], ct: Var) -> Rule<Slopes> {
        let ty = x[0].linear().expect("the only operand of a linear equation is linear");
        Rule::Some(vec![Some(b.convert(ct, ty.dtype))])
    }
}

/// One value in another dtype, converted as by [`Convert`].
pub fn convert_scalar(x: Scalar, dtype: DType) -> Scalar {
    if dtype == DType::Bool {
        return Scalar::Bool(match x {
            Scalar::Float(x) => x != 0.0,
            x => x.int() != 0,
        });
    }
    match x {
        Scalar::Float(x) if dtype.is_float() => Scalar::Float(dtype.round(x)),
        Scalar::Float(x) if x.is_nan() => Scalar::Int(0),
        Scalar::Float(x) => {
            let (least, greatest) = dtype.integer_range();
            Scalar::Int((x as i128).clamp(least, greatest))
        }
        // A conversion through f64 would round 64-bit integers twice.
        x if dtype == DType::F32 => Scalar::Float(f64::from(x.int() as f32)),
        x if dtype.is_float() => Scalar::Float(dtype.round(x.int() as f64)),
        x => Scalar::Int(dtype.wrap(x.int())),
    }
}

op_struct! {
    /// The same bits in another dtype. Dtypes of the same width keep the shape. A wider dtype
    /// merges the last axis into its elements; the axis's extent is the ratio of the widths. A
    /// narrower dtype adds such an axis. The least significant part comes first. Bools cannot be
    /// bitcast.
    BitcastConvert = "bitcast_convert" {
        /// The result's dtype.
        dtype: DType,
    }
}

impl BitcastConvert {
    /// Examples for the generic tests.
    pub fn samples() -> Vec<Sample> {
        let sample = |dtype, x| Sample::new(BitcastConvert { dtype }, vec![x]).not_differentiable();
        vec![
            sample(DType::U32, Array::floats(DType::F32, [4], &[1.0, -0.0, f64::INFINITY, 1e-40])),
            sample(
                DType::F32,
                Array::ints(DType::U32, [2, 2], &[0x3f80_0000, 1, 0x8000_0000, 0x7f80_0000]),
            ),
            sample(DType::I64, Array::floats(DType::F64, [2], &[1.5, -2.0])),
            sample(DType::U16, ramp(DType::BF16, [3])),
            sample(DType::I16, ramp(DType::F16, [3])),
            sample(DType::I8, ramp(DType::U8, [])),
            sample(DType::U8, ramp(DType::U32, [3])),
            sample(DType::U32, ramp(DType::I8, [3, 4])),
            sample(DType::U64, ramp(DType::U32, [2])),
            sample(DType::U32, ramp(DType::F64, [2, 1])),
        ]
    }
}

impl Op for BitcastConvert {
    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        TypeError::check_arity(inputs, 1)?;
        let (x, dtype) = (&inputs[0], self.dtype);
        if x.dtype == DType::Bool || dtype == DType::Bool {
            refuse!("expected numbers, got {x} and {dtype}: convert bools to an integer");
        }
        let (from, to) = (x.dtype.size(), dtype.size());
        let mut shape = x.shape.clone();
        if from > to {
            shape.push(from / to);
        } else if from < to && shape.pop() != Some(to / from) {
            refuse!("expected a last axis of extent {} to become one {dtype}, got {x}", to / from);
        }
        Ok(vec![TensorType::new(dtype, shape)])
    }

    fn eval(&self, inputs: &[Array]) -> Vec<Array> {
        let ty = result_types(self, inputs).remove(0);
        vec![Array::from_bytes(ty, inputs[0].bytes()).expect("a bitcast keeps the bytes")]
    }

    batched_as! { |op, _cx| op.clone() }

    no_tangent! {}

    no_transpose! { "the bits of a number are not linear in it" }

    fn lower(&self, hlo: &mut dyn Hlo, inputs: &[HloValue], results: &[TensorType]) -> HloResults {
        vec![hlo_op(hlo, "stablehlo.bitcast_convert", inputs, Vec::new(), &results[0])]
    }
}

impl Builder {
    /// Emits [`Convert`], unless `x` has the dtype already.
    #[track_caller]
    pub fn convert(&mut self, x: Var, dtype: DType) -> Var {
        if self.ty(x).dtype == dtype { x } else { self.emit1(Convert { dtype }, &[x]) }
    }

    /// Emits [`BitcastConvert`], unless `x` has the dtype already.
    #[track_caller]
    pub fn bitcast_convert(&mut self, x: Var, dtype: DType) -> Var {
        if self.ty(x).dtype == dtype { x } else { self.emit1(BitcastConvert { dtype }, &[x]) }
    }
}
