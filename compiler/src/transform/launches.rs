//! Fewer kernels in a loop, for platforms that launch each.

use super::cse::map_bodies;
use super::dce;
use crate::ir::{Builder, Func, Var};

/// The function in which ops with a way to fewer kernels ([`Op::launch_less`](crate::Op::launch_less)) take it, inside bodies too. Results are
/// the same to the bit.
///
/// It comes last: the loops are longer for other transforms.
pub fn launch_less(func: &Func) -> Func {
    let mut b = Builder::new();
    let mut map: Vec<Option<Var>> = vec![None; func.types.len()];
    for &param in &func.params {
        map[param.index()] = Some(b.param(func.ty(param).clone()));
    }
    let read = |map: &[Option<Var>], var: &Var| {
        map[var.index()].expect("variables are defined before they are used")
    };
    for eqn in &func.eqns {
        let inputs: Vec<Var> = eqn.inputs.iter().map(|var| read(&map, var)).collect();
        b.set_loc(eqn.loc);
        let op = map_bodies(&eqn.op, launch_less);
        let outputs = op.launch_less(&mut b, &inputs).unwrap_or_else(|| b.emit_ref(op, &inputs));
        for (from, to) in eqn.outputs.iter().zip(outputs) {
            map[from.index()] = Some(to);
        }
    }
    let results = func.results.iter().map(|var| read(&map, var)).collect();
    dce(&b.finish(func.name.clone(), results))
}
