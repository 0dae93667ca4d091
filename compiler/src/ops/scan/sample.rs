//! Examples of scan for the generic tests: forward and reverse, constants, carries, slices, a loop of length zero.

use super::Scan;
use crate::array::Array;
use crate::ir::{Builder, Func};
use crate::ops::Sample;
use crate::types::{DType, TensorType};
use std::sync::Arc;

/// (w: f32[2], c: f32[2], n: i32, x: f32[2]) -> (sin(c * w) + x, n + n, c * x, n): a carry that mixes everything.
fn body() -> Func {
    let mut b = Builder::new();
    let vector = TensorType::new(DType::F32, [2]);
    let w = b.param(vector.clone());
    let c = b.param(vector.clone());
    let n = b.param(TensorType::scalar(DType::I32));
    let x = b.param(vector);
    let product = b.mul(c, w);
    let sine = b.sin(product);
    let next = b.add(sine, x);
    let y = b.mul(c, x);
    let doubled = b.add(n, n);
    b.finish("body", vec![next, doubled, y, n])
}

pub(super) fn samples() -> Vec<Sample> {
    let body = Arc::new(body());
    let scan = |length: usize, reverse: bool| {
        let values: Vec<f64> = (0..2 * length).map(|i| 0.3 * i as f64 - 0.7).collect();
        let inputs = vec![
            Array::floats(DType::F32, [2], &[0.8, -1.3]),
            Array::floats(DType::F32, [2], &[0.4, 0.9]),
            Array::ints(DType::I32, [], &[1]),
            Array::floats(DType::F32, [length, 2], &values),
        ];
        Sample::new(Scan { body: body.clone(), length, reverse, consts: 1, carries: 2 }, inputs)
            .tolerance(1e-6)
    };
    vec![scan(4, false), scan(3, true), scan(1, false), scan(0, false)]
}
