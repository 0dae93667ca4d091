//! `jvp` is the limit of differences, `linearize` agrees with it, and `transpose` is its adjoint.

use super::widen::widened;
use super::{Case, Random, cases, check_all, close, func_of, types_of};
use podracer_compiler::transform::{TransformError, jvp, linearize, transpose};
use podracer_compiler::{Array, DType, Func, Scalar};

/// Ops that have no reverse rule, and rightly so: their reason reaches the user.
pub const NO_REVERSE: &[&str] = &["while"];

/// Samples with derivatives to check, as functions of f64.
pub fn differentiable(case: &Case) -> Result<Option<(Func, Vec<Array>)>, String> {
    if !case.sample.differentiable {
        return Ok(None);
    }
    let Some((op, inputs)) = widened(&case.sample)? else {
        return Ok(None);
    };
    let func = func_of(&op, &types_of(&inputs))?;
    Ok(Some((func, inputs)))
}

/// The float parameters one by one, all but one, and all together.
pub fn choices(inputs: &[Array]) -> Vec<Vec<bool>> {
    let floats: Vec<bool> = inputs.iter().map(|input| input.ty().dtype.is_float()).collect();
    let only = |i: usize| (0..inputs.len()).map(|j| i == j).collect::<Vec<bool>>();
    let mut choices: Vec<Vec<bool>> = (0..inputs.len()).filter(|&i| floats[i]).map(only).collect();
    if choices.len() > 2 {
        let but_one =
            |one: &Vec<bool>| floats.iter().zip(one).map(|(&float, &it)| float && !it).collect();
        choices.extend(choices.iter().map(but_one).collect::<Vec<_>>());
    }
    if choices.len() > 1 {
        choices.push(floats);
    }
    choices
}

/// The members of a list that are marked.
pub fn marked<T: Clone>(list: &[T], marks: &[bool]) -> Vec<T> {
    list.iter().zip(marks).filter(|(_, is)| **is).map(|(item, _)| item.clone()).collect()
}

/// Central differences of `func` along `tangents` of the parameters in `wrt`; zeros for results that are not floats.
pub fn differences(
    func: &Func,
    inputs: &[Array],
    wrt: &[bool],
    tangents: &[Array],
    step: f64,
) -> Vec<Array> {
    let moved = |by: f64| {
        let mut tangents = tangents.iter();
        let inputs: Vec<Array> = (inputs.iter().zip(wrt))
            .map(|(x, &is)| {
                if is {
                    combine(x, tangents.next().expect("a tangent for each"), |x, t| x + by * t)
                } else {
                    x.clone()
                }
            })
            .collect();
        func.eval(&inputs)
    };
    let slope = |after: &Array, before: &Array| {
        if after.ty().dtype.is_float() {
            combine(after, before, |y, x| (y - x) / (2.0 * step))
        } else {
            after.clone()
        }
    };
    moved(step).iter().zip(&moved(-step)).map(|(after, before)| slope(after, before)).collect()
}

fn combine(x: &Array, y: &Array, f: impl Fn(f64, f64) -> f64) -> Array {
    let data = x.scalars().zip(y.scalars()).map(|(x, y)| Scalar::Float(f(x.float(), y.float())));
    Array::new(x.ty().clone(), data)
}

/// Sum of products, and the sum of their magnitudes, which the error is measured by.
fn inner(xs: &[Array], ys: &[Array]) -> (f64, f64) {
    let products = xs
        .iter()
        .zip(ys)
        .flat_map(|(x, y)| x.scalars().zip(y.scalars()).map(|(x, y)| x.float() * y.float()));
    products.fold((0.0, 0.0), |(sum, size), product| (sum + product, size + product.abs()))
}

/// Checks the tangents that `jvp` gives against central differences.
pub fn check_jvp(
    func: &Func,
    inputs: &[Array],
    wrt: &[bool],
    step: f64,
    tolerance: f64,
) -> Result<(), String> {
    let (forward, flags) = jvp(func, wrt).map_err(|error| format!("jvp in {wrt:?}: {error}"))?;
    let mut random = Random::new(1);
    let tangents: Vec<Array> =
        marked(inputs, wrt).iter().map(|input| random.array(input.ty())).collect();
    let results = forward.eval(&[inputs, &tangents].concat());
    let (values, results) = results.split_at(func.results.len());
    for (i, (value, expected)) in values.iter().zip(func.eval(inputs)).enumerate() {
        close(&format!("jvp in {wrt:?}, value {i}"), value, &expected, 1e-14)?;
    }
    let mut results = results.iter();
    for (i, difference) in differences(func, inputs, wrt, &tangents, step).iter().enumerate() {
        let what = format!("jvp in {wrt:?}, tangent {i}");
        if flags[i] {
            close(&what, results.next().ok_or("too few tangents")?, difference, tolerance)?;
        } else if difference.ty().dtype.is_float() {
            close(
                &format!("{what}, which is left out"),
                &Array::splat(difference.ty().clone(), Scalar::Float(0.0)),
                difference,
                tolerance,
            )?;
        }
    }
    Ok(())
}

