//! The cost of an equation. A region that runs often multiplies all of its costs equally, which
//! changes no choice.

use crate::ops::OpRef;
use crate::types::TensorType;
use std::ops::{Add, Sub};

/// The cost of a term. Bytes are compared first, then kernels, then equations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Cost {
    /// Bytes of computed results; ops that only repeat or rename data are free.
    pub bytes: u128,
    /// Equations that XLA does not fuse into their readers.
    pub kernels: u64,
    /// The number of equations.
    pub nodes: u64,
}

impl Cost {
    /// The cost of applying an op with a result of this type. It is never zero: if one term is part
    /// of another, the part is cheaper.
    pub fn of(op: &OpRef, result: &TensorType) -> Cost {
        let free = op.recompute();
        Cost {
            bytes: if free { 0 } else { result.bytes() as u128 },
            kernels: u64::from(!free && !op.pointwise()),
            nodes: 1,
        }
    }
}

impl Add for Cost {
    type Output = Cost;

    fn add(self, other: Cost) -> Cost {
        Cost {
            bytes: self.bytes + other.bytes,
            kernels: self.kernels + other.kernels,
            nodes: self.nodes + other.nodes,
        }
    }
}

impl Sub for Cost {
    type Output = Cost;

    fn sub(self, other: Cost) -> Cost {
        Cost {
            bytes: self.bytes - other.bytes,
            kernels: self.kernels - other.kernels,
            nodes: self.nodes - other.nodes,
        }
    }
}
