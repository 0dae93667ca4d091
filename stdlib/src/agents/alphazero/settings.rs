//! The settings of [`AlphaZero`], and the agent that they make.

use super::AlphaZero;
use crate::Number;
use crate::agents::planning::{LearnFrom, searched_actions};
use crate::agents::settings::clipped;
use crate::agents::{
    ActorCriticOptimizer, AgentSettings, AnyAgent, Networks, ReplaySettings, Replayed,
    SearchSettings, Split, Task, Window,
};
use crate::nn::Activation;
use crate::optim::adam;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// AlphaZero (Silver et al. 2018): search with the environment itself as the model, by self-play in games of two players. It learns
/// once from each rollout, or from a replay. Environments are those whose state can be told from an observation.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(default)]
pub struct AlphaZeroSettings {
    /// Adam's step size.
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    pub learning_rate: Number,
    /// If true, the learning rate falls linearly to zero over the run.
    pub anneal_learning_rate: bool,
    /// Adam's epsilon.
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    pub adam_epsilon: Number,
    /// Decay of all parameters, beside Adam's step (AdamW).
    #[schemars(range(min = 0.0))]
    pub weight_decay: Number,
    /// Gradients of a greater global norm are scaled down to it.
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    pub max_gradient_norm: Number,
    /// Discount of the value after a step. In games of two players it is negated, as the next value is the other player's.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub discount: Number,
    /// Steps of a return. With at least as many as a game has, the target of a value is the game's outcome; of a game that goes on
    /// behind the end of a rollout, it is the search's value there.
    #[schemars(range(min = 1, max = 5_000))]
    pub n_step: usize,
    /// Weight of the squared error of the value.
    #[schemars(range(min = 0.0))]
    pub value_cost: Number,
    /// Source of what is learnt from.
    pub learn_from: LearnFrom,
    /// With `learn_from = "rollouts"`: gradient steps of an iteration, each from an equal part of the lanes of a device.
    #[schemars(range(min = 1, max = 10_000))]
    pub gradient_steps: usize,
    /// Settings of the search.
    #[serde(flatten)]
    pub search: SearchSettings,
    /// Settings of the replay, whose windows have `n_step + 1` steps.
    #[serde(flatten)]
    pub replay_settings: ReplaySettings,
    /// The torso, and the hidden layers of policy and value.
    #[serde(flatten)]
    pub networks: Networks,
}

impl Default for AlphaZeroSettings {
    fn default() -> Self {
        AlphaZeroSettings {
            learning_rate: 1e-3.into(),
            anneal_learning_rate: false,
            adam_epsilon: 1e-8.into(),
            weight_decay: 1e-4.into(),
            max_gradient_norm: 5.0.into(),
            discount: 1.0.into(),
            n_step: 1000,
            value_cost: 1.0.into(),
            learn_from: LearnFrom::Rollouts,
            gradient_steps: 1,
            search: SearchSettings::default(),
            replay_settings: ReplaySettings {
                capacity: 1_000_000,
                minimum: 10_000,
                batch: 1024,
                replay_ratio: 1.0,
                ..ReplaySettings::default()
            },
            networks: Networks {
                hidden: vec![128, 128],
                activation: Activation::Relu,
                ..Networks::default()
            },
        }
    }
}

impl AlphaZeroSettings {
    /// The windows of the replay: the step to learn from, and those of its return.
    #[must_use]
    pub fn window(&self) -> Window {
        Window { length: self.n_step + 1, period: 1, learnt: 1 }
    }

    /// The first steps of a window of so many that are learnt from.
    #[must_use]
    pub fn starts(&self, length: usize) -> usize {
        match self.learn_from {
            LearnFrom::Replay => 1,
            LearnFrom::Rollouts => length,
        }
    }

    /// The optimizer in an iteration whose learning rate is this one.
    #[must_use]
    pub fn optimizer(&self, rate: Number) -> ActorCriticOptimizer {
        let adam = adam(rate).eps(self.adam_epsilon).weight_decay(self.weight_decay);
        clipped(self.max_gradient_norm, adam)
    }
}

impl AgentSettings for AlphaZeroSettings {
    fn agent(&self, task: &Task) -> Result<AnyAgent, String> {
        self.networks.check(&task.observation)?;
        let actions = searched_actions("AlphaZero", task)?;
        let Some(model) = task.model.clone() else {
            return Err(
                "AlphaZero searches with the environment as its model: expected an environment that is written in the DSL, and this \
                 one steps on the host; `muzero` learns a model"
                    .to_owned(),
            );
        };
        let agent = AlphaZero::new(model, actions, task.iterations, self.clone())?;
        if self.learn_from == LearnFrom::Replay {
            self.replay_settings.check(self.window().length)?;
            return Ok(AnyAgent::new(Replayed::for_task(agent, &self.replay_settings, task)));
        }
        Ok(AnyAgent::new(Split { agent, gradient_steps: self.gradient_steps }))
    }

    fn check_rollout(&self, lanes: usize, _: usize) -> Result<(), String> {
        match self.learn_from {
            LearnFrom::Replay => Ok(()),
            LearnFrom::Rollouts => Split::<AlphaZero>::check(lanes, self.gradient_steps),
        }
    }
}
