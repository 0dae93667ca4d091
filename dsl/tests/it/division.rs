//! Division and remainder in all their forms against jax, for every dtype, at all pairs of edge values.

use crate::golden::{array, file};
use crate::helpers::run_on;
use podracer_compiler::Scalar;
use podracer_dsl::prelude::*;

/// Greatest error of a float, relative to 1 and more: XLA keeps intermediate values in f32 where it is smaller.
fn tolerance(dtype: DType) -> f64 {
    match dtype {
        DType::BF16 => 8e-3,
        DType::F16 => 1e-3,
        DType::F32 => 1e-6,
        _ => 1e-14,
    }
}

fn same(got: Scalar, expected: Scalar, tolerance: f64) -> bool {
    match (got, expected) {
        (Scalar::Float(got), Scalar::Float(expected)) if expected.is_finite() => {
            (got - expected).abs() <= tolerance * expected.abs().max(1.0)
        }
        (got, expected) => got == expected,
    }
}

#[test]
fn division_and_remainder_are_those_of_jax() {
    let mut wrong = Vec::new();
    for record in file("division.json") {
        let op = record["op"].as_str().expect("a name");
        let [x, y] = [0, 1].map(|i| array(&record["inputs"][i]));
        let expected = array(&record["outputs"][0]);
        let dtype = x.ty().dtype;
        let types = [x.ty().clone(), y.ty().clone()];
        let got = run_on(types, &[x.clone(), y.clone()], |[x, y]| match op {
            "div" => x / y,
            "rem" => x % y,
            "floor_div" => x.floor_div(y),
            "modulo" => x.modulo(y),
            _ => panic!("no {op}"),
        });
        for i in 0..x.ty().elements() {
            let (got, mut expected) = (got[0].get(i), expected.get(i));
            // By zero the quotient has all bits set; jnp subtracts 1 more if the dividend is
            // positive.
            if (op, y.get(i)) == ("floor_div", Scalar::Int(0)) && expected == Scalar::Int(-2) {
                expected = Scalar::Int(-1);
            }
            if !same(got, expected, tolerance(dtype)) {
                let (x, y) = (x.get(i), y.get(i));
                wrong.push(format!(
                    "{op} {dtype:?} of {x:?} and {y:?}: expected {expected:?}, got {got:?}"
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
}
