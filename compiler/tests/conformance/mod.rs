//! Checks of every op with the samples that it brings along. An op that stands in the registry is tested here
//! without being named.
//!
//! Invariant: a check looks at rules only through the public transforms, as a program does.

mod attributes;
pub mod batching;
pub mod first_order;
mod hostile;
mod lowering;
pub mod passes;
mod random;
pub mod second_order;
mod structure;
pub mod text;
mod types;
mod widen;

pub use random::Random;

use podracer_compiler::ops::registry;
use podracer_compiler::{Array, Builder, DType, Func, OpRef, Sample, Scalar, TensorType};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A sample with a name to fail by.
pub struct Case {
    /// The registry's mnemonic.
    pub mnemonic: &'static str,
    /// Op, number of the sample, operand types.
    pub name: String,
    /// The sample that is checked.
    pub sample: Sample,
}

/// Every sample of every op.
pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for entry in registry::all() {
        for (number, sample) in (entry.samples)().into_iter().enumerate() {
            let types: Vec<String> =
                sample.inputs.iter().map(|input| input.ty().to_string()).collect();
            let name = format!("{} sample {number} ({})", entry.mnemonic, types.join(", "));
            cases.push(Case { mnemonic: entry.mnemonic, name, sample });
        }
    }
    cases
}

/// Runs a check over some cases and fails with all that fail, each by its name. `PODRACER_OP` restricts it to one op.
pub fn check_all(cases: Vec<Case>, check: impl Fn(&Case) -> Result<(), String>) {
    let only = std::env::var("PODRACER_OP").ok();
    let mut failures = Vec::new();
    for case in cases.iter().filter(|case| only.as_deref().is_none_or(|only| only == case.mnemonic))
    {
        match catch_unwind(AssertUnwindSafe(|| check(case))) {
            Ok(Ok(())) => {}
            Ok(Err(message)) => {
                failures.push(format!("{}: {message}\n  {:?}", case.name, case.sample.op))
            }
            Err(panic) => {
                let message = panic
                    .downcast_ref::<String>()
                    .cloned()
                    .or(panic.downcast_ref::<&str>().map(ToString::to_string))
                    .unwrap_or_default();
                failures
                    .push(format!("{}: panicked: {message}\n  {:?}", case.name, case.sample.op));
            }
        }
    }
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}

/// The function that applies one op to its parameters.
pub fn func_of(op: &OpRef, types: &[TensorType]) -> Result<Func, String> {
    let mut b = Builder::new();
    let params: Vec<_> = types.iter().map(|ty| b.param(ty.clone())).collect();
    let results = b
        .try_emit(op.clone(), &params)
        .map_err(|error| format!("infer rejects the sample: {error}"))?;
    Ok(b.finish("sample", results))
}

/// The types of some arrays.
pub fn types_of(arrays: &[Array]) -> Vec<TensorType> {
    arrays.iter().map(|array| array.ty().clone()).collect()
}

/// Compares values: floats to within `tolerance` relative to max(1, |expected|), all else exactly.
pub fn close(what: &str, got: &Array, expected: &Array, tolerance: f64) -> Result<(), String> {
    if got.ty() != expected.ty() {
        return Err(format!("{what}: expected type {}, got {}", expected.ty(), got.ty()));
    }
    for (i, (x, y)) in got.scalars().zip(expected.scalars()).enumerate() {
        let same = match (x, y) {
            (Scalar::Float(x), Scalar::Float(y)) => {
                x == y
                    || (x.is_nan() && y.is_nan())
                    || (x - y).abs() <= tolerance * y.abs().max(1.0)
            }
            (x, y) => x == y,
        };
        if !same {
            return Err(format!(
                "{what}: element {i}: expected {y:?}, got {x:?}\n  expected {expected}\n  got      {got}"
            ));
        }
    }
    Ok(())
}

/// A few roundings in a dtype.
pub fn rounding(dtype: DType) -> f64 {
    match dtype {
        DType::BF16 => 0.03,
        DType::F16 => 0.004,
        DType::F32 => 1e-6,
        _ => 1e-14,
    }
}
