//! Memory that a batch writes its steps into.

use std::collections::TryReserveError;

use super::{HostError, HostSpec};

/// The caller's memory for one step of a batch, of the sizes that the [`HostSpec`] gives.
#[derive(Debug)]
pub struct HostStep<'a> {
    /// Observations to act on next, little-endian. `[N, ...]`
    pub observation: &'a mut [u8],
    /// Observations after the step and before any reset: `observation` where no episode ended, and else the episode's last one. They
    /// are read only in a step in which some episode ended. Empty if the environment never truncates.
    pub next_observation: &'a mut [u8],
    /// Rewards of the step. `[N]`
    pub reward: &'a mut [f32],
    /// End flags: 1 if the episode ended by itself, else 0. `[N]`
    pub terminated: &'a mut [u8],
    /// End flags: 1 if the episode was cut off, else 0; 1 together with `terminated` in a reset-only step. `[N]`
    pub truncated: &'a mut [u8],
    /// Masks of the actions that are legal next: 1 for each that is, else 0. `[N, n]`; empty if the environment has no masks.
    pub legal_actions: &'a mut [u8],
    /// Share of the task that was done in the episode that ended, from 0 to 1. It is read only where one ended. `[N]`; empty if the
    /// environment has none ([`HostSpec::succeeds`]).
    pub success: &'a mut [f32],
}

impl HostStep<'_> {
    /// Checks that all of the memory has the sizes of `spec`.
    ///
    /// # Errors
    /// [`HostError::Length`].
    pub fn check(&self, spec: &HostSpec) -> Result<(), HostError> {
        let observation = spec.observation_type().bytes();
        let shown = if spec.truncates { observation } else { 0 };
        let n = spec.environments;
        for (what, expected, got) in [
            ("the observations", observation, self.observation.len()),
            ("the final observations", shown, self.next_observation.len()),
            ("the rewards", 4 * n, 4 * self.reward.len()),
            ("`terminated`", n, self.terminated.len()),
            ("`truncated`", n, self.truncated.len()),
            ("the masks of legal actions", spec.legal_actions_bytes(), self.legal_actions.len()),
            ("the successes", 4 * spec.successes(), 4 * self.success.len()),
        ] {
            if expected != got {
                return Err(HostError::Length { what, expected, got });
            }
        }
        Ok(())
    }

    /// The memory of some of the environments.
    pub(super) fn part(&mut self, environments: std::ops::Range<usize>) -> HostStep<'_> {
        let size = self.observation.len() / self.reward.len();
        let actions = self.legal_actions.len() / self.reward.len();
        let legal = environments.start * actions..environments.end * actions;
        let bytes = environments.start * size..environments.end * size;
        let shown = if self.next_observation.is_empty() { 0..0 } else { bytes.clone() };
        let succeeded = if self.success.is_empty() { 0..0 } else { environments.clone() };
        HostStep {
            observation: &mut self.observation[bytes],
            next_observation: &mut self.next_observation[shown],
            reward: &mut self.reward[environments.clone()],
            terminated: &mut self.terminated[environments.clone()],
            truncated: &mut self.truncated[environments],
            legal_actions: &mut self.legal_actions[legal],
            success: &mut self.success[succeeded],
        }
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

/// A vector of zeros; an error where `vec!` would end the process.
fn zeros<T: Clone + Default>(length: usize) -> Result<Vec<T>, TryReserveError> {
    let mut zeros = Vec::new();
    zeros.try_reserve_exact(length)?;
    zeros.resize(length, T::default());
    Ok(zeros)
}

