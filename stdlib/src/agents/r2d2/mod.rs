//! R2D2, recurrent Q-learning from a prioritized replay: Kapturowski et al., "Recurrent Experience Replay in Distributed
//! Reinforcement Learning", 2019, with the hyper-parameters of Table 8 of SEED RL (Espeholt et al. 2020).
//!
//! A window is [`R2d2Settings::sequence_length`] transitions of one lane and the step behind them, with the LSTM's state that
//! acting had at its start. The loss is half of the sum of squared errors over the window's trained steps, times the window's
//! importance weight, averaged over the batch, as in SEED RL's code, so that the learning rate and the norm that gradients are
//! clipped to are those of the paper.
//!
//! Differences from SEED RL: new windows get the greatest priority so far, where SEED computes one while acting; frames before
//! an episode's first one are copies of it, where SEED has zeros; the last layer of the advantages has a bias.

mod loss;
mod network;

pub use loss::{R2d2Start, R2d2Step, R2d2Terms};
pub use network::RecurrentQ;

use super::frames::{FrameMemory, no_frames, stack_frame, stacked_space};
use super::{Act, Agent, Input, LaneId, Mode, Networks};
use crate::Number;
use crate::distributions::{Categorical, Distribution};
use crate::nn::{ConvNet, LstmState};
use crate::returns::TxPair;
use podracer_dsl::prelude::*;
use podracer_envs::Space;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Recurrent Q-learning from a prioritized replay, R2D2 (Kapturowski et al. 2019). The defaults are those of SEED RL's Table 8;
/// the sizes of the networks are those for Atari, with `torso = "conv"` and `frames = 4`.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(default)]
pub struct R2d2Settings {
    /// Adam's step size.
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    pub learning_rate: Number,
    /// Adam's epsilon, outside of the root.
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    pub epsilon: Number,
    /// Gradients of a greater global norm are scaled down to it.
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    pub max_gradient_norm: Number,
    /// Discount of future rewards.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub discount: Number,
    /// Steps of the returns that values are learnt from.
    #[schemars(range(min = 1))]
    pub n_steps: usize,
    /// What the network learns of a value: `signed_hyperbolic` (R2D2's rescaling), `signed_logp1` or `identity`.
    pub value_rescaling: TxPair,
    /// Transitions of a sequence, those of the burn-in included.
    #[schemars(range(min = 2))]
    pub sequence_length: usize,
    /// Transitions at the start of a sequence that only bring the LSTM's state up to date; less than `sequence_length`.
    pub burn_in: usize,
    /// Steps between the starts of two sequences of an environment: `sequence_length - burn_in` trains each step in one
    /// sequence, as SEED RL does. A multiple of the steps of an iteration (`unroll`).
    #[schemars(range(min = 1))]
    pub period: usize,
    /// Gradient steps between two copies of the network into the target network.
    #[schemars(range(min = 1))]
    pub target_period: usize,
    /// Share of the greatest absolute error of a sequence in its priority; the rest is that of the mean.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub priority_of_greatest: Number,
    /// Probability of a random action in the first environment; the i-th of N has it to the power of
    /// `1 + exploration_power i / (N - 1)`.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub exploration: f64,
    /// What the power rises by to the last environment.
    #[schemars(range(min = 0.0))]
    pub exploration_power: f64,
    /// Probability of a random action in evaluations.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub evaluation_exploration: f64,
    /// Observations that are stacked into what the network sees, the latest last; 1 for none. The replay keeps single ones.
    #[schemars(range(min = 1))]
    pub frames: usize,
    /// Units of the LSTM.
    #[schemars(range(min = 1))]
    pub lstm: usize,
    /// The torso, and the hidden layers of either dueling stream.
    #[serde(flatten)]
    pub networks: Networks,
}

