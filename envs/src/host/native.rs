//! What an environment written in plain Rust is, one at a time.

use super::{HostError, Random};
use crate::Space;

/// What a step of one environment says beside its observation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Outcome {
    /// The reward.
    pub reward: f32,
    /// The episode ended by itself.
    pub terminated: bool,
    /// The episode was cut off.
    pub truncated: bool,
}

impl Outcome {
    /// Whether the episode is over.
    #[must_use]
    pub fn done(self) -> bool {
        self.terminated || self.truncated
    }
}

/// An environment in plain Rust. A [`Pool`](super::Pool) makes batches of them, and resets them.
pub trait NativeEnvironment: Clone + Send + 'static {
    /// What it shows.
    fn observation_space(&self) -> Space;

    /// What it takes.
    fn action_space(&self) -> Space;

    /// Whether it ever truncates.
    fn truncates(&self) -> bool;

    /// How many environments make a thread's while: about 20 us of steps. Batches of fewer step on the caller's thread.
    fn worth_a_thread(&self) -> usize;

    /// Begins an episode.
    fn reset(&mut self, random: &mut Random);

    /// One step. `action` has the bytes of one action, which is within its space where that is discrete.
    fn step(&mut self, action: &[u8], random: &mut Random) -> Outcome;

    /// Writes what it shows, as many bytes as the observation space's type has.
    fn observe(&self, observation: &mut [u8]);

    /// Appends all that the next steps depend on, random numbers apart: always as many bytes.
    fn save(&self, bytes: &mut Vec<u8>);

    /// Goes on from what [`NativeEnvironment::save`] wrote, and takes it off the front of `bytes`.
    ///
    /// # Errors
    /// [`HostError::Snapshot`] where the bytes are too few.
    fn load(&mut self, bytes: &mut &[u8]) -> Result<(), HostError>;
}

/// The discrete action in its bytes.
pub(super) fn discrete(action: &[u8]) -> i32 {
    action.try_into().map_or(0, i32::from_le_bytes)
}

/// Writes f32s as an observation.
pub(super) fn write_floats(observation: &mut [u8], values: &[f32]) {
    for (bytes, value) in observation.chunks_exact_mut(4).zip(values) {
        bytes.copy_from_slice(&value.to_le_bytes());
    }
}

/// Takes so many bytes off the front of a snapshot.
pub(super) fn take<const N: usize>(bytes: &mut &[u8]) -> Result<[u8; N], HostError> {
    let (front, rest) = bytes
        .split_first_chunk::<N>()
        .ok_or_else(|| HostError::Snapshot("it is too short".to_owned()))?;
    *bytes = rest;
    Ok(*front)
}
