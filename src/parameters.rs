//! Parameters in files, and the hash by which runs are compared.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use podracer_compiler::DType;
use podracer_runtime::HostArray;
use safetensors::Dtype;
use safetensors::tensor::TensorView;
use sha2::{Digest, Sha256};

use crate::files::write_whole;

/// Writes arrays as safetensors, with key paths as names: the whole file, or none.
///
/// # Errors
/// Where the file cannot be written, or two arrays share a name.
pub fn save(parameters: &[(String, HostArray)], path: &Path) -> Result<()> {
    write_whole(path, &safetensors(parameters)?)
}

fn safetensors(parameters: &[(String, HostArray)]) -> Result<Vec<u8>> {
    let mut tensors = BTreeMap::new();
    for (name, array) in parameters {
        let (dtype, shape) = (dtype(array.ty().dtype), array.ty().shape.to_vec());
        let view = TensorView::new(dtype, shape, array.bytes())
            .with_context(|| format!("the parameter `{name}` cannot be written"))?;
        ensure!(
            tensors.insert(name.as_str(), view).is_none(),
            "two parameters have the key path `{name}`"
        );
    }
    safetensors::serialize(tensors, None).context("the parameters cannot be written as safetensors")
}

/// sha256 over the parameters in the order of their key paths: of each the path, a zero byte, the type (`f32[64,4]`), a zero byte,
/// and the elements' bytes. In lower-case hexadecimal.
#[must_use]
pub fn sha256(parameters: &[(String, HostArray)]) -> String {
    let sorted: BTreeMap<&str, &HostArray> = parameters
        .iter()
        .map(|(name, array)| (name.as_str(), array))
        .collect();
    let mut hasher = Sha256::new();
    for (name, array) in sorted {
        hasher.update(name.as_bytes());
        hasher.update([0]);
        hasher.update(array.ty().to_string().as_bytes());
        hasher.update([0]);
        hasher.update(array.bytes());
    }
    format!("{:x}", hasher.finalize())
}

fn dtype(dtype: DType) -> Dtype {
    match dtype {
        DType::Bool => Dtype::BOOL,
        DType::I8 => Dtype::I8,
        DType::I16 => Dtype::I16,
        DType::I32 => Dtype::I32,
        DType::I64 => Dtype::I64,
        DType::U8 => Dtype::U8,
        DType::U16 => Dtype::U16,
        DType::U32 => Dtype::U32,
        DType::U64 => Dtype::U64,
        DType::F16 => Dtype::F16,
        DType::BF16 => Dtype::BF16,
        DType::F32 => Dtype::F32,
        DType::F64 => Dtype::F64,
    }
}
