//! Fences through XLA: a value with many readers is computed once.

use podracer_dsl::prelude::*;
use podracer_runtime::{Array, Buffer, CompileOptions, XlaOptions, lower};

use crate::programs::{buffer, client, device, kept, values};

const LANES: usize = 128;

/// A chain of 20 elementwise operations.
fn produced(x: Tensor) -> Tensor {
    (0..10).fold(x, |x, i| (x * 0.5 + f64::from(i)).sin())
}

/// 30 readers of one value. Each reader is a loop over other elements.
fn readers(value: Tensor) -> Vec<Tensor> {
    let reader = |i: usize| match i % 3 {
        0 => (value * i as f64).sum(),
        1 => (value.slice(0..LANES - i) + value.slice(i..LANES)).max(),
        _ => value.reshape([2, LANES / 2]).matmul(value.slice(0..LANES / 2) * i as f64).sum(),
    };
    (0..30).map(reader).collect()
}

/// The number of sines in the program that XLA makes of `f`, and the greatest difference of its
/// results from the reference semantics.
fn sines(whole_loops: bool, f: impl FnOnce(Tensor) -> Vec<Tensor>) -> (usize, f64) {
    let traced = trace(f32([LANES]), f).expect("it traces");
    let lowered = lower("fences", &traced, 1).expect("StableHLO");
    let rule = XlaOptions::for_platform("cpu");
    let rule = if whole_loops { rule.whole_loop() } else { rule };
    let options = CompileOptions { xla: rule.pairs(), ..CompileOptions::default() };
    let executable = client().compile(&lowered.module, &options).expect("it compiles");
    let numbers: Vec<f32> = (0..LANES).map(|i| (i as f32 * 0.37).sin()).collect();
    let x: Buffer = buffer(&[LANES], &numbers, &device(0));
    let results = executable.execute(vec![kept([&x])]).expect("it runs").remove(0);
    let argument = Array::from_slice([LANES], &numbers).expect("as many numbers");
    let expected = traced.eval(&[argument]).expect("it fits");
    let mut worst = 0.0_f64;
    for (result, expected) in results.iter().zip(&expected) {
        for (got, expected) in values(result).into_iter().zip(expected.to_f64()) {
            worst = worst.max((f64::from(got) - expected).abs() / expected.abs().max(1.0));
        }
    }
    let instructions = executable.compiled().optimized().expect("HLO").instructions();
    (instructions.get("sine").copied().unwrap_or(0), worst)
}

#[test]
fn a_fenced_producer_is_computed_once_for_all_readers() {
    let (copied, error) = sines(false, |x| readers(produced(x)));
    assert!(copied > 100, "{copied} sines without a fence");
    assert!(error < 1e-4, "{error}");
    let (once, error) = sines(false, |x| readers(fence(x, produced)));
    assert_eq!(once, 10);
    assert!(error < 1e-4, "{error}");
}

#[test]
fn a_fence_holds_inside_a_loop_that_is_one_kernel() {
    let looped = |stage: fn(Tensor) -> Tensor| {
        move |x: Tensor| {
            let step = |x: Tensor| {
                let parts = readers(stage(x));
                let total = parts.into_iter().reduce(|sum, part| sum + part).expect("30 parts");
                (x + total * 1e-4).sin()
            };
            vec![scan(x, 0..8, |x, _| (step(x), ())).0]
        }
    };
    let (copied, error) = sines(true, looped(produced));
    assert!(copied > 100, "{copied} sines without a fence");
    assert!(error < 1e-3, "{error}");
    let (once, error) = sines(true, looped(|x| fence(x, produced)));
    assert_eq!(once, 11);
    assert!(error < 1e-3, "{error}");
}

#[test]
fn a_large_fence_is_part_of_the_kernel_of_a_loop() {
    // Without the tuple that a fence returns, XLA divides the root among threads, and fails.
    let large = |x: Tensor| {
        let wide = x.reshape([1, LANES]) + x.reshape([LANES, 1]);
        fence(wide, |wide: Tensor| (0..40).fold(wide, |wide, i| (wide * 0.9 + f64::from(i)).sin()))
            .sum_axis(0)
    };
    let step = |x: Tensor| fori_loop(0..3, x, |_, x: Tensor| large(x));
    let (_, error) = sines(true, |x| vec![step(x)]);
    assert!(error < 1e-3, "{error}");
}

#[test]
fn a_kernel_with_loops_and_fences_has_the_results_of_its_function() {
    let step = |x: Tensor| {
        let body = |_: Tensor, x: Tensor| {
            let scale = fence(x, |x: Tensor| x.cos() * 0.5);
            while_loop((scalar(0), x), |(i, _)| i.lt(4), |(i, x)| (i + 1, x * scale + 1.0)).1
        };
        fori_loop(0..5, x, body)
    };
    let (_, error) = sines(false, |x| vec![kernel(x, step), vmap(x, |x| kernel(x, step))]);
    assert!(error < 1e-4, "{error}");
}
