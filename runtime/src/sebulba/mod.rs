//! Sebulba: actors and learners on devices of their own, environments on the host (Hessel et al. 2021).
//!
//! Actor threads, several for each actor device, step batches of environments and run inference; their trajectories
//! accumulate on the actor device and go to the learner devices from device to device. One learner thread learns on all
//! learner devices at once and publishes the parameters. What is computed are the functions of a [`HostLoopFunctions`](crate::HostLoopFunctions);
//! here is only who runs them when.
//!
//! # Invariants
//! - No thread donates a buffer that another thread may use. What is published is a copy.
//! - Between actors and learner stands a [`supply`](crate::learning::supply): neither knows more of the other. The queues there carry handles, and no
//!   trajectory passes through the host, unless the replay is there: see [`HostReplay`](crate::HostReplay).
//! - Threads wait for each other only in [`supply`](crate::learning::supply), in [`parameters`](crate::learning::parameters) and for the run's commands, which all close when one
//!   thread ends: no failure of a thread leaves another one waiting.
//! - A checkpoint is of the moment between two iterations, wherever the actors are: see [`boundary`](crate::learning::boundary).
//! - Each thread is at any moment in one [`Activity`](crate::Activity), and the time in all of them adds up to its life.

mod actor;
mod check;
mod run;

pub use run::{SebulbaRun, SebulbaTransfers};
