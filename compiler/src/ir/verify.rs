//! Checks the invariants of the IR. Run on every finished function in debug builds and tests.
//!
//! - Parameters are distinct and defined by no equation.
//! - Every variable is defined once, before its first use.
//! - Outputs have the types that the op infers from its inputs.
//! - Bodies of region ops are checked in turn, by their own `finish`.

use super::{Func, Var};
use std::fmt;

/// An invariant that a malformed function violates, with the function around it. Always a bug of the compiler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifyError {
    /// The violated invariant.
    pub message: String,
    /// The function as text, with the offending equation's number.
    pub context: String,
}

impl fmt::Display for VerifyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "malformed IR: {}\n{}", self.message, self.context)
    }
}

impl std::error::Error for VerifyError {}

/// Checks one function (its bodies were checked when they were finished).
pub fn verify(func: &Func) -> Result<(), VerifyError> {
    let fail = |message: String| Err(VerifyError { message, context: func.to_string() });
    let mut defined = vec![false; func.types.len()];
    let define = |var: Var, defined: &mut Vec<bool>| match defined.get_mut(var.index()) {
        Some(seen) if !*seen => {
            *seen = true;
            Ok(())
        }
        Some(_) => Err(format!("variable {} is defined twice", var.0)),
        None => Err(format!("variable {} has no type", var.0)),
    };
    for &param in &func.params {
        if let Err(message) = define(param, &mut defined) {
            return fail(message);
        }
    }
    for (number, eqn) in func.eqns.iter().enumerate() {
        let mnemonic = eqn.op.mnemonic();
        if let Some(var) =
            eqn.inputs.iter().find(|var| !defined.get(var.index()).copied().unwrap_or(false))
        {
            return fail(format!(
                "equation {number} ({mnemonic}) uses variable {} before it is defined",
                var.0
            ));
        }
        let inputs: Vec<_> = eqn.inputs.iter().map(|&var| func.ty(var).clone()).collect();
        let expected = match eqn.op.infer(&inputs) {
            Ok(types) => types,
            Err(error) => return fail(format!("equation {number} ({mnemonic}): {error}")),
        };
        if expected.len() != eqn.outputs.len() {
            return fail(format!(
                "equation {number} ({mnemonic}) has {} outputs, not {}",
                eqn.outputs.len(),
                expected.len()
            ));
        }
        for (&var, ty) in eqn.outputs.iter().zip(&expected) {
            if let Err(message) = define(var, &mut defined) {
                return fail(message);
            }
            if func.ty(var) != ty {
                return fail(format!(
                    "equation {number} ({mnemonic}) gives {ty}, its output says {}",
                    func.ty(var)
                ));
            }
        }
    }
    match func.results.iter().find(|var| !defined.get(var.index()).copied().unwrap_or(false)) {
        Some(var) => fail(format!("result {} is never defined", var.0)),
        None => Ok(()),
    }
}
