//! The deep residual network of IMPALA.

use super::conv2d::Conv2d;
use super::initializer::Initializer;
use super::linear::Linear;
use podracer_dsl::prelude::*;

/// A residual block, `x + second(relu(first(relu(x))))`, with windows of 3 by 3.
#[derive(Tree, Clone)]
pub struct ResidualBlock {
    /// First convolution.
    pub first: Conv2d,
    /// Second convolution.
    pub second: Conv2d,
}

impl ResidualBlock {
    /// Applies the block: `f32[height, width, channels]` to the same type.
    #[track_caller]
    pub fn apply(&self, x: Tensor) -> Tensor {
        x + self.second.apply(self.first.apply(x.relu()).relu())
    }
}

/// A section of a [`ResidualNet`]: a convolution, the maximum of windows of 3 by 3 with a stride of
/// 2, and residual blocks.
#[derive(Tree, Clone)]
pub struct ResidualSection {
    /// Convolution that changes the channels.
    pub conv: Conv2d,
    /// Blocks, at half the resolution.
    pub blocks: Vec<ResidualBlock>,
}

impl ResidualSection {
    /// Applies the section: `f32[height, width, in]` to `f32[ceil(height / 2), ceil(width / 2), channels]`.
    #[track_caller]
    pub fn apply(&self, x: Tensor) -> Tensor {
        let x = max_pool(self.conv.apply(x), [3, 3], [2, 2], Padding::Same);
        self.blocks.iter().fold(x, |x, block| block.apply(x))
    }
}

/// Sections of residual blocks and a dense layer: Espeholt et al., "IMPALA", 2018, fig. 3 (right),
/// without its recurrent core. The paper's network has 15 convolutional layers in three sections
/// with 16, 32 and 32 channels, and 256 features.
#[derive(Tree, Clone)]
pub struct ResidualNet {
    /// Sections, in the order of application.
    pub sections: Vec<ResidualSection>,
    /// Dense layer from the flattened last image to the features.
    pub dense: Linear,
}

impl ResidualNet {
    /// The channels of the sections of [`ResidualNet::impala`].
    pub const IMPALA: [usize; 3] = [16, 32, 32];

    /// A network for images `[height, width, channels]`. `sections` has the channels of each
    /// section, which has two blocks. Biases begin at 0.
    #[track_caller]
    pub fn init(
        key: Key,
        image: [usize; 3],
        sections: &[usize],
        features: usize,
        weights: Initializer,
    ) -> ResidualNet {
        let keys = key.split_n(sections.len() + 1);
        let (layers, last) = ResidualNet::layers(&keys, image, sections, weights);
        let inputs = last.iter().product();
        let dense = Linear::init(keys.at(sections.len()), inputs, features, weights);
        ResidualNet { sections: layers, dense }
    }

    /// The sections of [`ResidualNet::init`], each with a key for its index, and height, width and
    /// channels of the last image.
    #[track_caller]
    pub(crate) fn layers(
        keys: &Keys,
        image: [usize; 3],
        sections: &[usize],
        weights: Initializer,
    ) -> (Vec<ResidualSection>, [usize; 3]) {
        let [mut height, mut width, mut channels] = image;
        let mut layers = Vec::with_capacity(sections.len());
        for (i, &outputs) in sections.iter().enumerate() {
            let keys = keys.at(i).split_n(5);
            let conv = |k: usize, inputs: usize| {
                let (window, strides) = ([3, 3], [1, 1]);
                let key = keys.at(k);
                Conv2d::init(key, inputs, outputs, window, strides, Padding::Same, weights)
            };
            let block =
                |k: usize| ResidualBlock { first: conv(k, outputs), second: conv(k + 1, outputs) };
            layers.push(ResidualSection {
                conv: conv(0, channels),
                blocks: vec![block(1), block(3)],
            });
            (height, width, channels) = (height.div_ceil(2), width.div_ceil(2), outputs);
        }
        (layers, [height, width, channels])
    }

    /// The paper's network. Weights are drawn as in flax, LeCun normal.
    #[track_caller]
    pub fn impala(key: Key, image: [usize; 3]) -> ResidualNet {
        ResidualNet::init(key, image, &Self::IMPALA, 256, Initializer::lecun_normal())
    }

    /// Features of an image: `f32[height, width, channels]` to `f32[features]`, all non-negative.
    #[track_caller]
    pub fn apply(&self, image: Tensor) -> Tensor {
        let x = self.sections.iter().fold(image, |x, section| section.apply(x));
        self.dense.apply(x.relu().flatten()).relu()
    }
}
