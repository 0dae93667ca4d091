//! Central inference over a network: the server for workers, and the worker.
//!
//! A worker steps environments and knows no model; the learner has the model and asks only for
//! steps. They communicate by gRPC, with the messages in `proto/podracer/seed/v1/seed.proto`.
//! Workers in other languages are generated from the same file. `docs/worker-protocol.md` is their
//! manual.
//!
//! # Invariants
//! - Nothing here knows a device or an agent: the learner's side is [`Workers`](podracer_envs::host::Workers), the
//!   environments' side [`HostEnvironment`](podracer_envs::host::HostEnvironment).
//! - No message from a worker is trusted: sizes, flags, numbers and their order are checked before
//!   the learner sees them. An error ends that worker's stream, and both sides print the reason.
//! - Everything that a worker can make the learner keep is bounded: connections, lanes, bytes
//!   before `Hello`, bytes before the next answer. Every wait for a worker has a deadline.
//! - Observations are copied out of the socket once, into the message that the learner reads.
//! - The server has a fixed number of threads, however many workers there are. A worker has one thread for each batch.
#![forbid(unsafe_code)]

mod address;
pub mod certificates;
mod description;
mod packed;
#[rustfmt::skip] // generated
pub mod proto;
pub mod server;
mod spaces;
pub mod store;
mod tls;
mod unix;
pub mod worker;

pub use address::{Address, AddressError};
pub use description::RunDescription;
pub use tls::{Security, SecurityError};

/// The newest protocol, in `Run`. A learner speaks all from 1 on, and a worker says in `Hello` which one it speaks.
pub const PROTOCOL: u32 = 3;

/// The first protocol with [packed] rewards and flags.
const PACKED: u32 = 2;

/// The first protocol that has masks of legal actions.
const MASKED: u32 = 3;
