//! Kernels and windows that move over images: convolutions and pooling. The features of images are
//! the last axis, as in flax.

use super::{Shape, Tensor, emit1, fail};
use podracer_compiler::Op;
use podracer_compiler::ops::{Convolution, ReduceWindowMax, ReduceWindowSum, Window};

/// The padding around an image before a window moves over it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Padding {
    /// No padding: the window stays inside the image.
    #[default]
    Valid,
    /// Padding for `ceil(extent / stride)` window positions; if the amount is odd, one more behind
    /// than in front.
    Same,
    /// `(front, behind)` for each spatial axis.
    Explicit(Vec<(usize, usize)>),
}

impl Padding {
    /// The amounts in front and behind for spatial axes of these extents, under a window that moves
    /// by `strides`.
    fn amounts(
        &self,
        extents: &[usize],
        window: &[usize],
        strides: &[usize],
    ) -> (Vec<usize>, Vec<usize>) {
        let along = |axis: usize| match self {
            Padding::Valid => (0, 0),
            Padding::Same => {
                let stride = strides.get(axis).copied().unwrap_or(1).max(1);
                let covered = (extents[axis].div_ceil(stride).max(1) - 1) * stride + window[axis];
                let total = covered.saturating_sub(extents[axis]);
                (total / 2, total - total / 2)
            }
            // A list of another length makes attributes of that length, which the op rejects.
            Padding::Explicit(amounts) => amounts[axis],
        };
        let axes = match self {
            Padding::Explicit(amounts) => amounts.len(),
            _ => extents.len().min(window.len()),
        };
        (0..axes).map(along).unzip()
    }
}

/// A general convolution: strides, padding, dilations, groups and the meaning of each axis, as in StableHLO. Fields
/// that are not named have the values of [`Convolution::new`]:
///
/// ```
/// # use podracer_dsl::prelude::*;
/// # let traced = trace((f32([8, 32, 3]), f32([5, 3, 16])), |(x, kernel)| {
/// // [batch, width, feature] by [width, in, out], every second place.
/// let y = conv_general_dilated(x, kernel, Convolution { strides: vec![2], ..Convolution::new(1) });
/// # assert_eq!(y.shape(), [8, 14, 16]);
/// # y
/// # });
/// # traced.unwrap();
/// ```
///
/// # Errors
/// Shapes that do not fit the convolution or each other.
#[track_caller]
pub fn conv_general_dilated(lhs: Tensor, rhs: Tensor, convolution: Convolution) -> Tensor {
    emit1(convolution, &[lhs, rhs], lhs.ty())
}

/// Slides a kernel `[height, width, in, out]` over images `[.., height, width, in]`, which gives
/// `[.., height', width', out]`. The kernel is not reversed.
///
/// # Errors
/// Shapes that do not fit each other.
#[track_caller]
pub fn conv2d(x: Tensor, kernel: Tensor, strides: [usize; 2], padding: Padding) -> Tensor {
    slide("conv2d", x, kernel, &strides, |image, window| padding.amounts(image, window, &strides))
}

/// Slides a kernel `[width, in, out]` over sequences `[.., width, in]`, which gives `[.., width', out]`. The kernel is not
/// reversed.
///
/// # Errors
/// Shapes that do not fit each other.
#[track_caller]
pub fn conv1d(x: Tensor, kernel: Tensor, stride: usize, padding: Padding) -> Tensor {
    slide("conv1d", x, kernel, &[stride], |image, window| padding.amounts(image, window, &[stride]))
}

/// The transposed convolution, which enlarges images. Images `[.., spatial axes.., in]` get
/// `stride - 1` zeros between their elements, and a kernel `[spatial axes.., in, out]` moves over
/// them by 1. `strides` has an entry for each spatial axis. `Same` gives `stride` times the extent;
/// `Explicit` pads the image with its zeros. `jax.lax.conv_transpose` with
/// `transpose_kernel=False`, flax's `ConvTranspose`.
///
/// # Errors
/// Shapes that do not fit each other.
#[track_caller]
pub fn conv_transpose(x: Tensor, kernel: Tensor, strides: impl Shape, padding: Padding) -> Tensor {
    let dilation = strides.into_shape();
    let amounts = |_: &[usize], window: &[usize]| {
        let along = |(&k, &s): (&usize, &usize)| {
            let total = match padding {
                Padding::Valid => (k + s).saturating_sub(2) + k.saturating_sub(s),
                _ => (k + s).saturating_sub(2),
            };
            let front = match padding {
                Padding::Same if s < k => total.div_ceil(2),
                _ => k.saturating_sub(1),
            };
            (front, total.saturating_sub(front))
        };
        match &padding {
            Padding::Explicit(amounts) => amounts.iter().copied().unzip(),
            _ => window.iter().zip(&dilation).map(along).unzip(),
        }
    };
    let convolution = Convolution {
        lhs_dilation: dilation.iter().map(|&stride| stride.max(1)).collect(),
        ..Convolution::new(dilation.len())
    };
    if dilation.contains(&0) {
        let message = format!("expected strides of at least 1, got {dilation:?}");
        return fail("conv_transpose", message, &[x, kernel], x.ty());
    }
    convolved("conv_transpose", x, kernel, convolution, amounts)
}

