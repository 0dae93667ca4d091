//! Parts of agents: networks, distributions, optimizers, returns, losses. All of it is written in the DSL, and
//! all of it can be written again by a user.
//!
//! # Invariants
//! - Functions take one example, or one trajectory `[T]`: batching is `vmap`'s business.
//! - Names and argument orders are those of the literature's packages (rlax, optax, distrax), and so are the values.
//! - Nothing here knows a device.
#![forbid(unsafe_code)]

pub mod agents;
pub mod anakin;
pub mod central;
mod counter;
pub mod distributions;
mod expect;
pub mod host_loop;
pub mod host_replay;
mod lanes;
pub mod learn;
pub mod learning;
pub mod losses;
pub mod meta;
pub mod net;
pub mod nn;
mod number;
pub mod optim;
pub mod population;
mod ravel;
pub mod replay;
pub mod returns;
pub mod search;
pub mod sebulba;

pub use number::{Number, column, with_row};
