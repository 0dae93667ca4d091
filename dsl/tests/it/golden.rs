//! Random numbers compared with `jax.random`.

use crate::helpers::run_on;
use podracer_dsl::prelude::*;
use serde_json::Value;

struct Record {
    op: String,
    attrs: Value,
    inputs: Vec<Array>,
    outputs: Vec<Array>,
}

/// An array of a record.
pub fn array(value: &Value) -> Array {
    let dtype = DType::parse(value["dtype"].as_str().expect("a dtype")).expect("a known dtype");
    let shape: Vec<usize> = value["shape"]
        .as_array()
        .expect("a shape")
        .iter()
        .map(|n| n.as_u64().expect("an extent") as usize)
        .collect();
    let data = value["data"].as_array().expect("data").iter().map(|x| match x {
        Value::Bool(x) => podracer_compiler::Scalar::Bool(*x),
        x if dtype.is_float() => podracer_compiler::Scalar::Float(float(x)),
        x => podracer_compiler::Scalar::Int(
            x.as_i64().map(i128::from).or(x.as_u64().map(i128::from)).expect("an integer"),
        ),
    });
    Array::new(TensorType::new(dtype, shape), data)
}

/// A float, which may be a string for the values that JSON lacks.
pub fn float(x: &Value) -> f64 {
    match x {
        Value::String(text) if text == "inf" => f64::INFINITY,
        Value::String(text) if text == "-inf" => f64::NEG_INFINITY,
        Value::String(_) => f64::NAN,
        x => x.as_f64().expect("a number"),
    }
}

/// The records of a golden file.
pub fn file(name: &str) -> Vec<Value> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/");
    let text = std::fs::read_to_string(format!("{folder}{name}")).expect("the golden file");
    let mut file: Value = serde_json::from_str(&text).expect("JSON");
    match file["records"].take() {
        Value::Array(records) => records,
        _ => panic!("{name} has no records"),
    }
}

/// All records of one function.
fn records(op: &str) -> Vec<Record> {
    let arrays = |value: &Value| value.as_array().expect("a list").iter().map(array).collect();
    let all = file("random.json").into_iter().map(|record| Record {
        op: record["op"].as_str().expect("a name").to_string(),
        attrs: record["attrs"].clone(),
        inputs: arrays(&record["inputs"]),
        outputs: arrays(&record["outputs"]),
    });
    let found: Vec<Record> = all.filter(|record| record.op == op).collect();
    assert!(!found.is_empty(), "no records of {op}");
    found
}

impl Record {
    fn shape(&self) -> Vec<usize> {
        self.attrs["shape"]
            .as_array()
            .expect("a shape")
            .iter()
            .map(|n| n.as_u64().expect("an extent") as usize)
            .collect()
    }

    fn number(&self, name: &str) -> f64 {
        float(&self.attrs[name])
    }

    fn integer(&self, name: &str) -> i64 {
        self.attrs[name].as_i64().expect("an integer")
    }

    fn dtype(&self) -> DType {
        self.outputs[0].ty().dtype
    }

    /// Draws with the record's key.
    #[track_caller]
    fn draw(&self, f: impl FnOnce(Key) -> Tensor) -> Array {
        run_on(key(), &self.inputs[..1], f).remove(0)
    }

    #[track_caller]
    fn same(&self, got: &Array) {
        assert_eq!(*got, self.outputs[0], "{} {}", self.op, self.attrs);
    }

    #[track_caller]
    fn near(&self, got: &Array, tolerance: f64) {
        self.near_output(0, got, tolerance);
    }

    #[track_caller]
    fn near_output(&self, index: usize, got: &Array, tolerance: f64) {
        let expected = &self.outputs[index];
        assert_eq!(got.ty(), expected.ty(), "{} {}", self.op, self.attrs);
        for (g, e) in got.to_f64().into_iter().zip(expected.to_f64()) {
            let fine = g == e
                || (g.is_nan() && e.is_nan())
                || (g - e).abs() <= tolerance * e.abs().max(1e-3);
            assert!(fine, "{} {}: {g} against {e}", self.op, self.attrs);
        }
    }
}

