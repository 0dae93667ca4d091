//! MuZero's networks: representation, dynamics and prediction.

use super::MuZeroSettings;
use super::chance::ChanceNetwork;
use crate::agents::{Networks, TorsoNet};
use crate::nn::{Initializer, Mlp};
use crate::returns::{TxPair, transform_from_2hot, transform_to_2hot};
use podracer_dsl::prelude::*;
use podracer_envs::Space;

/// Numbers that a network learns as probabilities of bins: rescaled, and spread over the two nearest of the integers from `-size` to
/// `size` (Schrittwieser et al. 2020, appendix F).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Support {
    /// The greatest rescaled number.
    pub size: usize,
    /// The rescaling.
    pub rescaling: TxPair,
}

impl Support {
    /// Number of bins.
    pub fn bins(&self) -> usize {
        2 * self.size + 1
    }

    /// Probabilities of the bins for numbers. f32 `[..]` to `[.., bins]`
    #[track_caller]
    pub fn probs(&self, x: Tensor) -> Tensor {
        let end = self.size as f64;
        transform_to_2hot(self.rescaling.apply(x), -end, end, self.bins())
    }

    /// The numbers that logits of bins stand for. f32 `[.., bins]` to `[..]`
    #[track_caller]
    pub fn mean(&self, logits: Tensor) -> Tensor {
        let end = self.size as f64;
        self.rescaling.apply_inv(transform_from_2hot(logits.softmax(-1), -end, end, self.bins()))
    }
}

/// Dense networks after the torso. The embedding of a state is one vector, `f32[E]`, whose elements are in [0, 1].
#[derive(Tree, Clone)]
pub struct MuZeroNetwork {
    /// Observation to features.
    pub torso: TorsoNet,
    /// Features to the embedding.
    pub representation: Mlp,
    /// Embedding and edge, one-hot, to what is added to the embedding. An edge is an action; of a model with chance, it is an outcome,
    /// and the embedding is that of an afterstate.
    pub dynamics: Mlp,
    /// Embedding and edge, one-hot, to logits of the reward's bins.
    pub reward: Mlp,
    /// Embedding to logits of the actions.
    pub policy: Mlp,
    /// Embedding to logits of the value's bins.
    pub value: Mlp,
    /// From states to afterstates; `None` of a deterministic model.
    pub chance: Option<ChanceNetwork>,
    /// Number of actions, `A`.
    #[tree(fixed)]
    pub actions: usize,
}

/// New layers from inputs, through hidden ones, to outputs. `last` initialises the weights of the last one.
#[track_caller]
pub(super) fn mlp(
    key: Key,
    networks: &Networks,
    (inputs, hidden, outputs): (usize, &[usize], usize),
    last: Initializer,
) -> Mlp {
    let sizes = [&[inputs], hidden, &[outputs]].concat();
    let mlp = Mlp::init(key, &sizes, networks.activation, Initializer::lecun_normal(), last);
    if networks.layer_norm { mlp.with_layer_norm() } else { mlp }
}

impl MuZeroNetwork {
    /// New networks. Weights begin LeCun normal, but 0 in the last layers of reward, policy and value: the first searches see a
    /// uniform policy, no rewards and values of 0.
    #[track_caller]
    pub fn init(
        key: Key,
        observation: &Space,
        actions: usize,
        settings: &MuZeroSettings,
    ) -> MuZeroNetwork {
        let MuZeroSettings { networks, embedding, head_hidden, .. } = settings;
        let weights = Initializer::lecun_normal();
        let chance = (settings.chance_outcomes > 0)
            .then(|| ChanceNetwork::init(key.fold_in(0), observation, actions, settings));
        let keys = key.split_n(6);
        let (torso, features) = TorsoNet::init(keys.at(0), observation, networks, weights);
        let layers = |i: usize, inputs: usize, hidden: &[usize], outputs: usize, last| {
            mlp(keys.at(i), networks, (inputs, hidden, outputs), last)
        };
        let (hidden, embedding, zeros) = (&networks.hidden, *embedding, Initializer::Zeros);
        let both = embedding + if chance.is_some() { settings.chance_outcomes } else { actions };
        let (rewards, values) = (settings.reward_support().bins(), settings.value_support().bins());
        MuZeroNetwork {
            torso,
            representation: layers(1, features, hidden, embedding, weights),
            dynamics: layers(2, both, hidden, embedding, weights),
            reward: layers(3, both, head_hidden, rewards, zeros),
            policy: layers(4, embedding, head_hidden, actions, zeros),
            value: layers(5, embedding, head_hidden, values, zeros),
            chance,
            actions,
        }
    }

    /// The embedding of an observation. f32 `[E]`
    #[track_caller]
    pub fn represent(&self, observation: Tensor) -> Tensor {
        unit_range(self.representation.apply(self.torso.apply(observation)))
    }

    /// The embedding behind an edge, f32 `[E]`, and the logits of the reward's bins. `edge` is one-hot: an action, f32 `[A]`, from a
    /// state; or an outcome of chance, f32 `[C]`, from an afterstate.
    #[track_caller]
    pub fn step(&self, embedding: Tensor, edge: Tensor) -> (Tensor, Tensor) {
        let both = concatenate(&[embedding, edge], 0);
        (unit_range(embedding + self.dynamics.apply(both)), self.reward.apply(both))
    }

    /// Logits of the actions, f32 `[A]`, and of the value's bins.
    #[track_caller]
    pub fn predict(&self, embedding: Tensor) -> (Tensor, Tensor) {
        (self.policy.apply(embedding), self.value.apply(embedding))
    }
}

/// The vector moved and scaled to [0, 1] by its least and greatest element (Schrittwieser et al. 2020, appendix G).
#[track_caller]
pub(super) fn unit_range(x: Tensor) -> Tensor {
    let low = x.min_axis(keepdims(-1));
    let range = x.max_axis(keepdims(-1)) - low;
    (x - low) / range.maximum(1e-5)
}
