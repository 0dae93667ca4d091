//! The settings of each agent: `[agent]`, with `kind` saying which.

use podracer_stdlib::agents::Torso;
use podracer_stdlib::nn::{ConvNet, ResidualNet};
use serde::{Deserialize, Serialize};

use super::problems::Problems;

/// Which agent learns, and how.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum AgentSettings {
    /// Proximal policy optimization.
    Ppo(Ppo),
    /// The online actor-critic whose gradient goes through the whole agent-environment loop.
    Online(Online),
    /// The V-trace actor-critic.
    Impala(Impala),
}

/// The networks of an agent.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Networks {
    /// What sees the observations, for policy and value alike: `none`, or for images `conv` (layers of convolutions) or
    /// `residual` (sections of residual blocks).
    pub torso: String,
    /// Channels, side of the window and stride of each layer of `conv`.
    pub convs: Vec<Vec<usize>>,
    /// Channels of each section of `residual`.
    pub sections: Vec<usize>,
    /// Units of the dense layer that ends a torso.
    pub features: usize,
    /// Units of each hidden layer after it, of policy and value alike.
    pub hidden: Vec<usize>,
}

/// Two hidden layers; the torsos, where one is chosen, are those of IMPALA (Espeholt et al. 2018).
impl Default for Networks {
    fn default() -> Self {
        let convs = ConvNet::IMPALA.iter();
        Self {
            torso: Self::TORSOS[0].to_owned(),
            convs: convs.map(|&(channels, side, stride)| vec![channels, side, stride]).collect(),
            sections: ResidualNet::IMPALA.to_vec(),
            features: 256,
            hidden: vec![64, 64],
        }
    }
}

impl Networks {
    /// The values of `torso`.
    pub const TORSOS: [&'static str; 3] = ["none", "conv", "residual"];

    /// The torso.
    #[must_use]
    pub fn torso(&self) -> Torso {
        let features = self.features;
        let layer = |layer: &Vec<usize>| match layer[..] {
            [channels, side, stride] => Some((channels, side, stride)),
            _ => None,
        };
        match self.torso.as_str() {
            "conv" => {
                Torso::Conv { convs: self.convs.iter().filter_map(layer).collect(), features }
            }
            "residual" => Torso::Residual { sections: self.sections.clone(), features },
            _ => Torso::None,
        }
    }

    fn check(&self, problems: &mut Problems) {
        problems.one_of("agent.torso", &self.torso, &Self::TORSOS);
        let whole = |layer: &Vec<usize>| layer.len() == 3 && !layer.contains(&0);
        if self.convs.is_empty() || !self.convs.iter().all(whole) {
            problems.add(
                "agent.convs must have the channels, the side of the window and the stride of each layer, all at least 1, such \
                 as [[16, 8, 4], [32, 4, 2]]",
            );
        }
        if self.sections.is_empty() || self.sections.contains(&0) {
            problems.add("agent.sections must name sections of at least 1 channel each");
        }
        problems.at_least_one("agent.features", self.features);
        if self.hidden.contains(&0) {
            problems.add("agent.hidden must name layers of at least 1 unit each");
        }
    }
}

/// Proximal policy optimization (Schulman et al. 2017). The defaults are those of CleanRL's and PureJaxRL's CartPole.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Ppo {
    /// Adam's step size.
    pub learning_rate: f64,
    /// Whether the learning rate falls linearly to zero over the run.
    pub anneal_learning_rate: bool,
    /// Adam's epsilon.
    pub adam_epsilon: f64,
    /// Gradients of a greater global norm are scaled down to it.
    pub max_gradient_norm: f64,
    /// Passes over each batch.
    pub epochs: usize,
    /// Minibatches per pass: of steps, or with an LSTM of environments with all of their steps.
    pub minibatches: usize,
    /// The discount of future rewards.
    pub discount: f64,
    /// The lambda of generalized advantage estimation.
    pub lambda: f64,
    /// How far the probability ratio and the value may move.
    pub clip: f64,
    /// The weight of the entropy bonus.
    pub entropy_cost: f64,
    /// The weight of the value loss.
    pub value_cost: f64,
    /// Units of an LSTM between torso and hidden layers; 0 for none.
    pub lstm: usize,
    /// Its networks.
    #[serde(flatten)]
    pub networks: Networks,
    /// Whether minibatches are drawn by an exactly uniform permutation, which sorts, in place of a Feistel bijection.
    pub exact_shuffle: bool,
    /// Whether observations are normalised by their running mean and variance.
    pub normalize_observations: bool,
    /// Whether rewards are divided by the running standard deviation of the discounted return.
    pub normalize_rewards: bool,
}

