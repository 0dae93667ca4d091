//! Bootstrapped DQN with prior functions (Osband et al., "Deep Exploration via Bootstrapped DQN", 2016; Osband, Aslanides and
//! Cassirer, "Randomized Prior Functions for Deep Reinforcement Learning", 2018).
//!
//! Several networks learn the action values side by side, each from its own part of the replay. A
//! prior is added to each network: a network that was drawn at random and never learns. A lane
//! draws one of the networks at the start of an episode and follows it to the end. So it explores
//! in one direction for many steps, where random actions would turn back at once.

use super::loss::Use;
use super::{Dqn, DqnLoss, DqnMemory, DqnMetrics, DqnSettings, DqnState, DqnValues};
use crate::Number;
use crate::learn::{
    Act, AdamSettings, Agent, AgentSettings, AnyAgent, Cx, Exploration, Exploring, Input, LaneId,
    LearnFromReplay, Mode, ReplaySettings, Replayed, Rollout, RolloutShape, Step, Task, View,
    Window, Windows, of_legal, stack_frame,
};
use crate::net::{Networks, QNetwork};
use podracer_dsl::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Bootstrapped DQN with prior functions (Osband et al. 2016 and 2018). The number and size of the
/// networks, the scale of the priors, the replay and the optimizer are as in bsuite's `boot_dqn`.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(default)]
pub struct BootstrappedSettings {
    /// Number of networks.
    #[schemars(range(min = 1, max = 1_000))]
    pub ensemble: usize,
    /// Factor of the prior that is added to each network; 0 adds none.
    #[schemars(range(min = 0.0))]
    pub prior_scale: Number,
    /// Probability that a network learns from a step, drawn for each network and step. With 1 all
    /// networks learn from all steps, and differ only by their priors and initial weights.
    #[schemars(extend("exclusiveMinimum" = 0.0), range(max = 1.0))]
    pub mask_probability: f64,
    /// The settings of each network's learning, as in DQN.
    #[serde(flatten)]
    pub dqn: DqnSettings,
}

impl Default for BootstrappedSettings {
    fn default() -> Self {
        BootstrappedSettings {
            ensemble: 20,
            prior_scale: 5.0.into(),
            mask_probability: 1.0,
            dqn: DqnSettings {
                optimizer: AdamSettings {
                    learning_rate: 1e-3.into(),
                    ..DqnSettings::default().optimizer
                },
                double: false,
                target_period: 4,
                epsilon: Exploration {
                    epsilon_start: 0.0.into(),
                    epsilon_end: 0.0.into(),
                    epsilon_fraction: 0.0,
                },
                replay: ReplaySettings {
                    capacity: 10_000,
                    minimum: 128,
                    batch: 128,
                    replay_ratio: 128.0,
                    ..ReplaySettings::default()
                },
                networks: Networks { hidden: vec![50, 50], ..DqnSettings::default().networks },
                ..DqnSettings::default()
            },
        }
    }
}

impl AgentSettings for BootstrappedSettings {
    fn agent(&self, task: &Task) -> Result<AnyAgent, String> {
        if self.dqn.noisy || self.dqn.values != DqnValues::Expected {
            return Err(format!(
                "agent.noisy = {} and agent.values = {:?}: expected noisy = false and values = \"expected\", since a prior is added to \
                 expected values, and its draw is what explores",
                self.dqn.noisy, self.dqn.values
            ));
        }
        self.dqn.check(task)?;
        let agent = BootstrappedDqn::for_task(task, self);
        Ok(AnyAgent::new(Replayed::for_task(agent, &self.dqn.replay, task)))
    }

    fn check_rollout(&self, rollout: RolloutShape, devices: usize) -> Result<(), String> {
        self.dqn.check_lanes(rollout, devices)
    }
}

