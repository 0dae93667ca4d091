//! The values of other packages that are checked in under `tests/golden`, as its README describes them.

use crate::workspace;
use anyhow::{Context as _, Result, anyhow, bail};
use podracer_compiler::{Array, DType, Scalar, TensorType};
use serde_json::Value;

/// The records of a golden file, or nothing where the file is not there.
///
/// # Errors
/// An error if it does not have the README's format.
pub fn records(file: &str) -> Result<Option<Vec<Value>>> {
    let path = workspace::root().join("tests/golden").join(file);
    let Ok(text) = std::fs::read_to_string(&path) else {
        return Ok(None);
    };
    let mut value: Value =
        serde_json::from_str(&text).with_context(|| path.display().to_string())?;
    match value["records"].take() {
        Value::Array(records) => Ok(Some(records)),
        _ => bail!("{file} has no records"),
    }
}

/// An array of a record.
///
/// # Errors
/// Where it is not `{"dtype", "shape", "data"}` with data that fit.
pub fn array(value: &Value) -> Result<Array> {
    let name = value["dtype"].as_str().ok_or_else(|| anyhow!("no dtype in {value}"))?;
    let dtype = DType::parse(name).ok_or_else(|| anyhow!("no dtype is called {name}"))?;
    let shape = list(value, "shape")?
        .iter()
        .map(|extent| Ok(usize::try_from(integer(extent)?)?))
        .collect::<Result<Vec<_>>>()?;
    let data = list(value, "data")?
        .iter()
        .map(|element| scalar(dtype, element))
        .collect::<Result<Vec<_>>>()?;
    let ty = TensorType::new(dtype, shape);
    if ty.elements() != data.len() {
        bail!("{} values for {ty}", data.len());
    }
    Ok(Array::new(ty, data))
}

/// A list of arrays.
///
/// # Errors
/// As [`array()`].
pub fn arrays(value: &Value) -> Result<Vec<Array>> {
    value
        .as_array()
        .ok_or_else(|| anyhow!("no list of arrays: {value}"))?
        .iter()
        .map(array)
        .collect()
}

fn list<'v>(value: &'v Value, key: &str) -> Result<&'v Vec<Value>> {
    value[key].as_array().ok_or_else(|| anyhow!("no list `{key}`"))
}

fn integer(value: &Value) -> Result<i128> {
    let wide = value.as_i64().map(i128::from).or_else(|| value.as_u64().map(i128::from));
    wide.ok_or_else(|| anyhow!("{value} is no integer"))
}

fn scalar(dtype: DType, value: &Value) -> Result<Scalar> {
    if dtype == DType::Bool {
        let flag = value.as_bool().or_else(|| value.as_u64().map(|bit| bit != 0));
        return flag.map(Scalar::Bool).ok_or_else(|| anyhow!("{value} is no bool"));
    }
    if dtype.is_integer() {
        return integer(value).map(Scalar::Int);
    }
    let named = match value.as_str() {
        Some("nan") => Some(f64::NAN),
        Some("inf") => Some(f64::INFINITY),
        Some("-inf") => Some(f64::NEG_INFINITY),
        _ => value.as_f64(),
    };
    named.map(Scalar::Float).ok_or_else(|| anyhow!("{value} is no float"))
}
