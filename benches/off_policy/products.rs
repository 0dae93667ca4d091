//! The matrix products of gradient steps alone.

use std::num::NonZero;

use anyhow::Result;
use podracer_dsl::prelude::*;
use podracer_runtime::{Client, ClientOptions};

use crate::support::dots::{Layers, seconds};
use crate::support::si;

/// Gradient steps of a run.
const STEPS: usize = 100;

/// Environment steps a second, if there were only the products.
pub struct Products {
    pub on_one_thread: f64,
    pub on_all_threads: f64,
}

impl Products {
    /// The speed if each gradient step, which covers `steps` environment steps, is `step`: it takes
    /// the layers that `begin` makes from a matrix f32 `[side, side]`, and the matrix.
    pub fn measure(
        side: usize,
        environment_steps: usize,
        begin: impl Fn(Tensor) -> Vec<Layers>,
        step: impl Fn(&[Layers], Tensor) -> Vec<Layers>,
    ) -> Result<Products> {
        let program = |weight: Tensor| {
            let after = fori_loop(0..STEPS, begin(weight), |_, layers| step(&layers, weight));
            after.iter().map(|layers| layers.1.sum()).sum::<Tensor>()
        };
        let speed = |cpu_threads| -> Result<f64> {
            let options =
                ClientOptions { cpu_devices: Some(1), cpu_threads, ..ClientOptions::default() };
            let steps = (STEPS * environment_steps) as f64;
            Ok(steps / seconds(&Client::cpu(options)?, 1, side, program)?)
        };
        Ok(Products { on_one_thread: speed(NonZero::new(1))?, on_all_threads: speed(None)? })
    }

    /// Two cells of a table, on one thread and on all each: these speeds, and the share of them that is reached.
    pub fn cells(&self, reached: f64) -> [String; 2] {
        let speeds = [self.on_one_thread, self.on_all_threads];
        let share = |alone| format!("{:.0}%", 100.0 * reached / alone);
        [speeds.map(si).join(" / "), speeds.map(share).join(" / ")]
    }
}
