//! Arguments that transforms pass to the rules of ops, and the error for a missing rule.

use crate::ir::{Builder, Loc, Var};
use std::cell::RefCell;
use std::fmt;

/// The form of the values and tangents that [`Op::differentiate`](crate::Op::differentiate) emits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Values and tangents together: a region op stays one op.
    Forward,
    /// Values and tangents apart: a region op becomes one op for the values, which also gives the
    /// residuals, and a second op that is linear in the tangents.
    Linearize,
}

/// An op without the requested rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransformError {
    /// The op's mnemonic.
    pub op: &'static str,
    /// The user's line.
    pub loc: Loc,
    /// The reason why there is no rule, and the alternative.
    pub reason: &'static str,
}

impl fmt::Display for TransformError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cannot be differentiated so: {}", self.op, self.reason)
    }
}

impl std::error::Error for TransformError {}

/// The batch of a vmap, for the rules of ops.
#[derive(Clone, Debug, Default)]
pub struct VmapContext {
    /// The extent of the batch axis.
    pub size: usize,
    /// The name that collectives inside the function use for this axis.
    pub axis: Option<String>,
    /// Warnings for the user, each with its line.
    pub warnings: RefCell<Vec<(Loc, &'static str)>>,
}

impl VmapContext {
    /// A batch of `size` along an axis without a name.
    pub fn new(size: usize) -> Self {
        VmapContext { size, ..VmapContext::default() }
    }

    /// Adds a warning, once per line.
    pub fn warn(&self, loc: Loc, message: &'static str) {
        let mut warnings = self.warnings.borrow_mut();
        if !warnings.contains(&(loc, message)) {
            warnings.push((loc, message));
        }
    }

    /// `var` with the batch as its leading axis: broadcast if it is not batched.
    pub fn batch(&self, b: &mut Builder, var: Var, batched: bool) -> Var {
        if batched { var } else { b.broadcast_leading(var, self.size) }
    }

    /// [`Self::batch`] of each of `vars`.
    pub fn batch_all(&self, b: &mut Builder, vars: &[Var], batched: &[bool]) -> Vec<Var> {
        vars.iter().zip(batched).map(|(&var, &is)| self.batch(b, var, is)).collect()
    }
}