#[track_caller]
fn slide(
    name: &str,
    x: Tensor,
    kernel: Tensor,
    strides: &[usize],
    amounts: impl FnOnce(&[usize], &[usize]) -> (Vec<usize>, Vec<usize>),
) -> Tensor {
    let convolution = Convolution { strides: strides.to_vec(), ..Convolution::new(strides.len()) };
    convolved(name, x, kernel, convolution, amounts)
}

/// A convolution over any number of batch axes, with the padding that the extents of image and
/// kernel require.
#[track_caller]
fn convolved(
    name: &str,
    x: Tensor,
    kernel: Tensor,
    convolution: Convolution,
    amounts: impl FnOnce(&[usize], &[usize]) -> (Vec<usize>, Vec<usize>),
) -> Tensor {
    let (x_ty, kernel_ty) = (x.ty(), kernel.ty());
    let spatial = convolution.strides.len();
    if x_ty.rank() < spatial + 1 || kernel_ty.rank() != spatial + 2 {
        let axes = ["", "width", "height, width"].get(spatial).copied().unwrap_or("spatial axes..");
        let what = if spatial == 1 { "sequences" } else { "images" };
        let message = format!(
            "expected {what} [.., {axes}, in] and a kernel [{axes}, in, out], got {x_ty} and {kernel_ty}"
        );
        return fail(name, message, &[x, kernel], x_ty);
    }
    let (batch, image) = x_ty.shape.split_at(x_ty.rank() - 1 - spatial);
    let (low, high) = amounts(&image[..spatial], &kernel_ty.shape[..spatial]);
    let signed = |amounts: Vec<usize>| amounts.into_iter().map(|n| n as i64).collect();
    let convolution = Convolution { low: signed(low), high: signed(high), ..convolution };
    let examples = [&[batch.iter().product()], image].concat();
    let y = conv_general_dilated(x.reshape(examples), kernel, convolution);
    y.reshape([batch, &y.shape()[1..]].concat())
}

/// Max pooling: the greatest element under a window that moves over images
/// `[.., spatial axes.., feature]`; the window and the strides have an entry for each spatial axis.
/// Padding is ignored. flax's `max_pool`.
///
/// # Errors
/// A window with another number of axes than the image has spatial axes; more padding than extent.
#[track_caller]
pub fn max_pool(x: Tensor, window: impl Shape, strides: impl Shape, padding: Padding) -> Tensor {
    pool("max_pool", x, &window.into_shape(), &strides.into_shape(), &padding, ReduceWindowMax::new)
}

/// Mean pooling: the mean under a window that moves over images `[.., spatial axes.., feature]`. Padding counts as
/// zeros if `count_include_pad`, which is flax's default, and not at all otherwise. flax's `avg_pool`.
///
/// # Errors
/// All errors of [`max_pool`].
#[track_caller]
pub fn avg_pool(
    x: Tensor,
    window: impl Shape,
    strides: impl Shape,
    padding: Padding,
    count_include_pad: bool,
) -> Tensor {
    let (window, strides) = (window.into_shape(), strides.into_shape());
    let sum = |x| pool("avg_pool", x, &window, &strides, &padding, ReduceWindowSum::new);
    let wide = x.accumulator();
    let mean = if count_include_pad {
        sum(wide) / window.iter().product::<usize>() as f64
    } else {
        sum(wide) / sum(wide.ones_like())
    };
    mean.astype(x.dtype())
}

#[track_caller]
fn pool<O: Op>(
    name: &str,
    x: Tensor,
    window: &[usize],
    strides: &[usize],
    padding: &Padding,
    op: impl FnOnce(Window) -> O,
) -> Tensor {
    let ty = x.ty();
    let spatial = window.len();
    if ty.rank() < spatial + 1 {
        let message = format!(
            "expected images [.., {spatial} spatial axes, feature] for the window {window:?}, got {ty}"
        );
        return fail(name, message, &[x], ty);
    }
    let first = ty.rank() - 1 - spatial;
    let (low, high) = padding.amounts(&ty.shape[first..ty.rank() - 1], window, strides);
    // Batch and feature axes are not folded.
    let all = |entries: &[usize], other: usize| [&vec![other; first], entries, &[other]].concat();
    let window = Window {
        dimensions: all(window, 1),
        strides: all(strides, 1),
        low: all(&low, 0),
        high: all(&high, 0),
    };
    emit1(op(window), &[x], ty)
}
