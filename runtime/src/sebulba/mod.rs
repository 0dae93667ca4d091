//! Sebulba: actors and learners on devices of their own, environments on the host (Hessel et al. 2021).
//!
//! Actor threads, several for each actor device, step batches of environments and run inference; their trajectories
//! accumulate on the actor device and go to the learner devices from device to device. One learner thread learns on all
//! learner devices at once and publishes the parameters. What is computed are the functions of a [`HostLoopFunctions`];
//! here is only who runs them when.
//!
//! # Invariants
//! - No thread donates a buffer that another thread may use. What is published is a copy.
//! - Between actors and learner stands a [`supply`]: neither knows more of the other. The queues there carry handles, and no
//!   trajectory passes through the host, unless the replay is there: see [`host_replay`].
//! - Threads wait for each other only in [`supply`], in [`parameters`] and for the run's commands, which all close when one
//!   thread ends: no failure of a thread leaves another one waiting.
//! - A checkpoint is of the moment between two iterations, wherever the actors are: see [`boundary`].
//! - Each thread is at any moment in one [`Activity`], and the time in all of them adds up to its life.

mod actor;
pub(crate) mod boundary;
pub(crate) mod check;
pub(crate) mod compile;
pub(crate) mod error;
pub(crate) mod host_replay;
pub(crate) mod learner;
pub(crate) mod learner_run;
pub(crate) mod origin;
pub(crate) mod parameters;
pub(crate) mod programs;
mod run;
pub(crate) mod shared;
pub(crate) mod supply;
pub(crate) mod thread_status;
pub(crate) mod trajectory;

pub use compile::Compiler;
pub use error::{ReplayError, SebulbaError, ThreadFailure};
pub use host_replay::HostReplay;
pub use learner::IterationReport;
pub use learner_run::Motion;
pub use origin::Origin;
pub use programs::{HostLoopFunctions, LearntBy, SebulbaLoop, SebulbaProgram, SebulbaShape};
pub use run::{SebulbaRun, SebulbaTransfers};
pub use thread_status::{Activity, ThreadTimes};
pub use trajectory::Episode;
