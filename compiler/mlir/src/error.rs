//! The errors of building and of reading a module with MLIR.

use podracer_compiler::stablehlo::EmitError;

/// Reason that MLIR gives no module.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MlirError {
    /// The function or its specification gives no module.
    #[error(transparent)]
    Emit(#[from] EmitError),
    /// MLIR's own verifier or parser refused the module. A bug of a lowering or of an emitter.
    #[error("MLIR refused the module:\n{}", .0.join("\n"))]
    Rejected(
        /// MLIR's messages, each with its place in the module.
        Vec<String>,
    ),
}
