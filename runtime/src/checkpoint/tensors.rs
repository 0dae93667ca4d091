//! Arrays as safetensors.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;

use podracer_compiler::{DType, TensorType};
use safetensors::tensor::{Dtype, Metadata, SafeTensors, TensorInfo};

use crate::Array;

/// Arrays by name: mostly key paths.
pub type NamedArrays = BTreeMap<String, Array>;

/// Greatest length of a header in bytes, as in the crate `safetensors`.
const LARGEST_HEADER: u64 = 100_000_000;

/// Element types of podracer and of safetensors.
const DTYPES: [(DType, Dtype); 13] = [
    (DType::Bool, Dtype::BOOL),
    (DType::I8, Dtype::I8),
    (DType::I16, Dtype::I16),
    (DType::I32, Dtype::I32),
    (DType::I64, Dtype::I64),
    (DType::U8, Dtype::U8),
    (DType::U16, Dtype::U16),
    (DType::U32, Dtype::U32),
    (DType::U64, Dtype::U64),
    (DType::F16, Dtype::F16),
    (DType::BF16, Dtype::BF16),
    (DType::F32, Dtype::F32),
    (DType::F64, Dtype::F64),
];

/// The header of a safetensors file, and the names of its arrays in the order of their bytes.
/// Larger element types come first, so that every array is aligned; then names decide.
///
/// # Errors
/// A sentence about the array that cannot be written.
pub(super) fn header<'a>(
    types: impl IntoIterator<Item = (&'a str, &'a TensorType)>,
) -> Result<(Vec<u8>, Vec<&'a str>), String> {
    let mut tensors = Vec::new();
    for (name, ty) in types {
        let dtype = DTYPES.iter().find(|(ours, _)| *ours == ty.dtype);
        let (_, dtype) = dtype.ok_or_else(|| format!("`{name}` is {ty}"))?;
        tensors.push((*dtype, name, ty));
    }
    tensors.sort_by(|one, other| other.0.cmp(&one.0).then(one.1.cmp(other.1)));
    let mut end = 0;
    let infos = tensors.iter().map(|&(dtype, name, ty)| {
        let start = end;
        end += ty.bytes();
        let shape = ty.shape.to_vec();
        (name.to_owned(), TensorInfo { dtype, shape, data_offsets: (start, end) })
    });
    let metadata = Metadata::new(None, infos.collect()).map_err(|error| error.to_string())?;
    let mut json = serde_json::to_vec(&metadata).map_err(|error| error.to_string())?;
    json.resize(json.len().next_multiple_of(8), b' ');
    let mut header = (json.len() as u64).to_le_bytes().to_vec();
    header.append(&mut json);
    Ok((header, tensors.into_iter().map(|(_, name, _)| name).collect()))
}

/// Name, type and first byte of every array in a safetensors file with `bytes` bytes.
///
/// # Errors
/// A sentence about the first mistake in the header.
pub(super) fn read_header(
    file: &File,
    bytes: u64,
) -> Result<Vec<(String, TensorType, u64)>, String> {
    let mut size = [0; 8];
    file.read_exact_at(&mut size, 0).map_err(|error| error.to_string())?;
    let size = u64::from_le_bytes(size);
    let start = size.checked_add(8).filter(|&start| start <= bytes.min(LARGEST_HEADER));
    let start = start.ok_or_else(|| format!("its header has {size} bytes"))?;
    let mut json = vec![0; size as usize];
    file.read_exact_at(&mut json, 8).map_err(|error| error.to_string())?;
    // It checks that the arrays are contiguous, and that the number of bytes of each matches its
    // type.
    let metadata: Metadata = serde_json::from_slice(&json).map_err(|error| error.to_string())?;
    if start + metadata.data_len() as u64 != bytes {
        return Err("its header has another number of bytes".to_owned());
    }
    let mut tensors = Vec::new();
    for name in metadata.offset_keys() {
        if let Some(info) = metadata.info(&name) {
            let ty = tensor_type(&name, info.dtype, &info.shape)?;
            tensors.push((name, ty, start + info.data_offsets.0 as u64));
        }
    }
    Ok(tensors)
}

fn tensor_type(name: &str, dtype: Dtype, shape: &[usize]) -> Result<TensorType, String> {
    let ours = DTYPES.iter().find(|(_, theirs)| *theirs == dtype);
    let (ours, _) = ours
        .ok_or_else(|| format!("`{name}` has the type {dtype:?}, which podracer does not have"))?;
    Ok(TensorType::new(*ours, shape))
}

/// The bytes of a safetensors file. Equal arrays give equal bytes.
///
/// # Errors
/// A sentence about the array that cannot be written.
pub fn to_safetensors(arrays: &NamedArrays) -> Result<Vec<u8>, String> {
    let types = arrays.iter().map(|(name, array)| (name.as_str(), array.ty()));
    let (mut bytes, order) = header(types)?;
    order.into_iter().for_each(|name| bytes.extend(arrays[name].bytes()));
    Ok(bytes)
}

/// The arrays of a safetensors file.
///
/// # Errors
/// A sentence about the problem with the bytes.
pub fn from_safetensors(bytes: &[u8]) -> Result<NamedArrays, String> {
    let tensors = SafeTensors::deserialize(bytes).map_err(|error| error.to_string())?;
    let mut arrays = NamedArrays::new();
    for (name, view) in tensors.iter() {
        let ty = tensor_type(name, view.dtype(), view.shape())?;
        let array = Array::from_bytes(ty, view.data().to_vec());
        let array = array.map_err(|error| format!("`{name}`: {error}"))?;
        arrays.insert(name.to_owned(), array);
    }
    Ok(arrays)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_reads_back() {
        let mut arrays = NamedArrays::new();
        for dtype in DType::ALL {
            for shape in [vec![], vec![3], vec![2, 0], vec![2, 1, 2]] {
                let ty = TensorType::new(dtype, shape);
                let bytes: Vec<u8> = (0..ty.bytes()).map(|i| (i % 2) as u8).collect();
                arrays.insert(format!("a.{ty}"), Array::from_bytes(ty, bytes).unwrap());
            }
        }
        let bytes = to_safetensors(&arrays).unwrap();
        assert_eq!(from_safetensors(&bytes).unwrap(), arrays);
        assert_eq!(to_safetensors(&arrays).unwrap(), bytes);
        for end in [0, 7, bytes.len() / 2, bytes.len() - 1] {
            from_safetensors(&bytes[..end]).unwrap_err();
        }
    }
}
