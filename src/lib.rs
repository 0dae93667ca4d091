//! Reinforcement learning loops written in Rust and compiled as a whole by XLA.
//!
//! # What lives here
//! - The facade: [`prelude`], and the crates of the house under short names ([`compiler`], [`dsl`], [`stdlib`], [`envs`],
//!   [`runtime`]).
//! - [`anakin`]: an agent in an environment as one program that trains, where the runtime's loop meets stdlib's agents.
//! - [`sebulba`]: an agent that acts and learns on different devices, in environments on the host.
//! - [`evaluation`]: how well a trained agent plays.
//! - The command line ([`cli`]): experiments ([`experiments`]) as settings ([`settings`]) that become a training loop
//!   ([`training`]), which leaves a run directory ([`run_directory`]) behind.
//! - [`export`]: the programs of an experiment as StableHLO with names, to run without podracer.
//!
//! # What must never live here
//! Tracing, ops, agents, environments and device code: this crate connects what the others do.
#![forbid(unsafe_code)]
#![deny(missing_docs)]
#![deny(clippy::unwrap_used)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod anakin;
mod app;
mod builder;
pub mod cli;
pub mod evaluation;
pub mod experiments;
pub mod export;
mod files;
mod format;
pub mod parameters;
pub mod registry;
pub mod run_directory;
pub mod sebulba;
pub mod settings;
pub mod training;

pub use app::App;
pub use podracer_compiler as compiler;
pub use podracer_dsl as dsl;
pub use podracer_envs as envs;
pub use podracer_runtime as runtime;
pub use podracer_stdlib as stdlib;

/// What a program of one's own imports: `use podracer::prelude::*;`.
pub mod prelude {
    pub use crate::anakin::{Anakin, CompiledAnakin, TrainingMetrics, TrainingState};
    pub use crate::sebulba::Sebulba;
    pub use podracer_dsl::prelude::*;
    pub use podracer_envs::{
        AutoReset, Bounds, Environment, Space, TimeLimit, TimeStep, WithStatistics,
        check_environment,
    };
    pub use podracer_runtime::{
        AnakinLoop, AnakinState, Checkpoint, CheckpointError, Checkpoints, Client, ClientOptions,
        CompileOptions, Device, Host, HostArray, ProgramOptions, RuntimeError, XlaOptions,
    };
    pub use podracer_stdlib::Number;
    pub use podracer_stdlib::agents::{
        Act, ActorCritic, Agent, Axes, Cx, Impala, Input, LaneId, Learn, Mode, OnlineActorCritic,
        Optimized, Policy, Ppo, Rollout, scan_mean,
    };
    pub use podracer_stdlib::anakin::{AgentLoop, Episodes};
}
