//! `argmax` and `argmin`: the positions of extrema along an axis.

use super::without;
use crate::array::{Array, for_each_index};
use crate::ir::{Builder, Var};
use crate::lower::{
    Hlo, HloAttribute, HloOp, HloResults, HloValue, hlo_axes, hlo_broadcast, hlo_compare, hlo_op,
    hlo_select, hlo_splat,
};
use crate::op_struct;
use crate::ops::reduce::{Max, Min, Monoid};
use crate::ops::rules::{batched_as, no_tangent, no_transpose};
use crate::ops::samples::ramp;
use crate::ops::{Op, Sample, TypeError};
use crate::scalar::Scalar;
use crate::types::{DType, TensorType};

/// Up to this extent XLA:CPU is fastest with one reduction of pairs; beyond, with two reductions
/// that it vectorizes. An axis of 18: 27 against 207 us for 4096 rows; an axis of 256: 179 against
/// 54 us for 256 rows.
const PAIRS: usize = 64;

macro_rules! arg_op {
    ($(#[$meta:meta])* $name:ident, $mnemonic:literal, $monoid:ident, $wins:literal, $method:ident) => {
        op_struct! {
            $(#[$meta])*
            $name = $mnemonic {
                /// The searched axis, which the result leaves out.
                axis: usize,
                /// The result's dtype, an integer type.
                dtype: DType,
            }
        }

        impl $name {
            /// Examples for the generic tests.
            pub fn samples() -> Vec<Sample> {
                samples().into_iter().map(|(x, axis, dtype)| Sample::new($name { axis, dtype }, vec![x]).not_differentiable()).collect()
            }
        }

        impl Op for $name {
            fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
                infer(inputs, self.axis, self.dtype)
            }

            fn eval(&self, inputs: &[Array]) -> Vec<Array> {
                vec![eval::<$monoid>(&inputs[0], self.axis, self.dtype)]
            }

            batched_as! { |op, _cx| $name { axis: op.axis + 1, dtype: op.dtype } }

            no_tangent! {}

            no_transpose! { "a position is not linear in the values" }

            fn reads_many(&self) -> bool {
                true
            }

            fn lower(&self, hlo: &mut dyn Hlo, inputs: &[HloValue], results: &[TensorType]) -> HloResults {
                vec![lower::<$monoid>(hlo, $wins, inputs[0], self.axis, &results[0])]
            }
        }

        impl Builder {
            #[doc = concat!("Emits [`", stringify!($name), "`].")]
            #[track_caller]
            pub fn $method(&mut self, x: Var, axis: usize, dtype: DType) -> Var {
                self.emit1($name { axis, dtype }, &[x])
            }
        }
    };
}

arg_op! {
    /// The position of the greatest element along an axis; the first position, if there are
    /// several. NaN counts as greatest.
    ArgMax, "argmax", Max, "GT", argmax
}

arg_op! {
    /// The position of the least element along an axis; the first position, if there are several.
    /// NaN counts as least.
    ArgMin, "argmin", Min, "LT", argmin
}

fn infer(inputs: &[TensorType], axis: usize, dtype: DType) -> Result<Vec<TensorType>, TypeError> {
    TypeError::check_arity(inputs, 1)?;
    let x = &inputs[0];
    if x.dtype == DType::Bool {
        refuse!("expected numbers, got {x}: convert bools to an integer");
    }
    if !dtype.is_integer() {
        refuse!("a position has an integer dtype, got {dtype}");
    }
    match x.shape.get(axis) {
        None => Err(TypeError::new(format!("axis {axis} is not an axis of {x}"))),
        Some(0) => {
            Err(TypeError::new(format!("axis {axis} of {x} has no elements, and so no extremum")))
        }
        Some(&extent) if extent as i128 - 1 > dtype.integer_range().1 => Err(TypeError::new(
            format!("the positions along axis {axis} of {x} do not fit into {dtype}"),
        )),
        Some(_) => Ok(vec![TensorType::new(dtype, without(&x.shape, &[axis]))]),
    }
}

fn eval<K: Monoid>(x: &Array, axis: usize, dtype: DType) -> Array {
    let ty = TensorType::new(dtype, without(&x.ty().shape, &[axis]));
    let mut data = Vec::with_capacity(ty.elements());
    let is_nan = |value: Scalar| value.float().is_nan();
    // -0 and +0 are a tie: the comparison is by value, not by representation.
    let same = |x: Scalar, y: Scalar| match (x, y) {
        (Scalar::Float(x), Scalar::Float(y)) => x == y,
        (x, y) => x == y,
    };
    for_each_index(&ty.shape, |kept| {
        let at = |i: usize| {
            let mut index = kept.to_vec();
            index.insert(axis, i);
            x.at(&index)
        };
        let mut best = 0;
        for i in 1..x.ty().shape[axis] {
            if is_nan(at(best)) {
                break;
            }
            let better = K::combine(x.ty().dtype, at(best), at(i));
            if is_nan(at(i)) || (!same(at(i), at(best)) && same(better, at(i))) {
                best = i;
            }
        }
        data.push(Scalar::Int(best as i128));
    });
    Array::new(ty, data)
}

fn lower<K: Monoid>(
    hlo: &mut dyn Hlo,
    wins: &'static str,
    x: HloValue,
    axis: usize,
    result: &TensorType,
) -> HloValue {
    let ty = hlo.ty(x);
    let attributes = vec![("iota_dimension", HloAttribute::I64(axis as i64))];
    let positions = hlo_op(hlo, "stablehlo.iota", &[], attributes, &ty.with_dtype(result.dtype));
    if ty.shape[axis] <= PAIRS {
        lower_pairs::<K>(hlo, wins, x, positions, axis, result)
    } else {
        lower_two::<K>(hlo, x, positions, axis, result)
    }
}

/// Emits one reduction of pairs of value and position.
fn lower_pairs<K: Monoid>(
    hlo: &mut dyn Hlo,
    wins: &'static str,
    x: HloValue,
    positions: HloValue,
    axis: usize,
    result: &TensorType,
) -> HloValue {
    let dtype = hlo.ty(x).dtype;
    let (value, position) = (TensorType::scalar(dtype), TensorType::scalar(result.dtype));
    let worst = hlo_splat(hlo, &value, K::identity(dtype));
    let first = hlo_splat(hlo, &position, Scalar::Int(0));
    let arguments =
        hlo.begin_region(&[value.clone(), position.clone(), value.clone(), position.clone()]);
    let [x0, i0, x1, i1] = [arguments[0], arguments[1], arguments[2], arguments[3]];
    let flag = TensorType::scalar(DType::Bool);
    let beats = |hlo: &mut dyn Hlo, x: HloValue, y: HloValue| {
        let wins = hlo_compare(hlo, wins, x, y);
        if !dtype.is_float() {
            return wins;
        }
        let is_nan = hlo_compare(hlo, "NE", x, x);
        hlo_op(hlo, "stablehlo.or", &[wins, is_nan], Vec::new(), &flag)
    };
    let (left, right) = (beats(hlo, x0, x1), beats(hlo, x1, x0));
    // Both win if both are NaN, neither wins if they are equal: then the earlier element is taken.
    let tie = hlo_compare(hlo, "EQ", left, right);
    let earlier = hlo_compare(hlo, "LT", i0, i1);
    let take_left = hlo_select(hlo, tie, earlier, left);
    let best = hlo_select(hlo, take_left, x0, x1);
    let at = hlo_select(hlo, take_left, i0, i1);
    let region = hlo.end_region(&[best, at]);
    hlo.op(HloOp::new(
        "stablehlo.reduce",
        &[x, positions, worst, first],
        &[result.with_dtype(dtype), result.clone()],
    )
    .attributes(vec![("dimensions", hlo_axes(&[axis]))])
    .regions(vec![region]))[1]
}

/// Emits two reductions: the extremum, then the least position that holds it.
fn lower_two<K: Monoid>(
    hlo: &mut dyn Hlo,
    x: HloValue,
    positions: HloValue,
    axis: usize,
    result: &TensorType,
) -> HloValue {
    let ty = hlo.ty(x);
    let extremum = super::lower::<K>(hlo, x, &[axis], &result.with_dtype(ty.dtype));
    let kept = super::other_axes(ty.rank(), &[axis]);
    let extremum = hlo_broadcast(hlo, extremum, &kept, &ty);
    let flags = ty.with_dtype(DType::Bool);
    let mut here = hlo_compare(hlo, "EQ", x, extremum);
    if ty.dtype.is_float() {
        let is_nan = hlo_compare(hlo, "NE", x, x);
        here = hlo_op(hlo, "stablehlo.or", &[here, is_nan], Vec::new(), &flags);
    }
    let positions_ty = ty.with_dtype(result.dtype);
    let nowhere = hlo_splat(hlo, &positions_ty, Min::identity(result.dtype));
    let candidates = hlo_select(hlo, here, positions, nowhere);
    super::lower::<Min>(hlo, candidates, &[axis], result)
}

fn samples() -> Vec<(Array, usize, DType)> {
    let (nan, inf) = (f64::NAN, f64::INFINITY);
    let rows =
        [[1.0, 3.0, 3.0], [-0.0, 0.0, -1.0], [2.0, nan, nan], [inf, nan, 5.0], [-inf, -inf, -inf]]
            .concat();
    let wave = |shape: &[usize]| {
        Array::from_fn(TensorType::new(DType::F32, shape), |index| {
            Scalar::Float(((7 * index[0] + 3 * index[1]) % 11) as f64)
        })
    };
    vec![
        (ramp(DType::F32, [4]), 0, DType::I32),
        (ramp(DType::F64, [2, 3]), 0, DType::U32),
        (ramp(DType::I32, [2, 3]), 1, DType::I64),
        (Array::floats(DType::F32, [5, 3], &rows), 1, DType::I32),
        (Array::floats(DType::F32, [3, 5], &rows), 0, DType::U8),
        (Array::ints(DType::I32, [4], &[i128::from(i32::MIN); 4]), 0, DType::I32),
        (wave(&[3, PAIRS + 6]), 1, DType::I32),
        (wave(&[PAIRS + 6, 2]), 0, DType::I32),
    ]
}
