//! The settings of [`MuZero`], and the agent made from them.

use super::MuZero;
use super::network::Support;
use crate::Number;
use crate::agents::{LearnFrom, PlanningSettings, RewardClipping, SearchKind};
use crate::learn::{
    AdamSettings, AgentSettings, AnyAgent, ReplaySettings, RolloutShape, Task, Window,
};
use crate::net::{Networks, Torso};
use crate::nn::{Activation, ConvNet};
use crate::returns::TxPair;
use podracer_envs::Space;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Forms of a learned model.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ModelKind {
    /// Dense networks after the torso: a state is a vector.
    #[default]
    Dense,
    /// Residual blocks of convolutions: a state is planes, at the torso's resolution.
    Planes,
}

/// MuZero (Schrittwieser et al. 2020), without Reanalyse: search with a learned model. Unroll,
/// returns, supports, costs and replay are the paper's for Atari. The optimizer is Adam in place of
/// momentum, the networks after the torso are dense unless `model` is `planes`, and past actions
/// are not stacked with the frames. It learns once from each rollout, as in the Podracer paper, or
/// from a replay.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(default)]
pub struct MuZeroSettings {
    /// Discount of future rewards, in searches and in returns. In games of two players it is
    /// negated, because the next value is the other player's.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub discount: Number,
    /// Number of rewards in a return, before the search's value of the state that follows them.
    #[schemars(range(min = 1, max = 1_000))]
    pub n_step: usize,
    /// Number of steps of the model in an unroll.
    #[schemars(range(min = 1, max = 100))]
    pub model_unroll: usize,
    /// Weight of the value's loss.
    #[schemars(range(min = 0.0))]
    pub value_cost: Number,
    /// Number of chance outcomes in the model: Stochastic MuZero (Antonoglou et al. 2022), with the
    /// search `muzero`. None: the model is deterministic.
    #[schemars(range(min = 1, max = 10_000))]
    pub chance_outcomes: Option<usize>,
    /// Weight of the squared distance between the encoder's probabilities and the outcome that it
    /// assigns, with `chance_outcomes`. With a large weight the encoder soon assigns the same
    /// outcome to every observation.
    #[schemars(range(min = 0.0))]
    pub commitment_cost: Number,
    /// Clipping of rewards in learning: `none`, or `abs_one` to clip to [-1, 1].
    pub reward_clipping: RewardClipping,
    /// The greatest value after rescaling; the bins are the integers from its negative to it.
    #[schemars(range(min = 1, max = 10_000))]
    pub value_support: usize,
    /// The greatest reward after rescaling, with bins as for values.
    #[schemars(range(min = 1, max = 10_000))]
    pub reward_support: usize,
    /// Rescaling of values and rewards before the bins: `signed_hyperbolic`, `signed_logp1` or `identity`.
    pub rescaling: TxPair,
    /// Number of observations that are stacked into the network's input, the latest last; 1 for no
    /// stacking. The first `frames - 1` steps of a rollout, or of a window of the replay, serve
    /// only as frames.
    #[schemars(range(min = 1, max = 100))]
    pub frames: usize,
    /// The networks after the torso. With `dense` the embedding of a state is a vector. With
    /// `planes` it is planes `[H, W, planes]`, as in the paper; the torso is then `conv` or
    /// `residual`, without its dense layer (`features`) and without `hidden` layers.
    pub model: ModelKind,
    /// Planes of a state, with `model = "planes"`.
    #[schemars(range(min = 1, max = 65_536))]
    pub planes: usize,
    /// Residual blocks of the representation and of the dynamics, with `model = "planes"`.
    #[schemars(range(max = 64))]
    pub blocks: usize,
    /// Elements of the embedding of a state, with `model = "dense"`.
    #[schemars(range(min = 2, max = 65_536))]
    pub embedding: usize,
    /// Units of each hidden layer of the heads of policy, value and reward.
    #[schemars(length(max = 64), inner(range(min = 1, max = 65_536)))]
    #[schemars(extend("x-must" = "name at most 64 layers of 1 to 65536 units each"))]
    pub head_hidden: Vec<usize>,
    /// Optimizer, search, and source of learning.
    #[serde(flatten)]
    pub planning: PlanningSettings,
    /// The torso, and the hidden layers of representation and dynamics.
    #[serde(flatten)]
    pub networks: Networks,
}

