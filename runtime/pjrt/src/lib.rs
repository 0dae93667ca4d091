//! PJRT in Rust: XLA's plugins compile StableHLO for CPU, GPU and TPU, and run it.
//!
//! # What lives here
//! - [`Plugin`], [`Client`], [`Device`], [`Buffer`], [`Executable`], [`Topology`]: the safe C API
//!   (`c_api/`, the only module with unsafe code).
//! - [`Module`], [`CompileOptions`], [`XlaOptions`]: programs and the options of compiling them.
//! - [`ExecutableCache`]: compiled programs kept on disk.
//! - [`Transfers`], [`HloModule`]: the evidence that a program stays on its devices.
//!
//! # What must never live here
//! Tracing, trees, loops and checkpoints: this crate knows only arrays and the text of programs.
#![deny(unsafe_code, missing_docs)]
#![deny(clippy::undocumented_unsafe_blocks, clippy::unwrap_used)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

#[allow(unsafe_code)]
mod c_api;
mod cache;
mod error;
mod flags;
mod hlo;
mod machine;
#[doc(hidden)]
pub mod memory;
mod module;
mod options;
mod proto;
mod serialized;
mod stablehlo;
mod transfers;

pub use c_api::{
    Argument, Buffer, Client, ClientOptions, Compiled, Device, Event, Executable, ExecuteError,
    KeyValueStore, MemoryStats, NamedValue, Plugin, Topology, exit,
};
#[doc(hidden)]
pub use c_api::{PIECE, Upload};
pub use cache::ExecutableCache;
pub use error::{ErrorCode, RuntimeError};
pub use hlo::{Collective, HloModule, LiveBuffer, Loop, SourceLine, Work};
pub use module::Module;
pub use options::{CompileOptions, OptionValue, XlaOptions};
pub use podracer_compiler::stablehlo::Processes;
pub use podracer_compiler::{Array, ArrayError, Element};
pub use podracer_mpi::{Combine, Launched, Member, MpiError, Number, World, launched};
pub use transfers::{Count, TransferCounts, Transfers, process_transfers};
