//! The struct that all actor-critics share: spaces, one optimizer, settings, and the construction
//! of an agent from them. `learn.rs` has acting and learning.

mod learn;
mod trajectory;

pub use learn::{Acted, ActorCriticLoss, ActorCriticRollout, ActorCriticState, LearnActorCritic};
pub use trajectory::{Evaluated, LaneSteps, of_each_lane};

use crate::learn::{AgentSettings, DescribesOptimizer, Optimized, Task};
use crate::net::{ActorCritic, ActorCriticShape, Memory};
use crate::nn::LstmState;
use crate::optim::{Optimizer, Schedule};
use podracer_dsl::prelude::*;
use podracer_envs::Space;

/// An agent with the networks of an [`ActorCritic`] and one optimizer for all parameters:
/// [`A2c`](crate::agents::A2c), [`Ppo`](crate::agents::Ppo), [`Impala`](crate::agents::Impala),
/// [`OnlineActorCritic`](crate::agents::OnlineActorCritic), or an agent of your own. It learns if
/// its settings implement [`ActorCriticLoss`](crate::agents::ActorCriticLoss) or
/// [`LearnActorCritic`](crate::agents::LearnActorCritic).
#[derive(Clone, Debug)]
pub struct ActorCriticAgent<S, O> {
    /// Space of the observations.
    pub observation: Space,
    /// Space of the actions.
    pub action: Space,
    /// Optimizer of all parameters.
    pub optimizer: O,
    /// Number of iterations of the run, over which the settings' schedules extend; `None` if the
    /// settings stay constant.
    pub iterations: Option<usize>,
    /// Settings of the agent. The settings of the optimizer and of normalisation are not read here:
    /// [`AgentSettings::agent`] makes the optimizer from them, and wraps the agent in
    /// [`Normalized`](crate::learn::Normalized).
    pub settings: S,
}

/// Settings of an [`ActorCriticAgent`].
pub trait ActorCriticSettings: AgentSettings {
    /// Settings of the optimizer, such as [`AdamSettings`](crate::learn::AdamSettings).
    type Optimizer: DescribesOptimizer;

    /// The settings of the optimizer.
    fn optimizer(&self) -> &Self::Optimizer;

    /// Number of gradient steps per iteration.
    fn gradient_steps(&self) -> usize {
        1
    }

    /// Shape of the networks.
    fn shape(&self) -> ActorCriticShape;
}

/// The optimizer that settings `S` describe.
type OptimizerOf<S> = <<S as ActorCriticSettings>::Optimizer as DescribesOptimizer>::Optimizer;

impl<S: ActorCriticSettings> ActorCriticAgent<S, OptimizerOf<S>> {
    /// The agent for these spaces, with the default settings and a constant learning rate.
    pub fn new(observation: Space, action: Space) -> Self {
        Self::with(S::default(), observation, action)
    }

    /// The agent for these spaces, with a constant learning rate. [`ActorCriticAgent::for_task`]
    /// adds the settings' schedules, and [`AgentSettings::agent`] also adds normalisation.
    pub fn with(settings: S, observation: Space, action: Space) -> Self {
        let optimizer = settings.optimizer().optimizer(rate(&settings, None));
        ActorCriticAgent { observation, action, optimizer, iterations: None, settings }
    }

    /// The agent for a task, with the schedules of the settings over the task's iterations.
    ///
    /// # Errors
    /// Returns a sentence if the networks do not support the observations.
    pub fn for_task(settings: &S, task: &Task) -> Result<Self, String> {
        settings.shape().check(&task.observation, &task.action)?;
        task.check_gradient_steps(settings.gradient_steps())?;
        let iterations = Some(task.iterations);
        Ok(ActorCriticAgent {
            observation: task.observation.clone(),
            action: task.action.clone(),
            optimizer: settings.optimizer().optimizer(rate(settings, iterations)),
            iterations,
            settings: settings.clone(),
        })
    }
}

/// Learning-rate schedule over the gradient steps of a run of `iterations` iterations.
fn rate<S: ActorCriticSettings>(settings: &S, iterations: Option<usize>) -> Schedule {
    let steps = iterations.map(|iterations| iterations.saturating_mul(settings.gradient_steps()));
    settings.optimizer().schedule(steps)
}

impl<S: ActorCriticSettings, O: Optimizer> ActorCriticAgent<S, O> {
    /// The learning rate of the last gradient step of an iteration (i32 `[]`), according to the
    /// settings. f32 `[]`
    #[track_caller]
    pub(super) fn last_learning_rate(&self, iteration: Tensor) -> Tensor {
        let steps = self.settings.gradient_steps() as i32;
        // The product stays below 2^31.
        let iteration = iteration.minimum((i32::MAX - (steps - 1)) / steps.max(1));
        rate(&self.settings, self.iterations).value(iteration * steps + (steps - 1))
    }

    /// New networks, with the initial state of their optimizer.
    #[track_caller]
    pub(super) fn init_state(&self, key: Key) -> Optimized<ActorCritic, O::State<ActorCritic>> {
        let shape = self.settings.shape();
        let params = ActorCritic::init(key, &self.observation, &self.action, &shape);
        Optimized::new(&self.optimizer, params)
    }

    /// The core's memory at the start of an episode; `None` without a core.
    #[track_caller]
    pub(super) fn no_memory(&self) -> Memory {
        self.settings.shape().core.lstm.map(LstmState::zeros)
    }
}
