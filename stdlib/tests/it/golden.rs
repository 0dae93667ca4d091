//! The records of `rl.json`, as the README of `tests/golden` describes them, and how a function is held against one.

use podracer_dsl::prelude::*;
use serde_json::Value;

/// A record: a function called once.
pub struct Record(Value);

/// Tensors by name, inside of a trace.
pub struct Named<'a> {
    names: &'a [String],
    tensors: Vec<Tensor>,
}

impl<'a> Named<'a> {
    /// The tensors of these names.
    pub fn new(names: &'a [String], tensors: Vec<Tensor>) -> Self {
        Named { names, tensors }
    }

    /// The tensor of a name.
    #[track_caller]
    pub fn get(&self, name: &str) -> Tensor {
        let position = self
            .names
            .iter()
            .position(|own| own == name)
            .unwrap_or_else(|| panic!("the record has no input {name}"));
        self.tensors[position]
    }

    /// The tensors of several names.
    #[track_caller]
    pub fn all<const N: usize>(&self, names: [&str; N]) -> [Tensor; N] {
        names.map(|name| self.get(name))
    }
}

/// All records of an op in `rl.json`; at least one.
#[track_caller]
pub fn records(op: &str) -> Vec<Record> {
    records_in("rl", op)
}

/// All records of an op in a file of `tests/golden`; at least one.
#[track_caller]
pub fn records_in(file: &str, op: &str) -> Vec<Record> {
    let path = format!("{}/../tests/golden/{file}.json", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).expect("the golden file is checked in");
    let file: Value = serde_json::from_str(&text).expect("it is JSON");
    let records = file["records"].as_array().expect("it has records");
    let of_op: Vec<Record> =
        records.iter().filter(|record| record["op"] == op).cloned().map(Record).collect();
    assert!(!of_op.is_empty(), "{op} has no records");
    of_op
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
    let float = |x: &Value| match x.as_str() {
        Some("nan") => f64::NAN,
        Some("inf") => f64::INFINITY,
        Some("-inf") => f64::NEG_INFINITY,
        _ => x.as_f64().expect("float"),
    };
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
        dtype => Array::floats(dtype, shape, &data.iter().map(float).collect::<Vec<_>>()),
    }
}

/// Functions with recorded gradients.
#[derive(Clone, Copy)]
pub enum Of {
    /// The sum of all outputs.
    Sum,
    /// The sum of their squares: layers.
    Squares,
}

impl Record {
    /// A number among the attributes.
    pub fn number(&self, name: &str) -> Option<f64> {
        self.0["attrs"][name].as_f64()
    }

    /// A count among the attributes.
    pub fn count(&self, name: &str) -> Option<usize> {
        self.0["attrs"][name].as_u64().map(|count| count as usize)
    }

    /// A switch among the attributes.
    pub fn flag(&self, name: &str) -> Option<bool> {
        self.0["attrs"][name].as_bool()
    }

    /// A word among the attributes.
    pub fn word(&self, name: &str) -> Option<String> {
        self.0["attrs"][name].as_str().map(String::from)
    }

    /// A shape among the attributes.
    pub fn shape(&self, name: &str) -> Vec<usize> {
        self.0["attrs"][name]
            .as_array()
            .expect("a list")
            .iter()
            .map(|n| n.as_u64().expect("extent") as usize)
            .collect()
    }

    /// True if there is an input of this name.
    pub fn has(&self, input: &str) -> bool {
        !self.0["inputs"][input].is_null()
    }

    /// The input of this name.
    pub fn input(&self, name: &str) -> Array {
        array(&self.0["inputs"][name])
    }

    /// The output of this name.
    pub fn output(&self, name: &str) -> Array {
        array(&self.0["outputs"][name])
    }

    /// The recorded gradient for the input of this name.
    pub fn gradient(&self, name: &str) -> Array {
        array(&self.0["gradients"][name])
    }

    /// Arrays of a field (`inputs`, `outputs`, `gradients`), with their names.
    pub fn named(&self, field: &str) -> Vec<(String, Array)> {
        let Some(map) = self.0[field].as_object() else {
            return Vec::new();
        };
        map.iter().map(|(name, value)| (name.clone(), array(value))).collect()
    }

