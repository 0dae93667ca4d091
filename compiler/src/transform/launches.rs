//! Fewer kernels in a loop, for platforms that launch each.

use super::cse::map_bodies;
use super::dce;
use crate::array::Array;
use crate::ir::Func;
use crate::ops::{Cond, Launched};

/// The function in which ops with a way to fewer kernels ([`Op::launch_less`](crate::Op::launch_less)) take it, inside bodies too. Results are
/// the same to the bit.
///
/// It comes last: the loops are longer for other transforms.
pub fn launch_less(func: &Func) -> Func {
    dce(&func.rebuilt(|b, eqn, inputs| {
        let op = map_bodies(&eqn.op, launch_less);
        op.launch_less(b, inputs).unwrap_or_else(|| b.emit_ref(op, inputs))
    }))
}

/// The function for a platform that launches each kernel, or for another: each [`Launched`] is a constant, and a `cond` with it is the branch
/// that it takes, inside bodies too.
pub fn settle_launched(func: &Func, launches: bool) -> Func {
    let mut launched = vec![false; func.types.len()];
    func.rebuilt(|b, eqn, inputs| {
        if eqn.op.downcast::<Launched>().is_some() {
            launched[eqn.outputs[0].index()] = true;
            return vec![b.constant(Array::bools([], &[launches]))];
        }
        match eqn.op.downcast::<Cond>() {
            Some(cond) if launched[eqn.inputs[0].index()] => {
                let branch = settle_launched(&cond.branches[usize::from(launches)], launches);
                b.inline(&branch, &inputs[1..])
            }
            _ => b.emit_ref(map_bodies(&eqn.op, |body| settle_launched(body, launches)), inputs),
        }
    })
}
