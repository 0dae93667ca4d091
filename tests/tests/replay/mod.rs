//! The replay on XLA: the frequencies of its draws, also compared with flashbax, and its sum tree
//! over a million operations.

mod sampling;
mod sum_tree;

use podracer_dsl::prelude::*;
use podracer_tests::xla;

/// Traces a function and runs it on XLA; the values of its results.
#[track_caller]
fn run<S: ArgumentSpec, R: IntoTree>(
    spec: S,
    arguments: &[Array],
    f: impl FnOnce(S::Tree) -> R,
) -> Vec<Vec<f64>> {
    let traced = trace(spec, f).unwrap_or_else(|errors| panic!("{errors}"));
    let results = xla::run(traced.func(), arguments).expect("it runs");
    results.iter().map(Array::to_f64).collect()
}

/// A key, as raw words.
fn seed(seed: i128) -> Array {
    Array::ints(U32, [2], &[0, seed])
}
