//! Common subexpression elimination: the same op on the same operands is computed once, inside bodies too.

use crate::ir::{Eqn, Func, Var, Vars};
use crate::ops::{Effect, OpRef};
use std::collections::HashMap;
use std::sync::Arc;

/// The function with equal pure equations merged into the first of them.
pub fn cse(func: &Func) -> Func {
    let mut map: Vec<Var> = (0..func.types.len() as u32).map(Var).collect();
    // Only looked up, never iterated: the hash order shapes nothing.
    let mut seen: HashMap<(OpRef, Vars), &Vars> = HashMap::new();
    let mut kept = Vec::with_capacity(func.eqns.len());
    for eqn in &func.eqns {
        let inputs: Vars = eqn.inputs.iter().map(|var| map[var.index()]).collect();
        let op = map_bodies(&eqn.op, cse);
        if eqn.op.effect() == Effect::Pure {
            let first = *seen.entry((op.clone(), inputs.clone())).or_insert(&eqn.outputs);
            if *first != eqn.outputs {
                for (from, to) in eqn.outputs.iter().zip(first.iter()) {
                    map[from.index()] = *to;
                }
                continue;
            }
        }
        kept.push(Eqn { op, inputs, outputs: eqn.outputs.clone(), loc: eqn.loc });
    }
    let results: Vec<Var> = func.results.iter().map(|var| map[var.index()]).collect();
    func.subset(&func.params, &kept, &results)
}

/// The op with each of its bodies passed through `pass`, which keeps their types.
pub(crate) fn map_bodies(op: &OpRef, pass: impl Fn(&Func) -> Func) -> OpRef {
    let bodies = op.funcs().into_iter().map(|body| Arc::new(pass(body))).collect();
    op.with_funcs(bodies).unwrap_or_else(|| op.clone())
}
