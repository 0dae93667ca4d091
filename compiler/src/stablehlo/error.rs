//! Errors of emitting a module from a function.

use crate::types::TensorType;

/// Reason that a function or its specification gives no module.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EmitError {
    /// The specification names more or fewer arguments or results than the function has.
    #[error("the specification has {got} {what}, the function has {expected}")]
    Count {
        /// `arguments` or `results`.
        what: &'static str,
        /// The number that the function has.
        expected: usize,
        /// The number that the specification gives.
        got: usize,
    },
    /// A module needs one replica or more, and no more than fit in 31 bits.
    #[error("a module for {0} replicas: expected 1 or more")]
    Replicas(usize),
    /// The processes of a module have as many replicas each.
    #[error("a module for {replicas} replicas of {processes} processes: each process has as many")]
    Processes {
        /// The replicas of all processes.
        replicas: usize,
        /// The processes.
        processes: usize,
    },
    /// An argument is donated to a result that does not exist.
    #[error("argument `{argument}` is donated to result {result}, the function has {results}")]
    AliasOutOfRange {
        /// The argument's name.
        argument: String,
        /// The result asked for.
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
        /// The result asked for.
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
        /// The result asked for.
        result: usize,
        /// The result's type.
        result_ty: TensorType,
    },
    /// An op lowered itself to something that is not a program. A bug of the op's lowering.
    #[error("the lowering at {place} emitted a malformed {op}: {message}")]
    Lowering {
        /// The StableHLO op.
        op: String,
        /// The user's line that asked for it.
        place: String,
        /// The mistake, as a sentence.
        message: String,
    },
    /// An op that means nothing in this module, such as a collective over an axis that is not there.
    #[error("`{op}` at {place} cannot be lowered: {message}")]
    Refused {
        /// The op's mnemonic.
        op: &'static str,
        /// The user's line that asked for it.
        place: String,
        /// The reason, as a sentence.
        message: String,
    },
}
