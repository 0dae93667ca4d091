//! Draws of floats.

use super::Key;
use super::discrete::bits_of;
use crate::tensor::{IntoTensor, Shape, Tensor, create, fail, maximum, select};
use crate::trace::{called, called_opaquely};
use podracer_compiler::{Array, DType, Scalar, TensorType};

/// The layout of a float type.
struct Format {
    fraction: u32,
    word: DType,
    one: i128,
    /// The distance from 1 down to the next number.
    below_one: f64,
}

fn format(dtype: DType) -> Option<Format> {
    let format = |fraction: u32, word, one: i128| Format {
        fraction,
        word,
        one,
        below_one: 0.5f64.powi(fraction as i32 + 1),
    };
    match dtype {
        DType::F16 => Some(format(10, DType::U16, 0x3C00)),
        DType::BF16 => Some(format(7, DType::U16, 0x3F80)),
        DType::F32 => Some(format(23, DType::U32, 0x3F80_0000)),
        DType::F64 => Some(format(52, DType::U64, 0x3FF0_0000_0000_0000)),
        _ => None,
    }
}

/// Draws of floats. `shape` is the shape of the result.
impl Key {
    /// Draws from the uniform distribution over `[0, 1)`, in f32.
    #[track_caller]
    pub fn uniform(self, shape: impl Shape) -> Tensor {
        self.uniform_of(DType::F32, shape)
    }

    /// Draws from the uniform distribution over `[0, 1)`, in a float type.
    #[track_caller]
    pub fn uniform_of(self, dtype: DType, shape: impl Shape) -> Tensor {
        let _call = called("uniform");
        let shape = shape.into_shape();
        let (a, b) = self.consume();
        unit(a, b, dtype, &shape)
    }

    /// Draws from the uniform distribution over `[low, high)`, in f32; the bounds are numbers or tensors that broadcast
    /// to the shape. `low` if the range is empty.
    ///
    /// The range may contain few numbers: `[1e6, 1e6 + 1)` contains 16 f32 numbers. A draw that
    /// rounds up to `high` gives `low` instead: half as many draws round to each bound as to a
    /// number between them.
    #[track_caller]
    pub fn uniform_range(
        self,
        shape: impl Shape,
        low: impl IntoTensor,
        high: impl IntoTensor,
    ) -> Tensor {
        let _call = called("uniform_range");
        let [low, high] = float_bounds("uniform", low, high);
        let drawn = self.between(shape, low, high);
        // Rounding may push the product to the upper bound.
        select(drawn.ge(high), low, drawn)
    }

    /// [`Key::uniform_range`] without the check of the upper bound, for bounds that no draw can round to.
    #[track_caller]
    fn between(self, shape: impl Shape, low: impl IntoTensor, high: impl IntoTensor) -> Tensor {
        let shape = shape.into_shape();
        let [low, high] = float_bounds("uniform", low, high);
        let unit = self.uniform_of(low.dtype(), &shape);
        // Rounding may push the product below the bound.
        maximum(low, unit * (high - low) + low)
    }

    /// Draws from the normal distribution with mean 0 and variance 1, in f32.
    #[track_caller]
    pub fn normal(self, shape: impl Shape) -> Tensor {
        self.normal_of(DType::F32, shape)
    }

    /// Draws from the normal distribution with mean 0 and variance 1, in a float type.
    #[track_caller]
    pub fn normal_of(self, dtype: DType, shape: impl Shape) -> Tensor {
        let _call = called_opaquely("normal");
        let shape = shape.into_shape();
        let Some(format) = format(dtype) else {
            let message = format!("expected a float type, got {dtype}");
            return fail("normal", message, &[], TensorType::new(dtype, shape));
        };
        let low = number(dtype, -1.0 + format.below_one);
        let uniform = self.between(&shape, low, number(dtype, 1.0));
        uniform.erf_inv() * std::f64::consts::SQRT_2
    }

