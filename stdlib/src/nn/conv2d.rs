//! A convolutional layer.

use super::initializer::Initializer;
use podracer_dsl::prelude::*;

/// A kernel slid over an image, plus a bias.
#[derive(Tree, Clone)]
pub struct Conv2d {
    /// `f32[height, width, in, out]`.
    pub kernel: Tensor,
    /// `f32[out]`.
    pub bias: Tensor,
    /// How far the kernel moves, down and across.
    #[tree(fixed)]
    pub strides: [usize; 2],
    /// What stands around the image.
    #[tree(fixed)]
    pub padding: Padding,
}

impl Conv2d {
    /// A kernel of height and width `window` from an initializer, bias 0.
    #[track_caller]
    pub fn init(
        key: Key,
        inputs: usize,
        outputs: usize,
        window: [usize; 2],
        strides: [usize; 2],
        padding: Padding,
        kernel: Initializer,
    ) -> Conv2d {
        Conv2d {
            kernel: kernel.init(key, &[window[0], window[1], inputs, outputs]),
            bias: zeros(F32, [outputs]),
            strides,
            padding,
        }
    }

    /// `f32[height, width, in]` to `f32[height', width', out]`; axes in front are a batch.
    #[track_caller]
    pub fn apply(&self, x: Tensor) -> Tensor {
        conv2d(x, self.kernel, self.strides, self.padding.clone()) + self.bias
    }
}
