//! A dense layer.

use super::initializer::Initializer;
use podracer_dsl::prelude::*;

/// A dense layer: `x weight + bias`.
#[derive(Tree, Clone, Copy)]
pub struct Linear {
    /// Weights, `f32[in, out]`.
    pub weight: Tensor,
    /// Bias, `f32[out]`.
    pub bias: Tensor,
}

impl Linear {
    /// A layer with weights from an initializer, and bias 0.
    #[track_caller]
    pub fn init(key: Key, inputs: usize, outputs: usize, weight: Initializer) -> Linear {
        Linear { weight: weight.init(key, &[inputs, outputs]), bias: zeros(F32, [outputs]) }
    }

    /// Applies the layer: `f32[in]` to `f32[out]`. The example is the left operand, so that a batch
    /// is one product `[B, in] x [in, out]`, without a transpose.
    #[track_caller]
    pub fn apply(&self, x: Tensor) -> Tensor {
        dot(x, self.weight) + self.bias
    }
}
