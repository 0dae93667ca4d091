//! Compilation: errors from XLA, further checks by podracer, and the information about a compiled
//! program.

use podracer_compiler::{DType, TensorType};
use podracer_dsl::prelude::{Replicas, all_gather, f32};
use podracer_dsl::trace_replicated;
use podracer_runtime::{CompileOptions, Module, NamedValue, RuntimeError, lower};

use crate::programs::{add, buffer, client, compile, device, f32s, kept, step, values};

#[test]
fn a_bad_module_is_an_error_with_its_place() {
    let module = Module::new("module {\n  func.func @main( {\n}", vec![], vec![]);
    let error = client().compile(&module, &CompileOptions::default()).unwrap_err();
    assert!(matches!(&error, RuntimeError::Xla { .. }), "{error}");
    assert!(error.to_string().contains("2:19"), "{error}");
}

#[test]
fn an_unknown_custom_call_is_an_error() {
    let text = r#"module { func.func public @main(%x: tensor<f32>) -> tensor<f32> {
        %0 = stablehlo.custom_call @nobody(%x) {api_version = 4 : i32} : (tensor<f32>) -> tensor<f32>
        return %0 : tensor<f32> } }"#;
    let module = Module::new(text, vec![f32s(&[])], vec![f32s(&[])]);
    let error = client().compile(&module, &CompileOptions::default()).unwrap_err();
    assert!(error.to_string().contains("nobody"), "{error}");
}

#[test]
fn declared_types_are_checked_against_the_compiled_ones() {
    let wrong = |change: fn(&mut Module)| {
        let mut module = add();
        change(&mut module);
        client().compile(&module, &CompileOptions::default()).unwrap_err().to_string()
    };
    assert_eq!(
        wrong(|module| module.arguments[1] = TensorType::new(DType::I32, [2, 2])),
        "the module's argument 1 is declared as i32[2,2] and is f32[2,2]"
    );
    assert_eq!(
        wrong(|module| module.results[0] = f32s(&[4])),
        "the module's result 0 is declared as f32[4] and is f32[2,2]"
    );
    assert_eq!(
        wrong(|module| drop(module.arguments.pop())),
        "the module's number of arguments is declared as 1 and is 2"
    );
    assert_eq!(
        wrong(|module| module.results.clear()),
        "the module's number of results is declared as 0 and is 1"
    );
}

#[test]
fn a_compiled_program_reports_its_memory() {
    let executable = compile(&step());
    let compiled = executable.compiled();
    let memory = compiled.memory_stats().unwrap();
    assert_eq!((memory.arguments, memory.aliased), (4096, 4096));
    assert!(
        matches!(compiled.cost_analysis().unwrap()["flops"], NamedValue::Float(flops) if flops >= 2047.0)
    );
    assert!(!compiled.fingerprint().unwrap().is_empty());
    let optimized = compiled.optimized().unwrap();
    assert_eq!(optimized.name(), "step");
    assert!(optimized.instructions()["parameter"] > 0);
    assert!(
        optimized.launched().values().sum::<usize>() <= optimized.instructions().values().sum()
    );
    assert!(optimized.host_transfers().is_empty());
    assert!(optimized.collectives().is_empty());
    assert_eq!(optimized.aliased_arguments(), 1);
    let add = compile(&add()).compiled().optimized().unwrap();
    assert_eq!(add.aliased_arguments(), 0);
    let text = optimized.to_string();
    assert!(text.contains("ENTRY %") && text.contains("f32[1024] parameter(0)"), "{text}");
}

#[test]
fn a_program_traced_for_some_replicas_is_compiled_for_no_others() {
    let traced = trace_replicated(2, f32([3]), |x| all_gather(x, Replicas)).unwrap();
    assert_eq!(lower("gather", &traced, 2).unwrap().module.results, [f32s(&[2, 3])]);
    let error = lower("gather", &traced, 3).unwrap_err().to_string();
    assert_eq!(error, "the program was traced for 2 replica(s) and is to run on 3");
}

#[test]
fn a_serialized_program_computes_the_same() {
    let bytes = compile(&add()).serialize().unwrap();
    let executable = client().load(&bytes).unwrap();
    assert_eq!(executable.arguments(), add().arguments);
    let x = buffer(&[2, 2], &[1.5f32; 4], &device(0));
    assert_eq!(values(&executable.execute(vec![kept([&x, &x])]).unwrap()[0][0]), [3.0; 4]);
}

#[test]
fn damaged_serialized_programs_never_reach_xla() {
    let bytes = compile(&add()).serialize().unwrap();
    let refused = |bytes: &[u8]| matches!(client().load(bytes), Err(RuntimeError::Serialized(_)));
    assert!(refused(&[]));
    assert!(refused(b"not an executable"));
    for length in [17, 40, 60, bytes.len() / 2, bytes.len() - 1] {
        assert!(refused(&bytes[..length]), "{length}");
    }
    let mut flipped = bytes.clone();
    *flipped.last_mut().unwrap() ^= 1;
    assert!(refused(&flipped));
}
