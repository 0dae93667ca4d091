//! The common basis of Sebulba and central inference: the learner's thread, the supply of
//! trajectories, published parameters, the replay on the host, programs and their compilation. It
//! also contains checkpoints of a moment between two iterations.

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
pub(crate) mod shape;
pub(crate) mod shared;
pub(crate) mod supply;
pub(crate) mod thread_status;
pub(crate) mod trajectory;

pub use compile::Compiler;
pub use error::{ReplayError, SebulbaError, ThreadFailure};
pub use host_replay::HostReplay;
pub use learner::IterationReport;
pub use learner_run::Motion;
pub use programs::{HostLoopFunctions, LearntBy, SebulbaLoop, SebulbaProgram};
pub use shape::{Origin, SebulbaShape};
pub use thread_status::{Activity, ThreadTimes};
pub use trajectory::Episode;
