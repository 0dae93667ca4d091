//! The settings of [`Dqn`](crate::agents::Dqn), and the agent made from them.

use super::Dqn;
use crate::Number;
use crate::agents::RewardClipping;
use crate::learn::{
    AdamSettings, AgentSettings, AnyAgent, Exploration, ReplaySettings, Replayed, RolloutShape,
    Task, Window, stacked_space,
};
use crate::net::{ActionValues, Networks, QHeadShape};
use crate::nn::{Activation, ConvNet};
use podracer_envs::Space;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Forms of an action's value: its expected return, or a distribution of returns.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DqnValues {
    /// Its expectation.
    #[default]
    Expected,
    /// Its distribution over fixed atoms: C51 (Bellemare et al. 2017).
    Categorical,
    /// Its quantiles: QR-DQN (Dabney et al. 2018).
    Quantile,
}

/// Kinds of exploration of [`Dqn`].
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DqnExploration {
    /// Random actions with a probability that falls linearly over the first part of the run.
    #[default]
    Schedule,
    /// Random actions with a constant probability that differs between environments.
    Ladder,
    /// No random actions: noisy layers explore.
    Noise,
}

/// Deep Q-learning (Mnih et al. 2015), with any of the extensions of Rainbow (Hessel et al. 2018).
/// Learning rate, discount, batch, replay ratio and the first exploration rate are those in Mnih et
/// al. 2015 (extended data table 1), with Adam in place of RMSProp. The paper's replay, target
/// period, last exploration rate, error clipping and network are for 50 million steps of Atari with
/// clipped rewards. Their defaults here are for small tasks, as in CleanRL's `dqn.py`.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(default)]
pub struct DqnSettings {
    /// The optimizer of all parameters.
    #[serde(flatten)]
    pub optimizer: AdamSettings,
    /// Discount of future rewards.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub discount: Number,
    /// Number of rewards in a return, before the value of the state that follows them.
    #[schemars(range(min = 1, max = 1_000))]
    pub n_step: usize,
    /// Clipping of rewards in learning: `none`, or `abs_one` to clip to [-1, 1].
    pub reward_clipping: RewardClipping,
    /// If true, the online network chooses the action that the target network evaluates (van
    /// Hasselt et al. 2016).
    pub double: bool,
    /// If true, the state's value and the actions' advantages have separate streams after the
    /// second to last hidden layer (Wang et al. 2016).
    pub dueling: bool,
    /// If true, the dense layers after the torso have learned noise (Fortunato et al. 2018).
    pub noisy: bool,
    /// Size of the initial noise, times the square root of the number of a layer's inputs.
    #[schemars(range(min = 0.0))]
    pub sigma0: f64,
    /// Kind of the network's action values: `expected`, `categorical` (C51) or `quantile` (QR-DQN).
    pub values: DqnValues,
    /// Atoms of `categorical`.
    #[schemars(range(min = 2, max = 10_000))]
    pub atoms: usize,
    /// The least atom of `categorical`, a lower bound of returns.
    pub v_min: f64,
    /// The greatest atom of `categorical`, an upper bound of returns.
    pub v_max: f64,
    /// Quantiles of `quantile`.
    #[schemars(range(min = 1, max = 10_000))]
    pub quantiles: usize,
    /// Threshold of the Huber loss of `quantile`: greater errors count linearly.
    #[schemars(range(min = 0.0))]
    pub kappa: f64,
    /// Threshold of the Huber loss of `expected`: greater errors count linearly. It is 1 in Mnih et
    /// al. 2015; None squares all errors. If rewards are not clipped, the few steps that end an
    /// episode have large errors, and must count.
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    pub huber: Option<f64>,
    /// Kind of exploration: `schedule`, `ladder` or `noise` (noisy layers alone).
    pub exploration: DqnExploration,
    /// Settings of the `schedule`.
    #[serde(flatten)]
    pub epsilon: Exploration,
    /// Base of the `ladder`: environment `i` of `N` explores with probability `base ^ (1 + power i / (N - 1))` (Horgan et al.
    /// 2018).
    #[schemars(range(min = 0.0, max = 1.0))]
    pub ladder_base: f64,
    /// Power of the `ladder`.
    #[schemars(range(min = 0.0))]
    pub ladder_power: f64,
    /// Probability of a random action in greedy evaluation.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub evaluation_epsilon: f64,
    /// Gradient steps between two updates of the target network.
    #[schemars(range(min = 1, max = i32::MAX))]
    pub target_period: usize,
    /// Step size of an update of the target network towards the online one: 1 copies it.
    #[schemars(extend("exclusiveMinimum" = 0.0), range(max = 1.0))]
    pub target_tau: Number,
    /// Number of observations that the network sees at once, the newest last. The replay keeps each
    /// of them once.
    #[schemars(range(min = 1, max = 100))]
    pub frames: usize,
    /// Settings of the replay.
    #[serde(flatten)]
    pub replay: ReplaySettings,
    /// Settings of the network.
    #[serde(flatten)]
    pub networks: Networks,
}

