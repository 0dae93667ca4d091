//! Draws of words and integers.

use super::Key;
use super::threefry::{halves_split, threefry2x32};
use crate::tensor::{IntoTensor, Shape, Tensor, create, fail, report, select};
use crate::trace::{called, called_opaquely};
use podracer_compiler::{Array, DType, Scalar, TensorType};
use std::ops::Range;

/// The index of each element in row-major order, as the high and the low half of 64 bits; `None`
/// for a half that is 0.
#[track_caller]
pub(super) fn counters(shape: &[usize]) -> (Option<Tensor>, Option<Tensor>) {
    let elements: usize = shape.iter().product();
    if shape.is_empty() || elements == 0 {
        return (None, None);
    }
    if elements as u64 <= 1 << 32 {
        return (None, Some(create::iota(DType::U32, [elements], 0).reshape(shape)));
    }
    let flat = create::iota(DType::U64, [elements], 0).reshape(shape);
    (Some((flat >> 32).astype(DType::U32)), Some(flat.astype(DType::U32)))
}

/// Bits from a key that is already consumed, or that is used for several draws that belong
/// together.
#[track_caller]
pub(super) fn bits_of((a, b): (Tensor, Tensor), dtype: DType, shape: &[usize]) -> Tensor {
    let _call = called_opaquely("bits");
    let guess = TensorType::new(dtype, shape);
    if !dtype.is_unsigned_integer() {
        let message = format!("expected an unsigned integer type, got {dtype}");
        return fail("bits", message, &[a], guess);
    }
    if guess.elements() == 0 {
        return create::zeros(dtype, shape);
    }
    let (high, low) = counters(shape);
    let (x, y) = threefry2x32(a, b, high, low);
    match dtype.size() {
        8 => (x.astype(DType::U64) << 32) | y.astype(DType::U64),
        4 => x ^ y,
        _ => (x ^ y).astype(dtype),
    }
}

/// Draws of words and integers. `shape` is the shape of the result.
impl Key {
    /// Draws uniform bits, in an unsigned type.
    #[track_caller]
    pub fn bits(self, dtype: DType, shape: impl Shape) -> Tensor {
        let _call = called("bits");
        bits_of(self.consume(), dtype, &shape.into_shape())
    }

    /// Draws uniform integers from a range, in i32. If the range's extent is not a power of two,
    /// some values are more likely than others, by less than extent / 2^64 (2^32 for extents above
    /// 2^16). An empty range gives its start.
    #[track_caller]
    pub fn randint<I: Bound>(self, shape: impl Shape, range: Range<I>) -> Tensor {
        self.randint_of(DType::I32, shape, range)
    }

    /// [`Key::randint`] in another integer type. A bound outside of this type's range is clamped to
    /// it, but the end of the range may be one past the greatest value.
    #[track_caller]
    pub fn randint_of<I: Bound>(self, dtype: DType, shape: impl Shape, range: Range<I>) -> Tensor {
        let _call = called("randint");
        let shape = shape.into_shape();
        let halves = self.consume();
        let guess = TensorType::new(dtype, &shape);
        if !dtype.is_integer() {
            let message = format!("expected an integer type, got {dtype}");
            return fail("randint", message, &[halves.0], guess);
        }
        let (least, greatest) = dtype.integer_range();
        let low = range.start.wide().clamp(least, greatest);
        let past = range.end.wide() > greatest;
        let high = range.end.wide().clamp(least, greatest);
        // Narrow types are drawn with 32 bits, as jax does.
        let bits = dtype.bits().max(32);
        let modulus = 1i128 << bits;
        // The extent, modulo 2^bits: 0 stands for all values of the type.
        let span = if high <= low { 1 } else { (high - low + i128::from(past)) % modulus };
        let unsigned = unsigned_of(dtype);
        let [first, second] = halves_split(halves);
        let lower = bits_of(second, unsigned, &shape);
        let offset = if span == 0 {
            lower
        } else if span.count_ones() == 1 {
            // The high word's weight, 2^bits, is 0 modulo a power of two, so that it need not be drawn.
            lower & literal(unsigned, span - 1)
        } else {
            let half = (1i128 << (bits / 2)) % span;
            // Words wrap: the product is taken modulo 2^bits before the remainder, as jax does.
            let multiplier = (half * half % modulus) % span;
            let higher = bits_of(first, unsigned, &shape);
            let span = literal(unsigned, span);
            (higher % span * literal(unsigned, multiplier) + lower % span) % span
        };
        offset.astype(dtype) + literal(dtype, low)
    }

    /// Draws uniform integers between computed bounds: `low` is included, `high` is excluded. The
    /// bounds are scalars, or have the draw's shape. Both have the integer type of the result.
    #[track_caller]
    pub fn randint_between(self, shape: impl Shape, low: Tensor, high: Tensor) -> Tensor {
        let _call = called("randint");
        let shape = shape.into_shape();
        let halves = self.consume();
        let (ty, high_ty) = (low.ty(), high.ty());
        let guess = ty.with_shape(&shape);
        if !ty.dtype.is_integer() || ty.dtype != high_ty.dtype {
            let message = format!("expected bounds of one integer type, got {ty} and {high_ty}");
            return fail("randint", message, &[low, high], guess);
        }
        let (low, high) = (low.broadcast_to(&shape), high.broadcast_to(&shape));
        let unsigned = unsigned_of(ty.dtype);
        let [first, second] = halves_split(halves);
        let (higher, lower) = (bits_of(first, unsigned, &shape), bits_of(second, unsigned, &shape));
        let wide = if ty.dtype.size() < 4 { DType::I32 } else { ty.dtype };
        let (low, high) = (low.astype(wide), high.astype(wide));
        let span = select(high.le(low), 1, (high - low).astype(unsigned));
        let half = literal(unsigned, 1i128 << (wide.bits() / 2)) % span;
        let multiplier = (half * half) % span;
        let offset = (higher % span * multiplier + lower % span) % span;
        (low + offset.astype(wide)).astype(ty.dtype)
    }

    /// Draws bools that are true with probability `p`, a number or a tensor that broadcasts to the shape.
    #[track_caller]
    pub fn bernoulli(self, shape: impl Shape, p: impl IntoTensor) -> Tensor {
        let _call = called("bernoulli");
        let shape = shape.into_shape();
        let p = p.into_tensor();
        if !p.dtype().is_float() {
            report("bernoulli", format!("expected a float probability, got {}", p.ty()), &[p]);
            return crate::tensor::poison(TensorType::new(DType::Bool, shape));
        }
        self.uniform_of(p.dtype(), shape).lt(p)
    }

    /// Draws -1 or 1 with equal probability, in i32.
    #[track_caller]
    pub fn rademacher(self, shape: impl Shape) -> Tensor {
        let _call = called("rademacher");
        2 * self.bernoulli(shape, 0.5).astype(DType::I32) - 1
    }
}

#[track_caller]
fn literal(dtype: DType, value: i128) -> Tensor {
    create::constant_of(&Array::single(dtype, Scalar::Int(value)))
}

/// The unsigned type of the random words for an integer type.
fn unsigned_of(dtype: DType) -> DType {
    if dtype.size() == 8 { DType::U64 } else { DType::U32 }
}

/// A bound of a range of integers that is known while tracing.
pub trait Bound {
    /// The bound in an integer type that holds every bound.
    fn wide(&self) -> i128;
}

macro_rules! bounds {
    ($($int:ty),*) => {$(
        impl Bound for $int {
            fn wide(&self) -> i128 {
                *self as i128
            }
        }
    )*};
}
bounds!(i32, usize, u32, i64, u64);
