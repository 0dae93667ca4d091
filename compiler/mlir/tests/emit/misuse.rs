//! Lowerings that are wrong give errors that name the op and the user's line: no crash, and nothing on standard error.

use crate::double::{Lower, func_at, op, ty};
use podracer_compiler::lower::hlo_simple;
use podracer_compiler::ops::{AllGather, AllReduce, AxisIndex, Combination, REPLICAS};
use podracer_compiler::stablehlo::{EmitError, ModuleSpec, stablehlo};
use podracer_compiler::{Builder, DType, HloAttribute, Loc, Op};
use podracer_mlir::{MlirError, normalized};

#[track_caller]
fn error(lower: Lower) -> EmitError {
    let x = ty(DType::F32, &[2]);
    let func =
        func_at("wrong", Loc::caller(), std::slice::from_ref(&x), std::slice::from_ref(&x), lower);
    let spec = ModuleSpec::new("wrong", &func);
    let error = stablehlo(&func, &spec).expect_err("the lowering is wrong");
    if let EmitError::Lowering { place, .. } = &error {
        assert!(place.contains("misuse.rs"), "{place}");
    }
    assert_eq!(podracer_mlir::stablehlo(&func, &spec), Err(MlirError::Emit(error.clone())));
    error
}

#[track_caller]
fn check(error: EmitError, part: &str) {
    assert!(error.to_string().contains(part), "{error}");
}

#[test]
fn a_value_used_outside_its_region() {
    let error = error(|hlo, inputs, types| {
        hlo.begin_region(&[]);
        let inner = hlo_simple(hlo, "stablehlo.negate", inputs);
        let region = hlo.end_region(&[inner]);
        op(hlo, "stablehlo.if", inputs, Vec::new(), vec![region], types);
        vec![hlo_simple(hlo, "stablehlo.negate", &[inner])]
    });
    check(error, "malformed stablehlo.negate: operand 0 is not visible here");
}

/// The error of a module for two replicas with a function that is a single collective.
#[track_caller]
fn refused(op: impl Op) -> String {
    let mut b = Builder::new();
    b.set_loc(Loc::caller());
    let inputs: Vec<_> = if op.mnemonic() == "axis_index" {
        Vec::new()
    } else {
        vec![b.param(ty(DType::F32, &[2]))]
    };
    let results = b.emit(op, &inputs);
    let func = b.finish("refused", results);
    let spec = ModuleSpec::new("refused", &func).replicas(2);
    match stablehlo(&func, &spec) {
        Err(error @ EmitError::Refused { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn collectives_of_members_that_are_not_there() {
    let axis = || "crew".to_string();
    let gather = |axis, size| AllGather { axis, size, dimension: 0 };
    let sum = AllReduce { axis: axis(), computation: Combination::Sum };
    for message in [refused(sum), refused(gather(axis(), 2)), refused(AxisIndex { axis: axis() })] {
        assert!(
            message.contains("misuse.rs")
                && message.contains("over the axis `crew` and no vmap of that name is around it"),
            "{message}"
        );
    }
    for size in [1, 3] {
        let message = refused(gather(REPLICAS.to_string(), size));
        let expected = format!("it is over {size} replicas and the module is for 2");
        assert!(message.contains(&expected), "{message}");
    }
}

#[test]
fn a_region_given_twice() {
    let error = error(|hlo, inputs, types| {
        hlo.begin_region(&[]);
        let region = hlo.end_region(inputs);
        op(hlo, "stablehlo.if", inputs, Vec::new(), vec![region, region], types)
    });
    check(error, "malformed stablehlo.if: it takes a region that another op has");
}

#[test]
fn regions_given_to_nothing() {
    let error = error(|hlo, inputs, _| {
        hlo.begin_region(&[]);
        let mut value = inputs[0];
        for _ in 0..3 {
            hlo.begin_region(&[]);
            value = hlo_simple(hlo, "stablehlo.negate", &[value]);
            hlo.end_region(&[value]);
            value = inputs[0];
        }
        hlo.end_region(inputs);
        vec![value]
    });
    check(error, "it was given to no op");
}

#[test]
fn a_region_left_open() {
    let error = error(|hlo, inputs, _| {
        hlo.begin_region(&[]);
        vec![hlo_simple(hlo, "stablehlo.negate", inputs)]
    });
    check(error, "it is left open");
}

#[test]
fn a_region_closed_too_often() {
    let error = error(|hlo, inputs, _| {
        hlo.end_region(inputs);
        inputs.to_vec()
    });
    check(error, "no region is open");
}

#[test]
fn an_attribute_with_too_few_elements() {
    let error = error(|hlo, inputs, types| {
        let groups = HloAttribute::I64Tensor(vec![1, 1000], vec![0]);
        op(hlo, "stablehlo.all_reduce", inputs, vec![("replica_groups", groups)], Vec::new(), types)
    });
    check(error, "attribute `replica_groups`: a constant of type i64[1,1000] has 1 elements");
}

#[test]
fn an_attribute_that_is_no_word() {
    let error = error(|hlo, inputs, types| {
        let wrong = HloAttribute::Enum("comparison_direction", "LT>>");
        op(
            hlo,
            "stablehlo.compare",
            inputs,
            vec![("comparison_direction", wrong)],
            Vec::new(),
            types,
        )
    });
    check(error, "attribute `comparison_direction`: `LT>>` is no word of letters, digits and `_`");
}

/// An op of a dialect that MLIR knows, used wrongly: only MLIR's own verifier sees it.
#[test]
fn what_mlir_refuses_comes_back_with_its_reason() {
    let x = ty(DType::F32, &[2]);
    let (params, results) = (std::slice::from_ref(&x), std::slice::from_ref(&x));
    let func = func_at("wrong", Loc::NONE, params, results, |hlo, inputs, types| {
        op(hlo, "func.call", inputs, Vec::new(), Vec::new(), types)
    });
    let spec = ModuleSpec::new("wrong", &func);
    let error = podracer_mlir::stablehlo(&func, &spec).expect_err("the op has no callee");
    assert!(matches!(error, MlirError::Rejected(_)), "{error:?}");
    assert!(error.to_string().contains("requires attribute 'callee'"), "{error}");
    let written = stablehlo(&func, &spec).expect("the compiler knows no rules of that dialect");
    assert!(matches!(normalized(&written.text), Err(MlirError::Rejected(_))));
}
