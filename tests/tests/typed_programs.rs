//! Properties of every typed program, however it was made, and its errors for arguments and results
//! that do not fit.

use podracer_dsl::prelude::*;
use podracer_runtime::TypedPrograms;
use podracer_runtime::{
    Argument, Array, CompileOptions, ExecutableCache, Host, Placement, Program, ProgramOptions,
    lower_kept,
};
use podracer_tests::compare::differences;
use podracer_tests::xla::client;

/// The default options, except for the cache.
fn options() -> ProgramOptions {
    ProgramOptions { cache: ExecutableCache::disabled(), ..ProgramOptions::default() }
}

/// Every op with a NaN that XLA:CPU drops if its fast maximum is on.
fn extremes(x: Tensor, y: Tensor) -> Vec<Tensor> {
    let pairs = [(x, y), (y, x)].into_iter();
    let mut results: Vec<Tensor> =
        pairs.flat_map(|(a, b)| [maximum(a, b), minimum(a, b), clamp(a, b, 2.0)]).collect();
    results.extend([clamp(x, -1.0, 1.0), x.max(), x.min(), y.max(), y.min()]);
    results.extend([x.cummax(0), x.cummin(0), x.cumlogsumexp(0), x.logsumexp(0)]);
    results.extend([x.relu(), x.softplus(), x.elu()]);
    results
}

/// NaN at the beginning of one operand and within the other.
fn operands() -> [Array; 2] {
    let floats = |values: [f64; 4]| Array::floats(DType::F32, [4], &values);
    [floats([f64::NAN, 1.0, -0.5, 0.25]), floats([0.5, f64::NAN, 0.75, -2.0])]
}

#[test]
fn programs_of_default_options_keep_nan() {
    let client = client().expect("the plugin");
    let traced = trace((f32([4]), f32([4])), |(x, y)| extremes(x, y)).expect("it traces");
    let expected = traced.eval(&operands()).expect("they fit");
    let spec = (f32([4]), f32([4]));

    let placements = vec![Placement::Replicated; expected.len()];
    let compiled = Program::compile(&client, "nan", &traced, placements, &options());
    let text = lower_kept("nan", &traced).expect("StableHLO").module.text;
    let loaded = client.load_stablehlo(text, spec, traced.results().clone(), &options());
    for (how, program) in [("compiled", compiled), ("loaded", loaded)] {
        let program = program.expect("it compiles");
        let [x, y] = operands();
        let x = program.upload(x).expect("a device");
        let y = program.upload(y).expect("a device");
        let got = program.run((x, y)).expect("it runs").to_host().expect("it has run");
        assert_eq!(differences(&expected, &got.into_leaves(), 1e-6), None, "{how}");
    }
}

#[test]
fn a_module_of_default_options_keeps_nan() {
    let traced = trace((f32([4]), f32([4])), |(x, y)| extremes(x, y)).expect("it traces");
    let module = lower_kept("nan", &traced).expect("StableHLO").module;
    let client = client().expect("the plugin");
    let executable = client.compile(&module, &CompileOptions::default()).expect("it compiles");
    let buffers: Vec<_> = operands()
        .iter()
        .enumerate()
        .map(|(i, array)| executable.upload(0, i, array).expect("it fits"))
        .collect();
    let arguments = buffers.iter().map(Argument::Kept).collect();
    let got = executable.execute(vec![arguments]).expect("it runs").remove(0);
    let got: Vec<Array> = got.iter().map(|buffer| buffer.to_host().expect("it has run")).collect();
    let expected = traced.eval(&operands()).expect("they fit");
    assert_eq!(differences(&expected, &got, 1e-6), None);
}

#[derive(Tree, Clone)]
struct Layers {
    first: Tensor,
    second: Tensor,
}

fn layers() -> Spec<Layers> {
    Spec(LayersOf { first: f32([2, 2]), second: f32([2, 2]) })
}

#[test]
fn missing_placements_are_an_error() {
    let client = client().expect("the plugin");
    let traced = trace((layers(),), |(layers,)| layers).expect("it traces");
    let error = Program::compile(&client, "none", &traced, vec![], &options()).map(|_| ());
    assert_eq!(
        error.expect_err("there are two leaves").to_string(),
        "the results have 2 leaves (`first`, `second`) and 0 placements were given: give one for each leaf"
    );
}

fn squares() -> [Array; 2] {
    [0.0f32, 1.0].map(|x| Array::from_slice([2, 2], &[x; 4]).expect("four numbers"))
}

#[test]
fn arrays_that_are_not_a_trees_leaves_are_an_error() {
    let made = |arrays: Vec<(&str, Array)>| {
        Host::from_named(&layers(), arrays).map(|_| ()).expect_err("they do not fit").to_string()
    };
    let [x, y] = squares();
    assert_eq!(
        made(vec![("first", x.clone())]),
        "the arrays do not make the tree: `second` (f32[2,2]) is missing"
    );
    let row = Array::from_slice([4], &[0i32; 4]).expect("four numbers");
    assert_eq!(
        made(vec![("first", row), ("third", x.clone()), ("second", y.clone()), ("second", y)]),
        "the arrays do not make the tree: `second` is given twice; `first` must be f32[2,2] and is \
         i32[4]; there is no leaf `third`, only `first`, `second`"
    );
}

#[test]
fn arrays_become_the_leaves_of_their_names_in_any_order() {
    let client = client().expect("the plugin");
    let traced = trace((layers(),), |(layers,)| layers.first - layers.second).expect("it traces");
    let program =
        Program::compile(&client, "minus", &traced, vec![Placement::Replicated], &options());
    let program = program.expect("it compiles");
    let [x, y] = squares();
    for arrays in [[("first", &x), ("second", &y)], [("second", &y), ("first", &x)]] {
        let named = arrays.map(|(name, array)| (name, array.clone()));
        let tree = Host::from_named(&layers(), named).expect("they fit");
        let tree = program.upload(tree).expect("a device");
        let result = program.run((tree,)).expect("it runs").to_host().expect("it has run");
        assert_eq!(result.to_vec::<f32>().expect("floats"), [-1.0; 4]);
    }
}

#[test]
fn a_single_leaf_of_another_type_is_an_error() {
    let client = client().expect("the plugin");
    let traced = trace((key(),), |(key,)| key.uniform([])).expect("it traces");
    let program =
        Program::compile(&client, "draw", &traced, vec![Placement::Replicated], &options());
    let program = program.expect("it compiles");
    let [x, _] = squares();
    let seed = program.upload(x).expect("a device");
    assert_eq!(
        program.run((seed,)).expect_err("no key").to_string(),
        "argument 0 of replica 0 must be u32[2] and is f32[2,2]"
    );
}
