//! Parts of agents: networks, distributions, optimizers, returns, losses. Everything is written in
//! the DSL, so a user can write a replacement for any part.
//!
//! # Invariants
//! - Functions take one example, or one trajectory `[T]`: `vmap` makes batches.
//! - Names, argument orders and values equal those in the literature's packages (rlax, optax,
//!   distrax).
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