/// Checks that `linearize` gives the values and tangents of `jvp`, and that transposition is the adjoint.
pub fn check_adjoint(func: &Func, inputs: &[Array], wrt: &[bool]) -> Result<(), String> {
    let reason = |what: &str| format!("{what} in {wrt:?}");
    let fail = |what: &str, error: TransformError| format!("{what} in {wrt:?}: {error}");
    let (forward, flags) = jvp(func, wrt).map_err(|error| fail("jvp", error))?;
    let split = linearize(func, wrt).map_err(|error| fail("linearize", error))?;
    if split.tangent_results != flags {
        return Err(format!(
            "{}: jvp has tangents {flags:?}, linearize {:?}",
            reason("linearize"),
            split.tangent_results
        ));
    }
    let mut random = Random::new(2);
    let tangents: Vec<Array> =
        marked(inputs, wrt).iter().map(|input| random.array(input.ty())).collect();
    let expected = forward.eval(&[inputs, &tangents].concat());
    let primal = split.primal.eval(inputs);
    let (values, residuals) = primal.split_at(func.results.len());
    let linear = split.linear.eval(&[residuals, &tangents].concat());
    for (i, (got, expected)) in values.iter().chain(&linear).zip(&expected).enumerate() {
        close(&format!("{}, result {i}", reason("linearize")), got, expected, 1e-11)?;
    }

    // One result at a time, and all: a rule must cope with cotangents that are missing.
    let results = split.linear.results.len();
    let mut choices: Vec<Vec<bool>> =
        (0..results).map(|i| (0..results).map(|j| i == j).collect()).collect();
    if results > 1 {
        choices.push(vec![true; results]);
    }
    for given in choices {
        let is_linear: Vec<bool> =
            (0..split.linear.params.len()).map(|i| i >= residuals.len()).collect();
        let (backward, _) =
            transpose(&split.linear, &is_linear, &given, &vec![true; tangents.len()])
                .map_err(|error| fail("transpose", error))?;
        let images = marked(&linear, &given);
        let cotangents: Vec<Array> = images.iter().map(|image| random.array(image.ty())).collect();
        let pulled = backward.eval(&[residuals, &cotangents].concat());
        if types_of(&pulled) != types_of(&tangents) {
            return Err(format!(
                "{}: cotangents {:?} for tangents {:?}",
                reason("transpose"),
                types_of(&pulled),
                types_of(&tangents)
            ));
        }
        let ((forth, size), (back, _)) = (inner(&images, &cotangents), inner(&pulled, &tangents));
        let agree = (forth - back).abs() <= 1e-9 * size.max(1.0);
        if !agree {
            return Err(format!(
                "{}, given {given:?}: <J t, ct> is {forth}, <t, J^T ct> is {back}",
                reason("transpose")
            ));
        }
    }
    Ok(())
}

#[test]
fn jvp_is_the_limit_of_differences() {
    check_all(cases(), |case| {
        let Some((func, inputs)) = differentiable(case)? else {
            return Ok(());
        };
        choices(&inputs).iter().try_for_each(|wrt| check_jvp(&func, &inputs, wrt, 1e-6, 1e-6))
    });
}

#[test]
fn transpose_is_the_adjoint_of_linearize() {
    check_all(cases(), |case| {
        let Some((func, inputs)) = differentiable(case)? else {
            return Ok(());
        };
        for wrt in choices(&inputs) {
            let adjoint = check_adjoint(&func, &inputs, &wrt);
            match adjoint {
                Err(message)
                    if NO_REVERSE.contains(&case.mnemonic)
                        && message.contains("cannot be differentiated") => {}
                Ok(()) if NO_REVERSE.contains(&case.mnemonic) => {}
                other => other?,
            }
        }
        Ok(())
    });
}

/// Rules emit ops with dtypes that depend on their operands': the derivative must be well-typed in
/// the sample's own dtype too.
#[test]
fn derivatives_have_the_dtype_of_their_values() {
    check_all(cases(), |case| {
        if !case.sample.differentiable || NO_REVERSE.contains(&case.mnemonic) {
            return Ok(());
        }
        let func = func_of(&case.sample.op, &types_of(&case.sample.inputs))?;
        for wrt in choices(&case.sample.inputs) {
            let vjp = podracer_compiler::transform::vjp(&func, &wrt)
                .map_err(|error| error.to_string())?;
            let expected: Vec<_> = marked(&func.param_types(), &wrt);
            if vjp.pullback.result_types() != expected {
                return Err(format!(
                    "in {wrt:?} cotangents have types {:?}",
                    vjp.pullback.result_types()
                ));
            }
            let primal = vjp.primal.eval(&case.sample.inputs);
            let (values, residuals) = primal.split_at(func.results.len());
            let cotangents: Vec<Array> = values
                .iter()
                .filter(|value| value.ty().dtype.is_float())
                .map(|value| Array::splat(value.ty().clone(), Scalar::Float(0.5)))
                .collect();
            let pulled = vjp.pullback.eval(&[residuals, &cotangents].concat());
            let infinite =
                pulled.iter().any(|ct| ct.to_f64().iter().any(|value| !value.is_finite()));
            if infinite && func.param_types().iter().all(|ty| ty.dtype != DType::F16) {
                return Err(format!("in {wrt:?} a cotangent is not finite: {}", pulled[0]));
            }
        }
        Ok(())
    });
}
