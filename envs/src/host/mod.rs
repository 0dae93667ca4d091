//! Environments on the host: batches that step outside of any device, and write into the caller's memory.
//!
//! # Invariants
//! - A batch resets by itself: the step that ends an episode has the next episode's first observation in `observation`. If
//!   the environment truncates, `next_observation` has the last observation of the episode that ended.
//! - At most one of `terminated` and `truncated` is set. Exception: a reset-only step ([`HostSpec::skips`]), whose action
//!   is ignored, sets both; learners must mask it.
//! - All randomness comes from the run's seed and an environment's *global* index, so that it does not matter how the
//!   environments are spread over batches and threads.

mod breakout;
mod cartpole;
mod catch;
mod latencies;
mod leaves;
mod local_workers;
mod memory;
mod native;
mod pixels;
mod pool;
mod printable;
mod random;
pub mod server;
mod workers;

pub use breakout::PixelBreakout;
pub use cartpole::NativeCartPole;
pub use catch::PixelCatch;
pub use latencies::Latencies;
pub use leaves::{StepLeaves, StepResult};
pub use local_workers::LocalWorkers;
pub use memory::{HostStep, StepMemory};
pub use native::{NativeEnvironment, Outcome};
pub use pool::{Pool, panic_message};
pub use printable::printable;
pub use random::Random;
pub use workers::{Answer, WorkerEvent, WorkerId, WorkerStep, Workers, WorkersClosed};

use std::path::PathBuf;

use crate::Space;
use podracer_dsl::Report;
use podracer_dsl::prelude::*;

/// A batch of environments on the host. One thread uses it at a time, and threads may hand it on.
pub trait HostEnvironment: Send {
    /// Number and spaces of the environments. It never changes.
    fn spec(&self) -> &HostSpec;

