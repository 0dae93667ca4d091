//! Values at the edges of number formats: infinities, NaN, zeros, overflow and rounding.

use crate::helpers::{close, f32s, run, run_on};
use podracer_dsl::prelude::*;

const INF: f64 = f64::INFINITY;

/// A reduction of elements that are all `value`, in this type.
#[track_caller]
fn of_equal(ty: TensorType, value: f64, f: impl FnOnce(Tensor) -> Tensor) -> Vec<f64> {
    let x = Array::floats(ty.dtype, &ty.shape[..], &vec![value; ty.elements()]);
    let result = &run_on(ty.clone(), &[x], f)[0];
    assert_eq!(result.ty().dtype, ty.dtype);
    result.to_f64()
}

#[test]
fn mean_of_f16_overflowed_in_its_sum() {
    let many = TensorType::new(F16, [70_000]);
    assert_eq!(of_equal(many.clone(), 1.0, |x| x.mean()), [1.0]);
    assert_eq!(of_equal(many.clone(), 1.0, |x| x.mean_axis(0)), [1.0]);
    assert_eq!(of_equal(many, 300.0, |x| x.std()), [0.0]);
    let power = TensorType::new(F16, [1 << 16]);
    assert_eq!(of_equal(power.clone(), 1.0, |x| x.softmax(0).sum()), [1.0]);
    assert_eq!(of_equal(power, 1.0, |x| x.median()), [1.0]);
    let row = TensorType::new(F16, [2, 400]);
    assert_eq!(of_equal(row.clone(), 300.0, |x| x.mean_axis(-1)), [300.0, 300.0]);
    assert_eq!(of_equal(row.clone(), 300.0, |x| x.var_axis(-1)), [0.0, 0.0]);
    // 300 squared exceeds f16's range, but the root of the sum does not.
    assert_eq!(of_equal(row.clone(), 300.0, |x| x.vector_norm(2.0, -1)), [6000.0, 6000.0]);
    assert_eq!(of_equal(row, 300.0, |x| x.flatten().norm()), [8488.0]);
    let image = TensorType::new(F16, [16, 32, 1]);
    let pooled = |x| avg_pool(x, [16, 32], [1, 1], Padding::Valid, true);
    assert_eq!(of_equal(image, 300.0, pooled), [300.0]);
}

#[test]
fn sums_of_narrow_floats_are_rounded_once() {
    let image = TensorType::new(BF16, [4, 4, 1]);
    let traced = trace(image, |x| {
        let flat = x.flatten();
        let pooled = avg_pool(x, [2, 2], [2, 2], Padding::Same, false);
        let scalars = [flat.sum(), flat.prod(), flat.mean(), flat.std(), flat.norm()];
        (scalars, flat.softmax(0), flat.log_softmax(0), flat.logsumexp(0), pooled)
    });
    let text = traced.expect("it traces").to_string();
    let narrow = |line: &&str| {
        let folds = ["reduce_sum", "reduce_prod", "reduce_window"];
        folds.iter().any(|fold| line.contains(fold)) && line.contains("bf16")
    };
    assert_eq!(text.lines().find(narrow), None, "{text}");
}

#[test]
fn wide_floats_are_not_converted() {
    let traced = trace(f32([6]), |x| (x.mean(), x.std(), x.norm(), x.softmax(0), x.median()));
    let text = traced.expect("it traces").to_string();
    assert!(
        !text.lines().any(|line| line.contains("convert") && line.contains("f32[6]")),
        "{text}"
    );
}

#[test]
fn median_next_to_an_infinity_is_a_number() {
    let cases: [(&[f64], f64); 6] = [
        (&[INF, INF, INF], INF),
        (&[5.0, INF, INF], INF),
        (&[-INF, -INF, 3.0], -INF),
        (&[INF], INF),
        (&[-INF, 1.0, INF], 1.0),
        (&[INF, INF, INF, INF], INF),
    ];
    for (values, expected) in cases {
        let x = f32s(&[values.len()], values);
        let ty = x.ty().clone();
        // `long` has enough elements to be sorted.
        let got = run_on(ty, &[x], |x| {
            let long = stack(&vec![x; 300], 1);
            (x.median(), x.expand_dims(1).median_axis(0).index(0), long.median())
        });
        for result in got {
            assert_eq!(result.to_f64(), [expected], "{values:?}");
        }
    }
    let opposite = run(|| constant([-INF, INF]).median());
    assert!(opposite[0].to_f64()[0].is_nan());
}

#[test]
fn interp_of_nan_between_equal_points_is_nan() {
    let got = run(|| constant([f64::NAN, 0.5]).interp([0.0, 1.0, 1.0], [0.0, 5.0, 10.0]));
    close(&got[0], &[f64::NAN, 2.5], 0.0);
    let one = run(|| constant([f64::NAN]).interp([1.0], [10.0]));
    close(&one[0], &[f64::NAN], 0.0);
    let infinite = run(|| constant([0.5, 1.0]).interp([0.0, 1.0], [INF, INF]));
    close(&infinite[0], &[INF, INF], 0.0);
}

#[test]
fn det_of_an_empty_matrix_is_1() {
    let got = run(|| {
        let empty = zeros(F32, [0, 0]);
        let (sign, log) = empty.slogdet();
        let batch = zeros(F32, [3, 0, 0]).det();
        (empty.det(), sign, log, batch, empty.inv(), empty.solve(zeros(F32, [0, 2])))
    });
    assert_eq!(got[0].to_f64(), [1.0]);
    assert_eq!(got[1].to_f64(), [1.0]);
    assert_eq!(got[2].to_f64(), [0.0]);
    assert_eq!(got[3].to_f64(), [1.0; 3]);
    assert_eq!(got[4].ty().shape[..], [0, 0]);
    assert_eq!(got[5].ty().shape[..], [0, 2]);
}

#[test]
fn uniform_range_gave_its_upper_bound() {
    let got = run(|| {
        let key = Key::new(0);
        let [constant_key, tensor_key, empty_key] = key.split_into();
        let high = constant([1.0e6 + 1.0]);
        (
            constant_key.uniform_range([4000], 1.0e6, 1.0e6 + 1.0),
            tensor_key.uniform_range([4000], 1.0e6, high),
            empty_key.uniform_range([4], 2.0, 2.0),
        )
    });
    for draws in &got[..2] {
        let draws = draws.to_f64();
        assert!(draws.iter().all(|&x| (1.0e6..1.0e6 + 1.0).contains(&x)));
        assert!(draws.iter().any(|&x| x > 1.0e6 + 0.9));
    }
    assert_eq!(got[2].to_f64(), [2.0; 4]);
}

#[test]
fn the_slope_of_cbrt_at_zero_is_infinite() {
    let slopes = run(|| {
        let of = |x: Tensor| grad(x, |x| x.cbrt());
        (of(scalar(0.0)), of(scalar(-0.0)), of(scalar(8.0)), of(scalar(-8.0)))
    });
    let slopes: Vec<f64> = slopes.iter().map(|slope| slope.to_f64()[0]).collect();
    assert_eq!(slopes[..2], [INF, INF]);
    assert!(slopes[2..].iter().all(|slope| (slope - 1.0 / 12.0).abs() < 1e-6), "{slopes:?}");
}

#[test]
fn top_k_puts_a_negative_nan_first() {
    let got = run(|| constant([3.0, -1.0, 2.0]).log().top_k(2));
    assert!(got[0].to_f64()[0].is_nan());
    assert_eq!(got[1].to_f64(), [1.0, 0.0]);
}
