//! What does not fit is an error, before the machine runs out of memory.

use std::env;
use std::process::Command;

use podracer_runtime::{CompileOptions, Module, RuntimeError};
use rustix::process::{Resource, Rlimit, setrlimit};

use crate::programs::{client, compile, f32s};
use podracer_test_support::skip::skip;

/// Numbers of four terabytes.
const NUMBERS: &str = "func.func public @main() -> tensor<1099511627776xf32> {
  %0 = stablehlo.iota dim = 0 : tensor<1099511627776xf32>
  return %0 : tensor<1099511627776xf32>
}";

fn launched(text: &str, results: Vec<podracer_compiler::TensorType>) -> String {
    let executable = compile(&Module::new(text, vec![], results));
    let failed = executable.execute(vec![vec![]]).unwrap_err();
    assert!(matches!(*failed.error, RuntimeError::OutOfMemory(_)), "{failed}");
    failed.to_string()
}

#[test]
fn results_that_do_not_fit_are_an_error() {
    let message = launched(NUMBERS, vec![f32s(&[1 << 40])]);
    assert!(
        message.starts_with(
            "not enough memory: in addition to its arguments the program takes 4096.00 GiB in all on 1 device(s), and "
        ) && message.contains(" are free; smaller batches"),
        "{message}"
    );
}

/// A sort's operand and result are both in memory: it is not fused with the op that reads it.
#[test]
fn intermediate_values_that_do_not_fit_are_an_error() {
    let text = "func.func public @main() -> tensor<1xf32> {
  %0 = stablehlo.iota dim = 0 : tensor<1099511627776xf32>
  %1 = \"stablehlo.sort\"(%0) <{dimension = 0 : i64, is_stable = false}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }) : (tensor<1099511627776xf32>) -> tensor<1099511627776xf32>
  %2 = stablehlo.slice %1 [5:6] : (tensor<1099511627776xf32>) -> tensor<1xf32>
  return %2 : tensor<1xf32>
}";
    let message = launched(text, vec![f32s(&[1])]);
    assert!(message.contains("the program takes 4096"), "{message}");
}

/// Read back from its serialized form it is asked as well: that is how it comes from the cache.
#[test]
fn a_program_that_was_loaded_is_asked_too() {
    let module = Module::new(NUMBERS, vec![], vec![f32s(&[1 << 40])]);
    let options = CompileOptions::default();
    let bytes = client().compile(&module, &options).unwrap().serialize();
    let failed = client().load(&bytes.unwrap()).unwrap();
    let failed = failed.execute(vec![vec![]]).unwrap_err();
    assert!(failed.to_string().contains("not enough memory"), "{failed}");
}

const CHILD: &str = "PODRACER_TEST_MEMORY_CHILD";

/// Not a test by itself: another test starts it. It launches a program with 256 MB of results
/// twice, the second time without more memory available from the system.
#[test]
fn child() {
    if env::var_os(CHILD).is_none() {
        skip("no test of itself: a process that another test starts");
        return;
    }
    let text = "func.func public @main() -> tensor<67108864xf32> {
  %0 = stablehlo.iota dim = 0 : tensor<67108864xf32>
  return %0 : tensor<67108864xf32>
}";
    let executable = compile(&Module::new(text, vec![], vec![f32s(&[1 << 26])]));
    let results = executable.execute(vec![vec![]]).unwrap();
    results[0][0].to_host().unwrap();
    setrlimit(Resource::As, Rlimit { current: Some(1 << 20), maximum: None }).unwrap();
    println!("RESULT {}", executable.execute(vec![vec![]]).unwrap_err());
}

/// Where the memory goes to others between two launches, the kernels would find none for themselves, and XLA ends the process then.
#[test]
fn a_process_is_not_ended_where_kernels_find_no_memory_for_themselves() {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", "memory::child", "--nocapture", "--test-threads=1"]);
    let output = command.env(CHILD, "1").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let result = text.split_once("RESULT ").and_then(|(_, rest)| rest.lines().next());
    let expected = "not enough memory: the work of XLA's kernels takes 0.06 GiB on the host; ";
    assert!(result.is_some_and(|result| result.starts_with(expected)), "{output:?}");
}
