//! Sebulba: actors and learners on separate devices, environments on the host (Hessel et al. 2021).
//!
//! Actor threads, several for each actor device, step batches of environments and run inference.
//! Their trajectories accumulate on the actor device and are copied from device to device to the
//! learner devices. One learner thread learns on all learner devices at once and publishes the
//! parameters. The computations are the functions of a
//! [`HostLoopFunctions`](crate::HostLoopFunctions); this module only schedules them.
//!
//! # Invariants
//! - No thread donates a buffer that another thread may use. Published parameters are copies.
//! - The only link between actors and learner is a [`supply`](crate::learning::supply). Its queues
//!   carry handles, and no trajectory passes through the host, unless the replay is on the host:
//!   see [`HostReplay`](crate::HostReplay).
//! - Threads wait for each other only in [`supply`](crate::learning::supply), in
//!   [`parameters`](crate::learning::parameters) and for the run's commands. These all close when a
//!   thread ends, so no failure of a thread leaves another thread waiting.
//! - A checkpoint is a moment between two iterations, at any state of the actors: see
//!   [`boundary`](crate::learning::boundary).
//! - Each thread is at any moment in one [`Activity`](crate::Activity), and the times in its
//!   activities add up to the thread's lifetime.

mod actor;
mod check;
mod run;

pub use run::{SebulbaRun, SebulbaTransfers};
