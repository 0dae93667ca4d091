//! Functions that act element by element, with NumPy broadcasting between their operands.

use super::{IntoTensor, Operand, Tensor, align, emit1, report};
use podracer_compiler::ops::{self, Direction};
use podracer_compiler::{DType, Op};

/// Emits an op with one operand.
#[track_caller]
pub(crate) fn unary(op: impl Op, x: Tensor) -> Tensor {
    let ty = x.ty();
    emit1(op, &[x], ty)
}

/// Emits an op with two operands, broadcast to one shape.
#[track_caller]
pub(crate) fn binary(op: impl Op, x: impl IntoTensor, y: impl IntoTensor) -> Tensor {
    let xy = align(op.mnemonic(), vec![x.operand(), y.operand()]);
    let ty = xy[0].ty();
    emit1(op, &xy, ty)
}

/// `p ? a : b`, element by element. `p` is a bool; all three broadcast. Both sides are computed,
/// and a gradient flows into each side only where it was selected. But a NaN in the other side
/// makes the gradient NaN: keep its input in range instead.
#[track_caller]
pub fn select(p: impl IntoTensor, a: impl IntoTensor, b: impl IntoTensor) -> Tensor {
    let p = p.into_tensor();
    let sides = align("select", vec![a.operand(), b.operand()]);
    if p.dtype() != DType::Bool {
        report(
            "select",
            format!("expected a bool predicate, got {}: compare it with something", p.ty()),
            &[p],
        );
        return super::poison(sides[0].ty());
    }
    let (p_shape, shape) = (p.shape(), sides[0].shape());
    let Ok(shape) = super::broadcast_pair(&p_shape, &shape) else {
        let message = format!("the predicate {} and {} do not broadcast", p.ty(), sides[0].ty());
        report("select", message, &[p, sides[0]]);
        return super::poison(sides[0].ty());
    };
    let p = super::broadcast_to(p, &shape);
    let (a, b) = (super::broadcast_to(sides[0], &shape), super::broadcast_to(sides[1], &shape));
    let ty = a.ty();
    emit1(ops::Select {}, &[p, a, b], ty)
}

/// The elementwise maximum; NaN if one of the two is NaN.
#[track_caller]
pub fn maximum(a: impl IntoTensor, b: impl IntoTensor) -> Tensor {
    binary(ops::Maximum {}, a, b)
}

/// The elementwise minimum; NaN if one of the two is NaN.
#[track_caller]
pub fn minimum(a: impl IntoTensor, b: impl IntoTensor) -> Tensor {
    binary(ops::Minimum {}, a, b)
}

/// `a` to the power of `b`.
#[track_caller]
pub fn pow(a: impl IntoTensor, b: impl IntoTensor) -> Tensor {
    binary(ops::Power {}, a, b)
}

/// The angle of the point (x, y) in radians, in (-pi, pi].
#[track_caller]
pub fn atan2(y: impl IntoTensor, x: impl IntoTensor) -> Tensor {
    binary(ops::Atan2 {}, y, x)
}

/// The length of the vector (x, y), `sqrt(x^2 + y^2)`, without overflow. Infinite if either is
/// infinite, even if the other is NaN. The derivative is 0 if both are 0.
#[track_caller]
pub fn hypot(x: impl IntoTensor, y: impl IntoTensor) -> Tensor {
    let [x, y] = align("hypot", vec![x.operand(), y.operand()])[..] else {
        return super::poison(podracer_compiler::TensorType::scalar(DType::F32));
    };
    let infinite = x.is_inf() | y.is_inf();
    let (x, y) = (x.abs(), y.abs());
    let (greater, less) = (maximum(x, y), minimum(x, y));
    let none = greater.eq(0);
    // The side that is not selected must be finite, or the gradient is NaN.
    let ratio = select(infinite | none, 0, less / select(none | infinite, 1, greater));
    let length = greater * (1 + ratio.square()).sqrt();
    select(infinite, f64::INFINITY, select(none, 0, length))
}

