//! Inlining: an op that runs its body once is replaced by the body's equations.

use super::cse::map_bodies;
use crate::ir::{Builder, Func, Var};

/// The function with every call replaced by what is called, inside bodies too.
pub fn inline_calls(func: &Func) -> Func {
    let mut b = Builder::new();
    let mut map: Vec<Option<Var>> = vec![None; func.types.len()];
    for &param in &func.params {
        map[param.index()] = Some(b.param(func.ty(param).clone()));
    }
    for eqn in &func.eqns {
        let inputs: Vec<Var> = eqn
            .inputs
            .iter()
            .map(|var| map[var.index()].expect("defined before use"))
            .collect();
        b.set_loc(eqn.loc);
        let outputs = match eqn.op.inline_body() {
            Some(body) => b.inline(&inline_calls(&body), &inputs),
            None => b.emit_ref(map_bodies(&eqn.op, inline_calls), &inputs),
        };
        for (from, to) in eqn.outputs.iter().zip(outputs) {
            map[from.index()] = Some(to);
        }
    }
    let results = func
        .results
        .iter()
        .map(|var| map[var.index()].expect("defined before use"))
        .collect();
    b.finish(func.name.clone(), results)
}
