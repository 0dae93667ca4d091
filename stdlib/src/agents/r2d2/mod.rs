//! R2D2, recurrent Q-learning from a prioritized replay: Kapturowski et al., "Recurrent Experience Replay in Distributed
//! Reinforcement Learning", 2019, with the hyper-parameters of Table 8 of SEED RL (Espeholt et al. 2020).
//!
//! A window is [`R2d2Settings::sequence_length`] transitions of one lane and the step after them,
//! with the LSTM's state that acting had at the window's start. The loss is half of the sum of
//! squared errors over the window's trained steps, times the window's importance weight, averaged
//! over the batch. The same scale as in SEED RL's code makes the paper's learning rate and gradient
//! clipping norm apply.
//!
//! Differences from SEED RL: new windows get the greatest priority so far, where SEED RL computes a
//! priority while acting. Frames before an episode's first frame are copies of it, where SEED RL
//! uses zeros. The last layer of the advantages has a bias.

mod loss;
mod network;

pub use loss::{R2d2Start, R2d2Step, R2d2Terms};
pub use network::RecurrentQ;

use crate::Number;
use crate::counter::next_of_period;
use crate::learn::clipped;
use crate::learn::{
    Act, ActorCriticOptimizer, Agent, AgentSettings, AnyAgent, Cx, Input, LaneId, LearnFromReplay,
    Mode, Optimized, ReplaySettings, Replayed, Rollout, RolloutShape, Task, View, Window, Windows,
    epsilon_greedy, epsilon_ladder,
};
use crate::learn::{FrameMemory, no_frames, stack_frame, stacked_space};
use crate::net::Networks;
use crate::nn::{Activation, ConvNet, LstmState};
use crate::optim::{Optimizer, adam, periodic_update};
use crate::returns::TxPair;
use podracer_dsl::prelude::*;
use podracer_envs::Space;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Recurrent Q-learning from a prioritized replay, R2D2 (Kapturowski et al. 2019). The defaults are
/// in SEED RL's Table 8; the sizes of the networks are for Atari, with `torso = "conv"` and `frames
/// = 4`.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(default)]
pub struct R2d2Settings {
    /// Adam's step size.
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    pub learning_rate: Number,
    /// Adam's epsilon, outside the square root.
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    pub adam_epsilon: Number,
    /// Greatest global norm of the gradients; greater gradients are scaled down to it.
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    pub max_gradient_norm: Number,
    /// Discount of future rewards.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub discount: Number,
    /// Number of steps of the returns that values learn from.
    #[schemars(range(min = 1, max = 1_000))]
    pub n_step: usize,
    /// Transform of the values that the network learns: `signed_hyperbolic` (R2D2's rescaling),
    /// `signed_logp1` or `identity`.
    pub value_rescaling: TxPair,
    /// Number of transitions in a sequence, including the burn-in.
    #[schemars(range(min = 2, max = 100_000))]
    pub sequence_length: usize,
    /// Number of transitions at the start of a sequence that only update the LSTM's state; less
    /// than `sequence_length`.
    #[schemars(range(max = 100_000))]
    pub burn_in: usize,
    /// Steps between the starts of two sequences of an environment. `sequence_length - burn_in`
    /// trains each step in one sequence, as SEED RL does. It is a multiple of the steps of an
    /// iteration (`unroll`).
    #[schemars(range(min = 1, max = 100_000))]
    pub period: usize,
    /// Gradient steps between two copies of the network into the target network.
    #[schemars(range(min = 1, max = i32::MAX))]
    pub target_period: usize,
    /// Share of the greatest absolute error of a sequence in its priority; the rest is the mean
    /// absolute error.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub priority_of_greatest: Number,
    /// Probability of a random action in the first environment. In the i-th of N environments it is
    /// raised to the power `1 + ladder_power i / (N - 1)`.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub ladder_base: f64,
    /// Increase of that power from the first environment to the last.
    #[schemars(range(min = 0.0))]
    pub ladder_power: f64,
    /// Probability of a random action in evaluations.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub evaluation_epsilon: f64,
    /// Number of observations that are stacked into the network's input, the latest last; 1 for no
    /// stacking. The replay keeps single observations.
    #[schemars(range(min = 1, max = 100))]
    pub frames: usize,
    /// Units of the LSTM.
    #[schemars(range(min = 1, max = 65_536))]
    pub lstm: usize,
    /// The replay. Sequences share steps, which count once: the 100,000 sequences of 80 new steps
    /// in Table 8 are 8,000,000 steps.
    #[serde(flatten)]
    pub replay: ReplaySettings,
    /// The torso, and the hidden layers of each dueling stream.
    #[serde(flatten)]
    pub networks: Networks,
}