/// The greatest finite number of a float's dtype.
fn greatest_finite(dtype: DType) -> f64 {
    match dtype {
        DType::F16 => 65504.0,
        DType::BF16 => f64::from(f32::from_bits(0x7F7F_0000)),
        DType::F32 => f64::from(f32::MAX),
        _ => f64::MAX,
    }
}

/// True if a quotient rounded toward zero is one more than the quotient rounded down: the remainder
/// is not zero, and its sign differs from the divisor's.
fn off_by_one(remainder: Tensor, divisor: Tensor) -> Tensor {
    let signs_differ = remainder.lt(0) ^ divisor.lt(0);
    remainder.ne(0) & signs_differ
}

/// log(e^a + e^b), without overflow.
#[track_caller]
pub fn logaddexp(a: impl IntoTensor, b: impl IntoTensor) -> Tensor {
    binary(ops::LogAddExp {}, a, b)
}

/// `x` clamped to `[low, high]`.
#[track_caller]
pub fn clamp(x: impl IntoTensor, low: impl IntoTensor, high: impl IntoTensor) -> Tensor {
    let aligned = align("clamp", vec![x.operand(), low.operand(), high.operand()]);
    let ty = aligned[0].ty();
    emit1(ops::Clamp {}, &[aligned[1], aligned[0], aligned[2]], ty)
}

