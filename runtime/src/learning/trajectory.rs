//! The data that goes from actor threads to the learner.

use std::sync::Arc;

use podracer_dsl::Report;
use podracer_envs::host::StepResult;

use crate::Buffer;

/// An episode that ended.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Episode {
    /// Index of the step in its trajectory that ended it.
    pub step: usize,
    /// Sum of its rewards.
    pub episode_return: f32,
    /// Number of its steps.
    pub length: u32,
    /// The fraction of its task that was completed, for environments that report it.
    pub success: Option<f32>,
}

impl Episode {
    /// Adds a step to the running episode. Returns the episode if the step, number `step` of its trajectory, ended it; the next episode
    /// then runs. A reset-only step belongs to no episode.
    pub(crate) fn add(&mut self, result: StepResult, step: usize) -> Option<Episode> {
        let StepResult { reward, done, success } = result;
        if done == (true, true) {
            return None;
        }
        self.episode_return += reward;
        self.length += 1;
        let over = done.0 || done.1;
        over.then(|| Episode { step, success, ..std::mem::take(self) })
    }

    /// Number of words of [`Episode::words`].
    pub(crate) const WORDS: usize = 4;

    /// The success of an episode without success: a NaN that no arithmetic produces.
    const NO_SUCCESS: u32 = u32::MAX;

    /// The episode as words for other processes.
    pub(crate) fn words(&self) -> [u32; Self::WORDS] {
        let success = self.success.map_or(Self::NO_SUCCESS, f32::to_bits);
        [self.step as u32, self.episode_return.to_bits(), self.length, success]
    }

    /// The episode of [`Episode::words`].
    pub(crate) fn from_words([step, episode_return, length, success]: [u32; Self::WORDS]) -> Self {
        let success = (success != Self::NO_SUCCESS).then(|| f32::from_bits(success));
        Episode {
            step: step as usize,
            episode_return: f32::from_bits(episode_return),
            length,
            success,
        }
    }
}

/// Handles of arrays on each learner device, `[learner][leaf]`.
pub(crate) type Handles = Vec<Vec<Buffer>>;

/// A trajectory of one actor thread: its shards for the learner devices, and the host's counters.
pub(crate) struct Trajectory<S = Handles> {
    /// The shard for each learner device.
    pub(crate) shards: S,
    /// Number of steps, `T`.
    pub(crate) steps: usize,
    /// Sum over the steps of their parameters' version numbers.
    pub(crate) versions: u64,
    /// The episodes that ended in it, in order.
    pub(crate) episodes: Vec<Episode>,
    /// Reports of agent and environments in the trajectory.
    pub(crate) reports: Vec<Report>,
}

/// The learner program's arguments after its state, on each learner device.
pub(crate) enum Data {
    /// Arrays of this iteration only; the program may take over their memory.
    Given(Handles),
    /// Arrays that are also used in other iterations.
    Lent(Arc<Handles>),
}

impl Data {
    /// The arrays on each learner device.
    pub(crate) fn handles(&self) -> &Handles {
        match self {
            Data::Given(handles) => handles,
            Data::Lent(handles) => handles,
        }
    }
}

impl Default for Data {
    fn default() -> Self {
        Data::Given(Vec::new())
    }
}

/// The data of one iteration.
#[derive(Default)]
pub(crate) struct Batch {
    /// The arguments of the learner's program.
    pub(crate) data: Data,
    /// Numbers that identify the items of the data for
    /// [`Supply::feedback`](super::supply::Supply::feedback).
    pub(crate) items: Vec<u64>,
    /// Number of steps, over all trajectories.
    pub(crate) steps: usize,
    /// Sum over the steps of their parameters' version numbers.
    pub(crate) versions: u64,
    /// Episodes that ended since the last batch, in the order of their steps, then of the threads.
    pub(crate) episodes: Vec<Episode>,
    /// Reports of agent and environments in the trajectories; places begin with the thread.
    pub(crate) reports: Vec<Report>,
    /// Number of further trajectories that were waiting.
    pub(crate) queued: usize,
}
