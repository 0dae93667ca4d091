//! The sizes of a run, its start, and the state of its learner.

use crate::{Buffer, Checkpoint, Client, Processes, World};

/// The sizes of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SebulbaShape {
    /// Actor threads, over all actor devices.
    pub threads: usize,
    /// Learner devices of a process.
    pub learners: usize,
    /// Processes that learn together, each with equally many threads and learners.
    pub processes: Processes,
    /// Steps of a trajectory.
    pub unroll: usize,
}

impl SebulbaShape {
    /// Number of learner devices over all processes.
    #[must_use]
    pub fn all_learners(&self) -> usize {
        self.learners * self.processes.count
    }

    /// The processes that a client's programs of this shape span; `None` for one process.
    pub(crate) fn world(&self, client: &Client) -> Option<World> {
        client.world().filter(|_| self.processes.count > 1)
    }
}

/// The start of a run.
#[derive(Clone, Copy, Debug)]
pub enum Origin<'a> {
    /// A new run; all its randomness comes from this seed.
    Seed(u64),
    /// A run that resumes from [`SebulbaRun::checkpoint`](crate::SebulbaRun::checkpoint).
    Checkpoint(&'a Checkpoint<'a>),
}

/// The leaves of the learner's state, on each learner device.
pub(crate) type LearnerState = Vec<Vec<Buffer>>;
