//! The compiler's writer and MLIR agree, and the comparison would tell if they did not.

use crate::double::{func, ty};
use crate::programs;
use podracer_compiler::lower::hlo_constant;
use podracer_compiler::stablehlo::ModuleSpec;
use podracer_compiler::{Array, Builder, DType, Func, TensorType};
use podracer_mlir::agreement::{difference, disagreement, modules};
use podracer_mlir::{MlirError, normalized};

#[test]
fn every_program() {
    for (func, replicas) in programs::all() {
        let spec = ModuleSpec::new("some-name", &func).replicas(replicas);
        assert_eq!(disagreement(&func, &spec), None, "{}", func.name);
    }
}

/// An attribute, a location and a number that are wrong in a text.
#[test]
fn a_text_that_lacks_something_is_told_apart() {
    let (func, spec) = (programs::sort(), |func: &Func| ModuleSpec::new("sort", func));
    let [written, built] = modules(&func, &spec(&func)).expect("a well-formed program");
    assert_eq!(difference(&[written.clone(), built.clone()]), None);
    let changes = [
        (", is_stable = true", ""),
        ("TOTALORDER", "FLOAT"),
        ("mhlo.num_replicas = 1", "mhlo.num_replicas = 2"),
        ("(%arg1, %arg2)", "(%arg2, %arg1)"),
        ("loc(\"arg0\")", "loc(\"arg1\")"),
        ("loc(unknown)", "loc(\"sort.rs\":1:1)"),
    ];
    for (from, to) in changes {
        let mut changed = written.clone();
        changed.text_with_locations = written.text_with_locations.replace(from, to);
        assert_ne!(changed, written, "{from}");
        let difference = difference(&[changed, built.clone()]);
        assert!(difference.is_some_and(|difference| difference.starts_with("line ")), "{from}");
    }
}

#[test]
fn a_text_that_mlir_does_not_read_comes_back_with_its_reason() {
    for text in ["module {", "func.func @f() -> i32 { return }"] {
        let error = normalized(text).expect_err("it is malformed");
        assert!(matches!(&error, MlirError::Rejected(messages) if !messages.is_empty()), "{error}");
    }
}

/// The module of one constant for each hundred of the elements.
fn constants(dtype: DType, bytes: &[u8]) -> (Func, ModuleSpec) {
    let mut b = Builder::new();
    let results: Vec<_> = bytes
        .chunks_exact(100 * dtype.size())
        .map(|part| {
            let array = Array::from_bytes(TensorType::new(dtype, [100]), part);
            b.constant(array.expect("a hundred elements"))
        })
        .collect();
    let func = b.finish("constants", results);
    let spec = ModuleSpec::new("constants", &func);
    (func, spec)
}

/// Every float of 16 bits has MLIR's digits, and of the others some of every magnitude.
#[test]
fn floats_have_the_digits_of_mlir() {
    let all: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_le_bytes).collect();
    // splitmix64
    let mut state = 0u64;
    let mut next = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    };
    let random: Vec<u8> = (0..10_000).flat_map(|_| next().to_le_bytes()).collect();
    // Integers, and numbers of few digits; some need no exponent.
    let mut plain = || {
        let (digits, places) = (next() % 10u64.pow(1 + (next() % 17) as u32), next() % 20);
        digits as f64 / 10f64.powi(places as i32 - 6)
    };
    let plain: Vec<f64> = (0..10_000).map(|_| plain()).collect();
    let narrow: Vec<u8> = plain.iter().flat_map(|&value| (value as f32).to_le_bytes()).collect();
    let wide: Vec<u8> = plain.iter().flat_map(|value| value.to_le_bytes()).collect();
    for (dtype, bytes) in [
        (DType::F16, &all),
        (DType::BF16, &all),
        (DType::F32, &random),
        (DType::F64, &random),
        (DType::F32, &narrow),
        (DType::F64, &wide),
    ] {
        let (func, spec) = constants(dtype, bytes);
        assert_eq!(disagreement(&func, &spec), None, "{dtype}");
    }
}

/// A name, a path and a symbol that need quotes, and bytes that need escapes.
#[test]
fn text_in_quotes() {
    let x = ty(DType::F32, &[]);
    let mut func = func("quotes", &[], std::slice::from_ref(&x), |hlo, _, types| {
        vec![hlo_constant(hlo, Array::zeros(types[0].clone()).into())]
    });
    for name in ["a-b", "3d", "_a$.b", "\"\\\n\u{e9}", "a b"] {
        func.name = name.to_owned();
        let mut spec = ModuleSpec::new(name, &func);
        spec.result_names = vec![name.to_owned()];
        assert_eq!(disagreement(&func, &spec), None, "{name}");
    }
}