    /// Begins an episode in every environment and writes the first observations, zero rewards and no ends. `first` is the
    /// global index of the batch's first environment.
    ///
    /// # Errors
    /// [`HostError`] of an environment that cannot reset.
    fn reset(&mut self, seed: u64, first: usize, step: &mut HostStep<'_>) -> Result<(), HostError>;

    /// Begins a step with these actions, the bytes of [`HostSpec::action_type`], and returns: the environments may step
    /// while the caller does something else.
    ///
    /// # Errors
    /// [`HostError::Order`] before `receive` has taken the last step; [`HostError::Length`] and [`HostError::Action`] for
    /// wrong actions.
    fn send(&mut self, actions: &[u8]) -> Result<(), HostError>;

    /// Waits for the step that `send` began, and writes it into the caller's memory.
    ///
    /// # Errors
    /// [`HostError::Order`] without `send`; [`HostError`] of an environment that failed.
    fn receive(&mut self, step: &mut HostStep<'_>) -> Result<(), HostError>;

    /// Takes one step: `send`, then `receive`.
    ///
    /// # Errors
    /// Errors of `send` and of `receive`.
    fn step(&mut self, actions: &[u8], step: &mut HostStep<'_>) -> Result<(), HostError> {
        self.send(actions)?;
        self.receive(step)
    }

    /// Number of times that a part of the batch was started again after a fault, with fresh episodes.
    fn restarts(&self) -> usize {
        0
    }

    /// Takes the reports of `check` and `debug_print` in the environments' steps since the last call. The places begin with the
    /// environment's index.
    fn reports(&mut self) -> Vec<Report> {
        Vec::new()
    }

    /// Everything that the next steps depend on, for [`HostEnvironment::restore`] of a batch of the same spec; `None` if
    /// these environments cannot be restored.
    ///
    /// # Errors
    /// [`HostError::Order`] between `send` and `receive`.
    fn snapshot(&self) -> Result<Option<Vec<u8>>, HostError> {
        Ok(None)
    }

    /// Puts the batch into the state of a snapshot.
    ///
    /// # Errors
    /// [`HostError::Snapshot`] for bytes that are no snapshot of such a batch.
    fn restore(&mut self, snapshot: &[u8]) -> Result<(), HostError> {
        let _ = snapshot;
        Err(HostError::Snapshot("these environments cannot be restored".to_owned()))
    }
}

/// Number and spaces of a batch's environments.
#[derive(Clone, Debug, PartialEq)]
pub struct HostSpec {
    /// Number of environments, `N`.
    pub environments: usize,
    /// Observation space of each environment.
    pub observation: Space,
    /// Action space of each environment.
    pub action: Space,
    /// False if no episode is ever truncated; steps then have no `next_observation`.
    pub truncates: bool,
    /// True if episodes begin in a reset-only step, after the step that ended the last episode and has its last
    /// observation. A reset-only step counts among the steps of a run, and belongs to no episode.
    pub skips: bool,
    /// True if steps have masks of the actions that are legal next, [`HostSpec::legal_actions_type`].
    pub masks: bool,
    /// True if steps that end an episode say how much of its task was done, as [`Environment::success`](crate::Environment::success).
    pub succeeds: bool,
}

impl HostSpec {
    /// Environments of these spaces, with no flag set: their steps have an observation, a reward and `terminated`.
    #[must_use]
    pub fn new(environments: usize, observation: Space, action: Space) -> Self {
        HostSpec {
            environments,
            observation,
            action,
            truncates: false,
            skips: false,
            masks: false,
            succeeds: false,
        }
    }

    /// The type of a batch of actions, `[N, ...]`.
    #[must_use]
    pub fn action_type(&self) -> TensorType {
        self.action.ty().stacked(self.environments)
    }

    /// The type of the masks of legal actions of a batch that has some, bool `[N, n]`: `n` values of a discrete action, or of all elements of a
    /// multi-discrete one together.
    #[must_use]
    pub fn legal_actions_type(&self) -> TensorType {
        TensorType::new(DType::Bool, [self.environments, self.action.counts().iter().sum()])
    }

    /// Bytes of the masks of legal actions of a batch; 0 if it has none.
    #[must_use]
    pub fn legal_actions_bytes(&self) -> usize {
        if self.masks { self.legal_actions_type().bytes() } else { 0 }
    }

    /// The type of a batch of observations, `[N, ...]`.
    #[must_use]
    pub fn observation_type(&self) -> TensorType {
        self.observation.ty().stacked(self.environments)
    }

    /// Checks that these are the bytes of a batch of actions, and that discrete ones are within their space.
    ///
    /// # Errors
    /// [`HostError::Length`], [`HostError::Action`].
    pub fn check_actions(&self, actions: &[u8]) -> Result<(), HostError> {
        let expected = self.action_type().bytes();
        if actions.len() != expected {
            return Err(HostError::Length { what: "the actions", expected, got: actions.len() });
        }
        let elements = self.action.elements();
        if (0..elements).all(|element| self.action.choice(element).is_none()) {
            return Ok(());
        }
        // The choices of a dict are f32.
        let floats = matches!(self.action, Space::Dict { .. });
        for (position, bytes) in actions.as_chunks().0.iter().enumerate() {
            let (environment, element) = (position / elements, position % elements);
            let Some(actions) = self.action.choice(element) else { continue };
            let action = match floats {
                true => f64::from(f32::from_le_bytes(*bytes)),
                false => f64::from(i32::from_le_bytes(*bytes)),
            };
            if action.fract() != 0.0 || !(0.0..actions as f64).contains(&action) {
                let single = matches!(self.action, Space::Discrete { .. });
                let (element, action) = ((!single).then_some(element), action as i64);
                return Err(HostError::Action { environment, element, action, actions });
            }
        }
        Ok(())
    }

    /// Types of the tensors of a step.
    #[must_use]
    pub fn outcome(&self) -> Spec<StepOutcome> {
        let per_environment = |dtype| TensorType::new(dtype, [self.environments]);
        Spec(StepOutcomeOf {
            observation: Spec(self.observation_type()),
            reward: Spec(per_environment(DType::F32)),
            terminated: Spec(per_environment(DType::Bool)),
            truncated: Spec(per_environment(DType::Bool)),
            next_observation: Spec(self.truncates.then(|| Spec(self.observation_type()))),
            legal_actions: Spec(self.masks.then(|| Spec(self.legal_actions_type()))),
        })
    }
}

/// Result of a batch's step, as tensors that are moved to a device.
#[derive(Tree, Clone)]
pub struct StepOutcome {
    /// Observations to act on next. `[N, ...]`
    pub observation: Tensor,
    /// Rewards of the step. f32 `[N]`
    pub reward: Tensor,
    /// True if the episode ended by itself. bool `[N]`
    pub terminated: Tensor,
    /// True if the episode was cut off; set together with `terminated` in a reset-only step. bool `[N]`
    pub truncated: Tensor,
    /// Observations after the step and before any reset, an episode's last one included, `[N, ...]`; `None` if the
    /// environment never truncates.
    pub next_observation: Option<Tensor>,
    /// True for the actions that are legal next. bool `[N, n]`, of the `n` that [`HostSpec::legal_actions_type`] says; `None` if the
    /// environment has no masks ([`HostSpec::masks`]).
    pub legal_actions: Option<Tensor>,
}

/// Failures of a batch of environments.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// Memory of another size than that of the spec.
    #[error("{what} must have {expected} bytes and has {got}")]
    Length {
        /// Name of the memory.
        what: &'static str,
        /// Size by the spec, in bytes.
        expected: usize,
        /// Size of the memory given, in bytes.
        got: usize,
    },
    /// A discrete action out of its space.
    #[error(
        "environment {environment}: {}the action is {action} and must be one of 0..{actions}",
        element.map_or(String::new(), |element| format!("element {element} of "))
    )]
    Action {
        /// The environment's index in its batch.
        environment: usize,
        /// The element of a multi-discrete action; `None` for a discrete one.
        element: Option<usize>,
        /// The action given.
        action: i64,
        /// Number of values that the action or its element may have.
        actions: usize,
    },
    /// A call at the wrong time, such as `receive` before `send`.
    #[error("{0}")]
    Order(&'static str),
    /// A panic in the code of an environment.
    #[error("environment {environment} panicked: {message}")]
    Panicked {
        /// The environment's index in its batch, or the first of those that stepped together.
        environment: usize,
        /// Message of the panic.
        message: String,
    },
    /// A fault of a server, the process that has the environments.
    #[error("environment server {server} (`{}`): {problem}", python.display())]
    Server {
        /// Index of the server in the batch.
        server: usize,
        /// The interpreter that runs the server.
        python: PathBuf,
        /// The fault, and the end of the server's output.
        problem: String,
    },
    /// Memory that the system does not give.
    #[error(
        "the system has no memory for the steps of {environments} environments, {bytes} bytes: set fewer `environments` in [sebulba] or [central]"
    )]
    Memory {
        /// Number of environments of the batch, or of a part of it.
        environments: usize,
        /// Size of the memory, in bytes.
        bytes: usize,
    },
    /// Bytes that are no snapshot of such a batch.
    #[error("the snapshot cannot be restored: {0}")]
    Snapshot(String),
    /// Any other error of an environment.
    #[error(transparent)]
    Failed(Box<dyn std::error::Error + Send + Sync>),
}

impl HostError {
    /// Wraps an error of an environment's own code.
    pub fn failed(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Failed(cause.into())
    }
}
