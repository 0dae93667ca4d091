//! The tree of the bodies, and the parts of the dynamics that are switched off.

use std::ops::Range;

use super::Model;

/// Parts of the dynamics that an option switches off: bits of `opt.disableflags`, `mjtDisableBit`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Disable {
    Constraint = 1,
    Equality = 1 << 1,
    FrictionLoss = 1 << 2,
    Limit = 1 << 3,
    Contact = 1 << 4,
    Spring = 1 << 5,
    Damper = 1 << 6,
    Gravity = 1 << 7,
    ClampCtrl = 1 << 8,
    FilterParent = 1 << 10,
    Actuation = 1 << 11,
    RefSafe = 1 << 12,
    EulerDamp = 1 << 15,
    MultiCcd = 1 << 19,
}

impl Model {
    pub(crate) fn disabled(&self, part: Disable) -> bool {
        self.opt.disableflags & part as i32 != 0
    }

    /// The degrees of freedom of a body.
    pub(crate) fn dofs(&self, body: usize) -> Range<usize> {
        let first = self.body_dofadr[body].unwrap_or(0);
        first..first + self.body_dofnum[body]
    }

    /// The last degree of freedom that moves a body.
    pub(crate) fn last_dof(&self, body: usize) -> Option<usize> {
        self.dofs(self.body_weldid[body]).last()
    }

    /// A degree of freedom and those that move its body before it, from the last to the first.
    pub(crate) fn chain(&self, dof: Option<usize>) -> impl Iterator<Item = usize> + '_ {
        std::iter::successors(dof, |&dof| self.dof_parentid[dof])
    }

    /// The first body of a body's tree of moving bodies; 0 for a body that does not move.
    pub(crate) fn tree(&self, body: usize) -> usize {
        match self.chain(self.last_dof(body)).last() {
            Some(first) => self.dof_bodyid[first],
            None => 0,
        }
    }
}