    /// Draws from the normal distribution with mean 0 and variance 1 cut to `(low, high)`, in f32. No draw is clipped.
    #[track_caller]
    pub fn truncated_normal(self, shape: impl Shape, low: f64, high: f64) -> Tensor {
        let _call = called("truncated_normal");
        let shape = shape.into_shape();
        // As jax: the quotients are f32, and so are the values of erf.
        let bound =
            |x: f64| number(DType::F32, f64::from(x as f32 / std::f32::consts::SQRT_2)).erf();
        let uniform = self.between(&shape, bound(low), bound(high));
        let normal = uniform.erf_inv() * std::f64::consts::SQRT_2;
        normal.clamp(f64::from((low as f32).next_up()), f64::from((high as f32).next_down()))
    }

    /// Draws from the Gumbel distribution with location 0 and scale 1, in f32: the arg max of logits with such noise is
    /// distributed as their softmax.
    #[track_caller]
    pub fn gumbel(self, shape: impl Shape) -> Tensor {
        let _call = called_opaquely("gumbel");
        -(-self.above_zero(shape).log()).log()
    }

    /// Draws from the exponential distribution with rate 1, in f32.
    #[track_caller]
    pub fn exponential(self, shape: impl Shape) -> Tensor {
        let _call = called_opaquely("exponential");
        -(-self.uniform(shape)).log1p()
    }

    /// Draws from the Laplace distribution with location 0 and scale 1, in f32.
    #[track_caller]
    pub fn laplace(self, shape: impl Shape) -> Tensor {
        let _call = called_opaquely("laplace");
        let low = -1.0 + 0.5f64.powi(24);
        let uniform = self.between(shape, low, 1.0);
        uniform.sign() * (-uniform.abs()).log1p()
    }

    /// Draws from the logistic distribution with location 0 and scale 1, in f32.
    #[track_caller]
    pub fn logistic(self, shape: impl Shape) -> Tensor {
        let _call = called_opaquely("logistic");
        let uniform = self.above_zero(shape);
        uniform.log() - (-uniform).log1p()
    }

    /// Draws from the Cauchy distribution with location 0 and scale 1, in f32.
    #[track_caller]
    pub fn cauchy(self, shape: impl Shape) -> Tensor {
        let _call = called_opaquely("cauchy");
        // As in jax, the uniform draw starts at the distance from 1 to the next number, and not at
        // the smallest positive number.
        let uniform = self.between(shape, f64::from(f32::EPSILON), 1.0);
        (std::f64::consts::PI * (uniform - 0.5)).tan()
    }

    /// Uniform f32 in `(0, 1)`, with a finite logarithm.
    #[track_caller]
    fn above_zero(self, shape: impl Shape) -> Tensor {
        let _call = called_opaquely("uniform");
        self.between(shape, f64::from(f32::MIN_POSITIVE), 1.0)
    }
}

/// Uniform in `[0, 1)`: random bits as the fraction of a number in `[1, 2)`.
#[track_caller]
fn unit(a: Tensor, b: Tensor, dtype: DType, shape: &[usize]) -> Tensor {
    let _call = called_opaquely("uniform");
    let Some(format) = format(dtype) else {
        let message = format!("expected a float type, got {dtype}");
        return fail("uniform", message, &[a], TensorType::new(dtype, shape));
    };
    // jax draws only as many bits as bf16 needs.
    let drawn = if format.fraction < 8 { DType::U8 } else { format.word };
    let bits = bits_of((a, b), drawn, shape).astype(format.word);
    let one = create::constant_of(&Array::single(format.word, Scalar::Int(format.one)));
    let shift = drawn.bits() - format.fraction;
    ((bits >> shift) | one).bitcast(dtype) - 1.0
}

fn number(dtype: DType, value: f64) -> Tensor {
    create::constant_of(&Array::floats(dtype, [], &[value]))
}

/// Bounds as tensors of one float type.
#[track_caller]
fn float_bounds(op: &str, low: impl IntoTensor, high: impl IntoTensor) -> [Tensor; 2] {
    let bounds = crate::tensor::literal_pair(op, low.operand(), high.operand());
    if bounds[0].dtype().is_float() {
        return bounds;
    }
    // Integers alone are i32: `uniform_range(shape, 0, 1)` means floats.
    bounds.map(|bound| bound.astype(DType::F32))
}