impl Default for MuZeroSettings {
    fn default() -> Self {
        let planning = PlanningSettings::default();
        MuZeroSettings {
            discount: 0.997.into(),
            n_step: 10,
            model_unroll: 5,
            value_cost: 0.25.into(),
            chance_outcomes: None,
            commitment_cost: 0.01.into(),
            reward_clipping: RewardClipping::None,
            value_support: 300,
            reward_support: 300,
            rescaling: TxPair::SignedHyperbolic,
            frames: 1,
            model: ModelKind::Dense,
            planes: 64,
            blocks: 2,
            embedding: 256,
            head_hidden: vec![64],
            planning: PlanningSettings {
                optimizer: AdamSettings { learning_rate: 3e-4.into(), ..planning.optimizer },
                replay: ReplaySettings {
                    prioritized: true,
                    priority_exponent: 1.0.into(),
                    importance_exponent: 1.0.into(),
                    anneal_importance: false,
                    ..planning.replay
                },
                ..PlanningSettings::default()
            },
            networks: Networks {
                convs: ConvNet::DQN.to_vec(),
                features: 512,
                hidden: vec![256],
                activation: Activation::Relu,
                ..Networks::default()
            },
        }
    }
}

impl MuZeroSettings {
    /// The bins of values.
    #[must_use]
    pub fn value_support(&self) -> Support {
        Support { size: self.value_support, rescaling: self.rescaling }
    }

    /// The bins of rewards.
    #[must_use]
    pub fn reward_support(&self) -> Support {
        Support { size: self.reward_support, rescaling: self.rescaling }
    }

    /// Checks that torso and model fit the observations that the network sees, and each other.
    ///
    /// # Errors
    /// Returns a sentence that names the settings that do not fit.
    pub fn check_model(&self, observation: &Space) -> Result<(), String> {
        self.networks.check(observation)?;
        if self.model == ModelKind::Dense {
            return Ok(());
        }
        if self.networks.torso == Torso::None {
            return Err(
                "agent.model = planes and agent.torso = none: planes come from a torso of convolutions, `conv` or `residual`; \
                 `agent.model = \"dense\"` is for all observations"
                    .to_owned(),
            );
        }
        if self.networks.layer_norm {
            return Err(
                "agent.model = planes and agent.layer_norm = true: residual blocks have no layer normalisation".to_owned()
            );
        }
        if let Some(outcomes) = self.chance_outcomes {
            return Err(format!(
                "agent.model = planes and agent.chance_outcomes = {outcomes}: networks of chance are dense, expected `agent.model = \
                 \"dense\"`"
            ));
        }
        Ok(())
    }

    /// The windows of the replay: the frames before the step to learn from, that step, the states
    /// of the model's unroll, and the steps of the last state's return.
    #[must_use]
    pub fn window(&self) -> Window {
        let length = self.frames - 1 + self.model_unroll + self.n_step + 1;
        Window { length, period: 1, learnt: 1 }
    }
}

impl AgentSettings for MuZeroSettings {
    const SEARCHES: bool = true;

    fn agent(&self, task: &Task) -> Result<AnyAgent, String> {
        let agent = MuZero::for_task(self, task)?;
        if let Some(outcomes) =
            self.chance_outcomes.filter(|_| self.planning.search.search != SearchKind::Muzero)
        {
            return Err(format!(
                "agent.chance_outcomes = {outcomes} and agent.search = gumbel: the search with outcomes of chance is `muzero`, pUCT"
            ));
        }
        self.planning.learning(agent, self.window().length, task)
    }

    fn check_rollout(&self, rollout: RolloutShape, devices: usize) -> Result<(), String> {
        self.planning.check_rollout(self.window(), rollout, devices)?;
        if self.planning.learn_from == LearnFrom::Rollouts && rollout.unroll < self.frames {
            return Err(format!(
                "a rollout has {} steps (unroll), and agent.frames = {}: expected at least as many steps",
                rollout.unroll, self.frames
            ));
        }
        Ok(())
    }
}
