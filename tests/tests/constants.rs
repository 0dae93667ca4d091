//! Constants come out of XLA bit-identical to the module's.

use podracer_compiler::ops::Constant;
use podracer_compiler::{Array, Builder, DType, Scalar, TensorType};
use podracer_tests::check_all;
use podracer_tests::compare::difference;
use podracer_tests::xla::run;
use std::sync::Arc;

/// Values that a careless conversion would lose.
fn edge_values(dtype: DType) -> Vec<Scalar> {
    if dtype == DType::Bool {
        return vec![Scalar::Bool(true), Scalar::Bool(false), Scalar::Bool(true)];
    }
    if dtype.is_integer() {
        let (least, greatest) = dtype.integer_range();
        return [least, greatest, 0, 1, least + 1, greatest - 1]
            .into_iter()
            .map(Scalar::Int)
            .collect();
    }
    // The greatest finite value and the least positive value, which is subnormal except for bf16,
    // where XLA on the CPU flushes subnormal values to 0.
    let (greatest, least) = match dtype {
        DType::F16 => (65504.0, 2f64.powi(-24)),
        DType::BF16 => (f64::from(f32::from_bits(0x7f7f_0000)), 2f64.powi(-126)),
        DType::F32 => (f64::from(f32::MAX), 2f64.powi(-149)),
        _ => (f64::MAX, f64::from_bits(1)),
    };
    let values = [
        f64::NAN,
        -0.0,
        0.0,
        f64::INFINITY,
        f64::NEG_INFINITY,
        greatest,
        -greatest,
        least,
        1.0 / 3.0,
    ];
    values.into_iter().map(Scalar::Float).collect()
}

#[test]
fn constants_of_every_dtype_and_size() {
    let mut arrays = Vec::new();
    for dtype in DType::ALL {
        let edges = edge_values(dtype);
        for shape in [vec![], vec![0, 3], vec![9], vec![7, 40]] {
            let ty = TensorType::new(dtype, shape);
            let data = (0..ty.elements()).map(|i| edges[i * (i + 1) / 2 % edges.len()]);
            arrays.push(Array::new(ty, data));
        }
        arrays.extend(
            edges.iter().map(|&value| Array::splat(TensorType::new(dtype, [20, 30]), value)),
        );
    }
    let mut b = Builder::new();
    let results = arrays
        .iter()
        .map(|array| b.emit1(Constant { value: Arc::new(array.clone()) }, &[]))
        .collect();
    let got = run(&b.finish("constants", results), &[]).expect("constants compile");
    check_all(
        &arrays
            .iter()
            .zip(&got)
            .filter_map(|(expected, got)| difference(expected, got, 0.0))
            .collect::<Vec<_>>(),
    );
}