    fn title(&self) -> String {
        format!("{} {}", self.0["op"], self.0["attrs"])
    }

    /// Holds `f` against the record: the outputs that it names, and the recorded gradients.
    #[track_caller]
    pub fn check(&self, f: impl Fn(&Named) -> Vec<(&'static str, Tensor)>) {
        self.check_of(Of::Sum, 1e-6, f);
    }

    /// [`Record::check`] with gradients of something, and a tolerance relative to the greater of 1 and the value.
    #[track_caller]
    pub fn check_of(
        &self,
        of: Of,
        tolerance: f64,
        f: impl Fn(&Named) -> Vec<(&'static str, Tensor)>,
    ) {
        let (names, inputs): (Vec<String>, Vec<Array>) = self.named("inputs").into_iter().unzip();
        let spec = || inputs.iter().map(|array| array.ty().clone()).collect::<Vec<TensorType>>();
        let mut outputs = Vec::new();
        let values = run(spec(), &inputs, |tensors| {
            let named = f(&Named { names: &names, tensors });
            outputs = named.iter().map(|(name, _)| *name).collect();
            named.into_iter().map(|(_, value)| value).collect::<Vec<Tensor>>()
        });
        assert!(!outputs.is_empty());
        for (name, value) in outputs.iter().zip(&values) {
            close(&format!("{}: {name}", self.title()), value, &self.output(name), tolerance);
        }
        let gradients = self.named("gradients");
        if gradients.is_empty() {
            return;
        }
        let positions: Vec<usize> = gradients
            .iter()
            .filter_map(|(wrt, _)| names.iter().position(|name| name == wrt))
            .collect();
        assert_eq!(positions.len(), gradients.len());
        let found = run(spec(), &inputs, |tensors| {
            let chosen: Vec<Tensor> = positions.iter().map(|&position| tensors[position]).collect();
            grad(chosen, |chosen| {
                let mut tensors = tensors.clone();
                for (&position, &tensor) in positions.iter().zip(&chosen) {
                    tensors[position] = tensor;
                }
                let outputs = f(&Named { names: &names, tensors });
                outputs
                    .into_iter()
                    .map(
                        |(_, value)| {
                            if matches!(of, Of::Squares) {
                                value.square().sum()
                            } else {
                                value.sum()
                            }
                        },
                    )
                    .sum::<Tensor>()
            })
        });
        for ((wrt, expected), found) in gradients.iter().zip(&found) {
            close(&format!("{}: gradient of {wrt}", self.title()), found, expected, tolerance);
        }
    }
}

/// Runs a function on arrays.
#[track_caller]
pub fn run<S: ArgumentSpec, R: IntoTree>(
    spec: S,
    arguments: &[Array],
    f: impl FnOnce(S::Tree) -> R,
) -> Vec<Array> {
    match trace(spec, f) {
        Ok(traced) => traced.eval(arguments).expect("arguments fit"),
        Err(errors) => panic!("{errors}"),
    }
}

/// Asserts that two arrays have one shape and are equal up to `tolerance`, relative beyond 1. NaN equals NaN.
#[track_caller]
pub fn close(what: &str, got: &Array, expected: &Array, tolerance: f64) {
    assert_eq!(got.ty(), expected.ty(), "{what}");
    for (i, (got, expected)) in got.to_f64().into_iter().zip(expected.to_f64()).enumerate() {
        let same = got == expected || (got.is_nan() && expected.is_nan());
        let error = (got - expected).abs() / expected.abs().max(1.0);
        assert!(same || error <= tolerance, "{what}[{i}]: got {got}, expected {expected}");
    }
}

/// An array of f32 values.
pub fn floats(shape: &[usize], values: &[f64]) -> Array {
    Array::floats(DType::F32, shape, values)
}

/// A key, as raw words.
pub fn words(seed: i128) -> Array {
    Array::ints(DType::U32, [2], &[0, seed])
}
