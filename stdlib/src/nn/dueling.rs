//! Action values from a state's value and the actions' advantages.

use super::activation::Activation;
use super::initializer::Initializer;
use super::mlp::Mlp;
use podracer_dsl::prelude::*;

/// The action values of two streams: Wang et al., "Dueling Network Architectures for Deep Reinforcement Learning", 2016,
/// eq. 9.
///
/// ```text
/// q[a] = value + advantage[a] - mean_b(advantage[b])
/// ```
///
/// `advantage` is f32 `[A]`, `value` f32 `[1]`. For distributions with `n` outputs each they are
/// f32 `[A, n]` and `[1, n]` (Hessel et al., "Rainbow", 2018).
#[track_caller]
pub fn dueling(value: Tensor, advantage: Tensor) -> Tensor {
    value + advantage - advantage.mean_axis(keepdims(0))
}

/// Two streams of dense layers, combined into action values by [`dueling`].
#[derive(Tree, Clone)]
pub struct DuelingHead {
    /// Stream of the state's value, with one output.
    pub value: Mlp,
    /// Stream of the advantages, with `A` outputs.
    pub advantage: Mlp,
}

impl DuelingHead {
    /// Streams from `inputs` features through layers with `hidden` features to `actions` values.
    /// R2D2 has one layer of 512.
    #[track_caller]
    pub fn init(
        key: Key,
        inputs: usize,
        hidden: &[usize],
        actions: usize,
        activation: Activation,
        weights: Initializer,
    ) -> DuelingHead {
        let (of_value, of_advantage) = key.split();
        let stream = |key: Key, outputs: usize| {
            let sizes = [&[inputs], hidden, &[outputs]].concat();
            Mlp::init(key, &sizes, activation, weights, weights)
        };
        DuelingHead { value: stream(of_value, 1), advantage: stream(of_advantage, actions) }
    }

    /// The action values of features: `f32[in]` to `f32[A]`.
    #[track_caller]
    pub fn apply(&self, x: Tensor) -> Tensor {
        let _scope = scope("DuelingHead::apply");
        dueling(self.value.apply(x), self.advantage.apply(x))
    }
}
