//! Arrays on the host: constants, arguments and results of the reference semantics and of devices, checkpoints.

use crate::scalar::{Element, Scalar};
use crate::types::{DType, TensorType};
use std::hash::{Hash, Hasher};

/// A dense row-major tensor on the host: its type and the bytes of its elements, little-endian, as
/// on a device. A bool takes one byte, 0 or 1.
///
/// ```
/// # use podracer_compiler::{Array, ArrayError};
/// let array = Array::from_slice([2, 2], &[1.5f32, -1.0, 0.0, 3.0])?;
/// assert_eq!(array.ty().to_string(), "f32[2,2]");
/// assert_eq!(array.to_vec::<f32>()?, [1.5, -1.0, 0.0, 3.0]);
/// # Ok::<(), ArrayError>(())
/// ```
///
/// Arrays are equal if their types and values are equal; -0 and 0 differ; NaNs equal each other.
///
/// Invariant: the number of bytes matches the type.
#[derive(Clone, Debug)]
pub struct Array {
    ty: TensorType,
    bytes: Vec<u8>,
}

/// Mistakes with the data of an [`Array`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ArrayError {
    /// The data has another length than the type.
    #[error("host data for {ty} must have {expected} and has {got}")]
    Length {
        /// Type of the array.
        ty: TensorType,
        /// The size that the type requires.
        expected: String,
        /// The size of the data.
        got: String,
    },
    /// An array read as another element type.
    #[error("the array is {ty} and was read as {read_as}")]
    Type {
        /// The array's type.
        ty: TensorType,
        /// The requested type.
        read_as: DType,
    },
}

impl Array {
    /// Makes an array from its elements in row-major order.
    ///
    /// # Errors
    /// [`ArrayError::Length`] if the number of values differs from the number of elements.
    pub fn from_slice<T: Element>(
        shape: impl AsRef<[usize]>,
        values: &[T],
    ) -> Result<Self, ArrayError> {
        let ty = TensorType::new(T::DTYPE, shape);
        if values.len() != ty.elements() {
            let expected = format!("{} elements", ty.elements());
            let got = format!("{} elements", values.len());
            return Err(ArrayError::Length { ty, expected, got });
        }
        let mut bytes = Vec::with_capacity(ty.bytes());
        values.iter().for_each(|value| value.write(&mut bytes));
        Ok(Array { ty, bytes })
    }

    /// Makes an array from bytes in the layout of a device.
    ///
    /// # Errors
    /// [`ArrayError::Length`] if the number of bytes is not `ty.bytes()`.
    pub fn from_bytes(ty: TensorType, bytes: impl Into<Vec<u8>>) -> Result<Self, ArrayError> {
        let bytes = bytes.into();
        if bytes.len() == ty.bytes() {
            return Ok(Array { ty, bytes });
        }
        Err(ArrayError::wrong_bytes(ty, bytes.len()))
    }

    /// Makes a scalar: an array without axes.
    #[must_use]
    pub fn scalar<T: Element>(value: T) -> Self {
        let mut bytes = Vec::with_capacity(T::DTYPE.size());
        value.write(&mut bytes);
        Array { ty: TensorType::scalar(T::DTYPE), bytes }
    }

    /// The words of the key of a seed, the high word first: u32 `[2]`.
    #[must_use]
    pub fn key(seed: u64) -> Self {
        let words = [(seed >> 32) as u32, seed as u32];
        Array { ty: TensorType::new(DType::U32, [2]), bytes: words.map(u32::to_le_bytes).concat() }
    }

    /// An array of zeros: 0, 0.0 or false.
    #[must_use]
    pub fn zeros(ty: TensorType) -> Self {
        let bytes = vec![0; ty.bytes()];
        Array { ty, bytes }
    }

    /// An array from its elements, each converted to the dtype's range: integers wrap, floats
    /// round.
    ///
    /// # Panics
    /// The count must match the type, and the kind of each element (bool, integer, float) its dtype.
    pub fn new(ty: TensorType, elements: impl IntoIterator<Item = Scalar>) -> Self {
        let mut bytes = Vec::with_capacity(ty.bytes());
        let size = ty.dtype.size();
        for element in elements {
            bytes.extend_from_slice(&element.to_bytes(ty.dtype)[..size]);
        }
        assert_eq!(ty.bytes(), bytes.len(), "an array of type {ty} needs one value per element");
        Array { ty, bytes }
    }

    /// An array of type `ty` with `value` as every element.
    pub fn splat(ty: TensorType, value: Scalar) -> Self {
        let element = value.to_bytes(ty.dtype);
        Array { bytes: element[..ty.dtype.size()].repeat(ty.elements()), ty }
    }

