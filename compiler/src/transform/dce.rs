//! Dead code elimination: what no result needs goes, inside bodies too.

use crate::ir::{Eqn, Func};
use crate::ops::Effect;

/// The function without equations that no result needs. Parameters stay; region ops lose operands
/// and results that are never read; collectives stay in place.
pub fn dce(func: &Func) -> Func {
    let mut used = vec![false; func.types.len()];
    func.results.iter().for_each(|var| used[var.index()] = true);
    let mut kept: Vec<Eqn> = Vec::new();
    for eqn in func.eqns.iter().rev() {
        let mut wanted: Vec<bool> = eqn.outputs.iter().map(|var| used[var.index()]).collect();
        if !wanted.contains(&true) && eqn.op.effect() == Effect::Pure {
            continue;
        }
        let mut eqn = eqn.clone();
        // A smaller body may read fewer operands, so this repeats until nothing changes.
        while let Some(pruned) = eqn.op.prune(&wanted) {
            wanted = pruned.outputs.iter().map(|&i| wanted[i]).collect();
            eqn = Eqn {
                op: pruned.op,
                inputs: pruned.inputs.iter().map(|&i| eqn.inputs[i]).collect(),
                outputs: pruned.outputs.iter().map(|&i| eqn.outputs[i]).collect(),
                loc: eqn.loc,
            };
        }
        eqn.inputs.iter().for_each(|var| used[var.index()] = true);
        kept.push(eqn);
    }
    func.subset(&func.params, kept.iter().rev(), &func.results)
}

/// True for each variable of `func` that one of the results marked needs.
pub(crate) fn needed(func: &Func, results: &[bool]) -> Vec<bool> {
    let mut needed = vec![false; func.types.len()];
    for (var, &wanted) in func.results.iter().zip(results) {
        needed[var.index()] |= wanted;
    }
    for eqn in func.eqns.iter().rev() {
        if eqn.op.effect() != Effect::Pure || eqn.outputs.iter().any(|var| needed[var.index()]) {
            eqn.inputs.iter().for_each(|var| needed[var.index()] = true);
        }
    }
    needed
}
