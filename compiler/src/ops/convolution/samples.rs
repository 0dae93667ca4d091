//! Examples of convolutions: each attribute alone and with others, other layouts, no elements.

use super::Convolution;
use crate::array::Array;
use crate::ops::Sample;
use crate::ops::samples::ramp;
use crate::types::DType;

pub(super) fn samples() -> Vec<Sample> {
    let f32s = |op: Convolution, lhs: &[usize], rhs: &[usize]| {
        Sample::new(op, vec![ramp(DType::F32, lhs), wave(rhs)]).tolerance(EXACT)
    };
    let plane = || Convolution::new(2);
    let line = || Convolution::new(1);
    vec![
        f32s(plane(), &[1, 4, 3, 2], &[2, 2, 2, 3]),
        f32s(
            Convolution { strides: vec![2, 1], low: vec![1, 0], high: vec![1, 2], ..plane() },
            &[2, 4, 3, 2],
            &[3, 2, 2, 1],
        ),
        f32s(
            Convolution {
                strides: vec![3],
                low: vec![1],
                lhs_dilation: vec![2],
                rhs_dilation: vec![2],
                ..line()
            },
            &[2, 5, 2],
            &[3, 2, 2],
        ),
        f32s(Convolution { low: vec![-1], high: vec![-2], ..line() }, &[1, 7, 1], &[2, 1, 2]),
        f32s(
            Convolution { strides: vec![2], low: vec![1], feature_group_count: 2, ..line() },
            &[2, 4, 4],
            &[2, 2, 6],
        ),
        f32s(
            Convolution { strides: vec![2], high: vec![1], batch_group_count: 2, ..line() },
            &[4, 4, 3],
            &[2, 3, 2],
        ),
        // Dilated inputs: with and without a remainder, few elements of the kernel, padding of both signs, groups.
        f32s(
            Convolution { low: vec![1, -2], high: vec![2, 3], lhs_dilation: vec![2, 3], ..plane() },
            &[2, 3, 4, 2],
            &[4, 2, 2, 3],
        ),
        f32s(
            Convolution { low: vec![3, 5], high: vec![-1, 0], lhs_dilation: vec![4, 1], ..plane() },
            &[1, 3, 2, 2],
            &[1, 3, 2, 2],
        ),
        f32s(
            Convolution {
                low: vec![2],
                high: vec![1],
                lhs_dilation: vec![3],
                feature_group_count: 2,
                ..line()
            },
            &[2, 4, 4],
            &[2, 2, 6],
        ),
        f32s(
            Convolution {
                lhs_dilation: vec![2],
                batch_group_count: 2,
                lhs_axes: vec![0, 1, 2],
                rhs_axes: vec![0, 1, 2],
                out_axes: vec![2, 0, 1],
                ..line()
            },
            &[4, 3, 4],
            &[2, 3, 3],
        ),
        // NCW by OIW gives CWN.
        f32s(
            Convolution {
                lhs_axes: vec![0, 1, 2],
                rhs_axes: vec![0, 1, 2],
                out_axes: vec![2, 0, 1],
                ..line()
            },
            &[2, 3, 4],
            &[2, 3, 2],
        ),
        f32s(Convolution::new(0), &[2, 3], &[3, 2]),
        f32s(line(), &[1, 2, 1], &[3, 1, 2]),
        f32s(line(), &[0, 4, 1], &[2, 1, 2]),
        Sample::new(line(), vec![ramp(DType::F64, [2, 4, 2]), ramp(DType::F64, [2, 2, 1])])
            .tolerance(EXACT),
        Sample::new(line(), vec![ramp(DType::BF16, [1, 3, 1]), ramp(DType::BF16, [2, 1, 1])])
            .tolerance(EXACT)
            .not_differentiable(),
        Sample::new(line(), vec![ramp(DType::I32, [2, 4, 2]), ramp(DType::I32, [2, 2, 1])]),
    ]
}

/// The sums of these numbers are exact in any order, except for the sign of a zero.
const EXACT: f64 = 1e-15;

/// A kernel's values: small, of both signs, of no symmetry.
fn wave(shape: &[usize]) -> Array {
    let values: Vec<f64> = (0..shape.iter().product::<usize>())
        .map(|i| ((5 * i + 3) % 11) as f64 * 0.25 - 1.125)
        .collect();
    Array::floats(DType::F32, shape, &values)
}