    /// An array of rank 0 with the element `value`.
    pub fn single(dtype: DType, value: Scalar) -> Self {
        Array::splat(TensorType::scalar(dtype), value)
    }

    /// A float array from f64 values, rounded to the dtype.
    pub fn floats(dtype: DType, shape: impl AsRef<[usize]>, values: &[f64]) -> Self {
        Array::new(TensorType::new(dtype, shape), values.iter().map(|&value| Scalar::Float(value)))
    }

    /// An integer array, wrapped to the dtype.
    pub fn ints(dtype: DType, shape: impl AsRef<[usize]>, values: &[i128]) -> Self {
        Array::new(TensorType::new(dtype, shape), values.iter().map(|&value| Scalar::Int(value)))
    }

    /// An array of bools, in row-major order.
    pub fn bools(shape: impl AsRef<[usize]>, values: &[bool]) -> Self {
        Array::new(
            TensorType::new(DType::Bool, shape),
            values.iter().map(|&value| Scalar::Bool(value)),
        )
    }

    /// An array with `f(index)` as the element at `index`.
    pub fn from_fn(ty: TensorType, mut f: impl FnMut(&[usize]) -> Scalar) -> Self {
        let (mut bytes, size) = (Vec::with_capacity(ty.bytes()), ty.dtype.size());
        for_each_index(&ty.shape, |index| {
            bytes.extend_from_slice(&f(index).to_bytes(ty.dtype)[..size]);
        });
        Array { ty, bytes }
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
    /// [`ArrayError::Type`] if the array's element type is not `T`.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>, ArrayError> {
        self.expect::<T>()?;
        Ok(self.bytes.chunks_exact(T::DTYPE.size()).map(T::read).collect())
    }

    /// The only element.
    ///
    /// # Errors
    /// [`ArrayError::Type`] if the element type is not `T`, [`ArrayError::Length`] if there is not
    /// exactly one element.
    pub fn item<T: Element>(&self) -> Result<T, ArrayError> {
        self.expect::<T>()?;
        if self.ty.elements() == 1 {
            return Ok(T::read(&self.bytes));
        }
        let got = format!("{} elements", self.ty.elements());
        Err(ArrayError::Length { ty: self.ty.clone(), expected: "1 element".to_owned(), got })
    }

    /// All elements as f64, for any element type.
    pub fn to_f64(&self) -> Vec<f64> {
        self.scalars().map(Scalar::float).collect()
    }

    /// The number of elements that are NaN or infinite: 0 for integers and bools.
    #[must_use]
    pub fn not_finite(&self) -> usize {
        if !self.ty.dtype.is_float() {
            return 0;
        }
        self.scalars().filter(|value| !value.float().is_finite()).count()
    }

    /// The elements in row-major order, for any element type.
    pub fn scalars(&self) -> impl ExactSizeIterator<Item = Scalar> + DoubleEndedIterator {
        let dtype = self.ty.dtype;
        self.bytes.chunks_exact(dtype.size()).map(move |bytes| Scalar::read(dtype, bytes))
    }

    /// The element at a row-major position.
    pub fn get(&self, position: usize) -> Scalar {
        let size = self.ty.dtype.size();
        Scalar::read(self.ty.dtype, &self.bytes[position * size..][..size])
    }

    /// The element at a multi-index.
    pub fn at(&self, index: &[usize]) -> Scalar {
        self.get(ravel(&self.ty.shape, index))
    }

    /// Replaces the element at a multi-index.
    pub fn set(&mut self, index: &[usize], value: Scalar) {
        self.put(ravel(&self.ty.shape, index), value);
    }

    /// Replaces the element at a row-major position.
    pub fn put(&mut self, position: usize, value: Scalar) {
        let size = self.ty.dtype.size();
        let element = &value.to_bytes(self.ty.dtype)[..size];
        self.bytes[position * size..][..size].copy_from_slice(element);
    }

    /// The value shared by all elements, if they are all the same and there is at least one.
    pub fn splat_value(&self) -> Option<Scalar> {
        let first = self.scalars().next()?;
        self.scalars().all(|value| value == first).then_some(first)
    }

    /// The slice at position `i` of the leading axis.
    pub fn index_leading(&self, i: usize) -> Self {
        let ty = self.ty.unstacked();
        let size = ty.bytes();
        Array { bytes: self.bytes[i * size..(i + 1) * size].to_vec(), ty }
    }

