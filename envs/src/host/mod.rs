//! Environments on the host: batches that step outside of any device, in memory of the caller's.
//!
//! # Invariants
//! - A batch resets by itself: the step that ends an episode already shows the next one's first observation, and the end
//!   of the last one apart from it, where the environment truncates.
//! - `terminated` and `truncated` are never both set in a step that is one. Some batches begin an episode in a step of its
//!   own, whose action counts for nothing ([`HostSpec::skips`]): there both are set, and nothing is learnt from it.
//! - All randomness comes from the run's seed and an environment's *global* index, so that it does not matter how the
//!   environments are spread over batches and threads.

mod breakout;
mod cartpole;
mod catch;
mod memory;
mod native;
mod pixels;
mod pool;
mod random;
pub mod server;

pub use breakout::PixelBreakout;
pub use cartpole::NativeCartPole;
pub use catch::PixelCatch;
pub use memory::{HostStep, StepMemory};
pub use native::{NativeEnvironment, Outcome};
pub use pool::{Pool, panic_message};
pub use random::Random;

use std::path::PathBuf;

use crate::Space;
use native::discrete;
use podracer_dsl::prelude::*;

/// A batch of environments on the host. One thread at a time uses it, and it may be handed from thread to thread.
pub trait HostEnvironment: Send {
    /// What the batch is: it never changes.
    fn spec(&self) -> &HostSpec;

