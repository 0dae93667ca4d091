//! LPG: Oh et al., "Discovering Reinforcement Learning Algorithms", 2020. An update rule that is a network.

use super::UpdateRule;
use crate::nn::{Activation, Initializer, Linear, Lstm, LstmState, Mlp};
use podracer_dsl::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Sizes of an [`LpgRule`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
pub struct LpgShape {
    /// Number of categories that an agent predicts for an observation. The rule gives them their
    /// meaning.
    #[schemars(range(min = 2, max = 10_000))]
    pub predictions: usize,
    /// Units of the layer that embeds a prediction for the rule.
    #[schemars(range(min = 1, max = 10_000))]
    pub embedding: usize,
    /// Units of the LSTM.
    #[schemars(range(min = 1, max = 10_000))]
    pub units: usize,
}

/// The sizes of the paper.
impl Default for LpgShape {
    fn default() -> Self {
        LpgShape { predictions: 30, embedding: 16, units: 256 }
    }
}

/// An update rule: from an agent's trajectory it computes targets for the agent's policy and
/// predictions.
#[derive(Tree, Clone)]
pub struct LpgRule {
    /// A prediction to one number.
    pub embedding: Mlp,
    /// The LSTM, which runs backwards over a trajectory.
    pub core: Lstm,
    /// Features to the target of the policy.
    pub policy: Linear,
    /// Features to the logits of the target of the predictions.
    pub prediction: Linear,
}

/// A trajectory of one lane as input of an [`LpgRule`].
#[derive(Tree, Clone, Copy)]
pub struct Seen {
    /// Rewards. f32 `[T]`
    pub reward: Tensor,
    /// True if the step ended its episode. bool `[T]`
    pub done: Tensor,
    /// Probabilities that the policy gave to the actions. f32 `[T]`
    pub probability: Tensor,
    /// The agent's predictions before each step: probabilities. f32 `[T, M]`
    pub prediction: Tensor,
    /// The predictions after each step. f32 `[T, M]`
    pub prediction_after: Tensor,
}

/// Targets that a rule computes for a trajectory of one lane.
#[derive(Tree, Clone, Copy)]
pub struct Targets {
    /// The change of each action's log-probability: up if it is positive. f32 `[T]`
    pub policy: Tensor,
    /// The target distribution of each prediction. f32 `[T, M]`
    pub prediction: Tensor,
}

impl UpdateRule for LpgRule {
    type Shape = LpgShape;

    #[track_caller]
    fn init(key: Key, shape: &LpgShape) -> LpgRule {
        let &LpgShape { predictions, embedding, units } = shape;
        let keys = key.split_n(4);
        let weights = Initializer::lecun_normal();
        let sizes = [predictions, embedding, 1];
        LpgRule {
            embedding: Mlp::init(keys.at(0), &sizes, Activation::Relu, weights, weights),
            // The LSTM's inputs of a step: reward, end, probability, and two predictions.
            core: Lstm::init(keys.at(1), 5, units),
            policy: Linear::init(keys.at(2), units, 1, weights),
            prediction: Linear::init(keys.at(3), units, predictions, weights),
        }
    }

    fn shape(&self) -> LpgShape {
        LpgShape {
            predictions: self.prediction.bias.len(),
            embedding: self.embedding.layers[0].bias.len(),
            units: self.core.hidden.len(),
        }
    }
}

impl LpgRule {
    /// The targets of a trajectory.
    #[track_caller]
    pub fn targets(&self, seen: Seen) -> Targets {
        let _scope = scope("LpgRule::targets");
        let Seen { reward, done, probability, prediction, prediction_after } = seen;
        let embedded = |all: Tensor| vmap(all, |one| self.embedding.apply(one).index(0));
        let after = select(done, 0.0, embedded(prediction_after));
        let columns = [reward, done.astype(F32), probability, embedded(prediction), after];
        let backwards = stack(&columns, 1).reverse(0);
        let begun = LstmState::zeros(self.core.hidden.len());
        // In the backward direction, an episode's last step comes first.
        let states = self.core.unroll(begun, backwards, done.reverse(0));
        let features = states.h.reverse(0).relu();
        Targets {
            policy: self.policy.apply(features).squeeze(1),
            prediction: self.prediction.apply(features).softmax(-1),
        }
    }
}
