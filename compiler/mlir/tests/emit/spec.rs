//! Names, donation, replicas, locations, determinism.

use crate::double::{check, func_at, module, module_of, ty};
use crate::programs;
use podracer_compiler::lower::hlo_simple;
use podracer_compiler::ops::{DotGeneral, Scan};
use podracer_compiler::stablehlo::{ArgumentSpec, EmitError, ModuleSpec, Processes, stablehlo};
use podracer_compiler::{Builder, DType, Func, Loc};
use std::sync::Arc;

fn swap() -> Func {
    let (x, n) = (ty(DType::F32, &[2]), ty(DType::U8, &[]));
    func_at("swap", Loc::caller(), &[x.clone(), n.clone()], &[n, x], |hlo, inputs, _| {
        vec![inputs[1], hlo_simple(hlo, "stablehlo.negate", &inputs[..1])]
    })
}

fn spec() -> ModuleSpec {
    ModuleSpec {
        name: "step".into(),
        replicas: 4,
        whole_loops: false,
        processes: Processes::ONE,
        arguments: vec![
            ArgumentSpec::into_result("state.params.w", 1),
            ArgumentSpec::donor("state.count"),
        ],
        result_names: vec!["metrics.loss".into(), String::new()],
    }
}

#[test]
fn names_donation_and_replicas() {
    let module = module_of(&swap(), &spec());
    insta::assert_snapshot!(module.text);
    check(
        &module.text_with_locations,
        &["%arg0: tensor<2xf32> {tf.aliasing_output = 1 : i32} loc(\"state.params.w\")"],
    );
}

#[test]
fn locations_stand_in_one_text_only() {
    let func = swap();
    let Some((file, line, column)) = func.eqns[0].loc.parts() else {
        panic!("the caller's place is known")
    };
    let module = module(&func);
    check(
        &module.text_with_locations,
        &[
            "stablehlo.negate\"(%arg0) : (tensor<2xf32>) -> tensor<2xf32> loc(#loc1)\n",
            &format!("\n#loc1 = loc({file:?}:{line}:{column})\n"),
        ],
    );
    assert!(!module.text.contains("loc("), "{}", module.text);
    assert!(!module.text.contains(file), "{}", module.text);
}

#[test]
fn builds_are_equal() {
    for (func, replicas) in programs::all() {
        let build = || {
            stablehlo(&func, &ModuleSpec::new("m", &func).replicas(replicas))
                .expect("a well-formed program")
        };
        assert_eq!(build(), build());
    }
}

#[test]
fn a_module_without_arguments_results_or_name() {
    let mut b = podracer_compiler::Builder::new();
    b.param(ty(DType::F64, &[0]));
    let func = b.finish("", vec![]);
    check(
        &module(&func).text,
        &["module attributes {", "func.func public @main(%arg0: tensor<0xf64>) {"],
    );
}

#[test]
fn specifications_that_do_not_fit() {
    let fail = |change: fn(&mut ModuleSpec)| {
        let mut spec = spec();
        change(&mut spec);
        stablehlo(&swap(), &spec).expect_err("it does not fit")
    };
    let error = fail(|spec| spec.arguments.truncate(1));
    assert_eq!(error.to_string(), "the specification has 1 arguments, the function has 2");
    let error = fail(|spec| spec.result_names.clear());
    assert_eq!(error.to_string(), "the specification has 0 results, the function has 2");
    assert_eq!(fail(|spec| spec.replicas = 0), EmitError::Replicas(0));
    let error = fail(|spec| spec.arguments[0] = ArgumentSpec::into_result("w", 2));
    assert_eq!(error.to_string(), "argument `w` is donated to result 2, the function has 2");
    let error = fail(|spec| spec.arguments[1] = ArgumentSpec::into_result("n", 1));
    assert_eq!(
        error.to_string(),
        "argument `n` is donated to result 1, which another argument is donated to already"
    );
    let error = fail(|spec| spec.arguments[0] = ArgumentSpec::into_result("w", 0));
    assert_eq!(
        error.to_string(),
        "argument `w` of type f32[2] is donated to result 0 of type u8[]: the types must be equal"
    );
}

/// A loop with a product of `[rows, 3]` and `[3, 3]` in a loop in its body, or without it.
fn looped(rows: usize, multiplies: bool) -> Func {
    let matrix = ty(DType::F32, &[rows, 3]);
    let wrapped = |body: Func| Scan {
        body: Arc::new(body),
        length: 5,
        reverse: false,
        consts: 1,
        carries: 1,
    };
    let mut inner = Builder::new();
    let [weights, x] = [&ty(DType::F32, &[3, 3]), &matrix].map(|ty| inner.param(ty.clone()));
    let next = match multiplies {
        true => inner.emit(DotGeneral::matmul(), &[x, weights])[0],
        false => inner.add(x, x),
    };
    let inner = inner.finish("inner", vec![next]);
    let mut outer = Builder::new();
    let params = inner.param_types().into_iter().map(|ty| outer.param(ty)).collect::<Vec<_>>();
    let results = outer.emit(wrapped(inner.clone()), &params);
    let outer = outer.finish("outer", results);
    let mut b = Builder::new();
    let params = inner.param_types().into_iter().map(|ty| b.param(ty)).collect::<Vec<_>>();
    let results = b.emit(wrapped(outer), &params);
    b.finish("looped", results)
}

#[test]
fn loops_with_products_are_no_kernels_where_loops_are() {
    let sorts = |rows: usize, multiplies: bool, whole_loops: bool| {
        let func = looped(rows, multiplies);
        let spec = ModuleSpec { whole_loops, ..ModuleSpec::new("m", &func) };
        module_of(&func, &spec).text.matches("\"stablehlo.sort\"").count()
    };
    assert_eq!(sorts(2, true, true), 2);
    assert_eq!(sorts(2, true, false), 0);
    assert_eq!(sorts(2, false, true), 0);
    // XLA multiplies by a vector in code of its own.
    assert_eq!(sorts(1, true, true), 0);
}