#[test]
fn keys_of_seeds() {
    for record in records("key") {
        let seed = record.integer("seed");
        let wide = record.integer("seed_bits") == 64;
        let words =
            run_on((), &[], |()| if wide { Key::new(seed as u64) } else { Key::new(seed as u32) })
                .remove(0);
        record.same(&words);
        let ty = if wide { i64([]) } else { u32([]) };
        let seed = if wide {
            Array::ints(DType::I64, [], &[i128::from(seed)])
        } else {
            Array::ints(DType::U32, [], &[i128::from(seed)])
        };
        record.same(&run_on(ty, &[seed], |seed| Key::new(seed)).remove(0));
    }
}

#[test]
fn splitting_and_folding() {
    for record in records("split") {
        let shape = record.shape();
        let n = shape.iter().product();
        record
            .same(&record.draw(|key| key.split_n(n).words().reshape([&shape[..], &[2]].concat())));
    }
    for record in records("fold_in") {
        record.same(&record.draw(|key| key.fold_in(record.integer("data") as u32).words()));
    }
    let record = &records("chain")[0];
    let results = run_on(key(), &record.inputs, |key| {
        let [left, right] = key.fold_in(5).split_into();
        let words = (left.words(), right.words());
        let again = right.split_n(3);
        (words, again.words(), again.at(2).bits(U32, [4]))
    });
    assert_eq!(results, record.outputs);
}

#[test]
fn words_of_every_width() {
    for record in records("bits") {
        record.same(&record.draw(|key| key.bits(record.dtype(), record.shape())));
    }
}

#[test]
fn integers_in_a_range() {
    for record in records("randint") {
        let (low, high) = (record.integer("low"), record.integer("high"));
        record.same(&record.draw(|key| key.randint_of(record.dtype(), record.shape(), low..high)));
        if record.dtype() == DType::I32 {
            let computed = record.draw(|key| {
                key.randint_between(record.shape(), scalar(low as i32), scalar(high as i32))
            });
            record.same(&computed);
        }
    }
}

#[test]
fn orders() {
    for record in records("permutation") {
        if record.inputs.len() == 1 {
            let n = record.integer("n") as usize;
            record.same(&record.draw(|key| key.permutation(n)));
            continue;
        }
        let (axis, independent) = (
            record.integer("axis") as isize,
            record.attrs["independent"].as_bool().expect("a flag"),
        );
        let spec = (key(), Spec::<Tensor>(record.inputs[1].ty().clone()));
        let got = run_on(spec, &record.inputs, |(key, x)| {
            if independent { key.shuffle_independent(x, axis) } else { key.shuffle(x, axis) }
        });
        record.same(&got[0]);
    }
}

#[test]
fn uniform_floats() {
    for record in records("uniform") {
        let (low, high) = (record.number("low"), record.number("high"));
        if (low, high) == (0.0, 1.0) {
            record.same(&record.draw(|key| key.uniform_of(record.dtype(), record.shape())));
        } else {
            // XLA may contract the product and the sum.
            record.near(&record.draw(|key| key.uniform_range(record.shape(), low, high)), 1e-6);
        }
    }
    for record in records("bernoulli") {
        record.same(&record.draw(|key| key.bernoulli(record.shape(), record.number("p"))));
    }
}

