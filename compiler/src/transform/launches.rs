//! Fewer kernels in a loop, and branches by platform, for platforms that launch each kernel.

use super::cse::map_bodies;
use super::dce;
use crate::array::Array;
use crate::ir::{Eqn, Func};
use crate::scalar::Scalar;
use std::borrow::Cow;

/// The function with fewer kernels, from every op with such a form
/// ([`Op::launch_less`](crate::Op::launch_less)), including ops in bodies. Results are
/// bit-identical.
///
/// It comes last: the loops are longer for other transforms.
pub fn launch_less(func: &Func) -> Func {
    dce(&func.rebuilt(|b, eqn, inputs| {
        let op = map_bodies(&eqn.op, launch_less);
        op.launch_less(b, inputs).unwrap_or_else(|| b.emit_ref(op, inputs))
    }))
}

/// The function for a platform that launches each kernel, or for a platform that does not. Values
/// that depend on the platform ([`Op::of_platform`](crate::Op::of_platform)) become constants. An
/// op that chooses a body by such a value becomes that body. An op with a form for the platform
/// ([`Op::for_platform`](crate::Op::for_platform)) becomes that form. Ops in bodies are included.
pub fn settle_launched(func: &Func, launches: bool) -> Cow<'_, Func> {
    if !asks(func) {
        return Cow::Borrowed(func);
    }
    let settled = |body: &Func| settle_launched(body, launches).into_owned();
    let mut known: Vec<Option<Scalar>> = vec![None; func.types.len()];
    Cow::Owned(func.rebuilt(|b, eqn, inputs| {
        if let Some(value) = eqn.op.of_platform(launches) {
            let output = eqn.outputs[0];
            known[output.index()] = Some(value);
            return vec![b.constant(Array::splat(func.ty(output).clone(), value))];
        }
        if let Some(body) = eqn.op.for_platform(launches, &b.types(inputs)) {
            return b.inline(&settled(&body), inputs);
        }
        let choice = eqn.inputs.first().and_then(|var| known[var.index()]);
        match choice.and_then(|choice| eqn.op.branch(choice)) {
            Some(branch) => b.inline(&settle_launched(&branch, launches), &inputs[1..]),
            None => b.emit_ref(map_bodies(&eqn.op, settled), inputs),
        }
    }))
}

/// True if an op of the function, including ops in bodies, depends on the platform.
fn asks(func: &Func) -> bool {
    let is = |eqn: &Eqn| eqn.op.asks_platform() || eqn.op.funcs().iter().any(|body| asks(body));
    func.eqns.iter().any(is)
}