impl Default for Ppo {
    fn default() -> Self {
        Self {
            learning_rate: 2.5e-4,
            anneal_learning_rate: true,
            adam_epsilon: 1e-5,
            max_gradient_norm: 0.5,
            epochs: 4,
            minibatches: 4,
            discount: 0.99,
            lambda: 0.95,
            clip: 0.2,
            entropy_cost: 0.01,
            value_cost: 0.5,
            lstm: 0,
            networks: Networks::default(),
            exact_shuffle: false,
            normalize_observations: false,
            normalize_rewards: false,
        }
    }
}

/// The online actor-critic of Podracer's minimal unit (Hessel et al. 2021).
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Online {
    /// Adam's step size.
    pub learning_rate: f64,
    /// Whether the learning rate falls linearly to zero over the run.
    pub anneal_learning_rate: bool,
    /// Adam's epsilon.
    pub adam_epsilon: f64,
    /// Gradients of a greater global norm are scaled down to it.
    pub max_gradient_norm: f64,
    /// The discount of future rewards.
    pub discount: f64,
    /// The lambda of the lambda return.
    pub lambda: f64,
    /// The weight of the entropy bonus.
    pub entropy_cost: f64,
    /// The weight of the value loss.
    pub value_cost: f64,
    /// Its networks.
    #[serde(flatten)]
    pub networks: Networks,
}

impl Default for Online {
    fn default() -> Self {
        Self {
            learning_rate: 1e-3,
            anneal_learning_rate: false,
            adam_epsilon: 1e-5,
            max_gradient_norm: 0.5,
            discount: 0.99,
            lambda: 0.95,
            entropy_cost: 0.01,
            value_cost: 0.5,
            networks: Networks::default(),
        }
    }
}

/// The V-trace actor-critic of IMPALA (Espeholt et al. 2018). The loss is summed over the batch, as there, and the defaults
/// are the paper's for Atari; rewards are not clipped.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Impala {
    /// `rmsprop` or `adam`.
    pub optimizer: String,
    /// The optimizer's step size.
    pub learning_rate: f64,
    /// Whether the learning rate falls linearly to zero over the run.
    pub anneal_learning_rate: bool,
    /// The optimizer's epsilon: RMSProp's is inside of the root, Adam's outside.
    pub epsilon: f64,
    /// The decay of RMSProp's mean.
    pub rmsprop_decay: f64,
    /// Gradients of a greater global norm are scaled down to it.
    pub max_gradient_norm: f64,
    /// The discount of future rewards.
    pub discount: f64,
    /// The lambda of V-trace.
    pub lambda: f64,
    /// The most an importance weight counts in a temporal difference.
    pub clip_rho: f64,
    /// The most it counts in a trace.
    pub clip_c: f64,
    /// The most it counts in the policy gradient.
    pub clip_pg_rho: f64,
    /// The advantage of the policy gradient: `impala` (from the next target) or `rlax` (from targets and values, mixed by
    /// lambda).
    pub advantage: String,
    /// Rewards to learn from: `none` (as they come) or `abs_one` (clipped to [-1, 1]).
    pub reward_clipping: String,
    /// The weight of the entropy bonus.
    pub entropy_cost: f64,
    /// The weight of the value loss.
    pub value_cost: f64,
    /// Units of an LSTM between torso and hidden layers; 0 for none.
    pub lstm: usize,
    /// Its networks.
    #[serde(flatten)]
    pub networks: Networks,
}

