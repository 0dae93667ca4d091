//! Running programs on devices: XLA through its PJRT plugins.
//!
//! # What lives here
//! - [`Plugin`], [`Client`], [`Device`], [`Buffer`], [`Executable`], [`Topology`]: the C API made safe (`pjrt/`, the one module
//!   with unsafe code).
//! - [`Module`], [`CompileOptions`], [`XlaOptions`]: programs and the options of compiling them.
//! - [`Jit`]: functions of host values, which are [`Array`]s.
//! - [`ExecutableCache`]: compiled programs kept on disk.
//! - [`Checkpoints`]: states of trainings kept on disk, written and read in pieces.
//! - [`Transfers`], [`HloModule`]: the evidence that a program stays on its devices.
//!
//! # What must never live here
//! Ops, their rules and tracing (compiler, dsl), and anything that knows reinforcement learning from other arithmetic.
#![deny(unsafe_code, missing_docs)]
#![deny(clippy::undocumented_unsafe_blocks, clippy::unwrap_used)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod anakin;
mod cache;
mod central;
mod checkpoint;
mod compiled_environments;
mod error;
mod flags;
mod hlo;
mod jit;
mod machine;
mod memory;
mod module;
mod needed;
mod options;
#[allow(unsafe_code)]
pub mod pjrt;
mod program;
mod projection;
mod proto;
mod reports;
mod sebulba;
mod serialized;
mod settings;
mod stablehlo;
mod transfers;
mod tree;
mod warnings;

/// The methods that set the settings of loops.
pub mod setters {
    pub use crate::settings::{
        ConfigureAnakin, ConfigureCentral, ConfigureHostLoop, ConfigureSebulba,
    };
}

pub use anakin::{AnakinLoop, AnakinProgram, AnakinState, LoopMetrics, RunError};
pub use cache::ExecutableCache;
pub use central::{CentralLoop, CentralMeasures, CentralRun, Latencies};
pub use checkpoint::{
    ArraySource, Checkpoint, CheckpointError, Checkpoints, Found, NamedArrays, from_safetensors,
    to_safetensors,
};
pub use compiled_environments::CompiledEnvironments;
pub use error::{ErrorCode, RuntimeError};
pub use hlo::{Collective, HloModule, Loop};
pub use jit::{CallError, HostArguments, Jit, Seed};
pub use module::Module;
pub use options::{CompileOptions, OptionValue, XlaOptions};
pub use pjrt::{
    Argument, Buffer, Client, ClientOptions, Compiled, Event, Executable, ExecuteError,
    MemoryStats, NamedValue, Plugin, Topology,
};
pub use podracer_compiler::stablehlo::{Donation, ModuleSpec};
pub use podracer_compiler::{Array, ArrayError, Element};
pub use program::{Arguments, Lowered, Pass, Program, ProgramOptions, lower, lower_kept};
pub use projection::{ProjectionError, projection};
pub use sebulba::{
    Activity, Compiler, Episode, HostLoopFunctions, HostReplay, IterationReport, LearntBy, Origin,
    ReplayError, SebulbaError, SebulbaLoop, SebulbaProgram, SebulbaRun, SebulbaShape,
    SebulbaTransfers, ThreadFailure, ThreadTimes,
};
pub use settings::{
    AnakinSettings, CentralSettings, HostLoopSettings, MOST_DEVICES, ReplayMemory, Schedule,
    SebulbaSettings,
};
pub use transfers::{Count, TransferCounts, Transfers, process_transfers};
pub use tree::{Device, DeviceArray, Host, OnDevice, OnHost, Placement};
