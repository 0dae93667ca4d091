//! `vmap`: a function of one example becomes a function of a batch. The batch is always the leading axis.

use super::context::VmapContext;
use crate::ir::{Builder, Func, Var};

/// The function over a batch. Parameter `i` gets a leading axis of extent `cx.size` if
/// `batched[i]`. Also returns for each result whether it has the axis: a result that depends on no
/// batched parameter does not, unless `force[i]` requests it.
pub fn vmap(func: &Func, cx: &VmapContext, batched: &[bool], force: &[bool]) -> (Func, Vec<bool>) {
    assert_eq!(func.params.len(), batched.len(), "vmap: one flag per parameter");
    assert_eq!(func.results.len(), force.len(), "vmap: one flag per result");
    let mut b = Builder::new();
    let mut map: Vec<Option<(Var, bool)>> = vec![None; func.types.len()];
    for (&param, &is_batched) in func.params.iter().zip(batched) {
        let ty = func.ty(param);
        let ty = if is_batched { ty.stacked(cx.size) } else { ty.clone() };
        map[param.index()] = Some((b.param(ty), is_batched));
    }
    let read =
        |map: &[Option<(Var, bool)>], var: Var| map[var.index()].expect("defined before use");
    for eqn in &func.eqns {
        let (inputs, flags): (Vec<Var>, Vec<bool>) =
            eqn.inputs.iter().map(|&var| read(&map, var)).unzip();
        b.set_loc(eqn.loc);
        // An op with a named axis must see this batch even if none of its operands has it.
        let outputs = if flags.contains(&true) || eqn.op.names_axis(cx) {
            eqn.op.vmap(&mut b, cx, &inputs, &flags)
        } else {
            b.emit_ref(eqn.op.clone(), &inputs).into_iter().map(|var| (var, false)).collect()
        };
        for (&var, (output, is_batched)) in eqn.outputs.iter().zip(outputs) {
            debug_assert_eq!(
                *b.ty(output),
                if is_batched { func.ty(var).stacked(cx.size) } else { func.ty(var).clone() },
                "{}: the vmap rule gave another type",
                eqn.op.mnemonic()
            );
            map[var.index()] = Some((output, is_batched));
        }
    }
    let mut flags = Vec::with_capacity(func.results.len());
    let results = func.results.iter().zip(force).map(|(&var, &force)| {
        let (var, is_batched) = read(&map, var);
        flags.push(is_batched || force);
        if force { cx.batch(&mut b, var, is_batched) } else { var }
    });
    let results = results.collect();
    (b.finish(func.name.clone(), results), flags)
}
