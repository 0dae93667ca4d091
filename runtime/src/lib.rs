//! Running programs on devices: XLA through its PJRT plugins.
//!
//! # What lives here
//! - [`pjrt`]: plugins, clients, buffers and executables, which are a crate of their own.
//! - [`Jit`]: functions of host values, which are [`Array`]s.
//! - [`Checkpoints`]: states of trainings kept on disk, written and read in pieces.
//!
//! # What must never live here
//! Ops, their rules and tracing (compiler, dsl), and anything that distinguishes reinforcement
//! learning from other arithmetic.
#![forbid(unsafe_code)]
#![deny(missing_docs)]
#![deny(clippy::unwrap_used)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod anakin;
mod central;
mod checkpoint;
mod compiled_environments;
mod error;
mod jit;
mod learning;
mod needed;
mod outcome;
mod program;
mod projection;
mod reports;
mod sebulba;
mod settings;
mod tree;
mod typed;
mod warnings;

/// The methods that set the settings of loops.
pub mod setters {
    pub use crate::settings::{
        ConfigureAnakin, ConfigureCentral, ConfigureHostLoop, ConfigureSebulba,
    };
}

pub use anakin::{AnakinLoop, AnakinProgram, AnakinState, LoopMetrics, RunError, metric_name};
pub use central::{CentralLoop, CentralMeasures, CentralRun, Latencies};
pub use checkpoint::{
    ArraySource, Checkpoint, CheckpointError, Checkpoints, Found, NamedArrays, from_safetensors,
    to_safetensors,
};
pub use compiled_environments::CompiledEnvironments;
pub use jit::{CallError, HostArguments, Jit, Seed};
pub use learning::{
    Activity, Compiler, Episode, HostLoopFunctions, HostReplay, IterationReport, LearntBy, Motion,
    Origin, ReplayError, SebulbaError, SebulbaLoop, SebulbaProgram, SebulbaShape, ThreadFailure,
    ThreadTimes,
};
pub use podracer_compiler::stablehlo::{Donation, ModuleSpec};
pub use podracer_pjrt as pjrt;
pub use podracer_pjrt::{
    Argument, Array, ArrayError, Buffer, Client, ClientOptions, Collective, CompileOptions,
    Compiled, Count, Element, ErrorCode, Event, Executable, ExecutableCache, ExecuteError,
    HloModule, LiveBuffer, Loop, MemoryStats, Module, NamedValue, OptionValue, Plugin, Processes,
    RuntimeError, SourceLine, Topology, TransferCounts, Transfers, Work, World, XlaOptions,
    process_transfers,
};
pub use program::{Arguments, Lowered, Pass, Program, ProgramOptions, lower, lower_kept};
pub use projection::{ProjectionError, projection};
pub use sebulba::{SebulbaRun, SebulbaTransfers};
pub use settings::{
    AnakinSettings, CentralSettings, HostLoopSettings, MOST_DEVICES, ReplayMemory, Schedule,
    SebulbaSettings,
};
pub use tree::{Device, DeviceArray, Host, OnDevice, OnHost, Placement};
pub use typed::TypedPrograms;
