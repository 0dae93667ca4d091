//! The settings of the built-in agents: `[agent]`, with `kind` saying which.

use podracer_stdlib::agents::Torso;
use podracer_stdlib::nn::{ConvNet, ResidualNet};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The networks of an agent.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(default)]
pub struct Networks {
    /// What sees the observations, for policy and value alike: `none`, or for images `conv` (layers of convolutions) or
    /// `residual` (sections of residual blocks).
    #[schemars(extend("enum" = Networks::TORSOS))]
    pub torso: String,
    /// Channels, side of the window and stride of each layer of `conv`.
    #[schemars(length(min = 1), inner(length(min = 3, max = 3), inner(range(min = 1))), extend("x-must" = "have the channels, the side of the window and the stride of each layer, all at least 1, such as [[16, 8, 4], [32, 4, 2]]"))]
    pub convs: Vec<Vec<usize>>,
    /// Channels of each section of `residual`.
    #[schemars(length(min = 1), inner(range(min = 1)), extend("x-must" = "name sections of at least 1 channel each"))]
    pub sections: Vec<usize>,
    /// Units of the dense layer that ends a torso.
    #[schemars(range(min = 1))]
    pub features: usize,
    /// Units of each hidden layer after it, of policy and value alike.
    #[schemars(inner(range(min = 1)), extend("x-must" = "name layers of at least 1 unit each"))]
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
}

/// Proximal policy optimization (Schulman et al. 2017). The defaults are those of CleanRL's and PureJaxRL's CartPole.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(default)]
pub struct Ppo {
    /// Adam's step size.
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    pub learning_rate: f64,
    /// Whether the learning rate falls linearly to zero over the run.
    pub anneal_learning_rate: bool,
    /// Adam's epsilon.
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    pub adam_epsilon: f64,
    /// Gradients of a greater global norm are scaled down to it.
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    pub max_gradient_norm: f64,
    /// Passes over each batch.
    #[schemars(range(min = 1))]
    pub epochs: usize,
    /// Minibatches per pass: of steps, or with an LSTM of environments with all of their steps.
    #[schemars(range(min = 1))]
    pub minibatches: usize,
    /// The discount of future rewards.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub discount: f64,
    /// The lambda of generalized advantage estimation.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub lambda: f64,
    /// How far the probability ratio and the value may move.
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    pub clip: f64,
    /// The weight of the entropy bonus.
    #[schemars(range(min = 0.0))]
    pub entropy_cost: f64,
    /// The weight of the value loss.
    #[schemars(range(min = 0.0))]
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
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(default)]
pub struct Online {
    /// Adam's step size.
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    pub learning_rate: f64,
    /// Whether the learning rate falls linearly to zero over the run.
    pub anneal_learning_rate: bool,
    /// Adam's epsilon.
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    pub adam_epsilon: f64,
    /// Gradients of a greater global norm are scaled down to it.
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    pub max_gradient_norm: f64,
    /// The discount of future rewards.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub discount: f64,
    /// The lambda of the lambda return.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub lambda: f64,
    /// The weight of the entropy bonus.
    #[schemars(range(min = 0.0))]
    pub entropy_cost: f64,
    /// The weight of the value loss.
    #[schemars(range(min = 0.0))]
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
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(default)]
pub struct Impala {
    /// `rmsprop` or `adam`.
    #[schemars(extend("enum" = ["rmsprop", "adam"]))]
    pub optimizer: String,
    /// The optimizer's step size.
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    pub learning_rate: f64,
    /// Whether the learning rate falls linearly to zero over the run.
    pub anneal_learning_rate: bool,
    /// The optimizer's epsilon: RMSProp's is inside of the root, Adam's outside.
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    pub epsilon: f64,
    /// The decay of RMSProp's mean.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub rmsprop_decay: f64,
    /// Gradients of a greater global norm are scaled down to it.
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    pub max_gradient_norm: f64,
    /// The discount of future rewards.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub discount: f64,
    /// The lambda of V-trace.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub lambda: f64,
    /// The most an importance weight counts in a temporal difference.
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    pub clip_rho: f64,
    /// The most it counts in a trace.
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    pub clip_c: f64,
    /// The most it counts in the policy gradient.
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    pub clip_pg_rho: f64,
    /// The advantage of the policy gradient: `impala` (from the next target) or `rlax` (from targets and values, mixed by
    /// lambda).
    #[schemars(extend("enum" = ["impala", "rlax"]))]
    pub advantage: String,
    /// Rewards to learn from: `none` (as they come) or `abs_one` (clipped to [-1, 1]).
    #[schemars(extend("enum" = ["none", "abs_one"]))]
    pub reward_clipping: String,
    /// The weight of the entropy bonus.
    #[schemars(range(min = 0.0))]
    pub entropy_cost: f64,
    /// The weight of the value loss.
    #[schemars(range(min = 0.0))]
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
            optimizer: "rmsprop".to_owned(),
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
            advantage: "impala".to_owned(),
            reward_clipping: "none".to_owned(),
            entropy_cost: 0.01,
            value_cost: 0.5,
            lstm: 0,
            networks: Networks::default(),
        }
    }
}
