//! StableHLO's own verifier accepts every module that podracer emits, and its reference interpreter
//! computes the same as the reference semantics.
//!
//! A part of the modules without `PODRACER_VERIFY=all`, which `scripts/verify-stablehlo` sets.

use podracer::experiments::build;
use podracer::loading::{Overrides, load};
use podracer::registry::Registry;
use podracer::training::Stage;
use podracer_compiler::stablehlo::{ModuleSpec, stablehlo};
use podracer_compiler::{Array, DType, Func, Sample};
use podracer_test_support::python;
use podracer_tests::cases::{batched, forward, one_op, reverse, samples, types};
use podracer_tests::check_all;
use serde_json::{Value, json};

use crate::programs::program;

const SCRIPT: &str = include_str!("../src/verify.py");

/// Error that a case is allowed: the interpreter rounds every step in the step's dtype, as the reference semantics do, sums in
/// their order, and has functions of its own, which are good to some units in the last place.
fn tolerance(arrays: &[Array]) -> f64 {
    let rounding = arrays.iter().map(|array| match array.ty().dtype {
        DType::BF16 => 8e-3,
        DType::F16 => 1e-3,
        DType::F32 => 1e-6,
        _ => 1e-14,
    });
    rounding.fold(0.0, f64::max)
}

fn record(array: &Array) -> Value {
    let bytes: String = array.bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    json!({ "dtype": array.ty().dtype.name(), "shape": array.ty().shape[..], "bytes": bytes })
}

/// A line of the script's input.
fn line(name: &str, func: &Func, inputs: &[Array], outputs: &[Array]) -> String {
    let module = stablehlo(func, &ModuleSpec::new("m", func));
    let module = module.unwrap_or_else(|error| panic!("{name}: {error}"));
    let records = |arrays: &[Array]| arrays.iter().map(record).collect::<Vec<_>>();
    let case = json!({
        "name": name,
        "text": module.text,
        "inputs": records(inputs),
        "outputs": records(outputs),
        "tolerance": tolerance(&[inputs, outputs].concat()),
    });
    format!("{case}\n")
}

/// Every sample as it is; with `all` also batched every way, and its derivatives.
fn of_samples(all: bool) -> Vec<String> {
    let mut lines = Vec::new();
    for (name, sample) in samples() {
        let Sample { op, inputs, .. } = &sample;
        let func = one_op(op, &types(inputs));
        lines.push(line(&name, &func, inputs, &op.eval(inputs)));
        if !all {
            continue;
        }
        for expected in batched(&name, &sample) {
            let case = expected.case;
            let results = &expected.results;
            lines.push(line(&case.name, &case.func, &case.arguments, results));
        }
        let float = |input: &Array| input.ty().dtype.is_float();
        if sample.differentiable && inputs.iter().any(float) {
            for case in [forward(&name, &sample), reverse(&name, &sample)].into_iter().flatten() {
                let results = case.func.eval(&case.arguments);
                lines.push(line(&case.name, &case.func, &case.arguments, &results));
            }
        }
    }
    lines
}

/// Every program of the experiments and of their exports. They are verified only.
fn of_experiments(names: &[&str]) -> Vec<String> {
    let mut lines = Vec::new();
    for name in names {
        let settings = load(name, &Overrides::default()).expect("it comes with the program");
        let training = build(&settings).expect("it is one");
        let emitted = training.emit(Stage::StableHlo, 1).expect("it is emitted");
        // The programs of Sebulba stand one after another.
        for (index, text) in emitted.split("\n// ").enumerate() {
            let text = text.split_once("module").map_or("", |(_, text)| text);
            let case =
                json!({ "name": format!("{name} {index}"), "text": format!("module{text}") });
            lines.push(format!("{case}\n"));
        }
        for portable in training.programs(None).expect("they are traced") {
            let name = format!("export {name}: {}", portable.name);
            lines.push(format!("{}\n", json!({ "name": name, "text": portable.text() })));
        }
    }
    lines
}

fn of_random_programs(count: usize) -> Vec<String> {
    let programs = (0..).filter_map(program).take(count).enumerate();
    let one = |(index, (func, arguments)): (usize, (Func, Vec<Array>))| {
        let results = func.eval(&arguments);
        line(&format!("random program {index}"), &func, &arguments, &results)
    };
    programs.map(one).collect()
}

#[test]
fn the_verifier_takes_every_module_and_the_interpreter_agrees() {
    let all = std::env::var("PODRACER_VERIFY").is_ok_and(|what| what == "all");
    let registry = Registry::built_in();
    let experiments = registry.experiments().iter().map(|one| one.name.as_str());
    let experiments: Vec<&str> = experiments.collect();
    let (experiments, random) = match all {
        true => (&experiments[..], 500),
        false => (&["catch-online"][..], 10),
    };
    let lines = [of_samples(all), of_experiments(experiments), of_random_programs(random)].concat();
    let said = python::run(SCRIPT, &[], &lines.concat()).expect("the script runs");
    let Some(said) = said else { return };
    eprintln!("{said}");
    let mut complaints: Vec<String> = said.lines().map(str::to_owned).collect();
    let counts: Value =
        complaints.pop().and_then(|line| serde_json::from_str(&line).ok()).unwrap_or_default();
    assert_eq!(counts["modules"], lines.len(), "{said}");
    check_all(&complaints);
}

#[test]
fn a_wrong_module_and_a_wrong_result_are_reported() {
    let x = [Array::floats(DType::F32, [2], &[0.5, -2.0])];
    let module = |body: &str| {
        let text = format!(
            "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {{ %0 = {body} return %0 : tensor<2xf32> }}"
        );
        let case = json!({
            "name": body, "text": text, "inputs": [record(&x[0])], "outputs": [record(&x[0])], "tolerance": 0.0,
        });
        format!("{case}\n")
    };
    let lines = [
        module("stablehlo.abs %x : tensor<2xf32>"),
        module("stablehlo.abs %x : (tensor<2xf32>) -> tensor<2xf64>"),
        module("stablehlo.optimization_barrier %x : tensor<2xf32>"),
    ];
    let said = python::run(SCRIPT, &[], &lines.concat()).expect("the script runs");
    let Some(said) = said else { return };
    for expected in [
        "abs %x : tensor<2xf32>: result 0: 1 of 2 differ, first at [1]: expected -2.0, got 2.0",
        "tensor<2xf64>: Unable to parse module",
        "\"interpreted\": 2",
        "\"failed\": 2",
    ] {
        assert!(said.contains(expected), "{said}");
    }
}
