//! MuZero's networks: representation, dynamics and prediction.

use super::MuZeroSettings;
use super::chance::ChanceNetwork;
use super::planes::PlanesNetwork;
use super::settings::ModelKind;
use crate::net::{Networks, TorsoNet};
use crate::nn::{Initializer, Mlp};
use crate::returns::{TxPair, transform_from_2hot, transform_to_2hot};
use podracer_dsl::prelude::*;
use podracer_envs::Space;

/// Numbers represented by probabilities of bins. A number is rescaled, and spread over the two
/// nearest integers between `-size` and `size` (Schrittwieser et al. 2020, appendix F).
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

    /// The numbers that logits of bins represent. f32 `[.., bins]` to `[..]`
    #[track_caller]
    pub fn mean(&self, logits: Tensor) -> Tensor {
        let end = self.size as f64;
        self.rescaling.apply_inv(transform_from_2hot(logits.softmax(-1), -end, end, self.bins()))
    }
}

/// Networks of representation, dynamics and prediction, in one of two forms. The elements of a state's embedding are in [0, 1].
#[derive(Tree, Clone)]
pub enum MuZeroNetwork {
    /// Dense networks after the torso, [`ModelKind::Dense`]. The embedding of a state is one vector, f32 `[E]`.
    Dense {
        /// Observation to features.
        torso: TorsoNet,
        /// Features to the embedding.
        representation: Mlp,
        /// Embedding and one-hot edge, to the difference that is added to the embedding. An edge is
        /// an action. In a model with chance, an edge is an outcome, and the embedding belongs to
        /// an afterstate.
        dynamics: Mlp,
        /// Embedding and one-hot edge to logits of the reward's bins.
        reward: Mlp,
        /// Embedding to logits of the actions.
        policy: Mlp,
        /// Embedding to logits of the value's bins.
        value: Mlp,
        /// Networks from states to afterstates; `None` for a deterministic model.
        chance: Option<ChanceNetwork>,
    },
    /// Convolutions, [`ModelKind::Planes`]. The embedding of a state is planes, f32 `[H, W, P]`.
    Planes {
        /// Networks with convolutions.
        planes: PlanesNetwork,
    },
}

/// New layers from inputs, through hidden layers, to outputs. `last` initialises the weights of the
/// last layer.
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
    /// New networks. Weights are drawn LeCun normal, but the last layers of reward, policy and
    /// value are 0: the first searches see a uniform policy, no rewards and values of 0.
    #[track_caller]
    pub fn init(
        key: Key,
        observation: &Space,
        actions: usize,
        settings: &MuZeroSettings,
    ) -> MuZeroNetwork {
        let MuZeroSettings { networks, embedding, head_hidden, .. } = settings;
        if settings.model == ModelKind::Planes {
            let planes = PlanesNetwork::init(key, observation, actions, settings);
            return MuZeroNetwork::Planes { planes };
        }
        let weights = Initializer::lecun_normal();
        let chance = settings.chance_outcomes.map(|outcomes| {
            ChanceNetwork::init(key.fold_in(0), observation, actions, outcomes, settings)
        });
        let keys = key.split_n(6);
        let (torso, features) = TorsoNet::init(keys.at(0), observation, networks, weights);
        let layers = |i: usize, inputs: usize, hidden: &[usize], outputs: usize, last| {
            mlp(keys.at(i), networks, (inputs, hidden, outputs), last)
        };
        let (hidden, embedding, zeros) = (&networks.hidden, *embedding, Initializer::Zeros);
        let both = embedding + settings.chance_outcomes.unwrap_or(actions);
        let (rewards, values) = (settings.reward_support().bins(), settings.value_support().bins());
        MuZeroNetwork::Dense {
            torso,
            representation: layers(1, features, hidden, embedding, weights),
            dynamics: layers(2, both, hidden, embedding, weights),
            reward: layers(3, both, head_hidden, rewards, zeros),
            policy: layers(4, embedding, head_hidden, actions, zeros),
            value: layers(5, embedding, head_hidden, values, zeros),
            chance,
        }
    }

    /// Networks from states to afterstates; `None` for a deterministic model.
    pub fn chance(&self) -> Option<&ChanceNetwork> {
        match self {
            MuZeroNetwork::Dense { chance, .. } => chance.as_ref(),
            MuZeroNetwork::Planes { .. } => None,
        }
    }

    /// The embedding of an observation. f32 `[E]` or `[H, W, P]`
    #[track_caller]
    pub fn represent(&self, observation: Tensor) -> Tensor {
        match self {
            MuZeroNetwork::Dense { torso, representation, .. } => {
                unit_range(representation.apply(torso.apply(observation)))
            }
            MuZeroNetwork::Planes { planes } => planes.represent(observation),
        }
    }

    /// The embedding after an edge, of the same type as `embedding`, and the logits of the reward's
    /// bins. `edge` is one-hot: an action, f32 `[A]`, from a state, or a chance outcome, f32 `[C]`,
    /// from an afterstate.
    #[track_caller]
    pub fn step(&self, embedding: Tensor, edge: Tensor) -> (Tensor, Tensor) {
        match self {
            MuZeroNetwork::Dense { dynamics, reward, .. } => {
                let both = concatenate(&[embedding, edge], 0);
                (unit_range(embedding + dynamics.apply(both)), reward.apply(both))
            }
            MuZeroNetwork::Planes { planes } => planes.step(embedding, edge),
        }
    }

    /// Logits of the actions, f32 `[A]`, and of the value's bins.
    #[track_caller]
    pub fn predict(&self, embedding: Tensor) -> (Tensor, Tensor) {
        match self {
            MuZeroNetwork::Dense { policy, value, .. } => {
                (policy.apply(embedding), value.apply(embedding))
            }
            MuZeroNetwork::Planes { planes } => planes.predict(embedding),
        }
    }
}

/// The vector shifted and scaled to [0, 1] by its least and greatest element (Schrittwieser et al.
/// 2020, appendix G).
#[track_caller]
pub(super) fn unit_range(x: Tensor) -> Tensor {
    let low = x.min_axis(keepdims(-1));
    let range = x.max_axis(keepdims(-1)) - low;
    (x - low) / range.maximum(1e-5)
}

/// Planes shifted and scaled to [0, 1] by their least and greatest element.
#[track_caller]
pub(super) fn unit_range_of(planes: Tensor) -> Tensor {
    unit_range(planes.flatten()).reshape(planes.shape())
}
