//! Host values: what constants hold and what the reference semantics compute with.
//!
//! Invariant: `data` has one element per element of `ty`, in row-major order, and every element is a value of the
//! dtype: integers within its range, floats exactly representable.

use crate::types::{DType, TensorType};
use std::hash::{Hash, Hasher};

/// One element of an [`Array`].
#[derive(Clone, Copy, Debug)]
pub enum Scalar {
    /// A truth value.
    Bool(bool),
    /// An integer of any width, held wide enough for all of them.
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

    /// The value as f64, whatever the type.
    pub fn float(self) -> f64 {
        match self {
            Scalar::Bool(value) => f64::from(u8::from(value)),
            Scalar::Int(value) => value as f64,
            Scalar::Float(value) => value,
        }
    }

    /// The value brought into `dtype`'s range: integers wrap, floats round. The kind (bool, integer, float) must fit.
    pub fn normalized(self, dtype: DType) -> Scalar {
        match self {
            Scalar::Int(value) => Scalar::Int(dtype.wrap(value)),
            Scalar::Float(value) => Scalar::Float(dtype.round(value)),
            same => same,
        }
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

/// A dense row-major tensor value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Array {
    /// Element type and shape.
    pub ty: TensorType,
    /// The elements, row-major.
    pub data: Vec<Scalar>,
}

impl Array {
    /// An array from its elements, each brought into the dtype's range. The count must match the type.
    pub fn new(ty: TensorType, data: Vec<Scalar>) -> Array {
        assert_eq!(ty.elements(), data.len(), "an array of type {ty} needs one value per element");
        let data = data.into_iter().map(|value| value.normalized(ty.dtype)).collect();
        Array { ty, data }
    }

    /// An array of type `ty` whose elements are all `value`.
    pub fn splat(ty: TensorType, value: Scalar) -> Array {
        let data = vec![value.normalized(ty.dtype); ty.elements()];
        Array { ty, data }
    }

    /// The array of rank 0 with this one element.
    pub fn scalar(dtype: DType, value: Scalar) -> Array {
        Array::splat(TensorType::scalar(dtype), value)
    }

    /// A float array from f64 values, rounded to the dtype.
    pub fn floats(dtype: DType, shape: impl AsRef<[usize]>, values: &[f64]) -> Array {
        Array::new(
            TensorType::new(dtype, shape),
            values.iter().map(|&value| Scalar::Float(value)).collect(),
        )
    }

    /// An integer array, wrapped to the dtype.
    pub fn ints(dtype: DType, shape: impl AsRef<[usize]>, values: &[i128]) -> Array {
        Array::new(
            TensorType::new(dtype, shape),
            values.iter().map(|&value| Scalar::Int(value)).collect(),
        )
    }

    /// An array of bools, in row-major order.
    pub fn bools(shape: impl AsRef<[usize]>, values: &[bool]) -> Array {
        Array::new(
            TensorType::new(DType::Bool, shape),
            values.iter().map(|&value| Scalar::Bool(value)).collect(),
        )
    }

    /// An array whose element at `index` is `f(index)`.
    pub fn from_fn(ty: TensorType, mut f: impl FnMut(&[usize]) -> Scalar) -> Array {
        let mut data = Vec::with_capacity(ty.elements());
        for_each_index(&ty.shape, |index| data.push(f(index)));
        Array::new(ty, data)
    }

    /// The element at a multi-index.
    pub fn at(&self, index: &[usize]) -> Scalar {
        self.data[ravel(&self.ty.shape, index)]
    }

    /// Replaces the element at a multi-index.
    pub fn set(&mut self, index: &[usize], value: Scalar) {
        let flat = ravel(&self.ty.shape, index);
        self.data[flat] = value.normalized(self.ty.dtype);
    }

    /// The value shared by all elements, if they are all the same and there is at least one.
    pub fn splat_value(&self) -> Option<Scalar> {
        let first = *self.data.first()?;
        self.data.iter().all(|value| *value == first).then_some(first)
    }

    /// All elements as f64.
    pub fn to_f64(&self) -> Vec<f64> {
        self.data.iter().map(|value| value.float()).collect()
    }

    /// The slice at position `i` of the leading axis.
    pub fn index_leading(&self, i: usize) -> Array {
        let ty = self.ty.unstacked();
        let size = ty.elements();
        Array { data: self.data[i * size..(i + 1) * size].to_vec(), ty }
    }

    /// Stacks arrays of type `ty` along a new leading axis; `arrays` may be empty.
    pub fn stack(ty: &TensorType, arrays: &[Array]) -> Array {
        let data = arrays.iter().flat_map(|array| array.data.iter().copied()).collect();
        Array::new(ty.stacked(arrays.len()), data)
    }

    /// The elements as little-endian bytes, as a device buffer holds them (bool: one byte).
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.ty.bytes());
        let size = self.ty.dtype.size();
        for &value in &self.data {
            match (self.ty.dtype, value) {
                (DType::F16, v) => bytes.extend(half::f16::from_f64(v.float()).to_le_bytes()),
                (DType::BF16, v) => bytes.extend(half::bf16::from_f64(v.float()).to_le_bytes()),
                (DType::F32, v) => bytes.extend((v.float() as f32).to_le_bytes()),
                (DType::F64, v) => bytes.extend(v.float().to_le_bytes()),
                (_, v) => bytes.extend(&v.int().to_le_bytes()[..size]),
            }
        }
        bytes
    }

    /// The reverse of [`Array::to_bytes`]; the length must match the type.
    pub fn from_bytes(ty: TensorType, bytes: &[u8]) -> Array {
        assert_eq!(ty.bytes(), bytes.len(), "an array of type {ty} needs {} bytes", ty.bytes());
        let dtype = ty.dtype;
        let data = bytes.chunks_exact(dtype.size()).map(|chunk| {
            let mut wide = [0u8; 16];
            wide[..chunk.len()].copy_from_slice(chunk);
            let bits = i128::from_le_bytes(wide);
            match dtype {
                DType::Bool => Scalar::Bool(bits != 0),
                DType::F16 => Scalar::Float(half::f16::from_bits(bits as u16).to_f64()),
                DType::BF16 => Scalar::Float(half::bf16::from_bits(bits as u16).to_f64()),
                DType::F32 => Scalar::Float(f64::from(f32::from_bits(bits as u32))),
                DType::F64 => Scalar::Float(f64::from_bits(bits as u64)),
                _ => Scalar::Int(dtype.wrap(bits)),
            }
        });
        Array { data: data.collect(), ty }
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