impl Default for R2d2Settings {
    fn default() -> Self {
        R2d2Settings {
            learning_rate: 1e-4.into(),
            adam_epsilon: 1e-3.into(),
            max_gradient_norm: 80.0.into(),
            discount: 0.997.into(),
            n_step: 5,
            value_rescaling: TxPair::SignedHyperbolic,
            sequence_length: 120,
            burn_in: 40,
            period: 80,
            target_period: 2500,
            priority_of_greatest: 0.9.into(),
            ladder_base: 0.4,
            ladder_power: 7.0,
            evaluation_epsilon: 1e-3,
            frames: 1,
            lstm: 512,
            replay: ReplaySettings {
                capacity: 8_000_000,
                minimum: 400_000,
                batch: 64,
                replay_ratio: 0.75,
                prioritized: true,
                priority_exponent: 0.9.into(),
                importance_exponent: 0.6.into(),
                anneal_importance: false,
            },
            networks: Networks {
                convs: ConvNet::DQN.to_vec(),
                features: 512,
                hidden: vec![512],
                activation: Activation::Relu,
                ..Networks::default()
            },
        }
    }
}

impl R2d2Settings {
    /// Number of steps of a sequence that are learnt from: the steps after the burn-in.
    #[must_use]
    pub fn trained(&self) -> usize {
        self.sequence_length.saturating_sub(self.burn_in)
    }

    /// The windows of the replay: a sequence, and the step after it to bootstrap from.
    #[must_use]
    pub fn window(&self) -> Window {
        Window { length: self.sequence_length + 1, period: self.period, learnt: self.trained() }
    }
}

impl AgentSettings for R2d2Settings {
    fn agent(&self, task: &Task) -> Result<AnyAgent, String> {
        let (observation, action) = (task.observation.clone(), task.action.clone());
        self.networks.check(&stacked_space(&observation, self.frames))?;
        let Space::Discrete { .. } = action else {
            return Err(format!(
                "R2D2 has a value for each action: expected a discrete action space, and the environment has {action:?}"
            ));
        };
        self.replay.check(self.window().length)?;
        let optimizer = adam(self.learning_rate).eps(self.adam_epsilon);
        let optimizer = clipped(self.max_gradient_norm, optimizer);
        let agent = R2d2 { observation, action, optimizer, settings: self.clone() };
        Ok(AnyAgent::new(Replayed::for_task(agent, &self.replay, task)))
    }

    fn check_rollout(&self, rollout: RolloutShape, devices: usize) -> Result<(), String> {
        if self.burn_in >= self.sequence_length {
            return Err(format!(
                "agent.burn_in = {} leaves nothing to learn from in agent.sequence_length = {}: expected less",
                self.burn_in, self.sequence_length
            ));
        }
        if !self.period.is_multiple_of(rollout.unroll) {
            return Err(format!(
                "agent.period = {} must be a multiple of the {} steps of an iteration (unroll): the memory is kept where an iteration begins",
                self.period, rollout.unroll
            ));
        }
        self.replay.check_rollout(self.window(), rollout, devices)
    }
}

/// Adam on gradients of a bounded norm, behind [`flatten`](crate::optim::flatten).
pub type R2d2Optimizer = ActorCriticOptimizer;

/// The agent of [`R2d2Settings`].
#[derive(Clone, Debug)]
pub struct R2d2<O = R2d2Optimizer> {
    /// Space of the observations, of single frames.
    pub observation: Space,
    /// Space of the actions, which is discrete.
    pub action: Space,
    /// Optimizer of all parameters.
    pub optimizer: O,
    /// Settings of the agent. The settings of the optimizer and of the replay are not read here.
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
    pub epsilon: Tensor,
}

