//! The part that PPO, IMPALA and the online actor-critic share: spaces, one optimizer, settings, and how they begin.

use super::{
    ActorCritic, ActorCriticOptimizer, ActorCriticShape, AgentSettings, AnyAgent, Learn, Memory,
    Optimized, OptimizerKind, Task,
};
use crate::Number;
use crate::nn::LstmState;
use crate::optim::{Optimizer, Schedule};
use podracer_dsl::prelude::*;
use podracer_envs::Space;

/// An agent with the networks of an [`ActorCritic`], all of whose parameters one optimizer moves: [`Ppo`](super::Ppo),
/// [`Impala`](super::Impala) or [`OnlineActorCritic`](super::OnlineActorCritic).
#[derive(Clone, Debug)]
pub struct ActorCriticAgent<S, O> {
    /// Space of the observations.
    pub observation: Space,
    /// Space of the actions.
    pub action: Space,
    /// Optimizer of all parameters.
    pub optimizer: O,
    /// Settings of the agent. Those of the optimizer and of normalisation are not read here: [`AgentSettings::agent`] makes
    /// the optimizer from them, and puts [`Normalized`](super::Normalized) around the agent.
    pub settings: S,
}

/// Settings of an [`ActorCriticAgent`].
pub trait ActorCriticSettings: AgentSettings {
    /// Optimizer that the settings describe.
    type Optimizer: Optimizer;

    /// The optimizer, with a learning rate in place of that of the settings.
    fn optimizer(&self, learning_rate: Schedule) -> Self::Optimizer;

    /// Learning rate at the start of a run.
    fn learning_rate(&self) -> Number;

    /// Shape of the networks.
    fn shape(&self) -> ActorCriticShape;

    /// The agent for a task with the optimizer of this kind: the settings' own, which is RMSProp, or `adam`.
    fn optimized_by(
        &self,
        kind: OptimizerKind,
        task: &Task,
        learning_rate: Schedule,
        adam: ActorCriticOptimizer,
    ) -> AnyAgent
    where
        ActorCriticAgent<Self, Self::Optimizer>: Learn<Observation = Tensor>,
        ActorCriticAgent<Self, ActorCriticOptimizer>: Learn<Observation = Tensor>,
    {
        match kind {
            OptimizerKind::Rmsprop => {
                let own = self.optimizer(learning_rate);
                AnyAgent::new(ActorCriticAgent::for_task(task, self, own))
            }
            OptimizerKind::Adam => AnyAgent::new(ActorCriticAgent::for_task(task, self, adam)),
        }
    }
}

impl<S: ActorCriticSettings> ActorCriticAgent<S, S::Optimizer> {
    /// The agent for these spaces, with the default settings and a constant learning rate.
    pub fn new(observation: Space, action: Space) -> Self {
        Self::with(S::default(), observation, action)
    }

    /// The agent for these spaces, with a constant learning rate. What settings ask for beyond the agent itself, such as a learning rate
    /// that falls over the run, is the business of their `for_task`.
    pub fn with(settings: S, observation: Space, action: Space) -> Self {
        let optimizer = settings.optimizer(settings.learning_rate().into());
        ActorCriticAgent { observation, action, optimizer, settings }
    }
}

impl<S: ActorCriticSettings, O: Optimizer> ActorCriticAgent<S, O> {
    /// The agent for a task.
    pub(super) fn for_task(task: &Task, settings: &S, optimizer: O) -> Self {
        let (observation, action) = (task.observation.clone(), task.action.clone());
        ActorCriticAgent { observation, action, optimizer, settings: settings.clone() }
    }

    /// New networks, and their optimizer's state before the first gradient step.
    #[track_caller]
    pub(super) fn init_state(&self, key: Key) -> Optimized<ActorCritic, O::State<ActorCritic>> {
        let shape = self.settings.shape();
        let params = ActorCritic::init(key, &self.observation, &self.action, &shape);
        Optimized::new(&self.optimizer, params)
    }

    /// The core's memory at the start of an episode; `None` without a core.
    #[track_caller]
    pub(super) fn no_memory(&self) -> Memory {
        self.settings.shape().lstm.map(LstmState::zeros)
    }
}
