//! Rust's operators. The left operand is a tensor, or a literal `f64` or `i32`: with more types,
//! `(2 * x).sum()` would be ambiguous to rustc.
//!
//! Two tensors must have the same dtype; otherwise an error asks for a cast. jnp would promote them
//! (i32 and f32 to f32, i32 and i64 to i64). Here a dtype changes only by an explicit cast, because
//! a carry, a parameter or a reward that silently becomes wider is found late. Literals are weak,
//! as Python's numbers are in jnp.
//!
//! Integers behave as in jnp on every platform. They wrap modulo 2^width. `/` rounds toward zero,
//! `%` has the sign of the dividend ([`Tensor::floor_div`] and [`Tensor::modulo`] are Python's `//`
//! and `%`). Division by zero gives -1, all bits set; the remainder is the dividend, and `modulo`
//! 0. The least integer divided by -1 is itself, with remainder 0. A shift by the width or more
//! gives 0, or -1 for a negative number shifted right.

use super::{IntoTensor, Tensor, binary, unary};
use podracer_compiler::ops;
use std::ops::{
    Add, AddAssign, BitAnd, BitOr, BitXor, Div, DivAssign, Mul, MulAssign, Neg, Not, Rem, Shl, Shr,
    Sub, SubAssign,
};

macro_rules! operators {
    ($($trait:ident, $method:ident, $op:expr, $doc:literal;)*) => {$(
        operators!(@right $trait, $method, $op, $doc);

        #[doc = $doc]
        impl<R: IntoTensor> $trait<R> for &Tensor {
            type Output = Tensor;
            #[track_caller]
            fn $method(self, right: R) -> Tensor {
                binary($op, *self, right)
            }
        }

        operators!(@left $trait, $method, $op, f64);
        operators!(@left $trait, $method, $op, i32);
    )*};
    (@right $trait:ident, $method:ident, $op:expr, $doc:literal) => {
        #[doc = $doc]
        impl<R: IntoTensor> $trait<R> for Tensor {
            type Output = Tensor;
            #[track_caller]
            fn $method(self, right: R) -> Tensor {
                binary($op, self, right)
            }
        }
    };
    (@left $trait:ident, $method:ident, $op:expr, $left:ty) => {
        impl $trait<Tensor> for $left {
            type Output = Tensor;
            #[track_caller]
            fn $method(self, right: Tensor) -> Tensor {
                binary($op, self, right)
            }
        }
    };
}

operators! {
    Add, add, ops::Add {}, "Sum, with NumPy broadcasting.";
    Sub, sub, ops::Subtract {}, "Difference, with NumPy broadcasting.";
    Mul, mul, ops::Multiply {}, "Product, with NumPy broadcasting.";
    Div, div, ops::Divide {}, "Quotient; of integers rounded toward zero, as in Rust.";
    Rem, rem, ops::Remainder {}, "Remainder with the sign of the left operand, as in Rust; see [`Tensor::modulo`] for Python's.";
}

operators!(@right BitAnd, bitand, ops::And {}, "And of bools, or of the bits of integers.");
operators!(@right BitOr, bitor, ops::Or {}, "Or of bools, or of the bits of integers.");
operators!(@right BitXor, bitxor, ops::Xor {}, "Exclusive or of bools, or of the bits of integers.");
operators!(@right Shl, shl, ops::ShiftLeft {}, "Shifts integers left; 0 if by their width or more.");

/// Shifts integers right: signed integers keep the sign, unsigned integers are filled with zeros.
impl<R: IntoTensor> Shr<R> for Tensor {
    type Output = Tensor;
    #[track_caller]
    fn shr(self, right: R) -> Tensor {
        if self.dtype().is_signed_integer() {
            binary(ops::ShiftRightArithmetic {}, self, right)
        } else {
            binary(ops::ShiftRightLogical {}, self, right)
        }
    }
}

/// The negation; unsigned integers wrap modulo 2^width.
impl Neg for Tensor {
    type Output = Tensor;
    #[track_caller]
    fn neg(self) -> Tensor {
        unary(ops::Negate {}, self)
    }
}

/// The logical not of bools; the bitwise complement of integers.
impl Not for Tensor {
    type Output = Tensor;
    #[track_caller]
    fn not(self) -> Tensor {
        unary(ops::Not {}, self)
    }
}

macro_rules! assign_operators {
    ($($trait:ident, $method:ident, $op:tt;)*) => {$(
        /// Rebinds the handle; the tensor it named before is unchanged.
        impl<R: IntoTensor> $trait<R> for Tensor {
            #[track_caller]
            fn $method(&mut self, right: R) {
                *self = *self $op right;
            }
        }
    )*};
}

assign_operators! {
    AddAssign, add_assign, +;
    SubAssign, sub_assign, -;
    MulAssign, mul_assign, *;
    DivAssign, div_assign, /;
}

/// The sum of tensors; an f32 zero if there are none.
impl std::iter::Sum for Tensor {
    #[track_caller]
    fn sum<I: Iterator<Item = Tensor>>(tensors: I) -> Tensor {
        tensors.reduce(|a, b| a + b).unwrap_or_else(|| super::create::scalar(0.0))
    }
}
