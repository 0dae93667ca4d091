//! The settings of each agent: `[agent]`, with `kind` saying which.

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
    /// Minibatches per pass.
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
    /// Units of each hidden layer, of policy and value alike.
    pub hidden: Vec<usize>,
    /// Whether minibatches are drawn by an exactly uniform permutation, which sorts, in place of a Feistel bijection.
    pub exact_shuffle: bool,
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
            hidden: vec![64, 64],
            exact_shuffle: false,
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
    /// Units of each hidden layer, of policy and value alike.
    pub hidden: Vec<usize>,
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
            hidden: vec![64, 64],
        }
    }
}

impl AgentSettings {
    /// The values of `agent.kind`.
    pub const KINDS: [&'static str; 2] = ["ppo", "online"];

    /// The agent of this kind with its default settings.
    #[must_use]
    pub fn of_kind(kind: &str) -> Option<Self> {
        match kind {
            "ppo" => Some(Self::Ppo(Ppo::default())),
            "online" => Some(Self::Online(Online::default())),
            _ => None,
        }
    }

    /// The value of `agent.kind`.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Ppo(_) => "ppo",
            Self::Online(_) => "online",
        }
    }

    pub(super) fn check(&self, problems: &mut Problems) {
        let (learning_rate, epsilon, norm) = match self {
            Self::Ppo(ppo) => (ppo.learning_rate, ppo.adam_epsilon, ppo.max_gradient_norm),
            Self::Online(online) => (
                online.learning_rate,
                online.adam_epsilon,
                online.max_gradient_norm,
            ),
        };
        problems.positive("agent.learning_rate", learning_rate);
        problems.positive("agent.adam_epsilon", epsilon);
        problems.positive("agent.max_gradient_norm", norm);
        let (discount, lambda, entropy, value, hidden) = match self {
            Self::Ppo(ppo) => (
                ppo.discount,
                ppo.lambda,
                ppo.entropy_cost,
                ppo.value_cost,
                &ppo.hidden,
            ),
            Self::Online(online) => (
                online.discount,
                online.lambda,
                online.entropy_cost,
                online.value_cost,
                &online.hidden,
            ),
        };
        problems.fraction("agent.discount", discount);
        problems.fraction("agent.lambda", lambda);
        problems.not_negative("agent.entropy_cost", entropy);
        problems.not_negative("agent.value_cost", value);
        if hidden.contains(&0) {
            problems.add("agent.hidden must name layers of at least 1 unit each");
        }
        if let Self::Ppo(ppo) = self {
            problems.positive("agent.clip", ppo.clip);
            problems.at_least_one("agent.epochs", ppo.epochs);
            problems.at_least_one("agent.minibatches", ppo.minibatches);
        }
    }
}
