//! Stochastic MuZero's networks of chance (Antonoglou et al. 2022, "Planning in stochastic environments with a learned model").
//!
//! An action leads from a state to an *afterstate*, and one of `C` outcomes of chance from there to the next state. What the outcomes
//! are is learnt: an encoder names the outcome that came about, of the observation that followed.

use super::MuZeroSettings;
use super::network::{mlp, unit_range};
use crate::net::TorsoNet;
use crate::nn::{Initializer, Mlp};
use podracer_dsl::prelude::*;
use podracer_envs::Space;

/// Networks between a state with an action, and the next state. Embeddings of afterstates are vectors as those of states, f32 `[E]`.
#[derive(Tree, Clone)]
pub struct ChanceNetwork {
    /// Embedding of a state and action, one-hot, to what is added to the embedding for that of the afterstate.
    pub afterstate: Mlp,
    /// Embedding of an afterstate to logits of the outcomes.
    pub outcome: Mlp,
    /// Embedding of an afterstate to logits of its value's bins.
    pub value: Mlp,
    /// Observation to the features that the encoder sees.
    pub encoder_torso: TorsoNet,
    /// Features to a logit for each outcome.
    pub encoder: Mlp,
}

/// Outcomes that the encoder names, of some observations.
#[derive(Clone, Copy)]
pub struct Encoded {
    /// The outcome, one-hot, f32 `[.., C]`. Its gradient is that of `numbers` (straight-through).
    pub code: Tensor,
    /// Squared distance from the encoder's numbers to the code, which is a constant there. f32 `[..]`
    pub commitment: Tensor,
}

impl Encoded {
    /// The outcomes of the greatest numbers, f32 `[.., C]`: the nearest of the one-hot vectors, as in a VQ-VAE whose codebook is fixed.
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
    /// New networks for so many outcomes, which are equally probable at first, and afterstates have a value of 0.
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

    /// The embedding of the afterstate that an action leads to; both f32 `[E]`. `action` is one-hot, f32 `[A]`.
    #[track_caller]
    pub fn after(&self, embedding: Tensor, action: Tensor) -> Tensor {
        unit_range(embedding + self.afterstate.apply(concatenate(&[embedding, action], 0)))
    }

    /// Logits of the chance outcomes of an afterstate, f32 `[C]`, and logits of its value's bins.
    #[track_caller]
    pub fn predict(&self, afterstate: Tensor) -> (Tensor, Tensor) {
        (self.outcome.apply(afterstate), self.value.apply(afterstate))
    }

    /// The encoder's probabilities of the outcomes, of an observation, f32 `[C]`.
    #[track_caller]
    pub fn encode(&self, observation: Tensor) -> Tensor {
        self.encoder.apply(self.encoder_torso.apply(observation)).softmax(-1)
    }
}
