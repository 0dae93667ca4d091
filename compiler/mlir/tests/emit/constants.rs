//! Constants are exact, and no longer than they need to be.

use crate::double::{check, func, module, ty};
use crate::programs;
use podracer_compiler::lower::{hlo_constant, hlo_splat};
use podracer_compiler::ops::Scan;
use podracer_compiler::{Array, Builder, DType, Scalar};
use std::sync::Arc;

#[test]
fn every_dtype_at_its_edges() {
    let texts: Vec<String> =
        DType::ALL.iter().map(|&dtype| module(&programs::constants(dtype)).text).collect();
    insta::assert_snapshot!(texts.concat());
}

#[test]
fn large_bools_are_converted_bytes() {
    let text = module(&programs::large_constants()).text;
    check(
        &text,
        &["\"stablehlo.convert\"", "(tensor<3x50xui8>) -> tensor<3x50xi1>", ": tensor<3x50xf32>"],
    );
    assert_eq!(text.matches("stablehlo.convert").count(), 1, "only bools are converted");
}

#[test]
fn a_large_splat_is_one_value() {
    let big = ty(DType::Bool, &[1000, 1000]);
    let func = func("splat", &[], std::slice::from_ref(&big), |hlo, _, types| {
        vec![hlo_splat(hlo, &types[0], Scalar::Bool(true))]
    });
    check(
        &module(&func).text,
        &["dense<true> : tensor<i1>", "\"stablehlo.broadcast_in_dim\"", "-> tensor<1000x1000xi1>"],
    );
}

/// No lowering makes a value of its tensors' size on the host: these would not fit.
#[test]
fn lowering_allocates_nothing_by_the_size_of_a_tensor() {
    const HUGE: usize = 1 << 50;
    let big = ty(DType::F32, &[2, HUGE]);
    let splat = func("splat", &[], std::slice::from_ref(&big), |hlo, _, types| {
        vec![hlo_splat(hlo, &types[0], Scalar::Float(0.5))]
    });
    let mut row = Builder::new();
    let x = row.param(ty(DType::F32, &[HUGE]));
    let body = Arc::new(row.finish("row", vec![x]));
    let scan = Scan { body, length: 2, reverse: false, consts: 0, carries: 0 };
    let mut b = Builder::new();
    let x = b.param(big.clone());
    let ones = b.full(&big, 1.0);
    let sorted = b.sort(&[x, ones], 1, true, 1);
    let rows = b.emit(scan, &[sorted[0]])[0];
    let places = b.argmax(rows, 1, DType::I64);
    let ops = b.finish("ops", vec![places, rows]);
    for func in [splat, ops] {
        let text = module(&func).text;
        check(&text, &["\"stablehlo.broadcast_in_dim\"", &HUGE.to_string()]);
    }
}

#[test]
fn equal_constants_of_a_block_are_one() {
    let x = ty(DType::F32, &[2]);
    let func = func("equal", &[], &[x.clone(), x.clone(), x], |hlo, _, types| {
        let zero = hlo_splat(hlo, &types[0], Scalar::Float(0.0));
        let again = hlo_constant(hlo, Arc::new(Array::splat(types[0].clone(), Scalar::Float(0.0))));
        let negative = hlo_splat(hlo, &types[0], Scalar::Float(-0.0));
        vec![zero, again, negative]
    });
    let text = module(&func).text;
    assert_eq!(text.matches("stablehlo.constant").count(), 2, "0.0 once and -0.0 once, in\n{text}");
}