impl Default for DqnSettings {
    fn default() -> Self {
        DqnSettings {
            optimizer: AdamSettings {
                adam_epsilon: 1e-8.into(),
                max_gradient_norm: 10.0.into(),
                ..AdamSettings::default()
            },
            discount: 0.99.into(),
            n_step: 1,
            reward_clipping: RewardClipping::None,
            double: true,
            dueling: false,
            noisy: false,
            sigma0: 0.5,
            values: DqnValues::Expected,
            atoms: 51,
            v_min: -10.0,
            v_max: 10.0,
            quantiles: 200,
            kappa: 1.0,
            huber: None,
            exploration: DqnExploration::Schedule,
            epsilon: Exploration {
                epsilon_start: 1.0.into(),
                epsilon_end: 0.05.into(),
                epsilon_fraction: 0.25,
            },
            ladder_base: 0.4,
            ladder_power: 7.0,
            evaluation_epsilon: 0.0,
            target_period: 500,
            target_tau: 1.0.into(),
            frames: 1,
            replay: ReplaySettings {
                capacity: 100_000,
                minimum: 1_000,
                ..ReplaySettings::default()
            },
            networks: Networks {
                convs: ConvNet::DQN.to_vec(),
                features: 512,
                hidden: vec![120, 84],
                activation: Activation::Relu,
                ..Networks::default()
            },
        }
    }
}

impl DqnSettings {
    /// The head of the network for `actions` actions.
    pub(super) fn head(&self, actions: usize) -> QHeadShape {
        QHeadShape {
            actions,
            values: self.action_values(),
            dueling: self.dueling,
            noise: self.noisy.then_some(self.sigma0),
        }
    }

    /// The form of the network's values, with its atoms or quantiles.
    pub(super) fn action_values(&self) -> ActionValues {
        match self.values {
            DqnValues::Expected => ActionValues::Expected,
            DqnValues::Categorical => ActionValues::Categorical {
                atoms: self.atoms,
                least: self.v_min,
                greatest: self.v_max,
            },
            DqnValues::Quantile => ActionValues::Quantile { quantiles: self.quantiles },
        }
    }

    /// Checks that the settings fit each other and the task.
    pub(super) fn check(&self, task: &Task) -> Result<(), String> {
        if !matches!(task.action, Space::Discrete { .. }) {
            return Err(format!(
                "agent.kind = dqn values every action, and needs an environment with discrete actions, got {}",
                task.action.ty()
            ));
        }
        if self.frames > 1 && matches!(task.observation, Space::Discrete { .. }) {
            return Err(format!(
                "agent.frames = {}: observations that are discrete are not stacked; make them one-hot, or set it to 1",
                self.frames
            ));
        }
        if self.values == DqnValues::Categorical && self.v_min >= self.v_max {
            return Err(format!(
                "agent.v_min = {} and agent.v_max = {}: expected the least atom below the greatest",
                self.v_min, self.v_max
            ));
        }
        if self.exploration == DqnExploration::Noise && !self.noisy {
            return Err(
                "agent.exploration = noise: set agent.noisy = true, or nothing explores".to_owned()
            );
        }
        self.networks.check(&stacked_space(&task.observation, self.frames))?;
        self.replay.check(self.frames + self.n_step)
    }

    /// Checks that the transitions of the lanes fit into the replay.
    pub(super) fn check_lanes(&self, rollout: RolloutShape, devices: usize) -> Result<(), String> {
        let window = Window { length: self.frames + self.n_step, period: 1, learnt: 1 };
        self.replay.check_rollout(window, rollout, devices)
    }
}

impl AgentSettings for DqnSettings {
    fn agent(&self, task: &Task) -> Result<AnyAgent, String> {
        self.check(task)?;
        let agent = Dqn::for_task(task, self);
        Ok(AnyAgent::new(Replayed::for_task(agent, &self.replay, task)))
    }

    fn check_rollout(&self, rollout: RolloutShape, devices: usize) -> Result<(), String> {
        self.check_lanes(rollout, devices)
    }
}
