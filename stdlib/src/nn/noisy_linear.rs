//! A dense layer with learned noise for exploration.

use super::linear::Linear;
use podracer_dsl::prelude::*;

/// A dense layer with factorised Gaussian noise of learned size in its weights: Fortunato et al.,
/// "Noisy Networks for Exploration", 2018, eq. 9-11, as in Rainbow.
///
/// ```text
/// y = x (weight + weight_sigma f(e_in) f(e_out)^T) + bias + bias_sigma f(e_out)
/// f(e) = sign(e) sqrt(|e|)        e_in, e_out ~ Normal(0, 1)
/// ```
#[derive(Tree, Clone, Copy)]
pub struct NoisyLinear {
    /// Mean weights, `f32[in, out]`.
    pub weight: Tensor,
    /// Mean bias, `f32[out]`.
    pub bias: Tensor,
    /// Size of the weights' noise, `f32[in, out]`.
    pub weight_sigma: Tensor,
    /// Size of the bias's noise, `f32[out]`.
    pub bias_sigma: Tensor,
}

impl NoisyLinear {
    /// A layer as in the paper (section 3.2): means are uniform within `1 / sqrt(inputs)` of 0,
    /// noise sizes are `sigma0 / sqrt(inputs)`. The paper has `sigma0` 0.5.
    #[track_caller]
    pub fn init(key: Key, inputs: usize, outputs: usize, sigma0: f64) -> NoisyLinear {
        let bound = 1.0 / (inputs.max(1) as f64).sqrt();
        let (of_weight, of_bias) = key.split();
        let shape = [inputs, outputs];
        NoisyLinear {
            weight: of_weight.uniform_range(shape, -bound, bound),
            bias: of_bias.uniform_range([outputs], -bound, bound),
            weight_sigma: full(shape, sigma0 * bound),
            bias_sigma: full([outputs], sigma0 * bound),
        }
    }

    /// Applies the layer with noise from `key`: `f32[in]` to `f32[out]`. Under `vmap`, with one key
    /// per example, each example has its own noise, without a copy of the weights. With a key from
    /// outside the `vmap` (`key.again()`), all examples share one noise.
    #[track_caller]
    pub fn apply(&self, x: Tensor, key: Key) -> Tensor {
        let (of_in, of_out) = key.split();
        let draw = |key: Key, axis: isize| NoisyLinear::spread(key.normal([self.weight.dim(axis)]));
        self.apply_with(x, draw(of_in, 0), draw(of_out, 1))
    }

    /// The noise `f(e)` of draws of `Normal(0, 1)`.
    #[track_caller]
    pub fn spread(e: Tensor) -> Tensor {
        e.sign() * e.abs().sqrt()
    }

    /// Applies the layer with this noise ([`NoisyLinear::spread`]): `f(e_in)` f32 `[in]`,
    /// `f(e_out)` f32 `[out]`. It is for networks that draw their layers' noise at once.
    #[track_caller]
    pub fn apply_with(&self, x: Tensor, of_in: Tensor, of_out: Tensor) -> Tensor {
        let _scope = scope("NoisyLinear::apply");
        let noise = dot(x * of_in, self.weight_sigma) + self.bias_sigma;
        self.mean().apply(x) + noise * of_out
    }

    /// The layer without noise, as a greedy policy uses it.
    pub fn mean(&self) -> Linear {
        Linear { weight: self.weight, bias: self.bias }
    }
}
