//! Random programs through the text, the passes and the transforms, each against the reference semantics.
//!
//! `PODRACER_PROGRAMS` is how many (some dozens without it), `PODRACER_SEED` which. A program that fails is shrunk.

mod generate;
mod regions;

use crate::conformance::Random;
use crate::conformance::batching::check_batch;
use crate::conformance::first_order::{check_adjoint, check_jvp};
use crate::conformance::passes;
use crate::conformance::second_order::gradient;
use crate::conformance::text::check_text;
use podracer_compiler::transform::linearize;
use podracer_compiler::{Array, Func};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};
use std::panic::{AssertUnwindSafe, catch_unwind};

fn number(variable: &str, default: u32) -> u32 {
    let value = std::env::var(variable).ok();
    value.map_or(default, |value| value.parse().expect("a number"))
}

/// A derivative is wrong if differences agree with it at no step size: long steps curve, short
/// steps round.
fn check_slope(func: &Func, inputs: &[Array], wrt: &[bool], tolerance: f64) -> Result<(), String> {
    let mut results =
        [1e-5, 1e-6, 1e-4, 1e-7].map(|step| check_jvp(func, inputs, wrt, step, tolerance));
    match results.iter().any(Result::is_ok) {
        true => Ok(()),
        false => std::mem::replace(&mut results[0], Ok(())),
    }
}

fn floats(inputs: &[Array]) -> Vec<bool> {
    let float = |input: &Array| input.ty().dtype.is_float();
    inputs.iter().map(float).collect()
}

fn check(func: &Func, inputs: &[Array]) -> Result<(), String> {
    let all = floats(inputs);
    let within = |what: &str, result: Result<(), String>| {
        result.map_err(|message| format!("{what}: {message}"))
    };
    check_text(func)?;
    passes::check(func, inputs)?;
    let first: Vec<bool> = (0..inputs.len()).map(|i| i == 0).collect();
    let rest: Vec<bool> = first.iter().map(|is| !is).collect();
    for batched in [&first, &rest, &vec![true; inputs.len()]] {
        check_batch(func, inputs, batched, 2)?;
    }
    check_slope(func, inputs, &all, 1e-6)?;
    if let Err(error) =
        linearize(func, &all).and_then(|_| podracer_compiler::transform::vjp(func, &all))
    {
        return match error.op {
            "while" => Ok(()),
            op => Err(format!("{op} has no reverse rule: {error}")),
        };
    }
    check_adjoint(func, inputs, &all)?;
    let (gradient, inputs) = gradient(func, inputs, &all)?;
    within("gradient", check_text(&gradient))?;
    within("gradient", passes::check(&gradient, &inputs))?;
    within("gradient", check_batch(&gradient, &inputs, &vec![true; inputs.len()], 2))?;
    within("gradient", check_slope(&gradient, &inputs, &floats(&inputs), 1e-4))
}

/// Runs the check and says how it failed, with the program.
fn outcome(numbers: &[u32]) -> Result<(), String> {
    let run = || {
        let (func, inputs) = generate::program(numbers, 1);
        let arguments: Vec<String> = inputs.iter().map(ToString::to_string).collect();
        catch_unwind(AssertUnwindSafe(|| check(&func, &inputs)))
            .unwrap_or_else(|panic| Err(message(&*panic)))
            .map_err(|message| format!("{message}\n{func}\nof {}", arguments.join(", ")))
    };
    catch_unwind(run).unwrap_or_else(|panic| Err(format!("generating: {}", message(&*panic))))
}

fn message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic
        .downcast_ref::<String>()
        .cloned()
        .or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
    format!("panicked: {}", text.unwrap_or_default())
}

#[test]
fn random_programs_agree_with_the_reference_semantics() {
    let seed: Vec<u8> =
        number("PODRACER_SEED", 0).to_le_bytes().iter().copied().cycle().take(32).collect();
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
    let config = Config {
        cases: number("PODRACER_PROGRAMS", 48),
        failure_persistence: None,
        ..Config::default()
    };
    let choices = proptest::collection::vec(any::<u32>(), 0..96);
    let result = TestRunner::new_with_rng(config, rng)
        .run(&choices, |numbers| outcome(&numbers).map_err(TestCaseError::fail));
    if let Err(error) = result {
        panic!("{error}");
    }
}
