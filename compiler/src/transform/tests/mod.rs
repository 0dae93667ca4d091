//! Transforms of programs with derivatives that are known by other means: unrolled loops and
//! central differences.

mod dead;
mod joined;
mod launches;
mod regions;

use super::*;
use crate::array::Array;
use crate::ir::{Builder, Func, Var};
use crate::ops::{Call, CallForm, Cond, Direction, Scan, While};
use crate::types::{DType, TensorType};
use std::sync::Arc;

const T: usize = 5;

fn f64s(shape: impl AsRef<[usize]>) -> TensorType {
    TensorType::new(DType::F64, shape)
}

/// Values without symmetry, so that a permutation changes them.
fn values(ty: &TensorType, seed: usize) -> Array {
    let data: Vec<f64> =
        (0..ty.elements()).map(|i| ((i * 7 + seed * 13 + 3) as f64 * 0.731).sin() * 0.9).collect();
    Array::floats(ty.dtype, ty.shape.clone(), &data)
}

fn arguments(func: &Func) -> Vec<Array> {
    func.param_types().iter().enumerate().map(|(i, ty)| values(ty, i)).collect()
}

fn assert_close(got: &[Array], want: &[Array], tolerance: f64, what: &str) {
    assert_eq!(got.len(), want.len(), "{what}: number of results");
    for (i, (got, want)) in got.iter().zip(want).enumerate() {
        assert_eq!(got.ty(), want.ty(), "{what}: type of result {i}");
        for (a, b) in got.to_f64().iter().zip(want.to_f64()) {
            assert!(
                (a - b).abs() <= tolerance * b.abs().max(1.0),
                "{what}: result {i} is {got}, not {want}"
            );
        }
    }
}

/// c' = tanh(W_t c) with W_t = w * x_t: the Jacobians of different steps do not commute. Also y_t = sum(c * x_t c).
fn step(b: &mut Builder, w: Var, c: Var, x: Var) -> (Var, Var) {
    let wx = b.mul(w, x);
    let shape = b.ty(w).shape.clone();
    let row = b.broadcast_in_dim(c, &shape, &[1]);
    let product = b.mul(wx, row);
    let sum = b.reduce_sum(product, &[1]);
    let next = b.tanh(sum);
    let product = b.mul(product, row);
    let y = b.reduce_sum(product, &[0, 1]);
    (next, y)
}

/// (w: [3,3], c: [3], xs: [T,3,3]) -> (c_T, sum_t (t + 1) y_t), by a scan or unrolled.
fn recurrence(unrolled: bool, reverse: bool) -> Func {
    let mut b = Builder::new();
    let w = b.param(f64s([3, 3]));
    let c0 = b.param(f64s([3]));
    let xs = b.param(f64s([T, 3, 3]));
    let (last, ys) = if unrolled {
        let (mut c, mut ys) = (c0, vec![None; T]);
        let order: Vec<usize> = if reverse { (0..T).rev().collect() } else { (0..T).collect() };
        for t in order {
            let x = b.slice_axis(xs, 0, t, t + 1);
            let x = b.reshape(x, &[3, 3]);
            let (next, y) = step(&mut b, w, c, x);
            c = next;
            ys[t] = Some(b.reshape(y, &[1]));
        }
        let ys: Vec<Var> = ys.into_iter().map(|y| y.expect("every step gives one")).collect();
        (c, b.concatenate(&ys, 0))
    } else {
        let mut body = Builder::new();
        let (w_in, c_in, x_in) =
            (body.param(f64s([3, 3])), body.param(f64s([3])), body.param(f64s([3, 3])));
        let (next, y) = step(&mut body, w_in, c_in, x_in);
        let body = Arc::new(body.finish("step", vec![next, y]));
        let outputs =
            b.emit(Scan { body, length: T, reverse, consts: 1, carries: 1 }, &[w, c0, xs]);
        (outputs[0], outputs[1])
    };
    let weights = b.constant(Array::floats(DType::F64, [T], &[1.0, 2.0, 3.0, 4.0, 5.0]));
    let weighted = b.mul(ys, weights);
    let total = b.reduce_sum(weighted, &[0]);
    b.finish("recurrence", vec![last, total])
}

/// A function that gives the gradients of the summed float results with respect to all float
/// parameters.
fn grad(func: &Func) -> Func {
    let Vjp { primal, pullback, .. } =
        vjp(func, &vec![true; func.params.len()]).expect("differentiable");
    let mut b = Builder::new();
    let arguments = b.add_params(func.param_types());
    let outputs = b.inline(&primal, &arguments);
    let mut inputs = outputs[func.results.len()..].to_vec();
    for &var in &func.results {
        if func.ty(var).dtype.is_float() {
            inputs.push(b.full(func.ty(var), 1.0));
        }
    }
    let grads = b.inline(&pullback, &inputs);
    b.finish("grad", grads)
}

