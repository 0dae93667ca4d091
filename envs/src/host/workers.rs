//! Workers: processes or threads elsewhere that step environments and know no model.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;

use super::leaves::{LEAVES, StepLeaves, StepResult};
use super::{HostSpec, StepMemory};

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

    /// Answers the steps of a batch, all at once: whoever sends answers elsewhere is woken once for all of them. Answers to
    /// workers that have left are dropped.
    fn answer(&mut self, answers: Vec<Answer>);

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

/// The answer to a worker's step.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The worker's number.
    pub worker: WorkerId,
    /// The number of the step.
    pub sequence: u64,
    /// The bytes of the actions of all of its environments. `[n, ..]`
    pub actions: Bytes,
    /// The version of the parameters that chose them.
    pub version: u64,
}

/// An event of a worker: it came, stepped, or left.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly all events are steps")]
pub enum WorkerEvent {
    /// A worker came whose environments have the run's spaces. It steps nothing before it is admitted.
    Joined {
        /// The worker's number.
        worker: WorkerId,
        /// Number of its environments, at least 1.
        environments: usize,
        /// The host or the certificate that it comes from; `None` for a worker of this process.
        origin: Option<Arc<str>>,
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

/// The outcomes of one step of a worker's environments, little-endian bytes, each leaf `[n, ..]`. A leaf that the worker does not send is
/// empty. A worker of several batches sends them as one.
pub type WorkerStep = StepLeaves<Bytes, Bytes>;

impl WorkerStep {
    /// A copy of a step in memory.
    #[must_use]
    pub fn copied(memory: &StepMemory) -> Self {
        let floats =
            |leaf: &Vec<f32>| leaf.iter().flat_map(|number| number.to_le_bytes()).collect();
        memory.leaves.as_ref().map(|leaf| Bytes::copy_from_slice(leaf), floats)
    }

    /// Checks that the step has the leaves of a batch of this spec, and their lengths. Every worker may send successes, and none must.
    ///
    /// # Errors
    /// A sentence with the first mistake.
    pub fn check(&self, spec: &HostSpec) -> Result<(), String> {
        let n = spec.environments;
        let success = if self.success.is_empty() { 0 } else { 4 * n };
        let expected = StepLeaves { success, ..spec.step_bytes() };
        let got = self.as_ref().map(Bytes::len, Bytes::len);
        for ((expected, got), (name, _)) in expected.zip(got).zip(LEAVES).into_array() {
            match (expected, got) {
                _ if expected == got => (),
                (0, _) => return Err(format!("`{name}` is not of these environments")),
                _ => {
                    return Err(format!(
                        "`{name}` must have {expected} bytes for {n} environments and has {got}"
                    ));
                }
            }
        }
        Ok(())
    }

    /// The step of an environment.
    #[must_use]
    pub fn result(&self, environment: usize) -> StepResult {
        let float =
            |leaf: &Bytes| leaf.as_chunks().0.get(environment).map(|it| f32::from_le_bytes(*it));
        let flag = |leaf: &Bytes| leaf[environment] != 0;
        StepResult {
            reward: float(&self.reward).unwrap_or_default(),
            done: (flag(&self.terminated), flag(&self.truncated)),
            success: float(&self.success),
        }
    }

    /// The bytes of each leaf of [`StepOutcome`](super::StepOutcome), in its order.
    pub fn leaves(&self) -> impl Iterator<Item = &[u8]> {
        self.as_ref().map(|leaf| &leaf[..], |leaf| &leaf[..]).outcome_bytes()
    }
}

/// No worker can ever come again, with the reason as a sentence.
#[derive(Clone, Debug, thiserror::Error)]
#[error("no worker can come any more: {0}")]
pub struct WorkersClosed(pub String);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Space;

    #[test]
    fn a_step_of_other_arrays_is_refused() {
        let spec = |environments| HostSpec {
            masks: true,
            ..HostSpec::new(environments, Space::discrete(2), Space::multi_discrete([2, 3]))
        };
        let step = WorkerStep {
            observation: vec![0; 12].into(),
            reward: vec![0; 12].into(),
            terminated: vec![0; 3].into(),
            truncated: vec![0; 3].into(),
            next_observation: Bytes::new(),
            legal_actions: vec![1; 15].into(),
            success: vec![0; 12].into(),
        };
        assert_eq!(step.check(&spec(3)), Ok(()));
        let refused = |step: &WorkerStep, environments| {
            step.check(&spec(environments)).expect_err("it is of another spec")
        };
        let problem = refused(&step, 2);
        assert_eq!(problem, "`observation` must have 8 bytes for 2 environments and has 12");
        let short = WorkerStep { legal_actions: vec![1; 14].into(), ..step.clone() };
        let problem = refused(&short, 3);
        assert_eq!(problem, "`legal_actions` must have 15 bytes for 3 environments and has 14");
        let more = WorkerStep { next_observation: vec![0; 12].into(), ..step.clone() };
        assert_eq!(refused(&more, 3), "`next_observation` is not of these environments");
        let fewer = WorkerStep { success: vec![0; 8].into(), ..step.clone() };
        assert_eq!(refused(&fewer, 3), "`success` must have 12 bytes for 3 environments and has 8");
        let less = WorkerStep { legal_actions: Bytes::new(), ..step };
        assert_eq!(
            refused(&less, 3),
            "`legal_actions` must have 15 bytes for 3 environments and has 0"
        );
    }
}
