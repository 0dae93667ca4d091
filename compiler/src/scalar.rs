//! Single elements: [`Scalar`], an element of any dtype, for the reference semantics, and
//! [`Element`], the Rust types that are dtypes.

use crate::types::DType;
use half::{bf16, f16};
use std::hash::{Hash, Hasher};

/// One element of an [`Array`](crate::Array).
#[derive(Clone, Copy, Debug)]
pub enum Scalar {
    /// A truth value.
    Bool(bool),
    /// An integer of any width; the representation is wide enough for every integer type.
    Int(i128),
    /// A float of any width; every narrower float is exactly an f64.
    Float(f64),
}

impl Scalar {
    /// The truth value of a bool.
    pub fn bool(self) -> bool {
        match self {
            Scalar::Bool(value) => value,
            other => panic!("expected a bool element, got {other:?}"),
        }
    }

    /// The value of an integer (or of a bool as 0 or 1).
    pub fn int(self) -> i128 {
        match self {
            Scalar::Int(value) => value,
            Scalar::Bool(value) => i128::from(value),
            other => panic!("expected an integer element, got {other:?}"),
        }
    }

    /// The value as f64, for any type.
    pub fn float(self) -> f64 {
        match self {
            Scalar::Bool(value) => f64::from(u8::from(value)),
            Scalar::Int(value) => value as f64,
            Scalar::Float(value) => value,
        }
    }

    /// The value converted to `dtype`'s range: integers wrap, floats round. The kind (bool,
    /// integer, float) must match.
    pub fn normalized(self, dtype: DType) -> Scalar {
        match self {
            Scalar::Int(value) => Scalar::Int(dtype.wrap(value)),
            Scalar::Float(value) => Scalar::Float(dtype.round(value)),
            same => same,
        }
    }

    /// The bytes of the value in `dtype`, little-endian; the first [`DType::size`] are valid.
    /// Integers wrap, floats round; a NaN keeps as much of its payload as fits. The kind (bool,
    /// integer, float) must match.
    pub(crate) fn to_bytes(self, dtype: DType) -> [u8; 8] {
        let bits = match dtype {
            DType::Bool => u64::from(self.int() != 0),
            DType::F16 => f16::from_f64(self.float()).to_bits().into(),
            DType::BF16 => bf16::from_f64(self.float()).to_bits().into(),
            DType::F32 => (self.float() as f32).to_bits().into(),
            DType::F64 => self.float().to_bits(),
            _ => self.int() as u64,
        };
        bits.to_le_bytes()
    }

    /// Zero of a dtype; `false` for bool.
    pub fn zero(dtype: DType) -> Scalar {
        Scalar::number(dtype, 0)
    }

    /// A small whole number in a dtype.
    pub fn number(dtype: DType, value: i64) -> Scalar {
        if dtype.is_float() {
            Scalar::Float(dtype.round(value as f64))
        } else if dtype == DType::Bool {
            Scalar::Bool(value != 0)
        } else {
            Scalar::Int(dtype.wrap(i128::from(value)))
        }
    }
}

/// Equality of representation: NaN equals NaN, and -0 differs from 0.
impl PartialEq for Scalar {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Scalar::Bool(a), Scalar::Bool(b)) => a == b,
            (Scalar::Int(a), Scalar::Int(b)) => a == b,
            (Scalar::Float(a), Scalar::Float(b)) => {
                a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan())
            }
            _ => false,
        }
    }
}

impl Eq for Scalar {}

impl Hash for Scalar {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Scalar::Bool(value) => value.hash(state),
            Scalar::Int(value) => value.hash(state),
            Scalar::Float(value) => {
                (if value.is_nan() { f64::NAN } else { *value }).to_bits().hash(state)
            }
        }
    }
}

mod sealed {
    /// Restricts [`super::Element`] to the types below: other types have no representation on a
    /// device.
    pub trait Sealed {}
}

/// A Rust type that is a tensor's element type.
pub trait Element: Copy + sealed::Sealed {
    /// The element type.
    const DTYPE: DType;
    /// Appends the value's bytes.
    fn write(self, bytes: &mut Vec<u8>);
    /// The value of exactly [`DType::size`] bytes.
    fn read(bytes: &[u8]) -> Self;
    /// The value as a [`Scalar`], with a dynamic type.
    fn scalar(self) -> Scalar;
}

macro_rules! elements {
    ($($type:ty => $dtype:ident $kind:ident $wide:ty,)*) => {
        $(
            impl sealed::Sealed for $type {}
            impl Element for $type {
                const DTYPE: DType = DType::$dtype;
                fn write(self, bytes: &mut Vec<u8>) {
                    bytes.extend_from_slice(&self.to_le_bytes());
                }
                fn read(bytes: &[u8]) -> Self {
                    let mut array = [0; size_of::<$type>()];
                    array.copy_from_slice(bytes);
                    Self::from_le_bytes(array)
                }
                fn scalar(self) -> Scalar {
                    Scalar::$kind(<$wide>::from(self))
                }
            }
        )*

        impl Scalar {
            /// The value of exactly [`DType::size`] bytes.
            pub(crate) fn read(dtype: DType, bytes: &[u8]) -> Scalar {
                match dtype {
                    DType::Bool => bool::read(bytes).scalar(),
                    $(DType::$dtype => <$type>::read(bytes).scalar(),)*
                }
            }
        }
    };
}

elements! {
    i8 => I8 Int i128, i16 => I16 Int i128, i32 => I32 Int i128, i64 => I64 Int i128,
    u8 => U8 Int i128, u16 => U16 Int i128, u32 => U32 Int i128, u64 => U64 Int i128,
    f16 => F16 Float f64, bf16 => BF16 Float f64, f32 => F32 Float f64, f64 => F64 Float f64,
}

impl sealed::Sealed for bool {}
impl Element for bool {
    const DTYPE: DType = DType::Bool;
    fn write(self, bytes: &mut Vec<u8>) {
        bytes.push(u8::from(self));
    }
    fn read(bytes: &[u8]) -> Self {
        bytes.iter().any(|byte| *byte != 0)
    }
    fn scalar(self) -> Scalar {
        Scalar::Bool(self)
    }
}
