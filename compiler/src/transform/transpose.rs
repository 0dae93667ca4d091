//! Transposition: a function that is linear in some parameters becomes the function that carries
//! cotangents back.

use super::context::TransformError;
use crate::ir::{Builder, Func, Var};
use crate::ops::Operand;

/// Transposes `func`, which is linear in the parameters marked `linear`.
///
/// The result takes the other parameters, then a cotangent for each result marked `given` (the rest
/// are zero), and gives the cotangent of each linear parameter. Also returns which of these
/// cotangents are present. A zero is left out unless `force`, which has one entry per linear
/// parameter, requests it.
pub fn transpose(
    func: &Func,
    linear: &[bool],
    given: &[bool],
    force: &[bool],
) -> Result<(Func, Vec<bool>), TransformError> {
    assert_eq!(func.params.len(), linear.len(), "transpose: one flag per parameter");
    assert_eq!(func.results.len(), given.len(), "transpose: one flag per result");
    let is_linear = func.depends_on(linear);
    let mut b = Builder::new();
    let mut known: Vec<Option<Var>> = vec![None; func.types.len()];
    for (&param, &is) in func.params.iter().zip(linear) {
        if !is {
            known[param.index()] = Some(b.param(func.ty(param).clone()));
        }
    }
    let mut cotangents: Vec<Option<Var>> = vec![None; func.types.len()];
    let incoming: Vec<Option<Var>> = func
        .results
        .iter()
        .zip(given)
        .map(|(&var, &given)| given.then(|| b.param(func.ty(var).clone())))
        .collect();

    // Forward: the values that the linear equations read.
    for eqn in &func.eqns {
        if !eqn.inputs.iter().any(|var| is_linear[var.index()]) {
            let inputs: Vec<Var> = eqn
                .inputs
                .iter()
                .map(|var| known[var.index()].expect("known before use"))
                .collect();
            b.set_loc(eqn.loc);
            for (var, output) in eqn.outputs.iter().zip(b.emit_ref(eqn.op.clone(), &inputs)) {
                known[var.index()] = Some(output);
            }
        }
    }

    // Backward: a variable's cotangent is the sum of the cotangents from its uses.
    for (&var, cotangent) in func.results.iter().zip(incoming) {
        accumulate(&mut b, &is_linear, &mut cotangents, var, cotangent);
    }
    for eqn in func.eqns.iter().rev() {
        let outgoing: Vec<Option<Var>> =
            eqn.outputs.iter().map(|var| cotangents[var.index()]).collect();
        if !eqn.inputs.iter().any(|var| is_linear[var.index()])
            || outgoing.iter().all(Option::is_none)
        {
            continue;
        }
        let operands: Vec<Operand> = eqn
            .inputs
            .iter()
            .map(|&var| match known[var.index()] {
                Some(known) => Operand::Known(known),
                None => Operand::Linear(func.ty(var).clone()),
            })
            .collect();
        b.set_loc(eqn.loc);
        let sent = eqn.op.transpose(&mut b, &operands, &outgoing).of(&eqn.op, eqn.loc)?;
        debug_assert_eq!(
            sent.len(),
            eqn.inputs.len(),
            "{}: one cotangent per operand",
            eqn.op.mnemonic()
        );
        for (&var, cotangent) in eqn.inputs.iter().zip(sent) {
            debug_assert!(
                cotangent.is_none_or(|ct| b.ty(ct) == func.ty(var)),
                "{}: a cotangent has its operand's type",
                eqn.op.mnemonic()
            );
            accumulate(&mut b, &is_linear, &mut cotangents, var, cotangent);
        }
    }

    let mut flags = Vec::new();
    let mut results = Vec::new();
    let linear_params =
        func.params.iter().zip(linear).filter(|(_, is)| **is).map(|(&param, _)| param);
    for (param, &force) in linear_params.zip(force) {
        let cotangent =
            cotangents[param.index()].or_else(|| force.then(|| b.zeros(func.ty(param))));
        flags.push(cotangent.is_some());
        results.extend(cotangent);
    }
    Ok((b.finish(func.name.clone(), results), flags))
}

fn accumulate(
    b: &mut Builder,
    is_linear: &[bool],
    cotangents: &mut [Option<Var>],
    var: Var,
    more: Option<Var>,
) {
    if let Some(more) = more.filter(|_| is_linear[var.index()]) {
        let slot = &mut cotangents[var.index()];
        *slot = Some(match *slot {
            Some(sum) => b.add(sum, more),
            None => more,
        });
    }
}
