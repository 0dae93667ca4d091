//! The records of other packages' trajectories, as the README of `tests/golden` describes them.

use podracer_dsl::prelude::*;
use serde_json::Value;

/// All records of an environment in `envs.json`.
pub fn records(env: &str) -> Vec<Value> {
    records_of("envs.json", env)
}

/// All records of an environment in a golden file.
pub fn records_of(file: &str, env: &str) -> Vec<Value> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/golden/");
    let path = format!("{folder}{file}");
    let text = std::fs::read_to_string(path).expect("the golden file is checked in");
    let file: Value = serde_json::from_str(&text).expect("it is JSON");
    let records = file["records"].as_array().expect("it has records");
    let of_env: Vec<Value> =
        records.iter().filter(|record| record["env"] == env).cloned().collect();
    assert!(!of_env.is_empty(), "{env} has no records");
    of_env
}

/// An array of a record.
pub fn array(value: &Value) -> Array {
    let dtype = DType::parse(value["dtype"].as_str().expect("dtype")).expect("a dtype");
    let shape: Vec<usize> = value["shape"]
        .as_array()
        .expect("shape")
        .iter()
        .map(|n| n.as_u64().expect("extent") as usize)
        .collect();
    let data = value["data"].as_array().expect("data");
    match dtype {
        DType::Bool => Array::bools(
            shape,
            &data.iter().map(|x| x.as_bool().expect("bool")).collect::<Vec<_>>(),
        ),
        dtype if dtype.is_integer() => Array::ints(
            dtype,
            shape,
            &data.iter().map(|x| i128::from(x.as_i64().expect("integer"))).collect::<Vec<_>>(),
        ),
        dtype => Array::floats(
            dtype,
            shape,
            &data.iter().map(|x| x.as_f64().expect("float")).collect::<Vec<_>>(),
        ),
    }
}