    /// Stacks arrays of type `ty` along a new leading axis; `arrays` may be empty.
    pub fn stack(ty: &TensorType, arrays: &[Array]) -> Self {
        let bytes: Vec<u8> = arrays.iter().flat_map(|array| array.bytes.iter().copied()).collect();
        let ty = ty.stacked(arrays.len());
        assert_eq!(ty.bytes(), bytes.len(), "an array of type {ty} needs one value per element");
        Array { ty, bytes }
    }

    fn expect<T: Element>(&self) -> Result<(), ArrayError> {
        if self.ty.dtype == T::DTYPE {
            return Ok(());
        }
        Err(ArrayError::Type { ty: self.ty.clone(), read_as: T::DTYPE })
    }
}

impl ArrayError {
    /// The error for a number of bytes that does not match the type `ty`.
    #[must_use]
    pub fn wrong_bytes(ty: TensorType, got: usize) -> Self {
        let expected = format!("{} bytes", ty.bytes());
        ArrayError::Length { ty, expected, got: format!("{got} bytes") }
    }
}

impl PartialEq for Array {
    fn eq(&self, other: &Self) -> bool {
        let same = self.ty == other.ty;
        same && (self.bytes == other.bytes
            || self.ty.dtype.is_float() && self.scalars().eq(other.scalars()))
    }
}

impl Eq for Array {}

impl Hash for Array {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.ty.hash(state);
        if self.ty.dtype.is_float() {
            self.scalars().for_each(|value| value.hash(state));
        } else {
            self.bytes.hash(state);
        }
    }
}

/// The position of a multi-index in row-major order.
pub fn ravel(shape: &[usize], index: &[usize]) -> usize {
    debug_assert_eq!(shape.len(), index.len());
    index.iter().zip(shape).fold(0, |flat, (&i, &extent)| {
        debug_assert!(i < extent, "index {index:?} outside of shape {shape:?}");
        flat * extent + i
    })
}

/// Calls `f` with every multi-index of `shape`, in row-major order.
pub fn for_each_index(shape: &[usize], mut f: impl FnMut(&[usize])) {
    if shape.contains(&0) {
        return;
    }
    let mut index = vec![0; shape.len()];
    loop {
        f(&index);
        let Some(axis) = (0..shape.len()).rev().find(|&axis| index[axis] + 1 < shape[axis]) else {
            return;
        };
        index[axis] += 1;
        index[axis + 1..].fill(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use half::bf16;

    #[test]
    fn elements_survive_the_bytes() {
        let array = Array::from_slice([2, 2], &[1.5f32, -0.0, f32::INFINITY, 3.0]).unwrap();
        assert_eq!(array.bytes().len(), 16);
        assert_eq!(array.to_vec::<f32>().unwrap(), [1.5, -0.0, f32::INFINITY, 3.0]);
        assert_eq!(Array::new(array.ty().clone(), array.scalars()), array);
        assert_eq!(Array::from_slice([2], &[true, false]).unwrap().bytes(), [1, 0]);
        assert_eq!(Array::scalar(bf16::from_f32(2.0)).item::<bf16>().unwrap().to_f32(), 2.0);
        let none = Array::from_slice::<u64>([0, 3], &[]).unwrap();
        assert_eq!(none.to_vec::<u64>().unwrap(), [0u64; 0]);
    }

    #[test]
    fn every_dtype_keeps_its_edges() {
        for dtype in DType::ALL.into_iter().filter(|dtype| dtype.is_integer()) {
            let (least, greatest) = dtype.integer_range();
            let array = Array::ints(dtype, [3], &[least, greatest, greatest + 1]);
            let wrapped = [least, greatest, least].map(Scalar::Int);
            assert_eq!(array.scalars().collect::<Vec<_>>(), wrapped, "{dtype}");
        }
    }

    #[test]
    fn nans_are_equal_and_zeros_are_not() {
        let f32s = |bits: u32| Array::scalar(f32::from_bits(bits));
        assert_eq!(f32s(0x7fc0_0000), f32s(0xffc0_1234));
        assert_ne!(f32s(0), f32s(0x8000_0000));
        assert_eq!(
            Array::from_slice([3], &[f64::NAN, 1.0, f64::INFINITY]).unwrap().not_finite(),
            2
        );
    }

    #[test]
    fn mistakes_are_errors() {
        let array = Array::from_slice([2], &[1i32, 2]).unwrap();
        assert_eq!(
            array.to_vec::<u32>().unwrap_err().to_string(),
            "the array is i32[2] and was read as u32"
        );
        assert_eq!(
            array.item::<i32>().unwrap_err().to_string(),
            "host data for i32[2] must have 1 element and has 2 elements"
        );
        assert!(Array::from_slice([3], &[1i32, 2]).is_err());
        assert!(Array::from_bytes(TensorType::scalar(DType::F32), [0; 3]).is_err());
    }
}
