//! Fewer kernels in a loop, for platforms that launch each.

use super::cse::map_bodies;
use super::dce;
use crate::ir::Func;

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
