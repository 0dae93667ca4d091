//! The matrix products of gradient steps, with nothing beside them.

use std::num::NonZero;
use std::time::Instant;

use anyhow::Result;
use podracer_dsl::prelude::*;
use podracer_runtime::{
    Array, Client, ClientOptions, CompileOptions, Device, ExecutableCache, Placement, Program,
    ProgramOptions,
};

/// Gradient steps of a run, and runs of which the best counts.
const STEPS: usize = 100;
const RUNS: usize = 5;

/// Weights of three layers.
pub type Layers = (Tensor, Tensor, Tensor);

/// Seconds of the products of a gradient step.
pub struct Products {
    pub on_one_thread: f64,
    pub on_all_threads: f64,
}

impl Products {
    /// The seconds of `step`, which takes the layers that `begin` makes of a matrix f32 `[side, side]`, and the matrix.
    pub fn measure(
        side: usize,
        begin: impl Fn(Tensor) -> Vec<Layers>,
        step: impl Fn(&[Layers], Tensor) -> Vec<Layers>,
    ) -> Result<Products> {
        let program = |weight: Tensor| {
            let after = fori_loop(0..STEPS, begin(weight), |_, layers| step(&layers, weight));
            after.iter().map(|layers| layers.1.sum()).sum::<Tensor>().reshape([1])
        };
        let traced = trace((f32([side, side]),), |(weight,)| program(weight))?;
        let seconds = |cpu_threads| {
            let options =
                ClientOptions { cpu_devices: Some(1), cpu_threads, ..ClientOptions::default() };
            best(&Client::cpu(options)?, side, &traced)
        };
        Ok(Products { on_one_thread: seconds(NonZero::new(1))?, on_all_threads: seconds(None)? })
    }

    /// Environment steps a second with nothing but the products, on one thread and on all, where a gradient step is for so many.
    pub fn steps_per_second(&self, steps: usize) -> [f64; 2] {
        [self.on_one_thread, self.on_all_threads].map(|seconds| steps as f64 / seconds)
    }
}

/// Seconds of a gradient step in the best of some runs.
fn best(client: &Client, side: usize, traced: &Traced<(Tensor,), Tensor>) -> Result<f64> {
    let options = ProgramOptions {
        compile: CompileOptions::default(),
        cache: ExecutableCache::disabled(),
        ..ProgramOptions::default()
    };
    let program: Program<(Tensor,), Tensor> =
        Program::compile(client, "products", traced, vec![Placement::Sharded], &options)?;
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
    Ok(best / STEPS as f64)
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

/// The gradients by what the layers give, of a slope of the last.
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