impl Default for Impala {
    fn default() -> Self {
        Self {
            optimizer: Self::OPTIMIZERS[0].to_owned(),
            learning_rate: 6e-4,
            anneal_learning_rate: true,
            epsilon: 0.01,
            rmsprop_decay: 0.99,
            max_gradient_norm: 40.0,
            discount: 0.99,
            lambda: 1.0,
            clip_rho: 1.0,
            clip_c: 1.0,
            clip_pg_rho: 1.0,
            advantage: Self::ADVANTAGES[0].to_owned(),
            reward_clipping: Self::REWARD_CLIPPINGS[0].to_owned(),
            entropy_cost: 0.01,
            value_cost: 0.5,
            lstm: 0,
            networks: Networks::default(),
        }
    }
}

impl Impala {
    /// The values of `optimizer`.
    pub const OPTIMIZERS: [&'static str; 2] = ["rmsprop", "adam"];
    /// The values of `advantage`.
    pub const ADVANTAGES: [&'static str; 2] = ["impala", "rlax"];
    /// The values of `reward_clipping`.
    pub const REWARD_CLIPPINGS: [&'static str; 2] = ["none", "abs_one"];

    fn check(&self, problems: &mut Problems) {
        problems.one_of("agent.optimizer", &self.optimizer, &Self::OPTIMIZERS);
        problems.one_of("agent.advantage", &self.advantage, &Self::ADVANTAGES);
        let clipping = &self.reward_clipping;
        problems.one_of("agent.reward_clipping", clipping, &Self::REWARD_CLIPPINGS);
        problems.positive("agent.epsilon", self.epsilon);
        problems.fraction("agent.rmsprop_decay", self.rmsprop_decay);
        problems.positive("agent.clip_rho", self.clip_rho);
        problems.positive("agent.clip_c", self.clip_c);
        problems.positive("agent.clip_pg_rho", self.clip_pg_rho);
    }
}

/// What every agent has.
struct Common<'a> {
    learning_rate: f64,
    max_gradient_norm: f64,
    discount: f64,
    lambda: f64,
    entropy_cost: f64,
    value_cost: f64,
    networks: &'a Networks,
}

impl AgentSettings {
    /// The values of `agent.kind`.
    pub const KINDS: [&'static str; 3] = ["ppo", "online", "impala"];

    /// The agent of this kind with its default settings.
    #[must_use]
    pub fn of_kind(kind: &str) -> Option<Self> {
        match kind {
            "ppo" => Some(Self::Ppo(Ppo::default())),
            "online" => Some(Self::Online(Online::default())),
            "impala" => Some(Self::Impala(Impala::default())),
            _ => None,
        }
    }

    /// The value of `agent.kind`.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Ppo(_) => "ppo",
            Self::Online(_) => "online",
            Self::Impala(_) => "impala",
        }
    }

    /// Its networks.
    #[must_use]
    pub fn networks(&self) -> &Networks {
        self.common().networks
    }

    fn common(&self) -> Common<'_> {
        macro_rules! common {
            ($agent:expr) => {
                Common {
                    learning_rate: $agent.learning_rate,
                    max_gradient_norm: $agent.max_gradient_norm,
                    discount: $agent.discount,
                    lambda: $agent.lambda,
                    entropy_cost: $agent.entropy_cost,
                    value_cost: $agent.value_cost,
                    networks: &$agent.networks,
                }
            };
        }
        match self {
            Self::Ppo(ppo) => common!(ppo),
            Self::Online(online) => common!(online),
            Self::Impala(impala) => common!(impala),
        }
    }

    pub(super) fn check(&self, problems: &mut Problems) {
        let common = self.common();
        problems.positive("agent.learning_rate", common.learning_rate);
        problems.positive("agent.max_gradient_norm", common.max_gradient_norm);
        problems.fraction("agent.discount", common.discount);
        problems.fraction("agent.lambda", common.lambda);
        problems.not_negative("agent.entropy_cost", common.entropy_cost);
        problems.not_negative("agent.value_cost", common.value_cost);
        common.networks.check(problems);
        match self {
            Self::Ppo(ppo) => {
                problems.positive("agent.adam_epsilon", ppo.adam_epsilon);
                problems.positive("agent.clip", ppo.clip);
                problems.at_least_one("agent.epochs", ppo.epochs);
                problems.at_least_one("agent.minibatches", ppo.minibatches);
            }
            Self::Online(online) => {
                problems.positive("agent.adam_epsilon", online.adam_epsilon);
            }
            Self::Impala(impala) => impala.check(problems),
        }
    }
}
