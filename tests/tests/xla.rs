//! XLA against the reference semantics: every sample of every op, as it is and under vmap.

use podracer_compiler::Array;
use podracer_tests::cases::{Expected, batched, one_op, samples, types};
use podracer_tests::compare::differences;
use podracer_tests::xla::{Case, run_all};
use podracer_tests::check_all;

/// Runs all cases and collects how each differs from what is expected of it.
fn complaints(expected: &[(Expected, f64)]) -> Vec<String> {
    let cases: Vec<Case> = expected.iter().map(|(expected, _)| expected.case.clone()).collect();
    let complain = |((expected, tolerance), outcome): (&(Expected, f64), anyhow::Result<Vec<Array>>)| {
        let problem = match outcome {
            Ok(got) => differences(&expected.results, &got, *tolerance)?,
            Err(error) => format!("{error:#}"),
        };
        Some(format!("{}: {problem}", expected.case.name))
    };
    expected.iter().zip(run_all(&cases)).filter_map(complain).collect()
}

#[test]
fn xla_computes_what_eval_does() {
    let expect = |(name, sample): (String, podracer_compiler::Sample)| {
        let func = one_op(&sample.op, &types(&sample.inputs));
        let results = sample.op.eval(&sample.inputs);
        (Expected { case: Case { name, func, arguments: sample.inputs }, results }, sample.tolerance)
    };
    check_all(&complaints(&samples().into_iter().map(expect).collect::<Vec<_>>()));
}

#[test]
fn xla_computes_batches_as_eval_does_their_slices() {
    let expect = |(name, sample): (String, podracer_compiler::Sample)| {
        let tolerance = sample.tolerance;
        batched(&name, &sample).into_iter().map(move |expected| (expected, tolerance)).collect::<Vec<_>>()
    };
    check_all(&complaints(&samples().into_iter().flat_map(expect).collect::<Vec<_>>()));
}
