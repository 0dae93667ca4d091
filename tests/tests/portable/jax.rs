//! Modules that jax lowered or exported, as typed programs: their results are jax's, and what does not fit is refused
//! before XLA sees it.

use podracer_dsl::prelude::*;
use podracer_runtime::TypedPrograms;
use podracer_runtime::{
    Arguments, Array, Client, Device, ExecutableCache, Host, Program, ProgramOptions,
};
use podracer_tests::compare::differences;
use podracer_tests::xla::client;
use podracer_tests::{golden, workspace};

/// jax's dict, which sorts its entries by key.
#[derive(Tree, Clone)]
struct Params {
    bias: Tensor,
    weight: Tensor,
}

#[derive(Tree, Clone)]
struct Hidden {
    any: Tensor,
    hidden: Tensor,
    mean: Tensor,
}

fn params() -> Spec<Params> {
    Spec(ParamsOf { bias: f32([4]), weight: f32([3, 4]) })
}

fn hidden() -> Spec<Hidden> {
    Spec(HiddenOf { any: bool([]), hidden: f32([2, 4]), mean: f32([4]) })
}

fn text(module: &str) -> String {
    let path = workspace::root().join(format!("tests/golden/modules/{module}.mlir"));
    std::fs::read_to_string(path).expect("the module is checked in")
}

fn options() -> ProgramOptions {
    ProgramOptions { cache: ExecutableCache::disabled(), ..ProgramOptions::default() }
}

/// The arguments and results that jax had.
fn recorded(module: &str) -> (Vec<Array>, Vec<Array>) {
    let records = golden::records("modules.json").expect("it parses");
    let records = records.expect("the records are checked in");
    let record = records.iter().find(|record| record["module"] == module);
    let record = record.expect("there is a record of it");
    let arrays = |key: &str| golden::arrays(&record[key]).expect("they are arrays");
    (arrays("inputs"), arrays("outputs"))
}

/// Takes arguments off the record's for the leaves of a spec, onto the device.
fn upload<A: Tree, R: Tree, T: Tree>(
    program: &Program<A, R>,
    spec: &Spec<T>,
    inputs: &mut Vec<Array>,
) -> Device<T> {
    let paths = spec.leaves().into_iter().map(|(path, _)| path.to_string());
    let count = spec.leaves().len();
    let named = paths.zip(inputs.drain(..count));
    program.upload(Host::from_named(spec, named).expect("they fit")).expect("a device")
}

fn check<A: Tree, R: Tree>(
    program: &Program<A, R>,
    arguments: impl Arguments<A>,
    expected: &[Array],
    tolerance: f64,
) {
    let results = program.run(arguments).expect("it runs");
    let got = results.to_host().expect("it has run").into_leaves();
    assert_eq!(differences(expected, &got, tolerance), None);
}

#[test]
fn a_jitted_function_of_dicts_is_a_program_of_structs() {
    let arguments = (params(), f32([2, 3]));
    let program = client().expect("a client").load_stablehlo(
        text("mlp"),
        arguments.clone(),
        hidden(),
        &options(),
    );
    let program = program.expect("it loads");
    let (mut inputs, outputs) = recorded("mlp");
    let weights = upload(&program, &arguments.0, &mut inputs);
    let x = upload(&program, &arguments.1, &mut inputs);
    check(&program, (&weights, &x), &outputs, 1e-6);
}

#[test]
fn an_exported_function_with_calls_loops_and_random_numbers_runs() {
    let results = (bf16([3]), i8([]), f32([5]), i32([]));
    let program = client().expect("a client").load_stablehlo(
        text("rollout"),
        (key(), bf16([3])),
        results,
        &options(),
    );
    let program = program.expect("it loads");
    let (mut inputs, outputs) = recorded("rollout");
    let words = upload(&program, &key(), &mut inputs);
    let start = upload(&program, &bf16([3]), &mut inputs);
    check(&program, (&words, start), &outputs, 4e-3);
}

#[test]
fn a_donated_argument_is_taken_over_if_it_is_moved() {
    let arguments = (f32([3]), f32([8, 3]), f32([8]));
    let results = (f32([3]), f32([]));
    let program = client().expect("a client").load_stablehlo(
        text("gradient_step"),
        arguments.clone(),
        results,
        &options(),
    );
    let program = program.expect("it loads");
    let (mut inputs, outputs) = recorded("gradient_step");
    let weights = upload(&program, &arguments.0, &mut inputs);
    let x = upload(&program, &arguments.1, &mut inputs);
    let y = upload(&program, &arguments.2, &mut inputs);
    // Lent, they are there for another call.
    check(&program, (&weights, &x, &y), &outputs, 1e-6);
    check(&program, (weights, &x, &y), &outputs, 1e-6);
}

#[test]
fn what_does_not_fit_the_module_is_refused_before_it_is_compiled() {
    fn refused<S: ArgumentSpec, Q: ArgumentSpec>(
        client: &Client,
        module: &str,
        arguments: S,
        results: Q,
    ) -> String {
        let program = client.load_stablehlo(module, arguments, results, &options());
        program.map(|_| ()).expect_err("it does not fit").to_string()
    }
    let client = client().expect("a client");
    let mlp = text("mlp");
    let messages = [
        refused(&client, &mlp, (params(), f32([3, 2])), hidden()),
        refused(&client, &mlp, (params(), i32([2, 3])), hidden()),
        refused(&client, &mlp, (params(), f32([2, 3]), f32([])), hidden()),
        refused(&client, &mlp, (params(),), hidden()),
        refused(&client, &mlp, (params(), f32([2, 3])), f32([4])),
        refused(&client, &mlp, (params(), f32([2, 3])), (bool([]), f32([2, 4]), f32([3]))),
        refused(&client, &text("dynamic"), (f32([2, 3]),), f32([2, 3])),
        refused(&client, "return x + 1", (f32([]),), f32([])),
    ];
    let expected = [
        "the module's argument 2 (`1`) is declared as f32[3,2] and is f32[2,3]",
        "the module's argument 2 (`1`) is declared as i32[2,3] and is f32[2,3]",
        "the module's number of arguments is declared as 4 and is 3 (f32[4], f32[3,4], f32[2,3]; `jax.jit` leaves out arguments \
         that are not used, unless its argument is `keep_unused=True`)",
        "the module's number of arguments is declared as 2 and is 3 (f32[4], f32[3,4], f32[2,3])",
        "the module's number of results is declared as 1 and is 3 (bool[], f32[2,4], f32[4])",
        "the module's result 2 (`2`) is declared as f32[3] and is f32[4]",
        "the StableHLO text, line 4: argument 0 of `main` is `tensor<?x3xf32>`: shapes must be static; lower or export it for \
         shapes of numbers",
        "this is no StableHLO module that can be loaded: the text has no function `func.func @main(..)`",
    ];
    assert_eq!(messages, expected);
}
