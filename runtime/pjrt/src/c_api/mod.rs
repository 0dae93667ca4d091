//! PJRT's C API behind handles that free themselves and cannot be misused: the only module with
//! unsafe code.
//!
//! # Invariants
//! - Every handle keeps its dependencies alive: a buffer its client, a client its plugin. Plugins
//!   are never unloaded.
//! - Everything that the C API aborts on, crashes on or silently accepts is checked before a call.
//!   This covers argument count, type, device and deletion; replica count and device assignment;
//!   option names; `XLA_FLAGS`.
//! - One [`Executable::execute`] launches all replicas, and launches of replicated programs on one client do not interleave, so
//!   a collective never waits for a participant that cannot come.
//!
//! # What never happens here
//! Nothing is cached on disk, nothing is retried, and no environment variable is read except
//! `XLA_FLAGS` and the TPU's variables.

mod api;
mod buffer;
mod client;
mod compiled;
mod device;
mod event;
mod exchange;
mod executable;
mod execute;
mod exit;
#[rustfmt::skip] // generated
mod ffi;
mod handler;
mod key_value;
mod pieces;
mod plugin;
#[cfg(test)]
mod recording;
mod threads;
mod topology;
mod types;
mod value;

pub use buffer::Buffer;
pub use client::{Client, ClientOptions};
pub use compiled::{Compiled, MemoryStats};
pub use device::Device;
pub use event::Event;
pub use executable::Executable;
pub use execute::{Argument, ExecuteError};
pub use exit::exit;
pub use key_value::KeyValueStore;
pub use pieces::{PIECE, Upload};
pub use plugin::Plugin;
pub use topology::Topology;
pub use value::NamedValue;
