//! Convolutions, pooling, and further functions of one tensor.

use crate::helpers::{close, errors, f32s, i32s, run, run_on};
use podracer_dsl::prelude::*;

#[test]
fn a_small_convolution_by_hand() {
    let image = f32s(&[3, 3, 1], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]);
    let kernel = f32s(&[2, 2, 1, 1], &[1.0, 10.0, 100.0, 1000.0]);
    let spec = || (f32([3, 3, 1]), f32([2, 2, 1, 1]));
    let results = run_on(spec(), &[image, kernel], |(x, k)| {
        let valid = conv2d(x, k, [1, 1], Padding::Valid);
        let same = conv2d(x, k, [2, 2], Padding::Same);
        let padded = conv2d(x, k, [3, 3], Padding::Explicit(vec![(1, 0), (1, 0)]));
        (valid, same, padded)
    });
    assert_eq!(results[0].ty().shape[..], [2, 2, 1]);
    close(&results[0], &[5421.0, 6532.0, 8754.0, 9865.0], 0.0);
    // One row and one column of zeros behind.
    assert_eq!(results[1].ty().shape[..], [2, 2, 1]);
    close(&results[1], &[5421.0, 603.0, 87.0, 9.0], 0.0);
    close(&results[2], &[1000.0], 0.0);
}

#[test]
fn windows_of_images_without_a_batch() {
    let x = f32s(&[4, 1], &[1.0, 4.0, 2.0, -3.0]);
    let results = run_on(f32([4, 1]), &[x], |x| {
        let all = max_pool(x, 2, 1, Padding::Valid);
        let same = avg_pool(x, [3], [2], Padding::Same, false);
        (all, same, grad(x, |x| max_pool(x, 2, 2, Padding::Valid).sum()))
    });
    close(&results[0], &[4.0, 4.0, 2.0], 0.0);
    close(&results[1], &[7.0 / 3.0, -0.5], 1e-6);
    close(&results[2], &[0.0, 1.0, 1.0, 0.0], 0.0);
}

#[test]
fn what_does_not_fit_is_said() {
    let report =
        errors((f32([8, 8, 3]), f32([3, 3, 4, 2])), |(x, k)| conv2d(x, k, [1, 1], Padding::Same));
    assert!(
        report.to_string().contains(
            "convolution: the input f32[1,8,8,3] has 3 features (axis 3), where the kernel f32[3,3,4,2] takes 4 (axis 2)"
        ),
        "{report}"
    );
    let report = errors((f32([8, 8]), f32([3, 3, 4, 2])), |(x, k)| {
        (conv2d(x, k, [1, 1], Padding::Same), max_pool(x, [2, 2], [2, 2], Padding::Valid))
    });
    let text = report.to_string();
    assert!(text.contains("conv2d: expected images [.., height, width, in]"), "{text}");
    assert!(text.contains("max_pool: expected images [.., 2 spatial axes, feature]"), "{text}");
    let report = errors(f32([8, 8, 1]), |x| {
        max_pool(x, [2, 2], [1, 1], Padding::Explicit(vec![(2, 0), (0, 0)]))
    });
    assert!(
        report.to_string().contains("the padding low must be less than the window"),
        "{report}"
    );
    let report = errors(f32([2, 3]), |x| (x.cholesky(), x.flatten().qr()));
    let text = report.to_string();
    assert!(text.contains("cholesky: expected square matrices, got f32[2,3]"), "{text}");
    assert!(text.contains("qr: expected a matrix, got f32[6]"), "{text}");
}

#[test]
fn systems_are_solved_from_both_sides() {
    let a = f32s(&[2, 2], &[2.0, 7.0, 1.0, 4.0]);
    let results = run_on(f32([2, 2]), &[a], |a| {
        let b = constant_of(&f32s(&[2, 1], &[2.0, 5.0]));
        let lower = triangular_solve(a, b, TriangularSolve::lower());
        let upper = triangular_solve(a, b, TriangularSolve::upper());
        let row = TriangularSolve { left_side: false, ..TriangularSolve::lower() };
        let row = triangular_solve(a, b.transpose(), row);
        (lower, upper, row, a.cholesky())
    });
    close(&results[0], &[1.0, 1.0], 1e-6);
    close(&results[1], &[(2.0 - 7.0 * 1.25) / 2.0, 1.25], 1e-6);
    close(&results[2], &[0.375, 1.25], 1e-6);
    let root = 2f64.sqrt();
    close(&results[3], &[root, 0.0, 1.0 / root, 3.5f64.sqrt()], 1e-6);
}

#[test]
fn bits_go_round() {
    let results = run(|| {
        let x = constant_of(&Array::ints(DType::U8, [3], &[0b1000_0001, 0b0000_0110, 255]));
        let signed = constant_of(&i32s(&[2], &[-2, 1]));
        (
            x.rotate_left(1),
            x.rotate_right(1),
            x.rotate_left(8),
            signed.rotate_right(1),
            x.leading_zeros(),
        )
    });
    let ints = |array: &Array| array.scalars().map(|x| x.int()).collect::<Vec<_>>();
    assert_eq!(ints(&results[0]), [0b0000_0011, 0b0000_1100, 255]);
    assert_eq!(ints(&results[1]), [0b1100_0000, 0b0000_0011, 255]);
    assert_eq!(ints(&results[2]), [0b1000_0001, 0b0000_0110, 255]);
    assert_eq!(ints(&results[3]), [i128::from(i32::MAX), i128::from(i32::MIN)]);
    assert_eq!(ints(&results[4]), [0, 5, 0]);
}

#[test]
fn sums_in_logarithms() {
    let infinity = f64::INFINITY;
    let x = f32s(&[4], &[-infinity, 1000.0, 1000.0, -infinity]);
    let results = run_on(f32([4]), &[x], |x| {
        let far = grad(x, |x| x.cumlogsumexp(0).slice(-1..).sum());
        (x.cumlogsumexp(0), logaddexp(x, x), far)
    });
    let two = 2f64.ln();
    close(&results[0], &[-infinity, 1000.0, 1000.0 + two, 1000.0 + two], 1e-6);
    close(&results[1], &[-infinity, 1000.0 + two, 1000.0 + two, -infinity], 1e-6);
    close(&results[2], &[0.0, 0.5, 0.5, 0.0], 1e-6);
}
