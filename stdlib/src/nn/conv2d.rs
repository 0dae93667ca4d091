//! A convolutional layer.

use super::initializer::Initializer;
use podracer_dsl::prelude::*;

/// A kernel slid over an image, plus a bias.
#[derive(Tree, Clone)]
pub struct Conv2d {
    /// Kernel, `f32[height, width, in, out]`.
    pub kernel: Tensor,
    /// Bias, `f32[out]`.
    pub bias: Tensor,
    /// Steps of the kernel, down and across.
    #[tree(fixed)]
    pub strides: [usize; 2],
    /// Padding around the image.
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

    /// Applies the layer: `f32[height, width, in]` to `f32[height', width', out]`; leading axes are
    /// a batch.
    #[track_caller]
    pub fn apply(&self, x: Tensor) -> Tensor {
        let x = match self.apart(&x.shape()) {
            Some(parts) => self.product(x, &parts),
            None => conv2d(x, self.kernel, self.strides, self.padding.clone()),
        };
        x + self.bias
    }

    /// Shape of the image cut into windows, `[batch.., rows, height, columns, width, in]`, if the
    /// windows do not overlap and tile the image. `Valid` and `Same` then add no padding.
    fn apart(&self, image: &[usize]) -> Option<Vec<usize>> {
        let (batch, &[down, across, channels]) = image.split_last_chunk()?;
        let [height, width] = self.strides;
        let apart = self.kernel.shape()[..2] == self.strides
            && height * width > 0
            && down.is_multiple_of(height)
            && across.is_multiple_of(width)
            && !matches!(self.padding, Padding::Explicit(_));
        apart.then(|| {
            let parts = [down / height, height, across / width, width, channels];
            [batch, &parts].concat()
        })
    }

    /// The convolution as one product, with windows that do not overlap as rows. On a CPU XLA
    /// multiplies several times faster than it convolves, and the gradient gains even more.
    fn product(&self, x: Tensor, parts: &[usize]) -> Tensor {
        let kernel = self.kernel.shape();
        let inside = kernel[..3].iter().product();
        let (batch, at) = (&parts[..parts.len() - 5], parts.len() as isize - 5);
        let [rows, columns] = [parts[at as usize], parts[at as usize + 2]];
        let windows = x
            .reshape(parts)
            .swap_axes(at + 1, at + 2)
            .reshape([batch, &[rows, columns, inside]].concat());
        matmul(windows, self.kernel.reshape([inside, kernel[3]]))
    }
}
