//! Options of clients and compilations: mistakes are errors, and never XLA's abort.

use podracer_runtime::{
    Client, ClientOptions, CompileOptions, ErrorCode, Module, OptionValue, Plugin, RuntimeError,
    XlaOptions,
};

use crate::programs::{add, all_reduce, buffer, client, device, f32s, kept, values};

#[test]
fn zero_devices_is_an_error() {
    let error = Client::cpu(ClientOptions { cpu_devices: Some(0), ..ClientOptions::default() })
        .unwrap_err();
    assert_eq!(error.to_string(), "a client needs at least one device and 0 were asked for");
}

#[test]
fn a_client_has_as_many_devices_as_cores() {
    let client = Client::cpu(ClientOptions::default()).unwrap();
    assert_eq!(client.devices().len(), std::thread::available_parallelism().unwrap().get());
    assert_eq!(client.platform(), "cpu");
    assert!(matches!(client.device(10_000), Err(RuntimeError::NoDevice { index: 10_000, .. })));
}

#[test]
fn a_plugin_is_loaded_once() {
    assert_eq!(Plugin::load("cpu").unwrap(), client().plugin());
    assert!(client().plugin().attributes().contains_key("stablehlo_current_version"));
}

#[test]
fn impossible_placements_are_errors() {
    for options in [
        CompileOptions { replicas: 0, ..CompileOptions::default() },
        CompileOptions { replicas: 3, ..CompileOptions::default() },
        CompileOptions { replicas: 2, device_assignment: Some(vec![1]), ..Default::default() },
        CompileOptions { replicas: 2, device_assignment: Some(vec![1, 1]), ..Default::default() },
        CompileOptions { replicas: 1, device_assignment: Some(vec![2]), ..Default::default() },
    ] {
        assert!(
            matches!(client().compile(&add(), &options), Err(RuntimeError::Options(_))),
            "{options:?}"
        );
    }
}

#[test]
fn a_module_for_other_replicas_is_an_error() {
    let error = client().compile(&all_reduce(2), &CompileOptions::default()).unwrap_err();
    let expected = "the module is written for 2 replica(s) and is to be compiled for 1";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn unknown_option_names_and_values_are_errors() {
    for (name, value) in [
        ("xla_no_such_option", OptionValue::Bool(true)),
        ("xla_cpu_prefer_vector_width", OptionValue::String("wide".to_owned())),
    ] {
        let options =
            CompileOptions { xla: vec![(name.to_owned(), value)], ..CompileOptions::default() };
        let error = client().compile(&add(), &options).unwrap_err();
        assert!(
            matches!(&error, RuntimeError::Xla { code: ErrorCode::InvalidArgument, .. }),
            "{error}"
        );
        assert!(error.to_string().contains(name), "{error}");
    }
}

#[test]
fn the_options_of_the_rule_are_understood() {
    let options = CompileOptions {
        xla: XlaOptions::for_platform("cpu").whole_loop().pairs(),
        ..CompileOptions::default()
    };
    let executable = client().compile(&add(), &options).unwrap();
    let x = buffer(&[2, 2], &[1.0f32; 4], &device(0));
    assert_eq!(values(&executable.execute(vec![kept([&x, &x])]).unwrap()[0][0]), [2.0; 4]);
}

#[test]
fn extra_options_that_end_the_process_are_errors() {
    for value in ["a=1", "xla_cpu_small_while_loop_byte_threshold=many", ""] {
        let value = OptionValue::String(value.to_owned());
        let xla = vec![("xla_backend_extra_options".to_owned(), value)];
        let options = CompileOptions { xla, ..CompileOptions::default() };
        assert!(matches!(client().compile(&add(), &options), Err(RuntimeError::Options(_))));
    }
}

/// Halves `f32[extent]` a hundred times.
pub fn looped(extent: usize) -> Module {
    let text = r"
module @loop {
  func.func public @main(%x: tensor<EXTENTxf32>) -> tensor<EXTENTxf32> {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %count = stablehlo.constant dense<100> : tensor<i32>
    %half = stablehlo.constant dense<0.5> : tensor<EXTENTxf32>
    %r:2 = stablehlo.while(%i = %zero, %a = %x) : tensor<i32>, tensor<EXTENTxf32>
    cond {
      %p = stablehlo.compare LT, %i, %count : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %j = stablehlo.add %i, %one : tensor<i32>
      %b = stablehlo.multiply %a, %half : tensor<EXTENTxf32>
      stablehlo.return %j, %b : tensor<i32>, tensor<EXTENTxf32>
    }
    return %r#1 : tensor<EXTENTxf32>
  }
}"
    .replace("EXTENT", &extent.to_string());
    let ty = f32s(&[extent]);
    Module::new(text, vec![ty.clone()], vec![ty])
}

/// A loop is one kernel if an iteration touches little memory, or if an option requests it;
/// otherwise there is a call for each iteration and operation.
#[test]
fn loops_that_are_one_kernel() {
    let launched = |extent, xla| {
        let options = CompileOptions { xla, ..CompileOptions::default() };
        client()
            .compile(&looped(extent), &options)
            .unwrap()
            .compiled()
            .optimized()
            .unwrap()
            .to_string()
    };
    let rule = || XlaOptions::for_platform("cpu");
    for (extent, small) in [(1 << 10, true), (1 << 16, false)] {
        let (default, whole) =
            (launched(extent, rule().pairs()), launched(extent, rule().whole_loop().pairs()));
        assert_eq!(default == whole, small, "{default}");
    }
}

/// The counter and its bound are seen by XLA: a GPU runs such a loop without asking the host in each iteration.
#[test]
fn a_loop_with_a_constant_bound_has_known_iterations() {
    let options = CompileOptions::default();
    let iterations = |module: &Module| -> Vec<Option<u64>> {
        let executable = client().compile(module, &options).unwrap();
        let optimized = executable.compiled().optimized().unwrap();
        optimized.loops().into_iter().map(|one| one.iterations).collect()
    };
    let mut module = looped(1 << 16);
    assert_eq!(iterations(&module), [Some(100)]);
    // The counter is multiplied in place of being increased.
    module.text = module.text.replace("stablehlo.add %i, %one", "stablehlo.multiply %i, %one");
    assert_eq!(iterations(&module), [None]);
}