macro_rules! unaries {
    ($($(#[$doc:meta])* $method:ident: $op:ident;)*) => {
        /// Functions of one tensor.
        impl Tensor {
            $($(#[$doc])*
            #[track_caller]
            pub fn $method(self) -> Tensor {
                unary(ops::$op {}, self)
            })*
        }
    };
}

unaries! {
    /// The absolute value.
    abs: Abs;
    /// -1, 0 or 1; NaN stays.
    sign: Sign;
    /// The exponential function, e^x.
    exp: Exponential;
    /// e^x - 1, exact near 0.
    expm1: ExponentialMinusOne;
    /// The natural logarithm.
    log: Log;
    /// log(1 + x), exact near 0.
    log1p: LogPlusOne;
    /// The square root.
    sqrt: Sqrt;
    /// The reciprocal of the square root, 1 / sqrt(x).
    rsqrt: Rsqrt;
    /// The cube root, of negative numbers too.
    cbrt: Cbrt;
    /// The sine of radians.
    sin: Sine;
    /// The cosine of radians.
    cos: Cosine;
    /// The tangent of radians.
    tan: Tan;
    /// The angle in [-pi/2, pi/2] with the sine x; NaN outside of [-1, 1].
    asin: Asin;
    /// The angle in [0, pi] with the cosine x; NaN outside of [-1, 1].
    acos: Acos;
    /// The angle in [-pi/2, pi/2] with the tangent x.
    atan: Atan;
    /// The hyperbolic sine.
    sinh: Sinh;
    /// The hyperbolic cosine.
    cosh: Cosh;
    /// The hyperbolic tangent.
    tanh: Tanh;
    /// The inverse of the hyperbolic sine.
    asinh: Asinh;
    /// The nonnegative inverse of the hyperbolic cosine; NaN below 1.
    acosh: Acosh;
    /// The inverse of the hyperbolic tangent: infinite at -1 and 1, NaN outside.
    atanh: Atanh;
    /// The logistic function, 1 / (1 + e^-x).
    sigmoid: Logistic;
    /// The greatest whole number that is not above x.
    floor: Floor;
    /// The least whole number that is not below x.
    ceil: Ceil;
    /// The nearest whole number, ties to even.
    round: RoundNearestEven;
    /// The error function.
    erf: Erf;
    /// The complementary error function, 1 - erf(x), with all its digits where it is small.
    erfc: Erfc;
    /// The inverse of [`Tensor::erf`] on (-1, 1).
    erf_inv: ErfInv;
    /// The logarithm of the gamma function's magnitude.
    lgamma: Lgamma;
    /// The derivative of [`Tensor::lgamma`].
    digamma: Digamma;
    /// The number of bits set.
    popcount: Popcnt;
    /// The number of leading zeros: zero bits above the highest bit that is set.
    leading_zeros: CountLeadingZeros;
}

macro_rules! comparisons {
    ($($(#[$doc:meta])* $method:ident: $direction:ident;)*) => {
        /// Comparisons. They return bool tensors: Rust's `==` and `<` would have to know the
        /// values.
        #[allow(clippy::should_implement_trait, reason = "Rust's comparison traits return bool")]
        impl Tensor {
            $($(#[$doc])*
            #[track_caller]
            pub fn $method(self, other: impl IntoTensor) -> Tensor {
                let xy = align("compare", vec![Operand::Tensor(self), other.operand()]);
                let ty = xy[0].ty().with_dtype(DType::Bool);
                emit1(ops::Compare { direction: Direction::$direction }, &xy, ty)
            })*
        }
    };
}

comparisons! {
    /// True where equal; NaN equals nothing.
    eq: Eq;
    /// True where not equal; NaN differs from everything.
    ne: Ne;
    /// True if less: `self < other`. False if either is NaN.
    lt: Lt;
    /// True if less or equal: `self <= other`. False if either is NaN.
    le: Le;
    /// True if greater: `self > other`. False if either is NaN.
    gt: Gt;
    /// True if greater or equal: `self >= other`. False if either is NaN.
    ge: Ge;
}

/// Functions composed of several ops.
#[allow(clippy::should_implement_trait, reason = "`rem` takes what every method takes")]
impl Tensor {
    /// The square, x * x.
    #[track_caller]
    pub fn square(self) -> Tensor {
        self * self
    }

    /// The reciprocal, 1 / x.
    #[track_caller]
    pub fn reciprocal(self) -> Tensor {
        1.0 / self
    }

    /// The power x^exponent, elementwise.
    #[track_caller]
    pub fn pow(self, exponent: impl IntoTensor) -> Tensor {
        pow(self, exponent)
    }

    /// The power x^exponent for a whole exponent, by repeated multiplication.
    #[track_caller]
    pub fn powi(self, exponent: u32) -> Tensor {
        let mut result = None;
        let (mut base, mut left) = (self, exponent);
        while left > 0 {
            if left & 1 == 1 {
                result = Some(result.map_or(base, |result: Tensor| result * base));
            }
            left >>= 1;
            if left > 0 {
                base = base * base;
            }
        }
        result.unwrap_or_else(|| self.ones_like())
    }

    /// The elementwise maximum; see [`maximum`].
    #[track_caller]
    pub fn maximum(self, other: impl IntoTensor) -> Tensor {
        maximum(self, other)
    }

    /// The elementwise minimum; see [`minimum`].
    #[track_caller]
    pub fn minimum(self, other: impl IntoTensor) -> Tensor {
        minimum(self, other)
    }

    /// The tensor clamped to `[low, high]`.
    #[track_caller]
    pub fn clamp(self, low: impl IntoTensor, high: impl IntoTensor) -> Tensor {
        clamp(self, low, high)
    }

    /// `a` where this bool tensor is true, `b` elsewhere; see [`select`].
    #[track_caller]
    pub fn select(self, a: impl IntoTensor, b: impl IntoTensor) -> Tensor {
        select(self, a, b)
    }

    /// The remainder with the sign of `self`, as `%` in Rust and C.
    #[track_caller]
    pub fn rem(self, other: impl IntoTensor) -> Tensor {
        binary(ops::Remainder {}, self, other)
    }

    /// The remainder with the sign of `other`, as `%` in Python: `(-1).modulo(5)` is 4. For
    /// integers, the remainder by zero is 0.
    #[track_caller]
    pub fn modulo(self, other: impl IntoTensor) -> Tensor {
        let [x, y] = align("modulo", vec![Operand::Tensor(self), other.operand()])[..] else {
            return self;
        };
        let y = if y.dtype().is_integer() { select(y.eq(0), 1, y) } else { y };
        let remainder = binary(ops::Remainder {}, x, y);
        if remainder.dtype().is_unsigned_integer() {
            return remainder;
        }
        select(off_by_one(remainder, y), remainder + y, remainder)
    }

    /// The quotient rounded toward negative infinity, as `//` in Python. For floats it is
    /// consistent with [`Tensor::modulo`]: `1.0` by `0.1` is 9, because `0.1` is slightly more than
    /// a tenth, although the quotient rounds to 10. By zero it is the quotient.
    #[track_caller]
    pub fn floor_div(self, other: impl IntoTensor) -> Tensor {
        let [x, y] = align("floor_div", vec![Operand::Tensor(self), other.operand()])[..] else {
            return self;
        };
        let quotient = x / y;
        if x.dtype().is_unsigned_integer() {
            return quotient;
        }
        let remainder = binary(ops::Remainder {}, x, y);
        let off = off_by_one(remainder, y);
        if x.dtype().is_float() {
            let whole = (x - remainder) / y;
            let whole = select(off, whole - 1, whole).round();
            return select(y.eq(0), quotient, whole);
        }
        select(off & y.ne(0), quotient - 1, quotient)
    }

    /// Rotates the bits of integers up by `by` places: bits that leave at the top come in at the
    /// bottom.
    #[track_caller]
    pub fn rotate_left(self, by: u32) -> Tensor {
        let width = self.dtype().bits();
        let by = by % width;
        if by == 0 {
            return self;
        }
        (self << by) | binary(ops::ShiftRightLogical {}, self, width - by)
    }

    /// Rotates the bits of integers down by `by` places: bits that leave at the bottom come in at the top.
    #[track_caller]
    pub fn rotate_right(self, by: u32) -> Tensor {
        let width = self.dtype().bits();
        self.rotate_left(width - by % width)
    }

    /// True for a float that is neither infinite nor NaN.
    #[track_caller]
    pub fn is_finite(self) -> Tensor {
        let ty = self.ty().with_dtype(DType::Bool);
        emit1(ops::IsFinite {}, &[self], ty)
    }

    /// True for a float that is NaN.
    #[track_caller]
    pub fn is_nan(self) -> Tensor {
        self.ne(self)
    }

    /// True for a float that is infinite.
    #[track_caller]
    pub fn is_inf(self) -> Tensor {
        self.abs().eq(f64::INFINITY)
    }

    /// The tensor with 0 in place of NaN, and the greatest and least finite numbers in place of the
    /// infinities. Use [`select`] and [`Tensor::is_nan`] for other replacements.
    #[track_caller]
    pub fn nan_to_num(self) -> Tensor {
        let ty = self.ty();
        if !ty.dtype.is_float() {
            return self;
        }
        let greatest = greatest_finite(ty.dtype);
        select(self.is_nan(), 0, self.clamp(-greatest, greatest))
    }

    /// The logarithm to base 2.
    #[track_caller]
    pub fn log2(self) -> Tensor {
        self.log() / std::f64::consts::LN_2
    }

    /// The logarithm to base 10.
    #[track_caller]
    pub fn log10(self) -> Tensor {
        self.log() / std::f64::consts::LN_10
    }

    /// 2 to the power of x.
    #[track_caller]
    pub fn exp2(self) -> Tensor {
        pow(self.full_like(2), self)
    }

    /// The nearest whole number toward zero.
    #[track_caller]
    pub fn trunc(self) -> Tensor {
        select(self.lt(0), self.ceil(), self.floor())
    }

    /// `sqrt(x^2 + y^2)`; see [`hypot`].
    #[track_caller]
    pub fn hypot(self, other: impl IntoTensor) -> Tensor {
        hypot(self, other)
    }

    /// Casts to another element type. Floats become integers by rounding toward zero; numbers become bools by `!= 0`.
    #[track_caller]
    pub fn astype(self, dtype: DType) -> Tensor {
        let ty = self.ty();
        if ty.dtype == dtype {
            return self;
        }
        emit1(ops::Convert { dtype }, &[self], ty.with_dtype(dtype))
    }

    /// Reads the bits of each element as another element type of the same width.
    #[track_caller]
    pub fn bitcast(self, dtype: DType) -> Tensor {
        let ty = self.ty();
        emit1(ops::BitcastConvert { dtype }, &[self], ty.with_dtype(dtype))
    }

    /// Shifts right and fills with zeros, regardless of the sign.
    #[track_caller]
    pub fn shift_right_logical(self, bits: impl IntoTensor) -> Tensor {
        binary(ops::ShiftRightLogical {}, self, bits)
    }
}
