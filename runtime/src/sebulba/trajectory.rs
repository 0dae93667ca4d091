//! The data that goes from actor threads to the learner.

use podracer_dsl::Report;

use crate::Buffer;

/// An episode that ended.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Episode {
    /// Index of the step of its trajectory at which it ended.
    pub step: usize,
    /// Sum of its rewards.
    pub episode_return: f32,
    /// Number of its steps.
    pub length: u32,
}

/// A trajectory of one actor thread: handles of its arrays, and what the host has counted.
pub(super) struct Trajectory {
    /// The leaves of the shard on each learner device, `[learner][leaf]`.
    pub(super) shards: Vec<Vec<Buffer>>,
    /// Number of steps, `T`.
    pub(super) steps: usize,
    /// Sum over the steps of the number of the parameters that they were acted with.
    pub(super) versions: u64,
    /// The episodes that ended in it, in order.
    pub(super) episodes: Vec<Episode>,
    /// What agent and environments said while it was acted.
    pub(super) reports: Vec<Report>,
}

/// The data of one iteration.
#[derive(Default)]
pub(super) struct Batch {
    /// The learner program's arguments after its state, on each learner device, `[learner][leaf]`.
    pub(super) shards: Vec<Vec<Buffer>>,
    /// Numbers by which [`Supply::feedback`](super::supply::Supply::feedback) knows what the data was made of.
    pub(super) items: Vec<u64>,
    /// Number of steps, of all trajectories together.
    pub(super) steps: usize,
    /// Sum over the steps of the number of the parameters that they were acted with.
    pub(super) versions: u64,
    /// Episodes that ended since the last batch, in the order of their steps, then of the threads.
    pub(super) episodes: Vec<Episode>,
    /// What agent and environments said in the trajectories; places begin with the thread.
    pub(super) reports: Vec<Report>,
    /// Number of trajectories that were waiting beside those taken.
    pub(super) queued: usize,
}
