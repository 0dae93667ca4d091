//! XLA against the reference semantics: every sample of every op, as it is, under vmap, and its derivatives.

use podracer_compiler::ops::{Convolution, OpRef};
use podracer_compiler::{Array, DType, Sample};
use podracer_envs::host::Random;
use podracer_tests::cases::{Expected, batched, forward, one_op, reverse, samples, types};
use podracer_tests::check_all;
use podracer_tests::compare::differences;
use podracer_tests::xla::{Case, run_all};

/// Runs all cases and collects the differences from the expected results.
fn complaints(expected: &[(Expected, f64)]) -> Vec<String> {
    let cases: Vec<Case> = expected.iter().map(|(expected, _)| expected.case.clone()).collect();
    let complain =
        |((expected, tolerance), outcome): (&(Expected, f64), anyhow::Result<Vec<Array>>)| {
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
    let expect = |(name, sample): (String, Sample)| {
        let func = one_op(&sample.op, &types(&sample.inputs));
        let results = sample.op.eval(&sample.inputs);
        (
            Expected { case: Case { name, func, arguments: sample.inputs }, results },
            sample.tolerance,
        )
    };
    check_all(&complaints(&samples().into_iter().map(expect).collect::<Vec<_>>()));
}

#[test]
fn xla_computes_batches_as_eval_does_their_slices() {
    let expect = |(name, sample): (String, Sample)| {
        let tolerance = sample.tolerance;
        batched(&name, &sample)
            .into_iter()
            .map(move |expected| (expected, tolerance))
            .collect::<Vec<_>>()
    };
    check_all(&complaints(&samples().into_iter().flat_map(expect).collect::<Vec<_>>()));
}

/// Derivatives are short programs. XLA does not round every step of them: the tolerance for the
/// coarsest dtype.
fn derivative_tolerance(sample: &Sample) -> f64 {
    let dtypes = sample.inputs.iter().map(|input| match input.ty().dtype {
        DType::BF16 => 8e-3,
        DType::F16 => 1e-3,
        DType::F32 => 2e-6,
        _ => 1e-14,
    });
    dtypes.fold(sample.tolerance, f64::max)
}

#[test]
fn xla_computes_derivatives_as_eval_does() {
    let differentiable = |(_, sample): &(String, Sample)| {
        sample.differentiable && sample.inputs.iter().any(|input| input.ty().dtype.is_float())
    };
    let expect = |(name, sample): (String, Sample)| {
        let tolerance = derivative_tolerance(&sample);
        // An op without a rule reports it, and its own tests check that.
        let cases = [forward(&name, &sample), reverse(&name, &sample)].into_iter().flatten();
        let expected = cases.map(move |case| {
            let results = case.func.eval(&case.arguments);
            (Expected { case, results }, tolerance)
        });
        expected.collect::<Vec<_>>()
    };
    let expected: Vec<_> = samples().into_iter().filter(differentiable).flat_map(expect).collect();
    check_all(&complaints(&expected));
}

/// Attributes of every kind together: a backend's handling of dilation, strides and padding depends
/// on the others.
#[test]
fn xla_computes_convolutions_of_all_attributes() {
    let mut random = Random::from_state(0);
    let mut within = |low: i64, high: i64| low + random.below((high - low + 1) as usize) as i64;
    let mut expected = Vec::new();
    while expected.len() < 600 {
        let spatial = within(1, 2) as usize;
        let mut each =
            |low: i64, high: i64| -> Vec<i64> { (0..spatial).map(|_| within(low, high)).collect() };
        let counts = |amounts: Vec<i64>| -> Vec<usize> {
            amounts.into_iter().map(|amount| amount as usize).collect()
        };
        let op = Convolution {
            strides: counts(each(1, 3)),
            low: each(-3, 3),
            high: each(-3, 3),
            lhs_dilation: counts(each(1, 3)),
            rhs_dilation: counts(each(1, 2)),
            feature_group_count: counts(each(1, 2))[0],
            ..Convolution::new(spatial)
        };
        let groups = op.feature_group_count;
        let lhs = [vec![2], counts(each(2, 5)), vec![2 * groups]].concat();
        let rhs = [counts(each(1, 4)), vec![2, 3 * groups]].concat();
        let inputs = [lhs, rhs].map(|shape| {
            let elements = shape.iter().product::<usize>();
            let values: Vec<f64> = (0..elements).map(|i| ((7 * i + 3) % 13) as f64 - 6.0).collect();
            Array::floats(DType::F32, &shape, &values)
        });
        let op = OpRef::new(op);
        let Ok(results) = op.infer(&types(&inputs)) else {
            continue;
        };
        if results[0].elements() == 0 {
            continue;
        }
        let case = Case {
            name: format!("{:?}", op),
            func: one_op(&op, &types(&inputs)),
            arguments: inputs.to_vec(),
        };
        let results = op.eval(&inputs);
        // Sums of products of small integers are exact.
        expected.push((Expected { case, results }, 1e-15));
    }
    check_all(&complaints(&expected));
}