#[test]
fn distributions() {
    for record in records("normal") {
        record.near(&record.draw(|key| key.normal_of(record.dtype(), record.shape())), 5e-7);
    }
    for record in records("truncated_normal") {
        let (low, high) = (record.number("low"), record.number("high"));
        // Near 0 the digits of the bounds cancel.
        record.near(&record.draw(|key| key.truncated_normal(record.shape(), low, high)), 2e-5);
    }
    type Draw = fn(Key, Vec<usize>) -> Tensor;
    let all: [(&str, Draw); 6] = [
        ("gumbel", |key, shape| key.gumbel(shape)),
        ("exponential", |key, shape| key.exponential(shape)),
        ("laplace", |key, shape| key.laplace(shape)),
        ("logistic", |key, shape| key.logistic(shape)),
        ("cauchy", |key, shape| key.cauchy(shape)),
        ("rademacher", |key, shape| key.rademacher(shape)),
    ];
    for (name, draw) in all {
        for record in records(name) {
            record.near(&record.draw(|key| draw(key, record.shape())), 5e-7);
        }
    }
}

#[test]
fn choices() {
    for record in records("categorical") {
        let spec = (key(), Spec::<Tensor>(record.inputs[1].ty().clone()));
        let axis = record.integer("axis") as isize;
        let got = run_on(spec, &record.inputs, |(key, logits)| {
            if record.attrs["shape"].is_array() {
                key.categorical_n(logits, record.shape())
            } else {
                key.categorical_axis(logits, axis)
            }
        });
        record.same(&got[0]);
    }
    for record in records("choice") {
        let (shape, replace) = (record.shape(), record.attrs["replace"].as_bool().expect("a flag"));
        let types: Vec<Spec<Tensor>> =
            record.inputs[1..].iter().map(|input| Spec(input.ty().clone())).collect();
        let got =
            run_on((key(), types), &record.inputs, |(key, inputs)| match (&inputs[..], replace) {
                (&[items], true) => key.choice(items, shape),
                (&[items], false) => key.choice_distinct(items, shape[0]),
                (&[items, weights], true) => key.choice_weighted(items, weights, shape),
                (&[items, weights, ..], false) => {
                    key.choice_weighted_distinct(items, weights, shape[0])
                }
                _ => unreachable!("choice has one or two inputs beside the key"),
            });
        record.same(&got[0]);
    }
}

/// A gamma draw is the end of a loop, and takes a few more operations than a normal draw.
#[test]
fn draws_by_rejection() {
    for record in records("gamma") {
        let alpha = record.number("alpha");
        record.near(&record.draw(|key| key.gamma(record.shape(), alpha)), 1e-6);
    }
    for record in records("loggamma") {
        let alpha = record.number("alpha");
        record.near(&record.draw(|key| key.loggamma(record.shape(), alpha)), 1e-6);
    }
    for record in records("beta") {
        let (a, b) = (record.number("a"), record.number("b"));
        record.near(&record.draw(|key| key.beta(record.shape(), a, b)), 1e-6);
    }
    for record in records("dirichlet") {
        let alpha = &record.inputs[1];
        let draw = |key: Key| key.dirichlet(record.shape(), constant_of(alpha));
        record.near(&record.draw(draw), 1e-6);
    }
    for record in records("poisson") {
        let rate = record.number("rate");
        record.same(&record.draw(|key| key.poisson(record.shape(), rate)));
    }
}

/// Reparameterized draws: the gradient of their weighted sum by the parameters.
#[test]
fn slopes_of_draws() {
    for (op, draw) in [
        ("gamma_slope", (|key, a| key.gamma(a[0].shape(), a[0])) as fn(Key, &[Tensor]) -> Tensor),
        ("loggamma_slope", |key, a| key.loggamma(a[0].shape(), a[0])),
        ("beta_slope", |key, a| key.beta(a[0].shape(), a[0], a[1])),
        ("dirichlet_slope", |key, a| key.dirichlet([], a[0])),
    ] {
        for record in records(op) {
            let types: Vec<Spec<Tensor>> =
                record.inputs[1..].iter().map(|input| Spec(input.ty().clone())).collect();
            let got = run_on((key(), types), &record.inputs, |(key, mut parameters)| {
                let weights = parameters.pop().expect("weights come last");
                grad(parameters, |parameters| (draw(key, &parameters) * weights).sum())
            });
            for (index, got) in got.iter().enumerate() {
                record.near_output(index, got, 2e-5);
            }
        }
    }
}
