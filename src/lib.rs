//! Reinforcement learning loops written in Rust and compiled as a whole by XLA.
//!
//! # What lives here
//! - The facade: [`prelude`], and the workspace's crates under short names ([`compiler`], [`dsl`], [`rl`], [`envs`],
//!   [`runtime`]).
//! - [`anakin`]: an agent in an environment as one program that trains; it connects the runtime's
//!   loop with the agents.
//! - [`sebulba`]: an agent that acts and learns on different devices, in environments on the host.
//! - [`central`]: the same with central inference: workers step environments elsewhere.
//! - [`evaluation`]: episodes played by a trained agent; `play`: episodes to watch.
//! - The command line of `podracer` and of users' own programs ([`App`]): agents, environments and experiments by name
//!   ([`registry`]), settings ([`settings`], [`loading`]) that become a training loop ([`training`]), run directories.
//! - [`testing`]: the programs of environments and losses as text and numbers, for the tests of users' crates.
//! - [`export`]: the programs of an experiment as StableHLO with names, to run without podracer.
//!
//! # What must never live here
//! Tracing, ops, agents, environments and device code: this crate only connects the other crates.
#![forbid(unsafe_code)]
#![deny(missing_docs)]
#![deny(clippy::unwrap_used)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod anakin;
#[cfg(feature = "cli")]
mod app;
#[cfg(feature = "cli")]
mod axis;
mod builder;
pub mod central;
#[cfg(all(feature = "cli", feature = "plots"))]
mod chart;
#[cfg(feature = "cli")]
pub mod cli;
#[cfg(feature = "cli")]
pub mod disco;
pub mod evaluation;
#[cfg(feature = "cli")]
pub mod experiments;
pub mod export;
mod files;
#[cfg(feature = "cli")]
mod format;
mod functions;
#[cfg(feature = "cli")]
pub mod learned;
#[cfg(feature = "cli")]
mod load;
#[cfg(feature = "cli")]
pub mod loading;
#[cfg(feature = "cli")]
mod machine;
pub mod parameters;
#[cfg(feature = "cli")]
mod play;
pub mod population;
#[cfg(feature = "cli")]
mod profile;
#[cfg(feature = "cli")]
mod program_name;
#[cfg(feature = "cli")]
pub mod registry;
#[cfg(feature = "cli")]
mod run_directory;
#[cfg(feature = "cli")]
mod schema;
pub mod sebulba;
#[cfg(feature = "cli")]
pub mod settings;
#[cfg(feature = "cli")]
mod sources;
#[cfg(feature = "cli")]
mod statistics;
#[cfg(feature = "cli")]
mod tables;
pub mod testing;
pub mod training;
mod usage;

#[cfg(feature = "cli")]
pub use app::App;
pub use podracer_compiler as compiler;
pub use podracer_dsl as dsl;
pub use podracer_envs as envs;
pub use podracer_rl as rl;
pub use podracer_runtime as runtime;
pub use usage::UsageError;

/// The names that a user's program imports: `use podracer::prelude::*;`.
pub mod prelude {
    pub use crate::anakin::{Anakin, CompiledAnakin, TrainingMetrics, TrainingState};
    pub use crate::central::CentralInference;
    pub use crate::parameters::load_parameters;
    pub use crate::sebulba::Sebulba;
    pub use podracer_dsl::prelude::*;
    pub use podracer_envs::{
        AutoReset, Bounds, Environment, FlattenObservation, FrameStack, Space, Spaces,
        StickyActions, TimeLimit, TimeStep, TransformReward, WithStatistics, check_environment,
    };
    pub use podracer_rl::Number;
    pub use podracer_rl::agents::{Impala, OnlineActorCritic, Ppo};
    pub use podracer_rl::anakin::{AgentLoop, Episodes};
    pub use podracer_rl::learn::{
        Act, Agent, Axes, Cx, Input, LaneId, Learn, Mode, Optimized, Rollout, RolloutShape,
        check_agent, scan_mean,
    };
    pub use podracer_rl::net::{ActorCritic, Policy};
    pub use podracer_runtime::setters::*;
    pub use podracer_runtime::{
        AnakinLoop, AnakinState, Array, CallError, Checkpoint, CheckpointError, Checkpoints,
        Client, ClientOptions, CompileOptions, Device, Host, HostArguments, Jit, ProgramOptions,
        RuntimeError, Seed, TypedPrograms, XlaOptions,
    };
}

/// Pages whose Rust is compiled, or run, as documentation tests.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../README.md")]
    struct Readme;
    #[doc = include_str!("../docs/from-jax.md")]
    struct FromJax;
    #[doc = include_str!("../docs/tutorial.md")]
    struct Tutorial;
    #[doc = include_str!("../docs/change-ppo.md")]
    struct ChangePpo;
    #[doc = include_str!("../docs/own-robot.md")]
    struct OwnRobot;
    #[doc = include_str!("../docs/physics.md")]
    struct Physics;
    #[doc = include_str!("../docs/populations.md")]
    struct Populations;
    #[doc = include_str!("../docs/program-snapshots.md")]
    struct ProgramSnapshots;
}
