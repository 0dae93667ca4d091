//! Element types and tensor types. Shapes are static: a type describes everything about a tensor
//! except its values.

use smallvec::SmallVec;
use std::fmt;

/// The element type of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the names are StableHLO's")]
pub enum DType {
    Bool,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F16,
    BF16,
    F32,
    F64,
}

impl DType {
    /// Every element type, in declaration order.
    pub const ALL: [DType; 13] = [
        DType::Bool,
        DType::I8,
        DType::I16,
        DType::I32,
        DType::I64,
        DType::U8,
        DType::U16,
        DType::U32,
        DType::U64,
        DType::F16,
        DType::BF16,
        DType::F32,
        DType::F64,
    ];

    /// The number of bytes of one element in a buffer.
    pub fn size(self) -> usize {
        match self {
            DType::Bool | DType::I8 | DType::U8 => 1,
            DType::I16 | DType::U16 | DType::F16 | DType::BF16 => 2,
            DType::I32 | DType::U32 | DType::F32 => 4,
            DType::I64 | DType::U64 | DType::F64 => 8,
        }
    }

    /// The number of bits of one element; 1 for bool.
    pub fn bits(self) -> u32 {
        if self == DType::Bool { 1 } else { 8 * self.size() as u32 }
    }

    /// True for f16, bf16, f32 and f64, the types that carry gradients.
    pub fn is_float(self) -> bool {
        matches!(self, DType::F16 | DType::BF16 | DType::F32 | DType::F64)
    }

    /// True for signed and unsigned integers; bool is neither.
    pub fn is_integer(self) -> bool {
        !self.is_float() && self != DType::Bool
    }

    /// True for signed integers.
    pub fn is_signed_integer(self) -> bool {
        matches!(self, DType::I8 | DType::I16 | DType::I32 | DType::I64)
    }

    /// True for unsigned integers.
    pub fn is_unsigned_integer(self) -> bool {
        self.is_integer() && !self.is_signed_integer()
    }

    /// The name in the IR's text: `f32`, `u8`, `bool`.
    pub fn name(self) -> &'static str {
        match self {
            DType::Bool => "bool",
            DType::I8 => "i8",
            DType::I16 => "i16",
            DType::I32 => "i32",
            DType::I64 => "i64",
            DType::U8 => "u8",
            DType::U16 => "u16",
            DType::U32 => "u32",
            DType::U64 => "u64",
            DType::F16 => "f16",
            DType::BF16 => "bf16",
            DType::F32 => "f32",
            DType::F64 => "f64",
        }
    }

    /// The element type with this name, if there is one.
    pub fn parse(name: &str) -> Option<DType> {
        DType::ALL.into_iter().find(|dtype| dtype.name() == name)
    }

    /// Wraps an integer to this type's range, as two's complement arithmetic does.
    pub fn wrap(self, value: i128) -> i128 {
        debug_assert!(self.is_integer());
        let bits = self.bits();
        let low = value & ((1i128 << bits) - 1);
        if self.is_signed_integer() && low >> (bits - 1) == 1 { low - (1i128 << bits) } else { low }
    }

    /// The least and greatest value of an integer type.
    pub fn integer_range(self) -> (i128, i128) {
        debug_assert!(self.is_integer());
        let bits = self.bits();
        if self.is_signed_integer() {
            (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1)
        } else {
            (0, (1i128 << bits) - 1)
        }
    }

    /// Rounds to the nearest value of a float type, ties to even.
    pub fn round(self, value: f64) -> f64 {
        match self {
            // A NaN keeps its payload.
            _ if value.is_nan() => value,
            DType::F16 => half::f16::from_f64(value).to_f64(),
            DType::BF16 => half::bf16::from_f64(value).to_f64(),
            DType::F32 => f64::from(value as f32),
            _ => value,
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The extent of each axis, outermost first. Up to three extents, enough for most types, are stored
/// inline.
pub type Extents = SmallVec<[usize; 3]>;

/// Element type and shape. Written `f32[128,4]`; a scalar is `f32[]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TensorType {
    /// The element type.
    pub dtype: DType,
    /// The extent of each axis, outermost first.
    pub shape: Extents,
}

impl TensorType {
    /// A tensor type from its parts.
    pub fn new(dtype: DType, shape: impl AsRef<[usize]>) -> Self {
        TensorType { dtype, shape: shape.as_ref().into() }
    }

    /// The type of rank 0 with this dtype.
    pub fn scalar(dtype: DType) -> Self {
        TensorType { dtype, shape: Extents::new() }
    }

    /// The number of axes.
    pub fn rank(&self) -> usize {
        self.shape.len()
    }

    /// The number of elements; `usize::MAX` if there are more, which no memory holds.
    pub fn elements(&self) -> usize {
        // An empty axis takes precedence over extents that overflow.
        self.shape.iter().fold(1, |product: usize, &extent| product.saturating_mul(extent))
    }

    /// The number of bytes of a dense buffer of this type; `usize::MAX` if there are more.
    pub fn bytes(&self) -> usize {
        self.elements().saturating_mul(self.dtype.size())
    }

    /// The same shape with another element type.
    pub fn with_dtype(&self, dtype: DType) -> Self {
        TensorType { dtype, shape: self.shape.clone() }
    }

    /// The same element type with another shape.
    pub fn with_shape(&self, shape: impl AsRef<[usize]>) -> Self {
        TensorType::new(self.dtype, shape)
    }

    /// The type of `size` such tensors stacked along a new leading axis.
    pub fn stacked(&self, size: usize) -> Self {
        let mut shape = Extents::from_elem(size, 1);
        shape.extend_from_slice(&self.shape);
        TensorType { dtype: self.dtype, shape }
    }

    /// The type of one slice along the leading axis: the inverse of `stacked`.
    pub fn unstacked(&self) -> Self {
        self.with_shape(&self.shape[1..])
    }
}

impl fmt::Display for TensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[", self.dtype)?;
        for (axis, extent) in self.shape.iter().enumerate() {
            if axis > 0 {
                f.write_str(",")?;
            }
            write!(f, "{extent}")?;
        }
        f.write_str("]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_that_no_memory_holds_do_not_wrap_around() {
        let huge = TensorType::new(DType::F32, [1 << 40, 1 << 40]);
        assert_eq!((huge.elements(), huge.bytes()), (usize::MAX, usize::MAX));
        assert_eq!(TensorType::new(DType::F32, [1 << 62]).bytes(), usize::MAX);
        assert_eq!(TensorType::new(DType::F32, [1 << 40, 1 << 40, 0]).elements(), 0);
    }
}