impl<O: Optimizer> Agent for R2d2<O> {
    type Observation = Tensor;
    type Params = RecurrentQ;
    type Memory = R2d2Memory;
    type Extras = ();

    fn init_memory(&self, lane: LaneId) -> R2d2Memory {
        R2d2Memory {
            core: LstmState::zeros(self.settings.lstm),
            frames: no_frames(&self.observation, self.settings.frames),
            epsilon: epsilon_ladder(lane, self.settings.ladder_base, self.settings.ladder_power),
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
        let epsilon = match mode {
            Mode::Explore => memory.epsilon,
            Mode::Greedy => scalar(self.settings.evaluation_epsilon),
        };
        // Evaluations also explore with a small probability.
        let legal = input.legal_actions;
        let action = epsilon_greedy(values, legal, epsilon, Mode::Explore, key);
        Act { action, memory: R2d2Memory { core, frames, ..memory }, extras: () }
    }

    fn view(&self, params: &RecurrentQ, memory: R2d2Memory, input: Input, _: Mode, _: Key) -> View {
        let (observation, _) = stack_frame(memory.frames, input.observation, input.first);
        let input = Input { observation, ..input };
        let (_, values) = params.see(memory.core, &input);
        View::of_action_values(values, input.legal_actions)
    }
}

/// The networks of a learner.
#[derive(Tree, Clone)]
pub struct R2d2State<S: Tree> {
    /// The network that acts and learns, with its optimizer.
    pub online: Optimized<RecurrentQ, S>,
    /// The target network.
    pub target: RecurrentQ,
    /// Number of gradient steps taken. i32 `[]`
    pub steps: Tensor,
}

/// Metrics of a gradient step: means over its windows.
#[derive(Tree, Clone, Copy)]
pub struct R2d2Metrics {
    /// Half of the sum of squared errors of a window, times its importance weight.
    pub loss: Tensor,
    /// Absolute error of a step, in the network's scale of values.
    pub error: Tensor,
    /// Value of an action that was taken, in the network's scale.
    pub value: Tensor,
}

impl<O: Optimizer> LearnFromReplay for R2d2<O> {
    type State = R2d2State<O::State<RecurrentQ>>;
    type Step = R2d2Step;
    type Start = R2d2Start;
    type Metrics = R2d2Metrics;

    fn init(&self, key: Key) -> Self::State {
        let R2d2Settings { frames, lstm, networks, .. } = &self.settings;
        let seen = stacked_space(&self.observation, *frames);
        let target = RecurrentQ::init(key, &seen, &self.action, networks, *lstm);
        let online = Optimized::new(&self.optimizer, target.clone());
        R2d2State { online, target, steps: scalar(0) }
    }

    fn params(&self, state: &Self::State) -> RecurrentQ {
        state.online.params.clone()
    }

    fn keep(&self, rollout: Rollout<Self>) -> (R2d2Step, R2d2Start) {
        let R2d2Memory { core, frames, .. } = rollout.memory;
        let step = R2d2Step {
            input: rollout.input,
            action: rollout.action,
            reward: rollout.reward,
            terminated: rollout.terminated,
            truncated: rollout.truncated,
            skipped: rollout.skipped,
        };
        (step, R2d2Start { core, frames })
    }

    fn window(&self, _: &Spec<R2d2Step>) -> Window {
        self.settings.window()
    }

    fn gradient_step(
        &self,
        state: Self::State,
        windows: Windows<R2d2Step, R2d2Start>,
        cx: &Cx,
    ) -> (Self::State, Tensor, R2d2Metrics) {
        let Windows { steps, starts, weights } = windows;
        let R2d2State { online, target, steps: done } = state;
        let (online, (metrics, priorities)) = online.gradient_step(&self.optimizer, cx, |net| {
            let terms = vmap((axis(steps, 1), starts), |(steps, start)| {
                self.settings.terms(&net, &target, steps, start)
            });
            let loss = (weights * terms.loss).mean();
            let metrics =
                R2d2Metrics { loss, error: terms.errors.abs().mean(), value: terms.values.mean() };
            (loss, (metrics, terms.priority))
        });
        let period = self.settings.target_period;
        let steps = next_of_period(done, period);
        let target = periodic_update(&online.params, &target, steps, period);
        (R2d2State { online, target, steps }, priorities, metrics)
    }
}
