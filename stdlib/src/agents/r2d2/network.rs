//! R2D2's network of action values.

use crate::learn::Input;
use crate::net::{Networks, TorsoNet, last_action};
use crate::nn::{DuelingHead, Initializer, Lstm, LstmState, Mlp};
use podracer_dsl::prelude::*;
use podracer_envs::Space;

/// The network of Kapturowski et al. 2019: a torso, an LSTM, and dueling streams of action values.
/// The LSTM sees the torso's features, the last reward and the last action (one-hot).
#[derive(Tree, Clone)]
pub struct RecurrentQ {
    /// Observation to features.
    pub torso: TorsoNet,
    /// The recurrent core.
    pub core: Lstm,
    /// The core's output to action values.
    pub head: DuelingHead,
    /// Space of the actions.
    #[tree(fixed)]
    pub action: Space,
}

impl RecurrentQ {
    /// A new network, with an LSTM of `units` and the hidden layers `networks.hidden` in each
    /// dueling stream. Weights are drawn as in SEED RL's code: Glorot uniform, but orthogonal for
    /// the LSTM's recurrent weights. Biases are 0, but 1 at the LSTM's forget gates. A torso that
    /// does not support the observations is an error.
    #[track_caller]
    pub fn init(
        key: Key,
        observation: &Space,
        action: &Space,
        networks: &Networks,
        units: usize,
    ) -> RecurrentQ {
        let weights = Initializer::glorot_uniform();
        let keys = key.split_n(4);
        let (torso, features) = TorsoNet::init(keys.at(0), observation, networks, weights);
        let actions = action.flatdim();
        let [zero, one] = [0.0, 1.0].map(|bias| full([units], bias));
        let core = Lstm {
            input: weights.init(keys.at(1), &[features + 1 + actions, 4 * units]),
            hidden: Initializer::orthogonal(1.0).init(keys.at(2), &[units, 4 * units]),
            bias: concatenate(&[zero, one, zero, zero], 0),
        };
        let Networks { hidden, activation, layer_norm, .. } = networks;
        let mut head = DuelingHead::init(keys.at(3), units, hidden, actions, *activation, weights);
        if *layer_norm {
            let DuelingHead { value, advantage } = head;
            let [value, advantage] = [value, advantage].map(Mlp::with_layer_norm);
            head = DuelingHead { value, advantage };
        }
        RecurrentQ { torso, core, head, action: action.clone() }
    }

    /// The core's input in one step, f32 `[F]`: features of the observation (stacked, if the agent stacks), the last
    /// reward, the last action.
    #[track_caller]
    pub fn features(&self, input: &Input) -> Tensor {
        let features = self.torso.apply(input.observation);
        let reward = input.last_reward.expand_dims(0);
        concatenate(&[features, reward, last_action(&self.action, input)], 0)
    }

    /// One step: the core's state after it, and the action values. f32 `[A]`
    #[track_caller]
    pub fn see(&self, state: LstmState, input: &Input) -> (LstmState, Tensor) {
        let state = self.core.step(state, self.features(input));
        (state, self.head.apply(state.h))
    }

    /// Steps along one lane: the core's state after each step, `[T, ..]`. `inputs` are `[T, ..]`.
    /// The state is reset to zeros before a step that begins an episode.
    #[track_caller]
    pub fn remember(&self, state: LstmState, inputs: Input) -> LstmState {
        let features = vmap(inputs.clone(), |input| self.features(&input));
        self.core.unroll(state, features, inputs.first)
    }
}
