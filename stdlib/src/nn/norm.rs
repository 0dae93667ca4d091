//! Layers that normalise their input.

use podracer_dsl::called;
use podracer_dsl::prelude::*;

/// Normalisation of the last axis to mean 0 and variance 1, then a learned scale and bias: Ba, Kiros and Hinton, "Layer
/// Normalization", 2016.
///
/// ```text
/// y = scale (x - mean) / sqrt(variance + epsilon) + bias
/// ```
#[derive(Tree, Clone)]
pub struct LayerNorm {
    /// Scale, `f32[n]`.
    pub scale: Tensor,
    /// Bias, `f32[n]`.
    pub bias: Tensor,
    /// Number added to the variance.
    #[tree(fixed)]
    pub epsilon: f64,
}

impl LayerNorm {
    /// A layer for `n` features, with scale 1 and bias 0 at first; `epsilon` is 1e-6, flax's
    /// default.
    #[track_caller]
    pub fn init(n: usize) -> LayerNorm {
        LayerNorm { scale: ones(F32, [n]), bias: zeros(F32, [n]), epsilon: 1e-6 }
    }

    /// Applies the layer: `f32[.., n]` to `f32[.., n]`. f16 and bf16 are computed in f32; the
    /// result has the type of `x`.
    #[track_caller]
    pub fn apply(&self, x: Tensor) -> Tensor {
        let _scope = scope("LayerNorm::apply");
        let _call = called("layer_norm");
        let [wide, scale, bias] = [x, self.scale, self.bias].map(Tensor::accumulator);
        let centered = wide - wide.mean_axis(keepdims(-1));
        let variance = centered.square().mean_axis(keepdims(-1));
        let y = centered * ((variance + self.epsilon).rsqrt() * scale) + bias;
        y.astype(x.dtype())
    }
}

/// Division of the last axis by its root mean square, then a learned scale: Zhang and Sennrich, "Root Mean Square Layer
/// Normalization", 2019, eq. 4.
///
/// ```text
/// y = scale x / sqrt(mean(x^2) + epsilon)
/// ```
#[derive(Tree, Clone)]
pub struct RmsNorm {
    /// Scale, `f32[n]`.
    pub scale: Tensor,
    /// Number added to the mean of the squares.
    #[tree(fixed)]
    pub epsilon: f64,
}

impl RmsNorm {
    /// A layer for `n` features, with scale 1 at first; `epsilon` is 1e-6, flax's default.
    #[track_caller]
    pub fn init(n: usize) -> RmsNorm {
        RmsNorm { scale: ones(F32, [n]), epsilon: 1e-6 }
    }

    /// Applies the layer: `f32[.., n]` to `f32[.., n]`. f16 and bf16 are computed in f32; the
    /// result has the type of `x`.
    #[track_caller]
    pub fn apply(&self, x: Tensor) -> Tensor {
        let _scope = scope("RmsNorm::apply");
        let _call = called("rms_norm");
        let [wide, scale] = [x, self.scale].map(Tensor::accumulator);
        let mean = wide.square().mean_axis(keepdims(-1));
        (wide * ((mean + self.epsilon).rsqrt() * scale)).astype(x.dtype())
    }
}