impl Default for R2d2Settings {
    fn default() -> Self {
        R2d2Settings {
            learning_rate: 1e-4.into(),
            epsilon: 1e-3.into(),
            max_gradient_norm: 80.0.into(),
            discount: 0.997.into(),
            n_steps: 5,
            value_rescaling: TxPair::SignedHyperbolic,
            sequence_length: 120,
            burn_in: 40,
            period: 80,
            target_period: 2500,
            priority_of_greatest: 0.9.into(),
            exploration: 0.4,
            exploration_power: 7.0,
            evaluation_exploration: 1e-3,
            frames: 1,
            lstm: 512,
            networks: Networks {
                convs: ConvNet::DQN.to_vec(),
                features: 512,
                hidden: vec![512],
                ..Networks::default()
            },
        }
    }
}

impl R2d2Settings {
    /// Steps of a sequence that are learnt from: those after the burn-in.
    #[must_use]
    pub fn trained(&self) -> usize {
        self.sequence_length.saturating_sub(self.burn_in)
    }

    /// The probability of a random action in a lane, f32 `[]`: `exploration^(1 + exploration_power i / (N - 1))`.
    #[track_caller]
    pub fn exploration_of(&self, lane: LaneId) -> Tensor {
        let share = lane.index.astype(F32) / lane.lanes.saturating_sub(1).max(1) as f64;
        pow(scalar(self.exploration), 1.0 + self.exploration_power * share)
    }
}

/// The agent of [`R2d2Settings`].
#[derive(Clone, Debug)]
pub struct R2d2<O> {
    /// Space of the observations, of single frames.
    pub observation: Space,
    /// Space of the actions, which is discrete.
    pub action: Space,
    /// Optimizer of all parameters.
    pub optimizer: O,
    /// Settings of the agent. Those of the optimizer and of the replay are not read here.
    pub settings: R2d2Settings,
}

/// One lane's memory.
#[derive(Tree, Clone)]
pub struct R2d2Memory {
    /// State of the LSTM.
    pub core: LstmState,
    /// The frames before the next one.
    pub frames: FrameMemory,
    /// The lane's probability of a random action. f32 `[]`
    pub exploration: Tensor,
}

impl<O: Clone + 'static> Agent for R2d2<O> {
    type Observation = Tensor;
    type Params = RecurrentQ;
    type Memory = R2d2Memory;
    type Extras = ();

    fn init_memory(&self, lane: LaneId) -> R2d2Memory {
        R2d2Memory {
            core: LstmState::zeros(self.settings.lstm),
            frames: no_frames(&self.observation, self.settings.frames),
            exploration: self.settings.exploration_of(lane),
        }
    }

    fn begin_episode(&self, memory: R2d2Memory) -> R2d2Memory {
        R2d2Memory { core: LstmState::zeros(self.settings.lstm), ..memory }
    }

    fn act(
        &self,
        params: &RecurrentQ,
        memory: R2d2Memory,
        input: Input,
        mode: Mode,
        key: Key,
    ) -> Act<R2d2Memory, ()> {
        let (observation, frames) = stack_frame(memory.frames, input.observation, input.first);
        let input = Input { observation, ..input };
        let (core, values) = params.see(memory.core, &input);
        let values = match input.legal_actions {
            Some(legal) => select(legal, values, f64::NEG_INFINITY),
            None => values,
        };
        let exploration: Number = match mode {
            Mode::Explore => memory.exploration.into(),
            Mode::Greedy => self.settings.evaluation_exploration.into(),
        };
        let action = Categorical::epsilon_greedy(values, exploration).sample(key);
        Act { action, memory: R2d2Memory { core, frames, ..memory }, extras: () }
    }
}

impl<O> R2d2<O> {
    /// A new network for the agent's spaces.
    #[track_caller]
    fn network(&self, key: Key) -> RecurrentQ {
        let R2d2Settings { frames, lstm, networks, .. } = &self.settings;
        let seen = stacked_space(&self.observation, *frames);
        RecurrentQ::init(key, &seen, &self.action, networks, *lstm)
    }
}
