//! Calls of the runtime that exchange values between the processes of a program, if the platform's
//! own collectives cover a single process only.
//!
//! The first operands of a call are this replica's number in its process (u32 `[]`) and the number
//! of replicas in the process (u32 `[]`). Every replica in every process makes the same calls in
//! the same order.

use crate::lower::{Hlo, HloAttribute, HloValue, hlo_op, hlo_splat};
use crate::ops::Combination;
use crate::scalar::Scalar;
use crate::types::{DType, TensorType};

/// The call for this replica's number over all processes: i32 `[]`.
pub const INDEX: &str = "podracer_index";
/// The call for the sums over all replicas, element by element, with the type of the vector.
pub const SUM: &str = "podracer_sum";
/// The call for the maxima over all replicas, element by element.
pub const MAX: &str = "podracer_max";
/// The call for the minima over all replicas, element by element.
pub const MIN: &str = "podracer_min";
/// The call for every replica's values, along a new first axis.
pub const GATHER: &str = "podracer_gather";

/// The call that combines values with this function.
pub(super) fn combining(computation: Combination) -> &'static str {
    match computation {
        Combination::Sum => SUM,
        Combination::Max => MAX,
        Combination::Min => MIN,
    }
}

/// Emits a call. Each call is an effect, except [`INDEX`], which every replica may make any number
/// of times.
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

/// The dtype for exchanging values of a dtype: MPI has neither 16-bit floats nor bools.
pub(super) fn carrier(dtype: DType) -> DType {
    match dtype {
        DType::F16 | DType::BF16 => DType::F32,
        DType::Bool => DType::U8,
        dtype => dtype,
    }
}
