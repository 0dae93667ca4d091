//! Convolutional layers, then a dense layer: networks for images, such as Atari games.

use super::conv2d::Conv2d;
use super::initializer::Initializer;
use super::linear::Linear;
use super::norm::LayerNorm;
use podracer_dsl::prelude::*;

/// Convolutions without padding and a dense layer, each followed by max(x, 0).
#[derive(Tree, Clone)]
pub struct ConvNet {
    /// Convolutions, in the order of application.
    pub convs: Vec<Conv2d>,
    /// Dense layer from the flattened last image to the features.
    pub dense: Linear,
    /// Normalisation of the channels after each convolution and of the features after the dense
    /// layer, before max(x, 0). Empty for no normalisation.
    pub norms: Vec<LayerNorm>,
}

impl ConvNet {
    /// The layers of [`ConvNet::impala`]: channels, side of the window, stride.
    pub const IMPALA: [[usize; 3]; 2] = [[16, 8, 4], [32, 4, 2]];
    /// The layers of [`ConvNet::dqn`].
    pub const DQN: [[usize; 3]; 3] = [[32, 8, 4], [64, 4, 2], [64, 3, 1]];

    /// A network for images `[height, width, channels]`. Each element of `convs` has a layer's
    /// channels, window side and stride. Biases begin at 0.
    #[track_caller]
    pub fn init(
        key: Key,
        image: [usize; 3],
        convs: &[[usize; 3]],
        features: usize,
        weights: Initializer,
    ) -> ConvNet {
        let keys = key.split_n(convs.len() + 1);
        let (layers, last) = ConvNet::layers(&keys, image, convs, weights);
        let inputs = last.iter().product();
        let dense = Linear::init(keys.at(convs.len()), inputs, features, weights);
        ConvNet { convs: layers, dense, norms: Vec::new() }
    }

    /// The convolutions of [`ConvNet::init`], each with a key for its index, and height, width and
    /// channels of the last image.
    #[track_caller]
    pub(crate) fn layers(
        keys: &Keys,
        image: [usize; 3],
        convs: &[[usize; 3]],
        weights: Initializer,
    ) -> (Vec<Conv2d>, [usize; 3]) {
        let [mut height, mut width, mut channels] = image;
        let mut layers = Vec::with_capacity(convs.len());
        for (i, &[outputs, side, stride]) in convs.iter().enumerate() {
            let (key, window, strides, padding) =
                (keys.at(i), [side; 2], [stride; 2], Padding::Valid);
            let layer = Conv2d::init(key, channels, outputs, window, strides, padding, weights);
            layers.push(layer);
            let places = |extent: usize| (extent + stride).saturating_sub(side) / stride.max(1);
            (height, width, channels) = (places(height), places(width), outputs);
        }
        (layers, [height, width, channels])
    }

    /// The same layers with a new [`LayerNorm`] after each, as in Gallici et al., "Simplifying Deep Temporal Difference
    /// Learning", 2024.
    #[track_caller]
    #[must_use]
    pub fn with_layer_norm(self) -> ConvNet {
        let biases = self.convs.iter().map(|conv| conv.bias).chain([self.dense.bias]);
        let norms = biases.map(|bias| LayerNorm::init(bias.len())).collect();
        ConvNet { norms, ..self }
    }

    /// The small network of Espeholt et al., "IMPALA", 2018, fig. 3 (left): 16 and 32 channels, 256
    /// features. The image has sides of at least 20. Weights are drawn as in flax, LeCun normal.
    #[track_caller]
    pub fn impala(key: Key, image: [usize; 3]) -> ConvNet {
        ConvNet::init(key, image, &Self::IMPALA, 256, Initializer::lecun_normal())
    }

    /// The network of Mnih et al., "Human-level control through deep reinforcement learning", 2015:
    /// 32, 64 and 64 channels, 512 features. The image has sides of at least 36. Weights are drawn
    /// as in flax, LeCun normal.
    #[track_caller]
    pub fn dqn(key: Key, image: [usize; 3]) -> ConvNet {
        ConvNet::init(key, image, &Self::DQN, 512, Initializer::lecun_normal())
    }

    /// Features of an image: `f32[height, width, channels]` to `f32[features]`, all non-negative.
    #[track_caller]
    pub fn apply(&self, image: Tensor) -> Tensor {
        let normal = |x: Tensor, layer: usize| match self.norms.get(layer) {
            Some(norm) => norm.apply(x),
            None => x,
        };
        let mut x = image;
        for (layer, conv) in self.convs.iter().enumerate() {
            x = normal(conv.apply(x), layer).relu();
        }
        normal(self.dense.apply(x.flatten()), self.convs.len()).relu()
    }
}
