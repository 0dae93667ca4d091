//! Errors of emitting a module from a function.

use crate::types::TensorType;

/// The reason why a function or its specification gives no module.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EmitError {
    /// The specification has a different number of arguments or results than the function.
    #[error("the specification has {got} {what}, the function has {expected}")]
    Count {
        /// `arguments` or `results`.
        what: &'static str,
        /// The number that the function has.
        expected: usize,
        /// The number that the specification gives.
        got: usize,
    },
    /// A module needs at least one replica, and at most as many as fit in 31 bits.
    #[error("a module for {0} replicas: expected 1 or more")]
    Replicas(usize),
    /// All processes of a module must have equally many replicas.
    #[error("a module for {replicas} replicas of {processes} processes: each process has as many")]
    Processes {
        /// The number of replicas over all processes.
        replicas: usize,
        /// The number of processes.
        processes: usize,
    },
    /// An argument is donated to a result that does not exist.
    #[error("argument `{argument}` is donated to result {result}, the function has {results}")]
    AliasOutOfRange {
        /// The argument's name.
        argument: String,
        /// The requested result.
        result: usize,
        /// The number of results of the function.
        results: usize,
    },
    /// Two arguments are donated to one result.
    #[error(
        "argument `{argument}` is donated to result {result}, which another argument is donated to already"
    )]
    AliasTwice {
        /// The second argument's name.
        argument: String,
        /// The requested result.
        result: usize,
    },
    /// An argument is donated to a result of another type.
    #[error(
        "argument `{argument}` of type {ty} is donated to result {result} of type {result_ty}: the types must be equal"
    )]
    AliasType {
        /// The argument's name.
        argument: String,
        /// The argument's type.
        ty: TensorType,
        /// The requested result.
        result: usize,
        /// The result's type.
        result_ty: TensorType,
    },
    /// An op's lowering produced an invalid program. A bug of the op's lowering.
    #[error("the lowering at {place} emitted a malformed {op}: {message}")]
    Lowering {
        /// The StableHLO op.
        op: String,
        /// The user's line that caused it.
        place: String,
        /// The mistake, as a sentence.
        message: String,
    },
    /// An op that is invalid in this module, such as a collective over an axis that does not exist.
    #[error("`{op}` at {place} cannot be lowered: {message}")]
    Refused {
        /// The op's mnemonic.
        op: &'static str,
        /// The user's line that caused it.
        place: String,
        /// The reason, as a sentence.
        message: String,
    },
}
