//! Workers: processes or threads elsewhere that step environments and know no model.

use std::time::Instant;

use bytes::Bytes;

use super::StepMemory;

/// The workers of one inference thread.
///
/// A worker joins, is admitted, and then sends a step of all of its environments, waits for the answer, and steps again. Whoever
/// implements this trait knows how bytes come and go, and no device; who uses it knows lanes and devices, and no network.
///
/// # Invariants
/// - A worker's events come in order: `Joined`, `Stepped` with the sequence numbers 0, 1, 2, .., `Left`. Nothing comes after
///   `Left`, and no step before [`Workers::admit`].
/// - At most one step of a worker is unanswered.
/// - Everything in an event was checked: lengths against the run's spaces, rewards for being finite, flags for being 0 or 1.
pub trait Workers: Send {
    /// Waits for the next event, until `until` at the latest. `Ok(None)`: nothing came.
    ///
    /// # Errors
    /// [`WorkersClosed`] where no worker can ever come again.
    fn next(&mut self, until: Instant) -> Result<Option<WorkerEvent>, WorkersClosed>;

    /// Takes a worker in. `first_lane` is the global index of its first lane, and its lanes are contiguous; all randomness of its
    /// environments comes from `seed` and their lanes.
    fn admit(&mut self, worker: WorkerId, first_lane: usize, seed: u64);

    /// Answers the step `sequence` of a worker: the bytes of its actions, `[n, ..]`, and the version of the parameters that chose
    /// them. Dropped if the worker has left.
    fn answer(&mut self, worker: WorkerId, sequence: u64, actions: Bytes, version: u64);

    /// True if workers come from other processes: a run waits for them as long as it takes.
    fn are_elsewhere(&self) -> bool {
        false
    }

    /// Sends a worker away, with a reason that both sides print. It may or may not be followed by a `Left`.
    fn dismiss(&mut self, worker: WorkerId, reason: &str);

    /// [`Workers::dismiss`] for a worker that did nothing wrong, and for which there is no room now.
    fn turn_away(&mut self, worker: WorkerId, reason: &str) {
        self.dismiss(worker, reason);
    }
}

/// The number of a worker, never used twice in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkerId(pub u64);

/// An event of a worker: it came, stepped, or left.
#[derive(Clone, Debug)]
pub enum WorkerEvent {
    /// A worker came whose environments have the run's spaces. It steps nothing before it is admitted.
    Joined {
        /// The worker's number.
        worker: WorkerId,
        /// Number of its environments, at least 1.
        environments: usize,
    },
    /// All environments of a worker have stepped, or have begun (sequence 0: rewards zero, no ends).
    Stepped {
        /// The worker's number.
        worker: WorkerId,
        /// Number of the step since the worker was admitted, from 0.
        sequence: u64,
        /// The outcomes of all of its environments.
        step: WorkerStep,
    },
    /// A worker is gone; its unfinished unrolls are lost and its lanes are free.
    Left {
        /// The worker's number.
        worker: WorkerId,
        /// The reason, as a sentence.
        reason: String,
    },
}

/// The outcomes of one step of a worker's environments: little-endian bytes of the leaves of
/// [`StepOutcome`](super::StepOutcome), each `[n, ..]`. A worker of several batches sends them as one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WorkerStep {
    /// Observations to act on next. `[n, ..]`
    pub observation: Bytes,
    /// Rewards, all finite. f32 `[n]`
    pub reward: Bytes,
    /// 1 if the episode ended by itself, else 0. bool `[n]`
    pub terminated: Bytes,
    /// 1 if the episode was cut off, else 0; 1 together with `terminated` in a reset-only step. bool `[n]`
    pub truncated: Bytes,
    /// Observations before any reset, `[n, ..]`; `None` if the environments never truncate.
    pub next_observation: Option<Bytes>,
}

impl WorkerStep {
    /// A copy of a step in memory.
    #[must_use]
    pub fn copied(memory: &mut StepMemory) -> Self {
        let mut leaves = memory.leaves().map(Bytes::copy_from_slice);
        let mut next = || leaves.next().unwrap_or_default();
        WorkerStep {
            observation: next(),
            reward: next(),
            terminated: next(),
            truncated: next(),
            next_observation: leaves.next(),
        }
    }

    /// The bytes of each leaf of [`StepOutcome`](super::StepOutcome), in its order.
    pub fn leaves(&self) -> impl Iterator<Item = &[u8]> {
        [&self.observation, &self.reward, &self.terminated, &self.truncated]
            .into_iter()
            .chain(&self.next_observation)
            .map(|leaf| &leaf[..])
    }
}

/// No worker can ever come again, with the reason as a sentence.
#[derive(Clone, Debug, thiserror::Error)]
#[error("no worker can come any more: {0}")]
pub struct WorkersClosed(pub String);
