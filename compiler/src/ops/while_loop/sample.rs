//! Examples for the generic tests.

use super::While;
use crate::array::Array;
use crate::ir::Builder;
use crate::ops::{Direction, Sample};
use crate::types::{DType, TensorType};
use std::sync::Arc;

impl While {
    /// Examples for the generic tests: (limit; step; x, n) with `n + 1` and `x * step` while `n < limit`.
    pub fn samples() -> Vec<Sample> {
        let int = TensorType::scalar(DType::I32);
        let float = TensorType::new(DType::F32, [2]);
        let mut b = Builder::new();
        let limit = b.param(int.clone());
        let _x = b.param(float.clone());
        let n = b.param(int.clone());
        let going = b.compare(Direction::Lt, n, limit);
        let condition = Arc::new(b.finish("condition", vec![going]));
        let mut b = Builder::new();
        let step = b.param(float.clone());
        let x = b.param(float);
        let n = b.param(int);
        let product = b.mul(x, step);
        let one = b.full_like(n, 1.0);
        let next = b.add(n, one);
        let body = Arc::new(b.finish("body", vec![product, next]));
        let sample = |limit: i128| {
            let op = While {
                condition: condition.clone(),
                body: body.clone(),
                condition_consts: 1,
                body_consts: 1,
            };
            let inputs = vec![
                Array::ints(DType::I32, [], &[limit]),
                Array::floats(DType::F32, [2], &[0.9, -1.1]),
                Array::floats(DType::F32, [2], &[1.0, 2.0]),
                Array::ints(DType::I32, [], &[0]),
            ];
            // A reverse pass does not exist, so the generic derivative tests skip it; its jvp has
            // its own tests.
            Sample::new(op, inputs).tolerance(1e-6).not_differentiable()
        };
        vec![sample(3), sample(0)]
    }
}
