//! Ops between the members of an axis: reducing, gathering and sending values, and the number of a member.
//!
//! An axis has a name. [`REPLICAS`] is the axis of the module's replicas, one per device. Any other
//! name is the axis of an enclosing vmap, which turns the collective into ordinary ops along the
//! batch. The reference semantics run a single replica.

/// `effect` and `names_axis` of an op over the members of the axis `self.axis`.
macro_rules! over_axis {
    () => {
        fn effect(&self) -> $crate::Effect {
            $crate::Effect::Collective
        }

        fn names_axis(&self, cx: &VmapContext) -> bool {
            cx.axis.as_ref() == Some(&self.axis)
        }
    };
}

mod all_gather;
mod all_reduce;
mod axis_index;
pub mod exchange;
mod permute;
#[cfg(test)]
mod tests;

pub use all_gather::AllGather;
pub use all_reduce::{AllReduce, Combination};
pub use axis_index::AxisIndex;
pub use permute::CollectivePermute;

use crate::ir::{Builder, Var};
use crate::lower::{Hlo, HloAttribute};

/// The name of the axis of the module's replicas.
pub const REPLICAS: &str = "replicas";

impl Builder {
    /// The sums of some tensors over an axis, in one [`AllReduce`].
    #[track_caller]
    pub fn psum(&mut self, operands: &[Var], axis: &str) -> Vec<Var> {
        self.emit(AllReduce { axis: axis.to_string(), computation: Combination::Sum }, operands)
    }

    /// Emits [`AllReduce`].
    #[track_caller]
    pub fn all_reduce(
        &mut self,
        operands: &[Var],
        axis: &str,
        computation: Combination,
    ) -> Vec<Var> {
        self.emit(AllReduce { axis: axis.to_string(), computation }, operands)
    }

    /// Emits [`AllGather`].
    #[track_caller]
    pub fn all_gather(&mut self, x: Var, axis: &str, size: usize, dimension: usize) -> Var {
        self.emit1(AllGather { axis: axis.to_string(), size, dimension }, &[x])
    }

    /// Emits [`AxisIndex`].
    #[track_caller]
    pub fn axis_index(&mut self, axis: &str) -> Var {
        self.emit1(AxisIndex { axis: axis.to_string() }, &[])
    }
}

/// The attribute `replica_groups` with one group that contains all replicas.
fn all_replicas(hlo: &dyn Hlo) -> HloAttribute {
    let replicas = hlo.replicas();
    HloAttribute::I64Tensor(vec![1, replicas], (0..replicas as i64).collect())
}

/// Rejects an axis that is not the replicas' axis, or does not have the `size` that an op expects.
/// The vmaps are gone at this point.
fn check_bound(hlo: &mut dyn Hlo, op: &'static str, axis: &str, size: Option<usize>) {
    let replicas = hlo.replicas();
    if axis != REPLICAS {
        hlo.refuse(
            op,
            format!("it is over the axis `{axis}` and no vmap of that name is around it"),
        );
    } else if let Some(size) = size
        && size != replicas
    {
        hlo.refuse(op, format!("it is over {size} replicas and the module is for {replicas}"));
    }
}
