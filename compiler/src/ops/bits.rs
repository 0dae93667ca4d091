//! Logic on bools and on the bits of integers.

use super::elementwise::{bits, builder_methods, elementwise, integer_samples, integers};
use super::{Elementwise, Sample};
use crate::array::Array;
use crate::scalar::Scalar;
use crate::types::DType;

elementwise! {
    /// Bitwise and; logical on bools.
    And = "and"(2, bits),
    scalar: |_, x| logic(x, |x, y| x & y),
    jvp: |_, _, _, _| None,
    samples: logic_samples,
}

elementwise! {
    /// Bitwise or; logical on bools.
    Or = "or"(2, bits),
    scalar: |_, x| logic(x, |x, y| x | y),
    jvp: |_, _, _, _| None,
    samples: logic_samples,
}

elementwise! {
    /// Bitwise exclusive or; logical on bools.
    Xor = "xor"(2, bits),
    scalar: |_, x| logic(x, |x, y| x ^ y),
    jvp: |_, _, _, _| None,
    samples: logic_samples,
}

elementwise! {
    /// Every bit flipped; logical on bools.
    Not = "not"(1, bits),
    scalar: |_, x| match x[0] {
        Scalar::Bool(x) => Scalar::Bool(!x),
        x => Scalar::Int(!x.int()),
    },
    jvp: |_, _, _, _| None,
    samples: logic_samples,
}

elementwise! {
    /// `x` shifted left by `y` bits; 0 if `y` is negative or not less than the width.
    ShiftLeft = "shift_left"(2, integers),
    scalar: |dtype, x| Scalar::Int(shift_amount(dtype, x[1]).map_or(0, |by| pattern(dtype, x[0]) << by)),
    jvp: |_, _, _, _| None,
    samples: shift_samples,
}

elementwise! {
    /// `x` shifted right by `y` bits, filled with zeros; 0 if `y` is negative or not less than the
    /// width.
    ShiftRightLogical = "shift_right_logical"(2, integers),
    scalar: |dtype, x| Scalar::Int(shift_amount(dtype, x[1]).map_or(0, |by| pattern(dtype, x[0]) >> by)),
    jvp: |_, _, _, _| None,
    samples: shift_samples,
}

elementwise! {
    /// `x` shifted right by `y` bits, filled with copies of the top bit, also in unsigned types.
    /// The result consists only of such copies if `y` is negative or not less than the width.
    ShiftRightArithmetic = "shift_right_arithmetic"(2, integers),
    scalar: |dtype, x| {
        let pattern = pattern(dtype, x[0]);
        let signed = if pattern >> (dtype.bits() - 1) == 1 { pattern - (1i128 << dtype.bits()) } else { pattern };
        Scalar::Int(signed >> shift_amount(dtype, x[1]).unwrap_or(dtype.bits()))
    },
    jvp: |_, _, _, _| None,
    samples: shift_samples,
}

elementwise! {
    /// The number of bits that are set.
    Popcnt = "popcnt"(1, integers),
    scalar: |dtype, x| Scalar::Int(i128::from(pattern(dtype, x[0]).count_ones())),
    jvp: |_, _, _, _| None,
    samples: |op| integer_samples(op, &INTEGERS),
}

elementwise! {
    /// The number of zero bits above the highest bit that is set.
    CountLeadingZeros = "count_leading_zeros"(1, integers),
    scalar: |dtype, x| Scalar::Int(i128::from(pattern(dtype, x[0]).leading_zeros() + dtype.bits()) - 128),
    jvp: |_, _, _, _| None,
    samples: |op| integer_samples(op, &INTEGERS),
}

builder_methods! {
    and = And(x, y);
    or = Or(x, y);
    xor = Xor(x, y);
    not = Not(x);
    shift_left = ShiftLeft(x, y);
    shift_right_logical = ShiftRightLogical(x, y);
    shift_right_arithmetic = ShiftRightArithmetic(x, y);
    popcnt = Popcnt(x);
    count_leading_zeros = CountLeadingZeros(x);
}

fn logic(x: &[Scalar], integer: impl Fn(i128, i128) -> i128) -> Scalar {
    match (x[0], x[1]) {
        (Scalar::Bool(x), Scalar::Bool(y)) => {
            Scalar::Bool(integer(i128::from(x), i128::from(y)) != 0)
        }
        (x, y) => Scalar::Int(integer(x.int(), y.int())),
    }
}

/// The bits of an integer as a nonnegative number.
fn pattern(dtype: DType, x: Scalar) -> i128 {
    x.int() & ((1i128 << dtype.bits()) - 1)
}

/// The distance `y` of a shift; `None` if it is not less than the width of the dtype.
fn shift_amount(dtype: DType, y: Scalar) -> Option<u32> {
    u32::try_from(y.int()).ok().filter(|&by| by < dtype.bits())
}

const INTEGERS: [DType; 6] =
    [DType::I32, DType::U32, DType::I64, DType::U64, DType::I8, DType::U16];

fn logic_samples<T: Elementwise>(op: T) -> Vec<Sample> {
    let operands = [
        Array::bools([2, 2], &[false, false, true, true]),
        Array::bools([2, 2], &[false, true, false, true]),
    ];
    let mut samples = vec![Sample::new(op.clone(), operands[..T::ARITY].to_vec())];
    samples.extend(integer_samples(op, &INTEGERS));
    samples
}

fn shift_samples<T: Elementwise>(op: T) -> Vec<Sample> {
    let by = |dtype: DType| {
        let widths = [
            0,
            1,
            5,
            i128::from(dtype.bits()) - 1,
            i128::from(dtype.bits()),
            i128::from(dtype.bits()) + 1,
        ];
        Sample::new(
            op.clone(),
            vec![Array::ints(dtype, [6], &[-3; 6]), Array::ints(dtype, [6], &widths)],
        )
    };
    let mut samples: Vec<Sample> = INTEGERS.into_iter().map(by).collect();
    samples.extend(integer_samples(op.clone(), &INTEGERS));
    samples
}