/// Owned memory for one step of a batch.
#[derive(Clone, Debug)]
pub struct StepMemory {
    observation: Vec<u8>,
    next_observation: Vec<u8>,
    reward: Vec<f32>,
    reward_bytes: Vec<u8>,
    pub(super) terminated: Vec<u8>,
    pub(super) truncated: Vec<u8>,
    legal_actions: Vec<u8>,
    pub(super) success: Vec<f32>,
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
        let (n, observation) = (spec.environments, spec.observation_type().bytes());
        let shown = if spec.truncates { observation } else { 0 };
        let legal_actions = spec.legal_actions_bytes();
        let bytes = observation + shown + 10 * n + legal_actions + 4 * spec.successes();
        let refused = |_| HostError::Memory { environments: n, bytes };
        let made = || -> Result<Self, TryReserveError> {
            Ok(StepMemory {
                observation: zeros(observation)?,
                next_observation: zeros(shown)?,
                reward: zeros(n)?,
                reward_bytes: zeros(4 * n)?,
                terminated: zeros(n)?,
                truncated: zeros(n)?,
                legal_actions: zeros(legal_actions)?,
                success: zeros(spec.successes())?,
            })
        };
        made().map_err(refused)
    }

    /// The memory in the form that a batch writes into.
    pub fn step(&mut self) -> HostStep<'_> {
        HostStep {
            observation: &mut self.observation,
            next_observation: &mut self.next_observation,
            reward: &mut self.reward,
            terminated: &mut self.terminated,
            truncated: &mut self.truncated,
            legal_actions: &mut self.legal_actions,
            success: &mut self.success,
        }
    }

    /// Writes the bytes that [`StepMemory::leaves`] gave for the same spec.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn fill<'a>(&mut self, leaves: impl IntoIterator<Item = &'a [u8]>) {
        let always = [
            &mut self.observation,
            &mut self.reward_bytes,
            &mut self.terminated,
            &mut self.truncated,
        ];
        let sometimes = [&mut self.next_observation, &mut self.legal_actions];
        let sometimes = sometimes.into_iter().filter(|leaf| !leaf.is_empty());
        for (into, leaf) in always.into_iter().chain(sometimes).zip(leaves) {
            into.copy_from_slice(leaf);
        }
        let rewards = self.reward_bytes.as_chunks::<4>().0;
        for (reward, bytes) in self.reward.iter_mut().zip(rewards) {
            *reward = f32::from_le_bytes(*bytes);
        }
    }

    /// Bytes of the observations to act on next, `[N, ...]`.
    #[must_use]
    pub fn observation(&self) -> &[u8] {
        &self.observation
    }

    /// Bytes of the observations before any reset, `[N, ...]`; empty if the environment never truncates.
    #[must_use]
    pub fn next_observation(&self) -> &[u8] {
        &self.next_observation
    }

    /// Masks of the actions that are legal next, `[N, n]`; empty if the environment has no masks.
    #[must_use]
    pub fn legal_actions(&self) -> &[u8] {
        &self.legal_actions
    }

    /// Share of the task that was done in the episode of an environment, if the step ended it; `None` if the environment has none.
    #[must_use]
    pub fn success(&self, environment: usize) -> Option<f32> {
        self.success.get(environment).copied()
    }

    /// Rewards of the step, `[N]`.
    #[must_use]
    pub fn reward(&self) -> &[f32] {
        &self.reward
    }

    /// True if the step of an environment was reset-only ([`HostSpec::skips`]).
    #[must_use]
    pub fn skipped(&self, environment: usize) -> bool {
        self.ended(environment) == (true, true)
    }

    /// The flags (`terminated`, `truncated`) of an environment; both are true in a reset-only step.
    #[must_use]
    pub fn ended(&self, environment: usize) -> (bool, bool) {
        (self.terminated[environment] != 0, self.truncated[environment] != 0)
    }

    /// Bytes of each leaf of [`StepOutcome`](super::StepOutcome), in its order.
    pub fn leaves(&mut self) -> impl Iterator<Item = &[u8]> {
        for (bytes, reward) in self.reward_bytes.chunks_exact_mut(4).zip(&self.reward) {
            bytes.copy_from_slice(&reward.to_le_bytes());
        }
        let sometimes = [&self.next_observation[..], &self.legal_actions];
        [&self.observation[..], &self.reward_bytes, &self.terminated, &self.truncated]
            .into_iter()
            .chain(sometimes.into_iter().filter(|leaf| !leaf.is_empty()))
    }
}
