//! Functions of host values, compiled when they are called.

use std::cell::Cell;

use podracer_dsl::prelude::*;
use podracer_runtime::TypedPrograms;
use podracer_runtime::{Array, CallError, Host, Seed};

use crate::programs::client;

#[test]
fn numbers_slices_and_arrays_go_in_and_come_back() {
    let call = client().call((vec![1f32, 2.0], 3f32, [[1i32, 2], [3, 4]]), |(x, scale, n)| {
        ((x * scale).sum(), n.transpose())
    });
    let (sum, turned) = {
        let results: Host<(Tensor, Tensor)> = call.unwrap();
        (results.0.item::<f32>().unwrap(), results.1.to_vec::<i32>().unwrap())
    };
    assert_eq!(sum, 9.0);
    assert_eq!(turned, [1, 3, 2, 4]);
    let none = client().call((), |()| scalar(2.5)).unwrap();
    assert_eq!(none.item::<f32>().unwrap(), 2.5);
    let array = Array::from_slice([2, 1], &[1f32, 2.0]).unwrap();
    let back = client().call(&array, |x| x + 1).unwrap();
    assert_eq!(back.to_vec::<f32>().unwrap(), [2.0, 3.0]);
    // A result is an argument of the next call.
    let again = client().call((&back, 10f32), |(x, y)| x * y).unwrap();
    assert_eq!(again.to_vec::<f32>().unwrap(), [20.0, 30.0]);
    let drawn = |seed| client().call(Seed(seed), |key| key.uniform([2])).unwrap();
    assert_eq!(drawn(1).to_vec::<f32>().unwrap(), drawn(1).to_vec::<f32>().unwrap());
    assert_ne!(drawn(1).to_vec::<f32>().unwrap(), drawn(2).to_vec::<f32>().unwrap());
}

#[test]
fn a_function_is_traced_once_for_each_type() {
    let traced = Cell::new(0);
    let double = client().jit(|x: Tensor| {
        traced.set(traced.get() + 1);
        x * 2
    });
    assert_eq!(double.call([1f32, 2.0]).unwrap().to_vec::<f32>().unwrap(), [2.0, 4.0]);
    assert_eq!(double.call([3f32, 5.0]).unwrap().to_vec::<f32>().unwrap(), [6.0, 10.0]);
    assert_eq!((traced.get(), double.compiled()), (1, 1));
    assert_eq!(double.call(7i32).unwrap().item::<i32>().unwrap(), 14);
    assert_eq!((traced.get(), double.compiled()), (2, 2));
    assert_eq!(format!("{double:?}"), "a function compiled for [f32[2], i32[]]");
}

#[test]
fn mistakes_of_a_function_name_its_line() {
    let error = client().call(([1f32, 2.0], [1f32, 2.0, 3.0]), |(x, y)| x + y).unwrap_err();
    let CallError::Trace(errors) = error else { panic!("{error}") };
    let text = errors.to_string();
    assert!(
        text.contains("f32[2] and f32[3] do not broadcast") && text.contains("jit.rs"),
        "{text}"
    );
}
