//! Stacks of dense layers.

use super::activation::Activation;
use super::initializer::Initializer;
use super::linear::Linear;
use super::norm::LayerNorm;
use podracer_dsl::prelude::*;

/// Dense layers with an activation between them and none after the last layer.
#[derive(Tree, Clone)]
pub struct Mlp {
    /// Layers, in the order of application.
    pub layers: Vec<Linear>,
    /// Normalisation of each layer's output except the last, before the activation; empty for none.
    pub norms: Vec<LayerNorm>,
    /// Function between the layers.
    #[tree(fixed)]
    pub activation: Activation,
}

impl Mlp {
    /// New layers. `sizes` has the sizes of the input, the hidden layers and the output: `[4, 64,
    /// 64, 2]` makes three layers. `hidden` initialises the weights of every layer except the last,
    /// `output` the weights of the last; biases begin at 0.
    #[track_caller]
    pub fn init(
        key: Key,
        sizes: &[usize],
        activation: Activation,
        hidden: Initializer,
        output: Initializer,
    ) -> Mlp {
        let count = sizes.len().saturating_sub(1);
        let mut layers = Vec::with_capacity(count);
        let keys = key.split_n(count);
        for (i, pair) in sizes.windows(2).enumerate() {
            let weight = if i + 1 < count { hidden } else { output };
            layers.push(Linear::init(keys.at(i), pair[0], pair[1], weight));
        }
        Mlp { layers, norms: Vec::new(), activation }
    }

    /// The same layers with a new [`LayerNorm`] between each layer and its activation.
    #[track_caller]
    #[must_use]
    pub fn with_layer_norm(self) -> Mlp {
        let hidden = self.layers.split_last().map_or(&[][..], |(_, hidden)| hidden);
        let norms = hidden.iter().map(|layer| LayerNorm::init(layer.bias.len())).collect();
        Mlp { norms, ..self }
    }

    /// Applies the layers: `f32[in]` to `f32[out]`. An input with several axes, such as a grid, is
    /// flattened first.
    #[track_caller]
    pub fn apply(&self, x: Tensor) -> Tensor {
        let mut x = x.flatten();
        for (i, layer) in self.layers.iter().enumerate() {
            if i > 0 {
                x = self.activation.apply(x);
            }
            x = layer.apply(x);
            if let Some(norm) = self.norms.get(i) {
                x = norm.apply(x);
            }
        }
        x
    }
}