/// The agent of [`BootstrappedSettings`]. `K` is the number of its networks.
#[derive(Clone, Debug)]
pub struct BootstrappedDqn {
    /// DQN, which trains each network.
    pub dqn: Dqn,
    /// Number of networks, `K`.
    pub ensemble: usize,
    /// Factor of the priors.
    pub prior_scale: Number,
    /// Probability that a network learns from a step.
    pub mask_probability: f64,
}

/// A network that learns and its prior, or `K` of each along a leading axis, because an
/// [`Ensemble`](crate::nn::Ensemble) of 20 networks would put 20 copies of the loss into the
/// program.
#[derive(Tree, Clone)]
pub struct PriorNetwork {
    /// The network that learns.
    pub network: QNetwork,
    /// The prior, which was drawn at random and never changes.
    pub prior: QNetwork,
}

impl PriorNetwork {
    /// The actions' values for an observation: the network's, and `scale` times the prior's. f32
    /// `[A]`
    #[track_caller]
    pub fn apply(&self, observation: Tensor, scale: Number) -> Tensor {
        let prior = stop_gradient(self.prior.apply(observation, None));
        self.network.apply(observation, None) + scale * prior
    }
}

/// Memory of a lane.
#[derive(Tree, Clone)]
pub struct BootstrappedMemory {
    /// The network that the lane follows in this episode, in `0..K`. i32 `[]`
    pub follows: Tensor,
    /// DQN's memory of the lane.
    pub dqn: DqnMemory,
}

/// One step of a lane in the replay.
#[derive(Tree, Clone)]
pub struct BootstrappedStep {
    /// The step as in DQN's replay.
    pub step: Step,
    /// True for the networks that learn from it, bool `[K]`; `None` if all do.
    pub mask: Option<Tensor>,
}

/// State of learning. Networks have a leading axis `[K]`.
#[derive(Tree, Clone)]
pub struct BootstrappedState {
    /// Networks, their targets and their optimizer.
    pub dqn: DqnState,
    /// The priors, which never learn.
    pub prior: QNetwork,
}

impl BootstrappedDqn {
    /// The agent for a task.
    pub fn for_task(task: &Task, settings: &BootstrappedSettings) -> BootstrappedDqn {
        let &BootstrappedSettings { ensemble, prior_scale, mask_probability, .. } = settings;
        let dqn = Dqn::for_task(task, &settings.dqn);
        BootstrappedDqn { dqn, ensemble, prior_scale, mask_probability }
    }

    /// `K` new networks.
    #[track_caller]
    fn networks(&self, key: Key) -> QNetwork {
        vmap((arange(self.ensemble), whole(key)), |(i, key)| self.dqn.network(key.fold_in(i)))
    }

    /// The loss of a batch of windows. Loss, priorities and values are means over the networks.
    #[track_caller]
    pub fn loss(
        &self,
        online: &QNetwork,
        target: &QNetwork,
        prior: &QNetwork,
        windows: &Windows<BootstrappedStep>,
    ) -> DqnLoss {
        let Windows { steps: BootstrappedStep { step, mask }, weights, .. } = windows;
        // A transition begins with the last frame of its first observation.
        let first = self.dqn.settings.frames - 1;
        let learns = tree_map(mask, |mask| mask.index(first as isize).swap_axes(0, 1).astype(F32));
        let networks = (online.clone(), target.clone(), prior.clone(), learns);
        let losses = vmap(networks, |(online, target, prior, learns)| {
            let [online, target] =
                [online, target].map(|network| PriorNetwork { network, prior: prior.clone() });
            let weights = learns.map_or(*weights, |learns| learns * *weights);
            self.dqn.loss_of(
                |seen, _: Use| online.apply(seen, self.prior_scale),
                |seen| target.apply(seen, self.prior_scale),
                &Windows { steps: step.clone(), starts: (), weights },
            )
        });
        tree_map(&losses, |leaf| leaf.mean_axis(0))
    }
}

impl Agent for BootstrappedDqn {
    type Observation = Tensor;
    type Params = Exploring<PriorNetwork>;
    type Memory = BootstrappedMemory;
    type Extras = Option<Tensor>;

