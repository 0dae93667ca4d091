//! Environments written in the DSL: the trait, wrappers that chain, and the environments themselves.
//!
//! ```
//! use podracer_dsl::prelude::*;
//! use podracer_envs::{CartPole, Environment};
//!
//! let env = CartPole::default().with_statistics().auto_reset();
//! let rollout = trace(key(), |key| {
//!     let (reset, steps) = key.split();
//!     let state = env.initial_state(reset);
//!     let (state, reward) = scan(state, steps.split_n(20), |state, key| {
//!         let push_right = scalar(1);
//!         let (state, timestep) = env.step(state, push_right, key);
//!         (state, timestep.reward)
//!     });
//!     (reward, state.last.length)
//! })?;
//! assert_eq!(rollout.results().to_string(), "{0: f32[20], 1: i32[]}");
//! # Ok::<(), TraceErrors>(())
//! ```
//!
//! # Invariants
//! - An environment is written for one lane; `vmap` makes batches. State fields are scalars where possible, so that a
//!   batch is a structure of arrays.
//! - All randomness comes from the key: the same state, action and key give the same step on every device.
//! - At most one of `terminated` and `truncated` is true.
//! - Nothing here knows agents, networks or devices.
#![forbid(unsafe_code)]

pub mod acrobot;
mod any;
pub mod bandit;
pub mod boards;
mod builtin;
pub mod cartpole;
pub mod catch;
mod cells;
mod check;
mod checked;
pub mod connector;
pub mod craftax;
pub mod deep_sea;
pub mod delayed_chains;
pub mod discounting_chain;
mod environment;
pub mod grid_map;
pub mod grid_tasks;
pub mod grid_world;
pub mod host;
pub mod memory_chain;
pub mod minatar;
pub mod minigrid;
pub mod mountain_car;
pub mod mujoco;
pub mod pendulum;
pub mod puzzles;
pub mod render;
mod space;
mod space_names;
mod space_tree;
mod space_values;
mod tasks;
mod text;
pub mod umbrella_chain;
pub mod wrappers;

pub use acrobot::Acrobot;
pub use any::AnyEnvironment;
pub use bandit::SimpleBandit;
pub use cartpole::CartPole;
pub use catch::Catch;
pub use check::{EnvironmentError, check_environment};
pub use connector::Connector;
pub use craftax::CraftaxClassic;
pub use deep_sea::DeepSea;
pub use delayed_chains::DelayedChains;
pub use discounting_chain::DiscountingChain;
pub use environment::{Environment, TimeStep};
pub use grid_map::{GridMap, MapError};
pub use grid_tasks::GridTasks;
pub use grid_world::GridWorld;
pub use memory_chain::MemoryChain;
pub use mountain_car::{MountainCar, MountainCarContinuous};
pub use pendulum::Pendulum;
pub use space::{Bounds, Space, SpaceError};
pub use space_tree::{InSpace, Spaces, leaf_spaces};
pub use tasks::{AnyTasks, Tasks};
pub use umbrella_chain::UmbrellaChain;
pub use wrappers::{
    AutoReset, FlattenObservation, FrameStack, StickyActions, TimeLimit, TransformReward,
    WithStatistics,
};
