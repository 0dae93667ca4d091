//! Derivatives of derivatives: the functions that `jvp` and `vjp` give are differentiated and batched again.

use super::batching::check_batch;
use super::first_order::{NO_REVERSE, check_adjoint, check_jvp, choices, differentiable};
use super::{Random, cases, check_all};
use podracer_compiler::transform::{jvp, vjp};
use podracer_compiler::{Array, Builder, Func};

/// The function from the parameters and the cotangents of the results to the cotangents of the parameters in `wrt`, with
/// operands for it.
pub fn gradient(func: &Func, inputs: &[Array], wrt: &[bool]) -> Result<(Func, Vec<Array>), String> {
    let vjp = vjp(func, wrt).map_err(|error| format!("vjp in {wrt:?}: {error}"))?;
    let mut b = Builder::new();
    let params: Vec<_> = func.param_types().into_iter().map(|ty| b.param(ty)).collect();
    let floats: Vec<_> = func.result_types().into_iter().filter(|ty| ty.dtype.is_float()).collect();
    let cotangents: Vec<_> = floats.iter().map(|ty| b.param(ty.clone())).collect();
    let primal = b.inline(&vjp.primal, &params);
    let results = b.inline(&vjp.pullback, &[&primal[func.results.len()..], &cotangents].concat());
    let mut random = Random::new(3);
    let inputs: Vec<Array> =
        inputs.iter().cloned().chain(floats.iter().map(|ty| random.array(ty))).collect();
    Ok((b.finish("gradient", results), inputs))
}

#[test]
fn jvp_of_jvp() {
    check_all(cases(), |case| {
        let Some((func, inputs)) = differentiable(case)? else {
            return Ok(());
        };
        let mut random = Random::new(4);
        for wrt in choices(&inputs) {
            let (forward, _) = jvp(&func, &wrt).map_err(|error| error.to_string())?;
            let tangents = inputs
                .iter()
                .zip(&wrt)
                .filter(|(_, is)| **is)
                .map(|(input, _)| random.array(input.ty()));
            let inputs: Vec<Array> = inputs.iter().cloned().chain(tangents).collect();
            let all: Vec<bool> = inputs.iter().map(|input| input.ty().dtype.is_float()).collect();
            check_jvp(&forward, &inputs, &all, 1e-5, 1e-4)
                .map_err(|message| format!("{wrt:?}: {message}"))?;
        }
        Ok(())
    });
}

#[test]
fn derivatives_of_gradients() {
    check_all(cases(), |case| {
        let Some((func, inputs)) = differentiable(case)? else {
            return Ok(());
        };
        if NO_REVERSE.contains(&case.mnemonic) {
            return Ok(());
        }
        for wrt in choices(&inputs) {
            let (gradient, inputs) = gradient(&func, &inputs, &wrt)?;
            let all: Vec<bool> = inputs.iter().map(|input| input.ty().dtype.is_float()).collect();
            let within = |what: &str, result: Result<(), String>| {
                result.map_err(|message| format!("{what} of the gradient in {wrt:?}: {message}"))
            };
            within("jvp", check_jvp(&gradient, &inputs, &all, 1e-5, 1e-4))?;
            within("vjp", check_adjoint(&gradient, &inputs, &all))?;
        }
        Ok(())
    });
}

#[test]
fn vmap_of_gradients() {
    check_all(cases(), |case| {
        let Some((func, inputs)) = differentiable(case)? else {
            return Ok(());
        };
        if NO_REVERSE.contains(&case.mnemonic) {
            return Ok(());
        }
        let all = choices(&inputs).pop().ok_or("no float operand")?;
        let (gradient, inputs) = gradient(&func, &inputs, &all)?;
        let first: Vec<bool> = (0..inputs.len()).map(|i| i == 0).collect();
        let last: Vec<bool> = (0..inputs.len()).map(|i| i + 1 == inputs.len()).collect();
        [vec![true; inputs.len()], first, last]
            .iter()
            .try_for_each(|batched| check_batch(&gradient, &inputs, batched, 2))
    });
}
