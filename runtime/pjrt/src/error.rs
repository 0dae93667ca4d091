//! The runtime's errors: the expected value, the actual value, and the remedy.

use std::fmt;
use std::path::PathBuf;

use podracer_compiler::{ArrayError, TensorType};
use podracer_mpi::MpiError;
use podracer_plugins::PluginError;

/// An error anywhere between a StableHLO module and its results.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RuntimeError {
    /// The plugin is missing, corrupt or cannot be installed.
    #[error(transparent)]
    Plugin(#[from] PluginError),
    /// The plugin's file cannot be loaded or has another version.
    #[error("cannot load the plugin `{}`: {problem}", library.display())]
    Load {
        /// The plugin's file.
        library: PathBuf,
        /// The reason, and what to do.
        problem: String,
    },
    /// `XLA_FLAGS` has something that would, or might, abort the process.
    #[error(
        "XLA_FLAGS has `{flag}`, {problem}: XLA ends the process on flags it does not understand, so only those known to be good \
         are let through; give any other as a compile option, where a mistake is an ordinary error"
    )]
    XlaFlags {
        /// Name of the flag.
        flag: String,
        /// The mistake, and what would be right.
        problem: String,
    },
    /// A program that cannot be written as StableHLO: a bug of the compiler.
    #[error("the program cannot be lowered: {0}")]
    Lowering(String),
    /// XLA's own error.
    #[error("{call} failed ({code}): {message}")]
    Xla {
        /// The function of PJRT's C API.
        call: &'static str,
        /// XLA's status code.
        code: ErrorCode,
        /// XLA's message.
        message: String,
    },
    /// Too little memory: of a device, of the machine, or of this process's limits.
    #[error(
        "not enough memory: {0}; smaller batches, replays or networks, or shorter trajectories need less"
    )]
    OutOfMemory(String),
    /// Options of a client or a compilation that contradict each other or the machine.
    #[error("{0}")]
    Options(String),
    /// An exchange with the other processes of the training that failed.
    #[error(transparent)]
    Processes(#[from] MpiError),
    /// A number of devices that this machine cannot reduce among.
    #[error("{0}")]
    Reduction(String),
    /// An index without a device.
    #[error("there is no device {index}: the client has {devices}")]
    NoDevice {
        /// The index asked for.
        index: usize,
        /// The number of devices.
        devices: usize,
    },
    /// StableHLO text that cannot become a program.
    #[error("{0}")]
    StableHlo(String),
    /// Arrays that are not the leaves of a tree.
    #[error("the arrays do not make the tree: {0}")]
    Leaves(String),
    /// The declared types of a module are not those it was compiled to.
    #[error("the module's {place} is declared as {declared} and is {actual}")]
    Signature {
        /// The argument or result.
        place: String,
        /// The type that the caller declared.
        declared: String,
        /// The type that XLA compiled.
        actual: String,
    },
    /// A call without arguments for each replica, and for no other.
    #[error(
        "the program runs on {expected} replica(s) and arguments for {got} were given: one execute takes every replica's arguments"
    )]
    ReplicaCount {
        /// The program's replicas.
        expected: usize,
        /// The argument lists given.
        got: usize,
    },
    /// A call with too many or too few arguments.
    #[error("the program takes {expected} argument(s) and replica {replica} was given {got}")]
    ArgumentCount {
        /// Number of the replica.
        replica: usize,
        /// The program's arguments.
        expected: usize,
        /// The arguments given.
        got: usize,
    },
    /// An argument of another element type or shape.
    #[error("argument {index} of replica {replica} must be {expected} and is {got}")]
    ArgumentType {
        /// Number of the replica.
        replica: usize,
        /// Index of the argument.
        index: usize,
        /// The program's type.
        expected: TensorType,
        /// The argument's type.
        got: TensorType,
    },
    /// An argument on another device or of another client.
    #[error(
        "argument {index} of replica {replica} must be on {expected} and is on {got}: copy it with `Buffer::copy_to`"
    )]
    ArgumentDevice {
        /// Number of the replica.
        replica: usize,
        /// Index of the argument.
        index: usize,
        /// The replica's device.
        expected: String,
        /// The argument's device.
        got: String,
    },
    /// An argument that was deleted.
    #[error("argument {index} of replica {replica}, {ty}, was deleted")]
    ArgumentDeleted {
        /// Number of the replica.
        replica: usize,
        /// Index of the argument.
        index: usize,
        /// Type of the argument.
        ty: TensorType,
    },
    /// A deleted buffer was read or copied.
    #[error("the buffer, {0}, was deleted")]
    Deleted(TensorType),
    /// Host data of another length or type than was asked for.
    #[error(transparent)]
    Array(#[from] ArrayError),
    /// A serialized executable that is damaged or was made elsewhere.
    #[error("the serialized executable cannot be loaded: {0}")]
    Serialized(String),
}

/// XLA's status codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are XLA's")]
pub enum ErrorCode {
    Cancelled,
    Unknown,
    InvalidArgument,
    DeadlineExceeded,
    NotFound,
    AlreadyExists,
    PermissionDenied,
    ResourceExhausted,
    FailedPrecondition,
    Aborted,
    OutOfRange,
    Unimplemented,
    Internal,
    Unavailable,
    DataLoss,
    Unauthenticated,
}

impl ErrorCode {
    /// Converts the C API's number, which is the gRPC status code.
    pub(crate) fn from_c(code: u32) -> Self {
        match code {
            1 => Self::Cancelled,
            3 => Self::InvalidArgument,
            4 => Self::DeadlineExceeded,
            5 => Self::NotFound,
            6 => Self::AlreadyExists,
            7 => Self::PermissionDenied,
            8 => Self::ResourceExhausted,
            9 => Self::FailedPrecondition,
            10 => Self::Aborted,
            11 => Self::OutOfRange,
            12 => Self::Unimplemented,
            13 => Self::Internal,
            14 => Self::Unavailable,
            15 => Self::DataLoss,
            16 => Self::Unauthenticated,
            _ => Self::Unknown,
        }
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}
