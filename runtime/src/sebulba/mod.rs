//! Sebulba: actors and learners on devices of their own, environments on the host (Hessel et al. 2021).
//!
//! Actor threads, several for each actor device, step batches of environments and run inference; their trajectories
//! accumulate on the actor device and go to the learner devices from device to device. One learner thread updates on all
//! learner devices at once and publishes the parameters. What is computed are the functions of a [`SebulbaFunctions`];
//! here is only who runs them when.
//!
//! # Invariants
//! - No thread donates a buffer that another thread may use. What is published is a copy.
//! - A trajectory never passes through the host. Queues carry handles.
//! - Threads wait for each other only on channels and in [`parameters`], which all close when one thread ends: no failure
//!   of a thread leaves another one waiting.
//! - A checkpoint is of the moment between two updates, wherever the actors are: see [`boundary`].
//! - Each thread is at any moment in one [`Activity`], and the time in all of them adds up to its life.

mod actor;
mod board;
mod boundary;
mod compile;
mod error;
mod learner;
mod origin;
mod parameters;
mod programs;
mod run;

pub use board::{Activity, ThreadTimes};
pub use error::{SebulbaError, ThreadFailure};
pub use learner::{Episode, UpdateReport};
pub use origin::Origin;
pub use programs::{SebulbaFunctions, SebulbaLoop, SebulbaProgram, SebulbaShape};
pub use run::{Schedule, SebulbaOptions, SebulbaRun, SebulbaTransfers};
