//! Derivatives, by themselves and through every combinator.

use crate::helpers::{close, f32s, run_on};
use podracer_dsl::prelude::*;

#[derive(Tree, Clone, Copy)]
struct Line {
    slope: Tensor,
    offset: Tensor,
}

#[test]
fn gradients_of_trees_with_something_beside_the_loss() {
    let results = run_on(
        (f32([]), f32([3])),
        &[f32s(&[], &[2.0]), f32s(&[3], &[1., 2., 3.])],
        |(slope, x)| {
            let line = Line { slope, offset: scalar(0.5) };
            let ((loss, (y, n)), grads) = value_and_grad(line, |line| {
                let y = line.slope * x + line.offset;
                (y.square().sum(), (y, arange(2)))
            });
            (loss, y, n, grads, grad(3.0, |x| x * x * x))
        },
    );
    close(&results[0], &[2.5f64.powi(2) + 4.5f64.powi(2) + 6.5f64.powi(2)], 1e-6);
    close(&results[1], &[2.5, 4.5, 6.5], 0.0);
    close(&results[3], &[2.0 * (2.5 + 9.0 + 19.5)], 1e-6);
    close(&results[4], &[27.0], 1e-6);
    close(&results[5], &[27.0], 1e-6);
}

#[test]
fn derivatives_compose() {
    let results = run_on(f32([2]), &[f32s(&[2], &[0.5, -1.5])], |x| {
        let f = |x: Tensor| (x * x.index(0)).sin().sum();
        let second = grad(x, |x| grad(x, f).square().sum());
        let over_scan = grad(x, |x| scan(x, 0..3, |x, _| (x * x.index(1), ())).0.sum());
        let of_vmap = grad(x, |x| vmap(x, |x| x.powi(3)).sum());
        let vmapped = vmap(x, |x| grad(x, |x| x.powi(3)));
        let stopped = grad(x, |x| (x * stop_gradient(x)).sum());
        let branches = vmap(x, |x| grad(x, |x| cond(x.gt(0).both(), || x * x, || -x)));
        let captured = grad(x, |x| vmap(arange(2), |i| x.at(i) * x.sum()).sum());
        let looped = vmap(x, |x| {
            jvp(x, x.ones_like(), |x| while_loop(x, |y| y.abs().lt(10.0), |y| y * x * 4.0)).1
        });
        (second, over_scan, of_vmap, vmapped, stopped, branches, captured, looped)
    });
    let (a, b) = (0.5f64, -1.5f64);
    let loss = |a: f64, b: f64| {
        let ga = 2.0 * a * (a * a).cos() + b * (a * b).cos();
        let gb = a * (a * b).cos();
        ga * ga + gb * gb
    };
    let h = 1e-6;
    let numeric = [
        (loss(a + h, b) - loss(a - h, b)) / (2.0 * h),
        (loss(a, b + h) - loss(a, b - h)) / (2.0 * h),
    ];
    close(&results[0], &numeric, 1e-5);
    // x -> x * x_1 thrice: x_1 becomes x_1^8, x_0 becomes x_0 * x_1 * x_1^2 * x_1^4.
    close(&results[1], &[b.powi(7), a * 7.0 * b.powi(6) + 8.0 * b.powi(7)], 1e-5);
    close(&results[2], &[0.75, 6.75], 1e-6);
    close(&results[3], &[0.75, 6.75], 1e-6);
    close(&results[4], &[a, b], 1e-6);
    close(&results[5], &[1.0, -1.0], 1e-6);
    close(&results[6], &[2.0 * (a + b), 2.0 * (a + b)], 1e-6);
    // 0.5 -> 1 -> 2 -> 4 -> 8 -> 16 is 4^5 x^6; -1.5 -> 9 -> -54 is 16 x^3.
    close(&results[7], &[6.0 * 4f64.powi(5) * a.powi(5), 48.0 * b * b], 1e-5);
}

#[test]
fn forward_and_reverse_agree() {
    let results = run_on(f32([3]), &[f32s(&[3], &[0.5, -1.5, 2.0])], |x| {
        let f = |x: Tensor| stack(&[x.sum().tanh(), x.prod()], 0);
        let (y, slope) = jvp(x, constant([1.0, 0.0, 0.0]), f);
        let (z, apply) = linearize(x, f);
        let (_, pull) = vjp(x, f);
        let directions = eye(F32, 3);
        (
            (y, z, slope, apply(constant([1.0, 0.0, 0.0])), pull(constant([0.0, 1.0]))),
            (
                jacfwd(x, f),
                jacrev(x, f),
                vmap(directions, apply),
                hessian(x, |x| x.square().prod()),
            ),
        )
    });
    let t = 1.0 - 1f64.tanh().powi(2);
    close(&results[0], &[1f64.tanh(), -1.5], 1e-6);
    close(&results[1], &[1f64.tanh(), -1.5], 1e-6);
    close(&results[2], &[t, -3.0], 1e-6);
    close(&results[3], &[t, -3.0], 1e-6);
    close(&results[4], &[-3.0, 1.0, -0.75], 1e-6);
    close(&results[5], &[t, t, t, -3.0, 1.0, -0.75], 1e-6);
    close(&results[6], &[t, t, t, -3.0, 1.0, -0.75], 1e-6);
    close(&results[7], &[t, -3.0, t, 1.0, t, -0.75], 1e-6);
    let (a, b, c) = (0.5f64, -1.5f64, 2.0f64);
    let h = |i: f64, j: f64, k: f64| 4.0 * i * j * k * k;
    let expected = [
        2.0 * b * b * c * c,
        h(a, b, c),
        h(a, c, b),
        h(a, b, c),
        2.0 * a * a * c * c,
        h(b, c, a),
        h(a, c, b),
        h(b, c, a),
        2.0 * a * a * b * b,
    ];
    close(&results[8], &expected, 1e-5);
}

#[test]
fn trees_and_integers_through_derivatives() {
    let results = run_on(
        (f32([2]), i32([])),
        &[f32s(&[2], &[1.0, 2.0]), Array::ints(DType::I32, [], &[3])],
        |(x, n)| {
            let f = |(x, n): (Tensor, Tensor)| (x.square() * n.astype(F32), n + 1);
            let (value, slope) = jvp((x, n), (x, n), f);
            let (_, pull) = vjp((x, n), f);
            let back = pull((x, n));
            (value, slope, back)
        },
    );
    let values: Vec<Vec<f64>> = results.iter().map(Array::to_f64).collect();
    assert_eq!(
        values,
        [vec![3.0, 12.0], vec![4.0], vec![6.0, 24.0], vec![0.0], vec![6.0, 24.0], vec![0.0]]
    );
}
