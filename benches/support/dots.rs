//! Networks of three layers as their matrix products alone, and how long a program of products takes.

use std::time::Instant;

use anyhow::Result;
use podracer_dsl::prelude::*;
use podracer_runtime::{
    Array, Client, CompileOptions, Device, ExecutableCache, Placement, Program, ProgramOptions,
};

/// Number of runs; the best counts.
const RUNS: usize = 5;

/// Weights of three layers.
pub type Layers = (Tensor, Tensor, Tensor);

/// The best time of a program that computes a number from a weight matrix, f32 `[side, side]`, on
/// each of `devices` devices.
pub fn seconds(
    client: &Client,
    devices: usize,
    side: usize,
    program: impl FnOnce(Tensor) -> Tensor,
) -> Result<f64> {
    let traced = trace((f32([side, side]),), |(weight,)| program(weight).reshape([1]))?;
    let options = ProgramOptions {
        compile: CompileOptions { replicas: devices, ..CompileOptions::default() },
        cache: ExecutableCache::disabled(),
        ..ProgramOptions::default()
    };
    let program: Program<(Tensor,), Tensor> =
        Program::compile(client, "dots", &traced, vec![Placement::Sharded], &options)?;
    // A reflection: orthogonal, so that no chain of products grows or vanishes, and without zeros.
    let element = |i: usize| f32::from(u8::from(i / side == i % side)) - 2.0 / side as f32;
    let weight: Vec<f32> = (0..side * side).map(element).collect();
    let weight: Device<Tensor> = program.upload(Array::from_slice([side, side], &weight)?)?;
    let mut best = f64::INFINITY;
    for _ in 0..=RUNS {
        let start = Instant::now();
        program.run((&weight,))?.to_host()?;
        best = best.min(start.elapsed().as_secs_f64());
    }
    Ok(best)
}

/// The product of `x` and `y`, summed over these axes of theirs.
pub fn product(x: Tensor, of_x: usize, y: Tensor, of_y: usize) -> Tensor {
    dot_general(x, y, (&[of_x], &[of_y]), (&[], &[]))
}

/// The results of the three layers, f32 `[B, outputs]` each.
pub fn forward(x: Tensor, (first, second, third): Layers) -> (Tensor, Tensor, Tensor) {
    let h1 = product(x, 1, first, 0);
    let h2 = product(h1, 1, second, 0);
    (h1, h2, product(h2, 1, third, 0))
}

/// The gradients with respect to the layers' outputs, from a slope of the last output.
pub fn backward(slope: Tensor, (_, second, third): Layers) -> (Tensor, Tensor) {
    let d2 = product(slope, 1, third, 1);
    (product(d2, 1, second, 1), d2)
}

/// Layers after a step so small that it changes nothing but the dependencies.
pub fn step(x: Tensor, layers: Layers, slope: impl FnOnce(Tensor) -> Tensor) -> Layers {
    let (h1, h2, out) = forward(x, layers);
    let slope = slope(out);
    let (d1, d2) = backward(slope, layers);
    let (first, second, third) = layers;
    let moved = |weight: Tensor, gradient: Tensor| weight - 1e-12 * gradient;
    (
        moved(first, product(x, 0, d1, 0)),
        moved(second, product(h1, 0, d2, 0)),
        moved(third, product(h2, 0, slope, 0)),
    )
}
