//! Stochastic MuZero's chance networks (Antonoglou et al. 2022, "Planning in stochastic
//! environments with a learned model").
//!
//! An action leads from a state to an *afterstate*, and one of `C` chance outcomes leads from the
//! afterstate to the next state. The meaning of the outcomes is learnt: an encoder assigns an
//! outcome to the next observation.

use super::MuZeroSettings;
use super::network::{mlp, unit_range};
use crate::net::TorsoNet;
use crate::nn::{Initializer, Mlp};
use podracer_dsl::prelude::*;
use podracer_envs::Space;

/// Networks between a state with an action, and the next state. Embeddings of afterstates are
/// vectors like the embeddings of states, f32 `[E]`.
#[derive(Tree, Clone)]
pub struct ChanceNetwork {
    /// Embedding of a state and one-hot action, to the difference between the embeddings of the
    /// afterstate and of the state.
    pub afterstate: Mlp,
    /// Embedding of an afterstate to logits of the chance outcomes.
    pub outcome: Mlp,
    /// Embedding of an afterstate to logits of the bins of its value.
    pub value: Mlp,
    /// Observation to the encoder's features.
    pub encoder_torso: TorsoNet,
    /// Features to a logit for each outcome.
    pub encoder: Mlp,
}

/// Outcomes that the encoder assigns to some observations.
#[derive(Clone, Copy)]
pub struct Encoded {
    /// The outcome, one-hot, f32 `[.., C]`. Its gradient is passed to `numbers` (straight-through).
    pub code: Tensor,
    /// Squared distance between the encoder's numbers and the code, which is treated as a constant.
    /// f32 `[..]`
    pub commitment: Tensor,
}

impl Encoded {
    /// The outcomes with the greatest numbers, f32 `[.., C]`: the nearest one-hot vectors, as in a
    /// VQ-VAE with a fixed codebook.
    #[track_caller]
    pub fn of(numbers: Tensor) -> Encoded {
        let code = numbers.argmax(-1).one_hot(numbers.dim(-1));
        Encoded {
            code: code + (numbers - stop_gradient(numbers)),
            commitment: (numbers - code).square().sum_axis(-1),
        }
    }
}

impl ChanceNetwork {
    /// New networks for `outcomes` outcomes, which have equal probabilities at first. Afterstates
    /// have the value 0 at first.
    #[track_caller]
    pub fn init(
        key: Key,
        observation: &Space,
        actions: usize,
        outcomes: usize,
        settings: &MuZeroSettings,
    ) -> ChanceNetwork {
        let MuZeroSettings { networks, embedding, head_hidden, .. } = settings;
        let (weights, zeros) = (Initializer::lecun_normal(), Initializer::Zeros);
        let embedding = *embedding;
        let keys = key.split_n(5);
        let (encoder_torso, features) = TorsoNet::init(keys.at(0), observation, networks, weights);
        let bins = settings.value_support().bins();
        let hidden = &networks.hidden;
        ChanceNetwork {
            afterstate: mlp(
                keys.at(1),
                networks,
                (embedding + actions, hidden, embedding),
                weights,
            ),
            outcome: mlp(keys.at(2), networks, (embedding, head_hidden, outcomes), zeros),
            value: mlp(keys.at(3), networks, (embedding, head_hidden, bins), zeros),
            encoder_torso,
            encoder: mlp(keys.at(4), networks, (features, hidden, outcomes), weights),
        }
    }

    /// The embedding of the afterstate after an action; both embeddings are f32 `[E]`. `action` is
    /// one-hot, f32 `[A]`.
    #[track_caller]
    pub fn after(&self, embedding: Tensor, action: Tensor) -> Tensor {
        unit_range(embedding + self.afterstate.apply(concatenate(&[embedding, action], 0)))
    }

    /// Logits of the chance outcomes of an afterstate, f32 `[C]`, and logits of the bins of its
    /// value.
    #[track_caller]
    pub fn predict(&self, afterstate: Tensor) -> (Tensor, Tensor) {
        (self.outcome.apply(afterstate), self.value.apply(afterstate))
    }

    /// The encoder's probabilities of the outcomes for an observation, f32 `[C]`.
    #[track_caller]
    pub fn encode(&self, observation: Tensor) -> Tensor {
        self.encoder.apply(self.encoder_torso.apply(observation)).softmax(-1)
    }
}
