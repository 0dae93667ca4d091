//! Proximal policy optimization (Schulman et al. 2017, equations 7 and 9), with the clipped value loss and the
//! normalised advantages of its reference implementation.
//!
//! With a recurrent core a minibatch contains whole trajectories, as in CleanRL's `ppo_atari_lstm`
//! and PureJaxRL's `ppo_rnn`. Each trajectory is evaluated from the memory that acting had at its
//! start. Minibatches draw environments instead of steps.

mod loss;

pub use loss::{PpoBatch, PpoExtras, PpoMetrics, PpoTerms};

use crate::Number;
use crate::agents::{ActorCriticAgent, ActorCriticSettings};
use crate::learn::Minibatches;
use crate::learn::{
    ActorCriticOptimizer, AdamSettings, AgentSettings, AnyAgent, Learn, Normalized, RolloutShape,
    Task,
};
use crate::losses::clipped_surrogate_pg_loss;
use crate::net::{ActorCriticShape, Core, Networks};
use crate::nn::Initializer;
use crate::optim::Schedule;
use podracer_dsl::prelude::*;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Settings of PPO with the clipped objective.
pub type PpoSettings = PpoSettingsOf<ClippedSurrogate>;

/// The agent of [`PpoSettings`].
pub type Ppo<O = ActorCriticOptimizer> = ActorCriticAgent<PpoSettings, O>;

/// Proximal policy optimization (Schulman et al. 2017). The defaults equal those in CleanRL and
/// PureJaxRL for CartPole.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(default)]
#[schemars(bound = "L: Surrogate")]
pub struct PpoSettingsOf<L> {
    /// The optimizer of all parameters.
    #[serde(flatten)]
    pub optimizer: AdamSettings,
    /// Passes over each rollout.
    #[schemars(range(min = 1, max = 10_000))]
    pub epochs: usize,
    /// Minibatches per pass. They consist of steps, or, with an LSTM, of lanes with all their
    /// steps.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub minibatches: usize,
    /// Discount of future rewards.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub discount: Number,
    /// Lambda of generalized advantage estimation.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub lambda: Number,
    /// Greatest distance of the probability ratio from 1, and of the value from the old value.
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    pub clip: Number,
    /// The clip at the end of the run, reached linearly from `clip`; absent for a constant clip.
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clip_end: Option<Number>,
    /// Weight of the entropy bonus.
    #[schemars(range(min = 0.0))]
    pub entropy_cost: Number,
    /// Weight of the entropy bonus at the end of the run, reached linearly from `entropy_cost`;
    /// absent for a constant weight.
    #[schemars(range(min = 0.0))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entropy_cost_end: Option<Number>,
    /// Weight of the value loss.
    #[schemars(range(min = 0.0))]
    pub value_cost: Number,
    /// The memory of the networks, and the sharing of networks by several agents.
    #[serde(flatten)]
    pub core: Core,
    /// The networks of policy and value.
    #[serde(flatten)]
    pub networks: Networks,
    /// If true, minibatches are drawn by an exactly uniform permutation, which sorts, instead of a
    /// Feistel bijection.
    pub exact_shuffle: bool,
    /// If true, observations are normalised by their running mean and variance.
    pub normalize_observations: bool,
    /// If true, rewards are divided by the running standard deviation of the discounted return.
    pub normalize_rewards: bool,
    /// The objective of the policy, with its own settings.
    #[serde(flatten)]
    pub surrogate: L,
}

impl<L: Surrogate> Default for PpoSettingsOf<L> {
    fn default() -> Self {
        PpoSettingsOf {
            optimizer: AdamSettings { anneal_learning_rate: true, ..AdamSettings::default() },
            epochs: 4,
            minibatches: 4,
            discount: 0.99.into(),
            lambda: 0.95.into(),
            clip: 0.2.into(),
            clip_end: None,
            entropy_cost: 0.01.into(),
            entropy_cost_end: None,
            value_cost: 0.5.into(),
            core: Core::default(),
            networks: Networks::default(),
            exact_shuffle: false,
            normalize_observations: false,
            normalize_rewards: false,
            surrogate: L::default(),
        }
    }
}

