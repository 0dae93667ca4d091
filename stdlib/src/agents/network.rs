//! The actor-critic network that the on-policy agents share: a policy and a value, each an MLP of its own.

use crate::distributions::{Categorical, Distribution, MultivariateNormalDiag};
use crate::nn::{Activation, Initializer, Linear, Mlp};
use podracer_dsl::prelude::*;
use podracer_envs::Space;

/// Policy and value networks.
#[derive(Tree, Clone)]
pub struct ActorCritic {
    /// Observation to the logits of the actions, or to the mean of a Gaussian.
    pub actor: Mlp,
    /// Observation to one value.
    pub critic: Mlp,
    /// The logarithm of the Gaussian's standard deviation, f32 `[A]`; none for discrete actions.
    pub log_std: Vec<Tensor>,
}

/// What the policy says of one observation.
pub enum Policy {
    /// Of discrete actions.
    Discrete(Categorical),
    /// Of continuous ones, f32 `[A]`.
    Gaussian(MultivariateNormalDiag),
}

impl ActorCritic {
    /// Orthogonal weights: of scale sqrt(2) in the hidden layers, 0.01 in the policy's last, 1 in the value's last, as in
    /// "What Matters In On-Policy Reinforcement Learning?" (Andrychowicz et al. 2021).
    #[track_caller]
    pub fn init(key: Key, observation: &Space, action: &Space, hidden: &[usize]) -> ActorCritic {
        let (outputs, log_std) = match action {
            Space::Discrete { n } => (*n, Vec::new()),
            Space::Box { .. } | Space::Pixels { .. } => {
                (action.elements(), vec![zeros(F32, [action.elements()])])
            }
        };
        let mut sizes = vec![observation.elements()];
        sizes.extend(hidden);
        // The hidden layers of both networks are alike: as a batch they are half as much to compile.
        let (hidden, last) = vmap(key.split_n(2), |key| {
            let keys = key.split_n(sizes.len());
            let weight = Initializer::orthogonal(2f64.sqrt());
            let layer =
                |(i, pair): (usize, &[usize])| Linear::init(keys.at(i), pair[0], pair[1], weight);
            let layers: Vec<Linear> = sizes.windows(2).enumerate().map(layer).collect();
            (layers, keys.at(sizes.len() - 1))
        });
        let inputs = sizes.last().copied().unwrap_or_default();
        let mlp = |i: usize, outputs: usize, scale: f64| {
            let mut layers = tree_map(&hidden, |x| x.index(i));
            let key = Key::from_words(last.words().index(i));
            layers.push(Linear::init(
                key,
                inputs,
                outputs,
                Initializer::orthogonal(scale),
            ));
            Mlp {
                layers,
                activation: Activation::Tanh,
            }
        };
        ActorCritic {
            actor: mlp(0, outputs, 0.01),
            critic: mlp(1, 1, 1.0),
            log_std,
        }
    }

    /// The policy in an observation.
    #[track_caller]
    pub fn policy(&self, observation: Tensor) -> Policy {
        let output = self.actor.apply(observation);
        match self.log_std.first() {
            None => Policy::Discrete(Categorical::new(output)),
            Some(log_std) => {
                Policy::Gaussian(MultivariateNormalDiag::from_log_std(output, *log_std))
            }
        }
    }

    /// The value of an observation. f32 `[]`
    #[track_caller]
    pub fn value(&self, observation: Tensor) -> Tensor {
        self.critic.apply(observation).index(0)
    }
}

impl Policy {
    /// Draws an action.
    #[track_caller]
    pub fn sample(&self, key: Key) -> Tensor {
        match self {
            Policy::Discrete(policy) => policy.sample(key),
            Policy::Gaussian(policy) => policy.sample(key),
        }
    }

    /// The logarithm of an action's probability (density). f32 `[]`
    #[track_caller]
    pub fn log_prob(&self, action: Tensor) -> Tensor {
        match self {
            Policy::Discrete(policy) => policy.log_prob(action),
            Policy::Gaussian(policy) => policy.log_prob(action),
        }
    }

    /// The entropy, in nats. f32 `[]`
    #[track_caller]
    pub fn entropy(&self) -> Tensor {
        match self {
            Policy::Discrete(policy) => policy.entropy(),
            Policy::Gaussian(policy) => policy.entropy(),
        }
    }

    /// The most probable action.
    #[track_caller]
    pub fn mode(&self) -> Tensor {
        match self {
            Policy::Discrete(policy) => policy.mode(),
            Policy::Gaussian(policy) => policy.mode(),
        }
    }
}
