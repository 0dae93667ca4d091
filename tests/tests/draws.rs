//! How far draws are from `jax.random`'s, over many keys and shapes. The documentation of `Key` says how far, in a table that is
//! read here.

use podracer_compiler::Array;
use podracer_dsl::prelude::*;
use podracer_tests::compare::ulps;
use podracer_tests::xla::run;
use podracer_tests::{check_all, golden, workspace};
use serde_json::Value;
use std::collections::BTreeMap;

type Draw = fn(Key, Vec<usize>) -> Tensor;

/// Every draw of `make_random.py`, by its name there.
const DRAWS: &[(&str, Draw)] = &[
    ("bits", |key, shape| key.bits(U32, shape)),
    ("uniform", |key, shape| key.uniform(shape)),
    ("uniform_range", |key, shape| key.uniform_range(shape, -3.0, 0.7)),
    ("normal", |key, shape| key.normal(shape)),
    ("truncated_normal", |key, shape| key.truncated_normal(shape, -2.0, 1.5)),
    ("gumbel", |key, shape| key.gumbel(shape)),
    ("exponential", |key, shape| key.exponential(shape)),
    ("laplace", |key, shape| key.laplace(shape)),
    ("logistic", |key, shape| key.logistic(shape)),
    ("cauchy", |key, shape| key.cauchy(shape)),
    ("bernoulli", |key, shape| key.bernoulli(shape, 0.3)),
    ("rademacher", |key, shape| key.rademacher(shape)),
    ("randint", |key, shape| key.randint(shape, -5..17)),
    ("categorical", |key, shape| key.categorical_n(constant([0.3, -1.2, 2.0, 0.0, 0.7]), shape)),
    ("gamma", |key, shape| key.gamma(shape, 0.3)),
    ("gamma_above_one", |key, shape| key.gamma(shape, 4.5)),
    ("loggamma", |key, shape| key.loggamma(shape, 0.3)),
    ("beta", |key, shape| key.beta(shape, 2.0, 3.0)),
    ("dirichlet", |key, shape| key.dirichlet(shape, constant([0.3; 4]))),
    ("poisson", |key, shape| key.poisson(shape, 4.0)),
    ("poisson_above_ten", |key, shape| key.poisson(shape, 50.0)),
    ("permutation", |key, _| key.permutation(12)),
];

/// Number of the keys that the reference semantics draw with, too.
const REFERENCE_KEYS: usize = 8;

/// The rows of the table: units in the last place by the method's name, compiled and by the reference semantics.
fn documented() -> BTreeMap<String, [f64; 2]> {
    let path = workspace::root().join("dsl/src/key/mod.rs");
    let text = std::fs::read_to_string(path).expect("the file of `Key`");
    let mut rows = BTreeMap::new();
    for line in text.lines() {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, methods, compiled, reference, _] = cells[..] else { continue };
        let bound = |cell: &str| if cell == "equal" { Ok(0.0) } else { cell.parse() };
        let (Ok(compiled), Ok(reference)) = (bound(compiled), bound(reference)) else { continue };
        for method in methods.split(',') {
            rows.insert(method.trim().trim_matches('`').to_owned(), [compiled, reference]);
        }
    }
    rows
}

/// The greatest distance of any draw.
fn farthest(expected: &[Array], got: &[Array]) -> f64 {
    assert_eq!(expected.len(), got.len());
    let mut most = 0.0f64;
    for (expected, got) in expected.iter().zip(got) {
        assert_eq!(expected.ty(), got.ty());
        let pairs = expected.to_f64().into_iter().zip(got.to_f64());
        for (expected, got) in pairs {
            let apart = match expected == got {
                true => 0.0,
                false => ulps(expected, got).max(1.0),
            };
            most = most.max(apart);
        }
    }
    most
}

#[test]
fn draws_are_as_near_to_those_of_jax_as_the_documentation_says() {
    let records = golden::records("random.json").expect("it parses").expect("it is checked in");
    let rows = documented();
    let mut complaints = Vec::new();
    for (name, draw) in DRAWS {
        let of = |record: &&Value| record["op"] == "draws" && record["attrs"]["of"] == *name;
        let array = |value: &Value| golden::array(value).expect("an array");
        let found: Vec<&Value> = records.iter().filter(of).collect();
        let keys = array(&found.first().expect("there are records")["inputs"][0]);
        let expected: Vec<Array> = found.iter().map(|one| array(&one["outputs"][0])).collect();
        let draws = |words: Tensor| -> Vec<Tensor> {
            let of_shape = |record: &&Value| {
                let extents = record["attrs"]["shape"].as_array().expect("a shape").iter();
                let shape: Vec<usize> =
                    extents.filter_map(|n| Some(n.as_u64()? as usize)).collect();
                vmap(Keys::from_words(words), |key| draw(key, shape.clone()))
            };
            found.iter().map(of_shape).collect()
        };
        let traced = trace((Spec::<Tensor>(keys.ty().clone()),), |(words,)| draws(words));
        let traced = traced.expect("it traces");
        let compiled = run(traced.func(), std::slice::from_ref(&keys)).expect("it runs");
        // The reference semantics are slow.
        let few = |array: &Array| {
            let rows = (0..REFERENCE_KEYS).map(|row| array.index_leading(row));
            let row = array.index_leading(0).ty().clone();
            Array::stack(&row, &rows.collect::<Vec<_>>())
        };
        let some: Vec<Array> = expected.iter().map(few).collect();
        let reference = trace((Spec::<Tensor>(few(&keys).ty().clone()),), |(words,)| draws(words));
        let reference = reference.expect("it traces").eval(&[few(&keys)]).expect("it fits");
        let measured = [farthest(&expected, &compiled), farthest(&some, &reference)];
        eprintln!("{name}: {measured:?}");
        let method = name.trim_end_matches("_above_one").trim_end_matches("_above_ten");
        match rows.get(method) {
            None => complaints.push(format!("{method} has no row in the documentation of `Key`")),
            Some(bounds) if measured[0] > bounds[0] || measured[1] > bounds[1] => complaints.push(
                format!("{name}: {measured:?} ulp from jax, the documentation says {bounds:?}"),
            ),
            Some(_) => {}
        }
    }
    check_all(&complaints);
}
