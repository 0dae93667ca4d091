//! Arrays as safetensors.

use std::collections::BTreeMap;

use podracer_compiler::{DType, TensorType};
use safetensors::tensor::{Dtype, SafeTensors, TensorView};

use crate::HostArray;

/// Arrays by name: key paths for the most part.
pub type NamedArrays = BTreeMap<String, HostArray>;

/// The types of safetensors and ours.
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

/// The bytes of a safetensors file. The same arrays give the same bytes.
///
/// # Errors
/// A sentence about the array that cannot be written.
pub fn to_safetensors(arrays: &NamedArrays) -> Result<Vec<u8>, String> {
    let mut tensors = BTreeMap::new();
    for (name, array) in arrays {
        let ty = array.ty();
        let dtype = DTYPES.iter().find(|(ours, _)| *ours == ty.dtype);
        let (_, dtype) = dtype.ok_or_else(|| format!("`{name}` is {ty}"))?;
        let view = TensorView::new(*dtype, ty.shape.to_vec(), array.bytes());
        let view = view.map_err(|error| format!("`{name}` is {ty}: {error}"))?;
        tensors.insert(name.as_str(), view);
    }
    safetensors::serialize(tensors, None).map_err(|error| error.to_string())
}

/// The arrays of a safetensors file.
///
/// # Errors
/// A sentence about what is wrong with the bytes.
pub fn from_safetensors(bytes: &[u8]) -> Result<NamedArrays, String> {
    let tensors = SafeTensors::deserialize(bytes).map_err(|error| error.to_string())?;
    let mut arrays = NamedArrays::new();
    for (name, view) in tensors.iter() {
        let dtype = DTYPES.iter().find(|(_, theirs)| *theirs == view.dtype());
        let (dtype, _) = dtype
            .ok_or_else(|| format!("`{name}` is of {:?}, which is no type here", view.dtype()))?;
        let ty = TensorType::new(*dtype, view.shape());
        let array = HostArray::new(ty, view.data().to_vec());
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
                let bytes = (0..ty.bytes()).map(|i| (i % 2) as u8).collect();
                arrays.insert(format!("a.{ty}"), HostArray::new(ty, bytes).unwrap());
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
