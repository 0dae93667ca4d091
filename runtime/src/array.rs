//! Host values as bytes, the form in which they go to devices and come back.

use half::{bf16, f16};
use podracer_compiler::{Array, DType, TensorType};

use crate::RuntimeError;

/// A dense row-major tensor on the host: little-endian bytes and their type. bool takes one byte, 0 or 1.
///
/// Invariant: there are as many bytes as the type has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostArray {
    ty: TensorType,
    bytes: Vec<u8>,
}

mod sealed {
    /// Keeps [`super::Element`] to the types below: others have no representation on a device.
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
}

macro_rules! element {
    ($($type:ty => $dtype:ident),* $(,)?) => {$(
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
        }
    )*};
}

element! {
    i8 => I8, i16 => I16, i32 => I32, i64 => I64,
    u8 => U8, u16 => U16, u32 => U32, u64 => U64,
    f16 => F16, bf16 => BF16, f32 => F32, f64 => F64,
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
}

impl HostArray {
    /// Makes an array from bytes as a device holds them.
    ///
    /// # Errors
    /// [`RuntimeError::HostLength`] where the length is not `ty.bytes()`.
    pub fn new(ty: TensorType, bytes: Vec<u8>) -> Result<Self, RuntimeError> {
        if bytes.len() == ty.bytes() {
            return Ok(Self { ty, bytes });
        }
        Err(wrong_bytes(ty, bytes.len()))
    }

    /// Makes an array from its elements in row-major order.
    ///
    /// # Errors
    /// [`RuntimeError::HostLength`] where there is not one value per element.
    pub fn from_slice<T: Element>(
        shape: impl AsRef<[usize]>,
        values: &[T],
    ) -> Result<Self, RuntimeError> {
        let ty = TensorType::new(T::DTYPE, shape);
        if values.len() != ty.elements() {
            let expected = format!("{} elements", ty.elements());
            let got = format!("{} elements", values.len());
            return Err(RuntimeError::HostLength { ty, expected, got });
        }
        let mut bytes = Vec::with_capacity(ty.bytes());
        values.iter().for_each(|value| value.write(&mut bytes));
        Ok(Self { ty, bytes })
    }

    /// Makes a scalar: an array without axes.
    #[must_use]
    pub fn scalar<T: Element>(value: T) -> Self {
        let mut bytes = Vec::with_capacity(T::DTYPE.size());
        value.write(&mut bytes);
        Self { ty: TensorType::scalar(T::DTYPE), bytes }
    }

    /// The words of the key that a seed makes, the high one first: u32 `[2]`.
    #[must_use]
    pub fn key(seed: u64) -> Self {
        let words = [(seed >> 32) as u32, seed as u32];
        Self { ty: TensorType::new(DType::U32, [2]), bytes: words.map(u32::to_le_bytes).concat() }
    }

    /// An array of zeros: 0, 0.0 or false.
    #[must_use]
    pub fn zeros(ty: TensorType) -> Self {
        let bytes = vec![0; ty.bytes()];
        Self { ty, bytes }
    }

    /// Element type and shape.
    #[must_use]
    pub fn ty(&self) -> &TensorType {
        &self.ty
    }

    /// The elements' bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Takes the array apart: its type and its bytes.
    #[must_use]
    pub fn into_parts(self) -> (TensorType, Vec<u8>) {
        (self.ty, self.bytes)
    }

    /// The elements in row-major order.
    ///
    /// # Errors
    /// [`RuntimeError::HostType`] where the array's element type is not `T`.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>, RuntimeError> {
        self.expect::<T>()?;
        Ok(self.bytes.chunks_exact(T::DTYPE.size()).map(T::read).collect())
    }

    /// The only element.
    ///
    /// # Errors
    /// [`RuntimeError::HostType`] where the element type is not `T`, [`RuntimeError::HostLength`] where there is not one element.
    pub fn item<T: Element>(&self) -> Result<T, RuntimeError> {
        self.expect::<T>()?;
        if self.ty.elements() == 1 {
            return Ok(T::read(&self.bytes));
        }
        let got = format!("{} elements", self.ty.elements());
        Err(RuntimeError::HostLength { ty: self.ty.clone(), expected: "1 element".to_owned(), got })
    }

    /// The number of elements that are NaN or infinite: 0 for integers and bools.
    #[must_use]
    pub fn not_finite(&self) -> usize {
        match self.to_vec::<f32>() {
            Ok(values) => values.iter().filter(|value| !value.is_finite()).count(),
            Err(_) if self.ty.dtype.is_float() => {
                self.to_array().to_f64().iter().filter(|value| !value.is_finite()).count()
            }
            Err(_) => 0,
        }
    }

    /// Converts to the value type of the reference semantics.
    #[must_use]
    pub fn to_array(&self) -> Array {
        Array::from_bytes(self.ty.clone(), &self.bytes)
    }

    fn expect<T: Element>(&self) -> Result<(), RuntimeError> {
        if self.ty.dtype == T::DTYPE {
            return Ok(());
        }
        Err(RuntimeError::HostType { ty: self.ty.clone(), read_as: T::DTYPE })
    }
}

/// The error for another number of bytes than a value of type `ty` has.
pub(crate) fn wrong_bytes(ty: TensorType, got: usize) -> RuntimeError {
    let expected = format!("{} bytes", ty.bytes());
    RuntimeError::HostLength { ty, expected, got: format!("{got} bytes") }
}

impl From<&Array> for HostArray {
    fn from(array: &Array) -> Self {
        Self { ty: array.ty.clone(), bytes: array.to_bytes() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_survive_the_bytes() {
        let array = HostArray::from_slice([2, 2], &[1.5f32, -0.0, f32::INFINITY, 3.0]).unwrap();
        assert_eq!(array.bytes().len(), 16);
        assert_eq!(array.to_vec::<f32>().unwrap(), [1.5, -0.0, f32::INFINITY, 3.0]);
        assert_eq!(HostArray::from(&array.to_array()), array);
        assert_eq!(HostArray::from_slice([2], &[true, false]).unwrap().bytes(), [1, 0]);
        assert_eq!(HostArray::scalar(bf16::from_f32(2.0)).item::<bf16>().unwrap().to_f32(), 2.0);
        assert_eq!(
            HostArray::from_slice::<u64>([0, 3], &[]).unwrap().to_vec::<u64>().unwrap(),
            [0u64; 0]
        );
    }

    #[test]
    fn mistakes_are_errors() {
        let array = HostArray::from_slice([2], &[1i32, 2]).unwrap();
        assert_eq!(
            array.to_vec::<u32>().unwrap_err().to_string(),
            "the array is i32[2] and was read as u32"
        );
        assert_eq!(
            array.item::<i32>().unwrap_err().to_string(),
            "host data for i32[2] must have 1 element and has 2 elements"
        );
        assert!(HostArray::from_slice([3], &[1i32, 2]).is_err());
        assert!(HostArray::new(TensorType::scalar(DType::F32), vec![0; 3]).is_err());
    }
}
