//! A recurrent layer with one state.

use super::initializer::Initializer;
use podracer_dsl::prelude::*;

/// Gated recurrent unit: Cho et al., "Learning Phrase Representations using RNN Encoder-Decoder for
/// Statistical Machine Translation", 2014, with the reset gate after the product, as in flax's
/// `GRUCell`.
///
/// ```text
/// r, z = sigmoid(x input + h hidden + bias)
/// n = tanh(x input + bias + r (h hidden + hidden_bias))
/// h' = (1 - z) n + z h
/// ```
#[derive(Tree, Clone, Copy)]
pub struct Gru {
    /// Weights of the input, `f32[in, 3 size]`: for `r`, `z`, `n` in this order.
    pub input: Tensor,
    /// Weights of the state, `f32[size, 3 size]`.
    pub hidden: Tensor,
    /// Bias, `f32[3 size]`.
    pub bias: Tensor,
    /// Bias of the state in `n`, which `r` scales, `f32[size]`.
    pub hidden_bias: Tensor,
}

impl Gru {
    /// A layer with weights drawn as in flax: LeCun normal for the input, orthogonal for the state,
    /// each gate separately; biases are 0.
    #[track_caller]
    pub fn init(key: Key, inputs: usize, size: usize) -> Gru {
        let keys = key.split_n(6);
        let gates = |first: usize, rows: usize, weight: Initializer| {
            let gate = |i: usize| weight.init(keys.at(first + i), &[rows, size]);
            concatenate(&[0, 1, 2].map(gate), 1)
        };
        Gru {
            input: gates(0, inputs, Initializer::lecun_normal()),
            hidden: gates(3, size, Initializer::orthogonal(1.0)),
            bias: zeros(F32, [3 * size]),
            hidden_bias: zeros(F32, [size]),
        }
    }

    /// One step: the state after `x`, which is also the output. `h` is `f32[size]`, `x` is
    /// `f32[in]`.
    #[track_caller]
    pub fn step(&self, h: Tensor, x: Tensor) -> Tensor {
        self.gated(h, dot(x, self.input) + self.bias)
    }

    /// Steps through a trajectory: the state after every step, `f32[T, size]`. `xs` is `f32[T,
    /// in]`. `reset` is `bool[T]`, true if `xs[t]` begins an episode; the state is then reset to
    /// zeros before the step.
    #[track_caller]
    pub fn unroll(&self, h: Tensor, xs: Tensor, reset: Tensor) -> Tensor {
        let _scope = scope("Gru::unroll");
        // The input's contribution is one product for all steps.
        let driven = dot(xs, self.input) + self.bias;
        let (_, states) = scan(h, (driven, reset), |h, (driven, reset)| {
            let h = self.gated(select(reset, 0.0, h), driven);
            (h, h)
        });
        states
    }

    #[track_caller]
    fn gated(&self, h: Tensor, driven: Tensor) -> Tensor {
        let (driven, recurrent) = (driven.split(3, 0), dot(h, self.hidden).split(3, 0));
        let r = (driven[0] + recurrent[0]).sigmoid();
        let z = (driven[1] + recurrent[1]).sigmoid();
        let n = (driven[2] + r * (recurrent[2] + self.hidden_bias)).tanh();
        (1.0 - z) * n + z * h
    }
}
