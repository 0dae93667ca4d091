//! The trait of environments in plain Rust, one environment at a time.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Random;
use crate::Space;

/// Reward and end flags of one environment's step.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Outcome {
    /// The reward of the step.
    pub reward: f32,
    /// True if the episode ended by itself.
    pub terminated: bool,
    /// True if the episode was cut off.
    pub truncated: bool,
}

impl Outcome {
    /// True if the episode is over: terminated or truncated.
    #[must_use]
    pub fn done(self) -> bool {
        self.terminated || self.truncated
    }
}

/// An environment in plain Rust: the implementing type has the settings, [`NativeEnvironment::State`] one episode. A
/// [`Pool`](super::Pool) makes batches of them, and resets them.
pub trait NativeEnvironment: Clone + Send + 'static {
    /// State of an episode: all that the next steps depend on, random numbers apart. Snapshots save it by serde, to the bit.
    type State: Serialize + DeserializeOwned + Send;

    /// The type and bounds of the observation.
    fn observation_space(&self) -> Space;

    /// The type and bounds of the action.
    fn action_space(&self) -> Space;

    /// False if no step of this environment is ever truncated.
    fn truncates(&self) -> bool;

    /// The least number of environments to hand to a thread: about 20 us of steps. Smaller batches are stepped by the
    /// caller's thread.
    fn min_per_thread(&self) -> usize;

    /// The first state of an episode.
    fn initial_state(&self, random: &mut Random) -> Self::State;

    /// Takes one step. `action` has the bytes of one action; a discrete one is within its space.
    fn step(&self, state: &mut Self::State, action: &[u8], random: &mut Random) -> Outcome;

    /// Writes the observation of a state: all bytes of the observation space's type, little-endian.
    fn observe(&self, state: &Self::State, observation: &mut [u8]);

    /// Checks a state that was read from a snapshot: `step` and `observe` may rely on it.
    ///
    /// # Errors
    /// A sentence that says what in the state is impossible.
    fn check(&self, state: &Self::State) -> Result<(), String> {
        let _ = state;
        Ok(())
    }
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