/// The objective of the policy in a PPO: [`ClippedSurrogate`], or the objective of a variant. Its
/// fields are settings of the variant, next to the settings of PPO. With them [`PpoSettingsOf`] is
/// a complete agent that anneals and normalises as PPO does.
///
/// ```
/// use podracer_dsl::prelude::*;
/// use podracer_rl::Number;
/// use podracer_rl::learn::AgentSettings;
/// use podracer_rl::agents::{PpoSettingsOf, Surrogate};
/// use schemars::JsonSchema;
/// use serde::{Deserialize, Serialize};
///
/// /// Simple policy optimization (Xie et al. 2024): a quadratic penalty in place of the clip.
/// #[derive(Clone, Default, Deserialize, JsonSchema, Serialize)]
/// struct Quadratic {}
///
/// impl Surrogate for Quadratic {
///     fn policy_loss(&self, ratio: Tensor, advantage: Tensor, clip: Number) -> Tensor {
///         advantage.abs() * (ratio - 1.0).square() / (2.0 * clip) - ratio * advantage
///     }
/// }
///
/// // `App::agent::<PpoSettingsOf<Quadratic>>("spo")` registers it.
/// fn settings<S: AgentSettings>() {}
/// settings::<PpoSettingsOf<Quadratic>>();
/// ```
pub trait Surrogate: Clone + Default + DeserializeOwned + JsonSchema + Serialize + 'static {
    /// The loss of a step, f32 `[]`. `ratio` is the ratio of the action's probabilities under the
    /// learning and the acting policy, and `advantage` is normalised, both f32 `[]`. `clip` is
    /// [`PpoSettingsOf::clip`] in this iteration.
    fn policy_loss(&self, ratio: Tensor, advantage: Tensor, clip: Number) -> Tensor;
}

/// The clipped surrogate objective (Schulman et al. 2017, equation 7).
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct ClippedSurrogate {}

impl Surrogate for ClippedSurrogate {
    #[track_caller]
    fn policy_loss(&self, ratio: Tensor, advantage: Tensor, clip: Number) -> Tensor {
        clipped_surrogate_pg_loss(ratio, advantage, clip)
    }
}

impl<L: Surrogate> ActorCriticSettings for PpoSettingsOf<L> {
    type Optimizer = AdamSettings;

    fn optimizer(&self) -> &AdamSettings {
        &self.optimizer
    }

    fn gradient_steps(&self) -> usize {
        self.drawn().updates()
    }

    fn shape(&self) -> ActorCriticShape {
        self.networks.shape(Initializer::orthogonal(2f64.sqrt()), self.core, false)
    }
}

impl<L: Surrogate> AgentSettings for PpoSettingsOf<L> {
    fn agent(&self, task: &Task) -> Result<AnyAgent, String> {
        Ok(self.normalized(ActorCriticAgent::for_task(self, task)?, task))
    }

    fn check_rollout(&self, rollout: RolloutShape, _: usize) -> Result<(), String> {
        self.drawn().check(rollout, self.core.lstm)
    }
}

impl<L> PpoSettingsOf<L> {
    /// An agent with normalised observations and rewards, as the settings request.
    pub fn normalized<A: Learn<Observation = Tensor>>(&self, agent: A, task: &Task) -> AnyAgent {
        if !(self.normalize_observations || self.normalize_rewards) {
            return AnyAgent::new(agent);
        }
        AnyAgent::new(Normalized {
            observations: self.normalize_observations,
            rewards: self.normalize_rewards.then_some(self.discount),
            ..Normalized::new(agent, task.observation.clone(), self.discount)
        })
    }

    /// The settings in an iteration (i32 `[]`) of a run of `iterations` iterations, with `clip` and
    /// `entropy_cost` on their lines. Without an end value, or without a number of iterations, they
    /// are constants.
    #[track_caller]
    pub fn at(&self, iteration: Tensor, iterations: Option<usize>) -> Self
    where
        L: Clone,
    {
        let line = |start: Number, end: Option<Number>| match (end, iterations) {
            (Some(end), Some(iterations)) => {
                Schedule::linear(start, end, iterations).value(iteration).into()
            }
            _ => start,
        };
        PpoSettingsOf {
            clip: line(self.clip, self.clip_end),
            entropy_cost: line(self.entropy_cost, self.entropy_cost_end),
            ..self.clone()
        }
    }

    /// The minibatches of an iteration.
    fn drawn(&self) -> Minibatches {
        let &PpoSettingsOf { epochs, minibatches, exact_shuffle, core, .. } = self;
        Minibatches { epochs, count: minibatches, exact_shuffle, whole_lanes: core.lstm.is_some() }
    }
}
