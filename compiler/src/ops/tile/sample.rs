//! Examples of tiles for the generic tests.

use super::Tile;
use crate::array::Array;
use crate::ir::Builder;
use crate::ops::Sample;
use crate::ops::samples::ramp;
use crate::types::{DType, TensorType};
use std::sync::Arc;

/// One lane, a batch within one tile, an even division, and a division with a filled last tile.
pub(super) fn samples() -> Vec<Sample> {
    let mut b = Builder::new();
    let x = b.param(TensorType::new(DType::F32, [2]));
    let scale = b.param(TensorType::scalar(DType::F32));
    let factor = b.broadcast_in_dim(scale, &[2], &[]);
    let product = b.mul(x, factor);
    let sine = b.sin(product);
    let sum = b.reduce_sum(sine, &[0]);
    let body = Arc::new(b.finish("sine", vec![sine, sum]));
    let scale = || Array::floats(DType::F32, [], &[0.7]);
    let batch = |size: usize, lanes: usize| {
        let op = Tile { body: body.clone(), batch: vec![size], shared: vec![1], lanes };
        Sample::new(op, vec![ramp(DType::F32, [size, 2]), scale()]).tolerance(1e-5)
    };
    let one = Sample::new(Tile::new(body.clone(), 4), vec![ramp(DType::F32, [2]), scale()]);
    vec![one.tolerance(1e-5), batch(3, 4), batch(6, 2), batch(7, 2), batch(20, 16)]
}
