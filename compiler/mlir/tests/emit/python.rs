//! StableHLO's own parser and verifier, from the Python package jaxlib, on every test program.
//! Skipped if the package is not installed.

use crate::programs;
use podracer_compiler::stablehlo::{ModuleSpec, stablehlo};
use podracer_test_support::skip::skip;
use std::io::Write;
use std::process::{Command, Stdio};

/// Reads modules from standard input, separated by a line, and verifies each; exits with 77 if jaxlib is missing.
const VERIFY: &str = r#"
import sys
try:
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import stablehlo
    from jaxlib.mlir._mlir_libs import _jax_mlir_ext
except ImportError as error:
    print(error)
    sys.exit(77)
context = ir.Context()
registry = ir.DialectRegistry()
_jax_mlir_ext.register_dialects(registry)
context.append_dialect_registry(registry)
context.load_all_available_dialects()
context.allow_unregistered_dialects = True
stablehlo.register_dialect(context)
for text in sys.stdin.read().split("// next\n"):
    with context:
        try:
            module = ir.Module.parse(text)
            assert module.operation.verify()
        except Exception as error:
            print(error, text, sep="\n")
            sys.exit(1)
"#;

/// Why a test without a Python with jaxlib is skipped.
const NO_JAXLIB: &str =
    "no jaxlib: `make test` installs it, and PODRACER_PYTHON names a Python that has it";

#[test]
fn stablehlo_verifies_every_program() {
    let mut input = String::new();
    for (func, replicas) in programs::all() {
        let module = stablehlo(&func, &ModuleSpec::new("m", &func).replicas(replicas))
            .expect("a well-formed program");
        let parts = [module.text, module.text_with_locations];
        for text in parts {
            input += if input.is_empty() { "" } else { "// next\n" };
            input += &text;
        }
    }
    let python = std::env::var("PODRACER_PYTHON").unwrap_or_else(|_| "python3".to_string());
    let child = Command::new(&python)
        .args(["-P", "-c", VERIFY])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut child) = child else {
        return skip(NO_JAXLIB);
    };
    // A script that ends early closes its input; its exit status says why.
    let _ = child.stdin.take().expect("it is piped").write_all(input.as_bytes());
    let output = child.wait_with_output().expect("the script ends");
    let said = String::from_utf8_lossy(&output.stdout);
    match output.status.code() {
        Some(77) => skip(NO_JAXLIB),
        code => assert_eq!(code, Some(0), "StableHLO refuses a module:\n{said}"),
    }
}