    /// Begins an episode in every environment; `first` is the global index of the batch's first one. The step has the
    /// first observations, no rewards and no ends.
    ///
    /// # Errors
    /// Whatever keeps an environment from it.
    fn reset(&mut self, seed: u64, first: usize, step: &mut HostStep<'_>) -> Result<(), HostError>;

    /// Sends the actions of a step, the bytes of [`HostSpec::action_type`], and returns: environments may step meanwhile.
    ///
    /// # Errors
    /// [`HostError::Order`] before `receive` has taken the last step; actions of another length or out of their space.
    fn send(&mut self, actions: &[u8]) -> Result<(), HostError>;

    /// Waits for the step that was sent, and writes it into the caller's memory.
    ///
    /// # Errors
    /// [`HostError::Order`] without `send`; whatever went wrong in an environment.
    fn receive(&mut self, step: &mut HostStep<'_>) -> Result<(), HostError>;

    /// `send` and `receive`.
    ///
    /// # Errors
    /// Theirs.
    fn step(&mut self, actions: &[u8], step: &mut HostStep<'_>) -> Result<(), HostError> {
        self.send(actions)?;
        self.receive(step)
    }

    /// How often a part of the batch was started again after a fault, with fresh episodes.
    fn restarts(&self) -> usize {
        0
    }

    /// All that the next steps depend on, for [`HostEnvironment::restore`] of a batch of the same spec; `None` from
    /// environments that cannot.
    ///
    /// # Errors
    /// [`HostError::Order`] while a step is under way.
    fn snapshot(&self) -> Result<Option<Vec<u8>>, HostError> {
        Ok(None)
    }

    /// Goes on from a snapshot.
    ///
    /// # Errors
    /// [`HostError::Snapshot`] for bytes that are none of this batch's.
    fn restore(&mut self, snapshot: &[u8]) -> Result<(), HostError> {
        let _ = snapshot;
        Err(HostError::Snapshot("these environments cannot be restored".to_owned()))
    }
}

impl<H: HostEnvironment + ?Sized> HostEnvironment for Box<H> {
    fn spec(&self) -> &HostSpec {
        (**self).spec()
    }
    fn reset(&mut self, seed: u64, first: usize, step: &mut HostStep<'_>) -> Result<(), HostError> {
        (**self).reset(seed, first, step)
    }
    fn send(&mut self, actions: &[u8]) -> Result<(), HostError> {
        (**self).send(actions)
    }
    fn receive(&mut self, step: &mut HostStep<'_>) -> Result<(), HostError> {
        (**self).receive(step)
    }
    fn restarts(&self) -> usize {
        (**self).restarts()
    }
    fn snapshot(&self) -> Result<Option<Vec<u8>>, HostError> {
        (**self).snapshot()
    }
    fn restore(&mut self, snapshot: &[u8]) -> Result<(), HostError> {
        (**self).restore(snapshot)
    }
}

/// What a batch of environments takes and gives.
#[derive(Clone, Debug, PartialEq)]
pub struct HostSpec {
    /// How many there are.
    pub environments: usize,
    /// What each shows.
    pub observation: Space,
    /// What each takes.
    pub action: Space,
    /// Whether an episode can ever be cut off. Where it cannot, no final observations are kept.
    pub truncates: bool,
    /// Whether an episode begins in a step of its own, which is none, after the one that ended the last episode and showed its
    /// last observation. It counts among the steps of a run, and is of no episode.
    pub skips: bool,
}

impl HostSpec {
    /// The type of a batch of actions, `[N, ...]`.
    #[must_use]
    pub fn action_type(&self) -> TensorType {
        self.action.ty().stacked(self.environments)
    }

    /// The type of a batch of observations, `[N, ...]`.
    #[must_use]
    pub fn observation_type(&self) -> TensorType {
        self.observation.ty().stacked(self.environments)
    }

    /// That these are the bytes of a batch of actions, and discrete ones within their space.
    ///
    /// # Errors
    /// [`HostError::Length`], [`HostError::Action`].
    pub fn check_actions(&self, actions: &[u8]) -> Result<(), HostError> {
        let expected = self.action_type().bytes();
        if actions.len() != expected {
            return Err(HostError::Length { what: "the actions", expected, got: actions.len() });
        }
        if let Space::Discrete { n } = self.action {
            for (environment, action) in actions.chunks_exact(4).map(discrete).enumerate() {
                if !usize::try_from(action).is_ok_and(|action| action < n) {
                    return Err(HostError::Action {
                        environment,
                        action: i64::from(action),
                        actions: n,
                    });
                }
            }
        }
        Ok(())
    }

    /// The types of a step as tensors.
    #[must_use]
    pub fn outcome(&self) -> Spec<StepOutcome> {
        let each = |dtype| TensorType::new(dtype, [self.environments]);
        Spec(StepOutcomeOf {
            observation: Spec(self.observation_type()),
            reward: Spec(each(DType::F32)),
            terminated: Spec(each(DType::Bool)),
            truncated: Spec(each(DType::Bool)),
            next_observation: Spec(self.truncates.then(|| Spec(self.observation_type()))),
        })
    }
}

/// A step of a batch as tensors: what comes up to a device.
#[derive(Tree, Clone)]
pub struct StepOutcome {
    /// What to act on next. `[N, ...]`
    pub observation: Tensor,
    /// f32 `[N]`
    pub reward: Tensor,
    /// bool `[N]`
    pub terminated: Tensor,
    /// bool `[N]`; together with `terminated`: the step was none.
    pub truncated: Tensor,
    /// What the step showed, an episode's last observation included, `[N, ...]`; none where the environment never
    /// truncates.
    pub next_observation: Option<Tensor>,
}

/// Why a batch of environments does not go on.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// Memory of another size than the spec says.
    #[error("{what} must have {expected} bytes and has {got}")]
    Length {
        /// Which memory.
        what: &'static str,
        /// What the spec says.
        expected: usize,
        /// What came.
        got: usize,
    },
    /// An action that there is not.
    #[error("environment {environment}: the action is {action} and must be one of 0..{actions}")]
    Action {
        /// The environment's index in its batch.
        environment: usize,
        /// What came.
        action: i64,
        /// How many there are.
        actions: usize,
    },
    /// Calls out of order.
    #[error("{0}")]
    Order(&'static str),
    /// Code of an environment panicked.
    #[error("environment {environment} panicked: {message}")]
    Panicked {
        /// The environment's index in its batch, or the first of those that stepped together.
        environment: usize,
        /// What the panic says.
        message: String,
    },
    /// A process that has environments does not do its part.
    #[error("environment server {server} (`{}`): {problem}", python.display())]
    Server {
        /// Which of the batch's.
        server: usize,
        /// The interpreter that runs it.
        python: PathBuf,
        /// What is wrong, and the end of what it printed.
        problem: String,
    },
    /// Bytes that are no snapshot of these environments.
    #[error("the snapshot cannot be restored: {0}")]
    Snapshot(String),
    /// What else an environment reports.
    #[error(transparent)]
    Failed(Box<dyn std::error::Error + Send + Sync>),
}

impl HostError {
    /// From anything that an environment's own code complains about.
    pub fn failed(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Failed(cause.into())
    }
}