    fn init_memory(&self, lane: LaneId) -> BootstrappedMemory {
        BootstrappedMemory { follows: scalar(0), dqn: self.dqn.init_memory(lane) }
    }

    fn begin_episode(&self, memory: BootstrappedMemory) -> BootstrappedMemory {
        memory
    }

    /// Follows the network that was drawn for the episode. A greedy action is the action preferred
    /// by most networks.
    fn act(
        &self,
        params: &Exploring<PriorNetwork>,
        memory: BootstrappedMemory,
        input: Input,
        mode: Mode,
        key: Key,
    ) -> Act<BootstrappedMemory, Option<Tensor>> {
        let [draw, masks, key] = key.split_into();
        let drawn = draw.randint([], 0..self.ensemble as i32);
        let follows = select(input.first, drawn, memory.follows);
        let legal_actions = input.legal_actions;
        let values = |seen: Tensor, _| {
            let q_values =
                vmap(params.network.clone(), |network| network.apply(seen, self.prior_scale));
            match mode {
                Mode::Explore => q_values.at(follows),
                Mode::Greedy => {
                    let best = vmap(q_values, |q| of_legal(q, legal_actions).argmax(-1));
                    best.one_hot(self.dqn.actions).sum_axis(0)
                }
            }
        };
        let (action, dqn) = self.dqn.act_by(values, params.epsilon, memory.dqn, input, mode, key);
        let probability = self.mask_probability;
        let mask = (probability < 1.0).then(|| masks.bernoulli([self.ensemble], probability));
        Act { action, memory: BootstrappedMemory { follows, dqn }, extras: mask }
    }

    /// The networks' mean values.
    fn view(
        &self,
        params: &Exploring<PriorNetwork>,
        memory: BootstrappedMemory,
        input: Input,
        _: Mode,
        _: Key,
    ) -> View {
        let (seen, _) = stack_frame(memory.dqn.frames, input.observation, input.first);
        let of_each = |network: PriorNetwork| network.apply(seen, self.prior_scale);
        let values = vmap(params.network.clone(), of_each).mean_axis(0);
        View::of_action_values(values, input.legal_actions)
    }
}

impl LearnFromReplay for BootstrappedDqn {
    type State = BootstrappedState;
    type Step = BootstrappedStep;
    type Start = ();
    type Metrics = DqnMetrics;

    fn init(&self, key: Key) -> BootstrappedState {
        let [networks, priors] = key.split_into();
        let dqn = self.dqn.begin(self.networks(networks));
        BootstrappedState { dqn, prior: self.networks(priors) }
    }

    fn params(&self, state: &BootstrappedState) -> Exploring<PriorNetwork> {
        let Exploring { network, epsilon } = self.dqn.params(&state.dqn);
        Exploring { network: PriorNetwork { network, prior: state.prior.clone() }, epsilon }
    }

    fn keep(&self, rollout: Rollout<Self>) -> (BootstrappedStep, ()) {
        let mask = rollout.extras;
        (BootstrappedStep { step: Step::of(rollout), mask }, ())
    }

    fn window(&self, steps: &Spec<BootstrappedStep>) -> Window {
        self.dqn.window_of(&steps.step)
    }

    fn gradient_step(
        &self,
        state: BootstrappedState,
        windows: Windows<BootstrappedStep>,
        cx: &Cx,
    ) -> (BootstrappedState, Tensor, DqnMetrics) {
        let BootstrappedState { dqn, prior } = state;
        let (dqn, priorities, metrics) =
            self.dqn.descend(dqn, cx, |online, target| self.loss(online, target, &prior, &windows));
        (BootstrappedState { dqn, prior }, priorities, metrics)
    }

    fn next_iteration(
        &self,
        state: BootstrappedState,
        learning: Tensor,
        cx: &Cx,
    ) -> BootstrappedState {
        BootstrappedState { dqn: self.dqn.next_iteration(state.dqn, learning, cx), ..state }
    }
}
