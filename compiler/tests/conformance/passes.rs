//! Passes preserve the results of a function. The functions are the gradients of the samples, which
//! have dead code, repeated code and the residuals of region ops.

use super::first_order::{NO_REVERSE, choices, differentiable};
use super::second_order::gradient;
use super::{cases, check_all, close, func_of, types_of};
use podracer_compiler::simplify::{Options, simplify};
use podracer_compiler::transform::{cse, dce, inline_calls, launch_less};
use podracer_compiler::{Array, Func, ir};

/// A pass from function to function.
type Pass = fn(&Func) -> Func;

const PASSES: [(&str, Pass); 5] = [
    ("dce", dce),
    ("cse", cse),
    ("inline_calls", inline_calls),
    ("launch_less", launch_less),
    ("simplify", |func| simplify(func, &Options::all())),
];

/// Checks that the passes keep the function's values, and change nothing when they run again.
pub fn check(func: &Func, inputs: &[Array]) -> Result<(), String> {
    let expected = func.eval(inputs);
    for (name, pass) in PASSES {
        let after = pass(func);
        ir::verify(&after).map_err(|error| format!("{name}: {error}"))?;
        if after.param_types() != func.param_types() {
            return Err(format!("{name} changes the parameters"));
        }
        for (i, (got, expected)) in after.eval(inputs).iter().zip(&expected).enumerate() {
            close(&format!("{name}, result {i}"), got, expected, 0.0)?;
        }
        let again = pass(&after);
        if again.to_string() != after.to_string() {
            return Err(format!("{name} changes its own result:\n{after}\n{again}"));
        }
    }
    Ok(())
}

#[test]
fn passes_keep_values_and_are_done_after_one_run() {
    check_all(cases(), |case| {
        check(&func_of(&case.sample.op, &types_of(&case.sample.inputs))?, &case.sample.inputs)?;
        if NO_REVERSE.contains(&case.mnemonic) {
            return Ok(());
        }
        let Some((func, inputs)) = differentiable(case)? else {
            return Ok(());
        };
        let Some(all) = choices(&inputs).pop() else {
            return Ok(());
        };
        let (gradient, inputs) = gradient(&func, &inputs, &all)?;
        check(&gradient, &inputs)
    });
}
