//! Memory that a batch writes its steps into.

use std::collections::TryReserveError;
use std::ops::Range;

use super::leaves::{LEAVES, StepLeaves, StepResult};
use super::{HostError, HostSpec};

/// The caller's memory for one step of a batch, of the sizes that the [`HostSpec`] gives.
pub type HostStep<'a> = StepLeaves<&'a mut [u8], &'a mut [f32]>;

impl HostStep<'_> {
    /// Checks that all of the memory has the sizes of `spec`.
    ///
    /// # Errors
    /// [`HostError::Length`].
    pub fn check(&self, spec: &HostSpec) -> Result<(), HostError> {
        let got = self.as_ref().map(|leaf| leaf.len(), |leaf| 4 * leaf.len());
        for ((expected, got), (_, what)) in spec.step_bytes().zip(got).zip(LEAVES).into_array() {
            if expected != got {
                return Err(HostError::Length { what, expected, got });
            }
        }
        Ok(())
    }

    /// The memory of some of the environments.
    pub(super) fn part(&mut self, environments: Range<usize>) -> HostStep<'_> {
        let n = self.reward.len();
        self.as_mut().map(|leaf| rows(leaf, n, &environments), |leaf| rows(leaf, n, &environments))
    }

    /// Completes a reset after `observation` and `legal_actions` are written: no rewards, no ends, and the same `next_observation`.
    pub fn begin(&mut self) {
        self.reward.fill(0.0);
        self.terminated.fill(0);
        self.truncated.fill(0);
        if !self.next_observation.is_empty() {
            self.next_observation.copy_from_slice(self.observation);
        }
    }
}

/// The rows of some environments in a leaf of `n` environments.
fn rows<'a, T>(leaf: &'a mut [T], n: usize, environments: &Range<usize>) -> &'a mut [T] {
    let size = leaf.len() / n;
    &mut leaf[environments.start * size..environments.end * size]
}

/// A vector of zeros; an error if the system has less memory, which `vec!` would end the process for.
fn zeros<T: Clone + Default>(length: usize) -> Result<Vec<T>, TryReserveError> {
    let mut zeros = Vec::new();
    zeros.try_reserve_exact(length)?;
    zeros.resize(length, T::default());
    Ok(zeros)
}

/// Owned memory for one step of a batch.
#[derive(Clone, Debug)]
pub struct StepMemory {
    pub(super) leaves: StepLeaves<Vec<u8>, Vec<f32>>,
    reward_bytes: Vec<u8>,
}

impl StepMemory {
    /// Memory of zeros for a batch of this spec.
    ///
    /// # Panics
    /// If the system has less memory.
    #[must_use]
    pub fn new(spec: &HostSpec) -> Self {
        Self::try_new(spec).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Like [`StepMemory::new`].
    ///
    /// # Errors
    /// [`HostError::Memory`] if the system has less memory.
    pub fn try_new(spec: &HostSpec) -> Result<Self, HostError> {
        let environments = spec.environments;
        let made = || -> Result<Self, TryReserveError> {
            Ok(StepMemory {
                leaves: spec.step_lengths().try_map(zeros, zeros)?,
                reward_bytes: zeros(4 * environments)?,
            })
        };
        let bytes = spec.step_bytes().into_array().iter().sum::<usize>() + 4 * environments;
        made().map_err(|_| HostError::Memory { environments, bytes })
    }

    /// The memory in the form that a batch writes into.
    pub fn step(&mut self) -> HostStep<'_> {
        self.leaves.as_mut().map(|leaf| &mut leaf[..], |leaf| &mut leaf[..])
    }

    /// Writes the bytes that [`StepMemory::leaves`] gave for the same spec.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn fill<'a>(&mut self, leaves: impl IntoIterator<Item = &'a [u8]>) {
        // The reward is the only leaf of floats in an outcome.
        let mut reward = Some(&mut self.reward_bytes);
        let (always, sometimes) = self.leaves.as_mut().map(Some, |_| reward.take()).outcome();
        let sometimes = sometimes.into_iter().flatten().filter(|leaf| !leaf.is_empty());
        for (into, leaf) in always.into_iter().flatten().chain(sometimes).zip(leaves) {
            into.copy_from_slice(leaf);
        }
        let rewards = self.reward_bytes.as_chunks::<4>().0;
        for (reward, bytes) in self.leaves.reward.iter_mut().zip(rewards) {
            *reward = f32::from_le_bytes(*bytes);
        }
    }

    /// Bytes of the observations to act on next, `[N, ...]`.
    #[must_use]
    pub fn observation(&self) -> &[u8] {
        &self.leaves.observation
    }

    /// Bytes of the observations before any reset, `[N, ...]`; empty if the environment never truncates.
    #[must_use]
    pub fn next_observation(&self) -> &[u8] {
        &self.leaves.next_observation
    }

    /// Masks of the actions that are legal next, `[N, n]`; empty if the environment has no masks.
    #[must_use]
    pub fn legal_actions(&self) -> &[u8] {
        &self.leaves.legal_actions
    }

    /// Rewards of the step, `[N]`.
    #[must_use]
    pub fn reward(&self) -> &[f32] {
        &self.leaves.reward
    }

    /// True if the step of an environment was reset-only ([`HostSpec::skips`]).
    #[must_use]
    pub fn skipped(&self, environment: usize) -> bool {
        self.done(environment) == (true, true)
    }

    /// The flags (`terminated`, `truncated`) of an environment; both are true in a reset-only step.
    #[must_use]
    pub fn done(&self, environment: usize) -> (bool, bool) {
        (self.leaves.terminated[environment] != 0, self.leaves.truncated[environment] != 0)
    }

    /// The step of an environment.
    #[must_use]
    pub fn result(&self, environment: usize) -> StepResult {
        StepResult {
            reward: self.leaves.reward[environment],
            done: self.done(environment),
            success: self.leaves.success.get(environment).copied(),
        }
    }

    /// Bytes of each leaf of [`StepOutcome`](super::StepOutcome), in its order.
    pub fn leaves(&mut self) -> impl Iterator<Item = &[u8]> {
        for (bytes, reward) in self.reward_bytes.chunks_exact_mut(4).zip(&self.leaves.reward) {
            bytes.copy_from_slice(&reward.to_le_bytes());
        }
        let reward = &self.reward_bytes[..];
        self.leaves.as_ref().map(|leaf| &leaf[..], |_| reward).outcome_bytes()
    }
}
