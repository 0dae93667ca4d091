//! Dense layers in a row.

use super::activation::Activation;
use super::initializer::Initializer;
use super::linear::Linear;
use super::norm::LayerNorm;
use podracer_dsl::prelude::*;

/// Dense layers with an activation between them, none after the last.
#[derive(Tree, Clone)]
pub struct Mlp {
    /// Layers, in the order in which they act.
    pub layers: Vec<Linear>,
    /// Normalisation of each layer's output but the last's, before the activation; empty for none.
    pub norms: Vec<LayerNorm>,
    /// Function between the layers.
    #[tree(fixed)]
    pub activation: Activation,
}

impl Mlp {
    /// New layers. `sizes` are those of the input, the hidden layers and the output: `[4, 64, 64, 2]` makes three. `hidden`
    /// initialises the weights of all layers but the last, `output` those of the last; biases begin at 0.
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

    /// The same layers with a new [`LayerNorm`] between each and its activation.
    #[track_caller]
    #[must_use]
    pub fn with_layer_norm(self) -> Mlp {
        let hidden = self.layers.split_last().map_or(&[][..], |(_, hidden)| hidden);
        let norms = hidden.iter().map(|layer| LayerNorm::init(layer.bias.len())).collect();
        Mlp { norms, ..self }
    }

    /// Applies the layers: `f32[in]` to `f32[out]`. An input of several axes, such as a grid, is flattened first.
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
