//! Searched trees compared with a record's, tree by tree.

use anyhow::{Result, ensure};
use podracer_compiler::Array;
use podracer_tests::golden;
use serde_json::Value;

/// Names of the results of a search that are compared with mctx's, each an array with a row for each tree.
const OUTPUTS: [&str; 7] = [
    "visit_counts",
    "action",
    "value",
    "weighted.action_weights",
    "weighted.qvalues",
    "weighted.node_values",
    "weighted.nodes",
];

/// The outputs of searches, each with a row of numbers for every tree.
pub struct Trees {
    /// Number of trees.
    pub count: usize,
    outputs: Vec<Output>,
}

struct Output {
    is_float: bool,
    numbers: Vec<f64>,
}

impl Trees {
    /// The outputs of `count` trees, in the order of [`OUTPUTS`].
    pub fn new(count: usize, arrays: &[Array]) -> Result<Trees> {
        ensure!(arrays.len() == OUTPUTS.len(), "{} outputs of a search", arrays.len());
        let output = |array: &Array| Output {
            is_float: array.ty().dtype.is_float(),
            numbers: array.to_f64(),
        };
        Ok(Trees { count, outputs: arrays.iter().map(output).collect() })
    }

    /// The outputs of a record.
    pub fn of(outputs: &Value) -> Result<Trees> {
        let arrays: Result<Vec<Array>> =
            OUTPUTS.iter().map(|name| golden::array(&outputs[*name])).collect();
        let arrays = arrays?;
        // Every tree has one value.
        let count = arrays[2].ty().elements();
        Trees::new(count, &arrays)
    }

    /// The outputs where a tree differs from tree `its` of the others: other integers, and floats
    /// farther apart than 1e-5 of 1 or of the number itself.
    pub fn unequal(&self, tree: usize, others: &Trees, its: usize) -> Vec<&'static str> {
        let differs = |(got, expected): (&Output, &Output)| {
            let far = |(a, b): (&f64, &f64)| {
                let allowed = if expected.is_float { 1e-5 * b.abs().max(1.0) } else { 0.0 };
                (a - b).abs() > allowed || a.is_nan()
            };
            let (got, wanted) = (got.row(tree, self.count), expected.row(its, others.count));
            got.len() != wanted.len() || got.iter().zip(wanted).any(far)
        };
        let pairs = self.outputs.iter().zip(&others.outputs).zip(OUTPUTS);
        pairs.filter(|(pair, _)| differs(*pair)).map(|(_, name)| name).collect()
    }
}

impl Output {
    fn row(&self, tree: usize, trees: usize) -> &[f64] {
        let width = self.numbers.len() / trees;
        &self.numbers[tree * width..(tree + 1) * width]
    }
}