/// The gradients of the summed float results by central differences.
fn numeric_grad(func: &Func, arguments: &[Array]) -> Vec<Array> {
    let total = |arguments: &[Array]| -> f64 {
        func.eval(arguments)
            .iter()
            .filter(|y| y.ty().dtype.is_float())
            .flat_map(|y| y.to_f64())
            .sum()
    };
    let h = 1e-6;
    let one = |i: usize| {
        let base = arguments[i].to_f64();
        let slope = |j: usize| {
            let at = |step: f64| {
                let mut moved = base.clone();
                moved[j] += step;
                let mut arguments = arguments.to_vec();
                arguments[i] = Array::floats(DType::F64, arguments[i].ty().shape.clone(), &moved);
                total(&arguments)
            };
            (at(h) - at(-h)) / (2.0 * h)
        };
        let slopes: Vec<f64> = (0..base.len()).map(slope).collect();
        Array::floats(DType::F64, arguments[i].ty().shape.clone(), &slopes)
    };
    (0..arguments.len()).filter(|&i| arguments[i].ty().dtype.is_float()).map(one).collect()
}

fn check_grad(func: &Func) {
    let arguments = arguments(func);
    assert_close(&grad(func).eval(&arguments), &numeric_grad(func, &arguments), 1e-6, "gradient");
}

#[test]
fn scan_equals_its_unrolled_loop() {
    for reverse in [false, true] {
        let (looped, unrolled) = (recurrence(false, reverse), recurrence(true, reverse));
        let arguments = arguments(&looped);
        assert_close(&looped.eval(&arguments), &unrolled.eval(&arguments), 1e-14, "values");
    }
}

#[test]
fn scan_gradient_equals_that_of_the_unrolled_loop() {
    for reverse in [false, true] {
        let (looped, unrolled) = (recurrence(false, reverse), recurrence(true, reverse));
        let arguments = arguments(&looped);
        assert_close(
            &grad(&looped).eval(&arguments),
            &grad(&unrolled).eval(&arguments),
            1e-12,
            "gradient",
        );
        check_grad(&looped);
    }
}

#[test]
fn scan_jvp_equals_that_of_the_unrolled_loop() {
    let (looped, unrolled) = (recurrence(false, false), recurrence(true, false));
    let jvp_of = |func: &Func| jvp(func, &[true, true, true]).expect("differentiable").0;
    let (a, b) = (jvp_of(&looped), jvp_of(&unrolled));
    let arguments = arguments(&a);
    assert_close(&a.eval(&arguments), &b.eval(&arguments), 1e-12, "jvp");
}

#[test]
fn second_order_through_scan() {
    let (looped, unrolled) = (grad(&recurrence(false, false)), grad(&recurrence(true, false)));
    check_grad(&looped);
    let arguments = arguments(&looped);
    assert_close(
        &grad(&looped).eval(&arguments),
        &grad(&unrolled).eval(&arguments),
        1e-10,
        "grad of grad",
    );
}

#[test]
fn third_order_through_scan() {
    let third = grad(&grad(&grad(&recurrence(false, true))));
    let expected = grad(&grad(&grad(&recurrence(true, true))));
    let arguments = arguments(&third);
    assert_close(&third.eval(&arguments), &expected.eval(&arguments), 1e-9, "third derivative");
}

/// Evaluates `func` for each example and stacks the results: the reference for vmap.
fn stacked(func: &Func, size: usize, batched: &[bool], arguments: &[Array]) -> Vec<Array> {
    let example = |i: usize| {
        arguments
            .iter()
            .zip(batched)
            .map(|(x, &is)| if is { x.index_leading(i) } else { x.clone() })
            .collect::<Vec<_>>()
    };
    let results: Vec<Vec<Array>> = (0..size).map(|i| func.eval(&example(i))).collect();
    let types = func.result_types();
    (0..types.len())
        .map(|r| {
            Array::stack(
                &types[r],
                &results.iter().map(|result| result[r].clone()).collect::<Vec<_>>(),
            )
        })
        .collect()
}

fn check_vmap(func: &Func, make: impl Fn(&TensorType, usize) -> Array) {
    let size = 3;
    let cx = VmapContext::new(size);
    for bits in 1..1u32 << func.params.len() {
        let batched: Vec<bool> = (0..func.params.len()).map(|i| bits >> i & 1 == 1).collect();
        let (mapped, _) = vmap(func, &cx, &batched, &vec![true; func.results.len()]);
        let arguments: Vec<Array> =
            mapped.param_types().iter().enumerate().map(|(i, ty)| make(ty, i)).collect();
        assert_close(
            &mapped.eval(&arguments),
            &stacked(func, size, &batched, &arguments),
            1e-12,
            &format!("vmap over {batched:?}"),
        );
    }
}

#[test]
fn vmap_of_scan_and_of_its_gradient() {
    check_vmap(&recurrence(false, false), values);
    check_vmap(&grad(&recurrence(false, true)), values);
}

#[test]
fn grad_of_vmap_is_vmap_of_grad() {
    let func = recurrence(false, false);
    let cx = VmapContext::new(2);
    let (mapped, _) = vmap(&func, &cx, &[true; 3], &[true; 2]);
    let (mapped_grad, _) = vmap(&grad(&func), &cx, &[true; 3], &[true; 3]);
    let arguments = arguments(&mapped);
    assert_close(
        &grad(&mapped).eval(&arguments),
        &mapped_grad.eval(&arguments),
        1e-12,
        "grad of vmap",
    );
}
