//! Workers: processes or threads elsewhere that step environments and know no model.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;

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
    /// 1 for each action that is legal next, else 0. bool `[n, ..]`; `None` if the environments have no masks.
    pub legal_actions: Option<Bytes>,
    /// Share of the task that was done in each episode that the step ended, `[n]` of which the others are not read; `None` if the worker
    /// does not tell it.
    pub success: Option<Box<[f32]>>,
}

impl WorkerStep {
    /// A copy of a step in memory.
    #[must_use]
    pub fn copied(memory: &StepMemory) -> Self {
        let copied = Bytes::copy_from_slice;
        let sometimes = |leaf: &[u8]| (!leaf.is_empty()).then(|| copied(leaf));
        WorkerStep {
            observation: copied(memory.observation()),
            reward: memory.reward().iter().flat_map(|reward| reward.to_le_bytes()).collect(),
            terminated: copied(&memory.terminated),
            truncated: copied(&memory.truncated),
            next_observation: sometimes(memory.next_observation()),
            legal_actions: sometimes(memory.legal_actions()),
            success: (!memory.success.is_empty()).then(|| memory.success.as_slice().into()),
        }
    }

    /// Checks that the step has the arrays of a batch of this spec, and their lengths. Nobody must tell successes.
    ///
    /// # Errors
    /// A sentence with the first that it has not.
    pub fn check(&self, spec: &HostSpec) -> Result<(), String> {
        let (n, observation) = (spec.environments, spec.observation_type().bytes());
        let next_observation = spec.truncates.then_some(observation);
        let legal_actions = spec.masks.then(|| spec.legal_actions_type().bytes());
        for (what, expected, got) in [
            ("observation", Some(observation), Some(&self.observation)),
            ("reward", Some(4 * n), Some(&self.reward)),
            ("terminated", Some(n), Some(&self.terminated)),
            ("truncated", Some(n), Some(&self.truncated)),
            ("next_observation", next_observation, self.next_observation.as_ref()),
            ("legal_actions", legal_actions, self.legal_actions.as_ref()),
        ] {
            match (expected, got.map(Bytes::len)) {
                (expected, got) if expected == got => (),
                (Some(expected), Some(got)) => {
                    return Err(format!(
                        "`{what}` must have {expected} bytes for {n} environments and has {got}"
                    ));
                }
                (Some(_), None) => return Err(format!("`{what}` is missing")),
                (None, _) => return Err(format!("`{what}` is not of these environments")),
            }
        }
        match &self.success {
            Some(success) if success.len() != n => {
                Err(format!("`success` must have {n} numbers and has {}", success.len()))
            }
            _ => Ok(()),
        }
    }

    /// The bytes of each leaf of [`StepOutcome`](super::StepOutcome), in its order.
    pub fn leaves(&self) -> impl Iterator<Item = &[u8]> {
        [&self.observation, &self.reward, &self.terminated, &self.truncated]
            .into_iter()
            .chain(&self.next_observation)
            .chain(&self.legal_actions)
            .map(|leaf| &leaf[..])
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
            environments,
            observation: Space::discrete(2),
            action: Space::multi_discrete([2, 3]),
            truncates: false,
            skips: false,
            masks: true,
            succeeds: false,
        };
        let step = WorkerStep {
            observation: vec![0; 12].into(),
            reward: vec![0; 12].into(),
            terminated: vec![0; 3].into(),
            truncated: vec![0; 3].into(),
            next_observation: None,
            legal_actions: Some(vec![1; 15].into()),
            success: Some([0.0; 3].into()),
        };
        assert_eq!(step.check(&spec(3)), Ok(()));
        let refused = |step: &WorkerStep, environments| {
            step.check(&spec(environments)).expect_err("it is of another spec")
        };
        let problem = refused(&step, 2);
        assert_eq!(problem, "`observation` must have 8 bytes for 2 environments and has 12");
        let short = WorkerStep { legal_actions: Some(vec![1; 14].into()), ..step.clone() };
        let problem = refused(&short, 3);
        assert_eq!(problem, "`legal_actions` must have 15 bytes for 3 environments and has 14");
        let more = WorkerStep { next_observation: Some(Bytes::new()), ..step.clone() };
        assert_eq!(refused(&more, 3), "`next_observation` is not of these environments");
        let fewer = WorkerStep { success: Some([0.0; 2].into()), ..step.clone() };
        assert_eq!(refused(&fewer, 3), "`success` must have 3 numbers and has 2");
        let less = WorkerStep { legal_actions: None, ..step };
        assert_eq!(refused(&less, 3), "`legal_actions` is missing");
    }
}
