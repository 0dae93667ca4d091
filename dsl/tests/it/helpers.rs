//! Short ways to run a traced function on host values.

use podracer_compiler::text;
use podracer_dsl::prelude::*;

/// Runs a function without arguments and gives its leaves.
#[track_caller]
pub fn run<R: IntoTree>(f: impl FnOnce() -> R) -> Vec<Array> {
    run_on((), &[], |()| f())
}

/// Runs a function on arrays.
#[track_caller]
pub fn run_on<S: ArgumentSpec, R: IntoTree>(
    spec: S,
    arguments: &[Array],
    f: impl FnOnce(S::Tree) -> R,
) -> Vec<Array> {
    match trace(spec, f) {
        Ok(traced) => {
            let read = text::parse(&format!("{:#}", traced.func()));
            assert_eq!(read.as_ref(), Ok(traced.func()), "its text is the program");
            traced.eval(arguments).expect("arguments fit")
        }
        Err(errors) => panic!("{errors}"),
    }
}

/// The errors of a function that must have some.
#[track_caller]
pub fn errors<S: ArgumentSpec, R: IntoTree>(spec: S, f: impl FnOnce(S::Tree) -> R) -> TraceErrors {
    match trace(spec, f) {
        Ok(traced) => panic!("no error in:\n{traced}"),
        Err(errors) => errors,
    }
}

/// An array of f32 numbers.
pub fn f32s(shape: &[usize], values: &[f64]) -> Array {
    Array::floats(DType::F32, shape, values)
}

/// An array of i32 numbers.
pub fn i32s(shape: &[usize], values: &[i128]) -> Array {
    Array::ints(DType::I32, shape, values)
}

/// Checks one result against numbers.
#[track_caller]
pub fn close(got: &Array, expected: &[f64], tolerance: f64) {
    let got = got.to_f64();
    assert_eq!(got.len(), expected.len(), "{got:?} against {expected:?}");
    for (g, e) in got.iter().zip(expected) {
        assert!(
            (g - e).abs() <= tolerance * e.abs().max(1.0) || (g.is_nan() && e.is_nan()) || g == e,
            "{got:?} against {expected:?}"
        );
    }
}
