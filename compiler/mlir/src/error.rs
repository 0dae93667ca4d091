//! What can go wrong between a function and its module.

use podracer_compiler::TensorType;

/// Why no module came out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MlirError {
    /// The specification names more or fewer arguments or results than the function has.
    #[error("the specification has {got} {what}, the function has {expected}")]
    Count {
        /// `arguments` or `results`.
        what: &'static str,
        /// What the function has.
        expected: usize,
        /// What the specification has.
        got: usize,
    },
    /// A module needs one replica or more, and no more than fit in 31 bits.
    #[error("a module for {0} replicas: expected 1 or more")]
    Replicas(usize),
    /// An argument is donated to a result that does not exist.
    #[error("argument `{argument}` is donated to result {result}, the function has {results}")]
    AliasOutOfRange {
        /// The argument's name.
        argument: String,
        /// The result asked for.
        result: usize,
        /// How many results there are.
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
        /// What is wrong.
        message: String,
    },
    /// An op that means nothing in this module, such as a collective over an axis that is not there.
    #[error("`{op}` at {place} cannot be lowered: {message}")]
    Refused {
        /// The op.
        op: &'static str,
        /// The user's line that asked for it.
        place: String,
        /// Why not.
        message: String,
    },
    /// MLIR's own verifier or parser refused the module. A bug of a lowering or of the emitter.
    #[error("MLIR refused the module:\n{}", .0.join("\n"))]
    Rejected(
        /// What MLIR said, each with the place it said it of.
        Vec<String>,
    ),
}
