//! Calls of the runtime by which the processes of a program exchange values, where the platform's own collectives end with the
//! process.
//!
//! A call's first operands are this replica's number in its process (u32 `[]`) and how many replicas the process has (u32 `[]`).
//! The replicas of all processes make the same calls in the same order.

use crate::lower::{Hlo, HloAttribute, HloValue, hlo_op, hlo_splat};
use crate::ops::Combination;
use crate::scalar::Scalar;
use crate::types::{DType, TensorType};

/// This replica's number among those of all processes: i32 `[]`.
pub const INDEX: &str = "podracer_index";
/// The sums over all replicas, element by element: of a vector's type.
pub const SUM: &str = "podracer_sum";
/// The greatest over all replicas, element by element.
pub const MAX: &str = "podracer_max";
/// The least over all replicas, element by element.
pub const MIN: &str = "podracer_min";
/// The values of all replicas, along a new first axis.
pub const GATHER: &str = "podracer_gather";

/// The call that combines by this function.
pub(super) fn combining(computation: Combination) -> &'static str {
    match computation {
        Combination::Sum => SUM,
        Combination::Max => MAX,
        Combination::Min => MIN,
    }
}

/// Emits a call. Each is an effect but for [`INDEX`], which every replica may ask for as often as it likes.
pub(super) fn exchange(
    hlo: &mut dyn Hlo,
    target: &'static str,
    operand: Option<HloValue>,
    result: &TensorType,
) -> HloValue {
    let number = TensorType::scalar(DType::U32);
    let mine = hlo_op(hlo, "stablehlo.replica_id", &[], Vec::new(), &number);
    let local = hlo.replicas() / hlo.processes();
    let local = hlo_splat(hlo, &number, Scalar::Int(local as i128));
    let operands: Vec<HloValue> = [mine, local].into_iter().chain(operand).collect();
    let attributes = vec![
        ("api_version", HloAttribute::I32(4)),
        ("call_target_name", HloAttribute::Text(target)),
        ("has_side_effect", HloAttribute::Bool(target != INDEX)),
    ];
    hlo_op(hlo, "stablehlo.custom_call", &operands, attributes, result)
}

/// The dtype as which values of a dtype are exchanged: MPI has no floats of 16 bits, and no bools.
pub(super) fn carrier(dtype: DType) -> DType {
    match dtype {
        DType::F16 | DType::BF16 => DType::F32,
        DType::Bool => DType::U8,
        dtype => dtype,
    }
}
