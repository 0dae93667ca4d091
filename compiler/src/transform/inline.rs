//! Inlining: an op that runs its body once is replaced by the body's equations.

use super::context::TransformError;
use super::cse::map_bodies;
use crate::ir::{Eqn, Func};
use crate::ops::OpRef;
use crate::types::TensorType;
use std::borrow::Cow;

/// The function with every call replaced by the called function, including calls in bodies.
pub fn inline_calls(func: &Func) -> Func {
    inline(func, &|op, _| op.inline_body().map(|body| (*body).clone()))
}

/// The function without ops that only inform transforms, such as a user-defined derivative: the
/// last transform.
pub fn settle(func: &Func) -> Cow<'_, Func> {
    if unsettled(func) {
        Cow::Owned(inline(func, &|op, inputs| op.settled(inputs)))
    } else {
        Cow::Borrowed(func)
    }
}

/// Checks that the function can run: none of its ops, including ops in bodies, is a linear function
/// with only its transpose known.
pub fn runs(func: &Func) -> Result<(), TransformError> {
    for eqn in &func.eqns {
        if let Some(reason) = eqn.op.transpose_only() {
            return Err(TransformError { op: eqn.op.mnemonic(), loc: eqn.loc, reason });
        }
        for body in eqn.op.funcs() {
            runs(body)?;
        }
    }
    Ok(())
}

fn unsettled(func: &Func) -> bool {
    let is = |eqn: &Eqn| {
        let types: Vec<TensorType> = eqn.inputs.iter().map(|&var| func.ty(var).clone()).collect();
        eqn.op.settled(&types).is_some() || eqn.op.funcs().iter().any(|body| unsettled(body))
    };
    func.eqns.iter().any(is)
}

fn inline(func: &Func, body_of: &impl Fn(&OpRef, &[TensorType]) -> Option<Func>) -> Func {
    func.rebuilt(|b, eqn, inputs| match body_of(&eqn.op, &b.types(inputs)) {
        Some(body) => b.inline(&inline(&body, body_of), inputs),
        None => b.emit_ref(map_bodies(&eqn.op, |body| inline(body, body_of)), inputs),
    })
}
