//! Deep Q-learning (Mnih et al., "Human-level control through deep reinforcement learning", 2015),
//! with the extensions that Hessel et al., "Rainbow: Combining Improvements in Deep Reinforcement
//! Learning", 2018, combined. Each is a setting:
//!
//! - double Q-learning (van Hasselt et al. 2016), dueling networks (Wang et al. 2016), returns of several steps (Sutton 1988),
//!   priorities (Schaul et al. 2016, [`ReplaySettings`](crate::learn::ReplaySettings)),
//! - distributions of returns: C51 (Bellemare et al. 2017) or quantiles (Dabney et al. 2018),
//! - noisy layers (Fortunato et al. 2018). When acting, every lane draws new noise in every step. A
//!   gradient step draws three noises for its whole batch, as in section 3.1 of that paper: for the
//!   online network, for the target network, and for the online network that chooses the next
//!   action. So a batch is one product with one matrix of weights.

mod bootstrapped;
mod loss;
mod settings;

pub use bootstrapped::{
    BootstrappedDqn, BootstrappedMemory, BootstrappedSettings, BootstrappedState, BootstrappedStep,
    PriorNetwork,
};
pub use loss::DqnLoss;
pub use settings::{DqnExploration, DqnSettings, DqnValues};

use crate::counter::{next_count, next_of_period};
use crate::learn::{
    Act, ActorCriticOptimizer, Agent, Cx, DescribesOptimizer, Exploring, FrameMemory, Input,
    LaneId, LearnFromReplay, Mode, Optimized, Rollout, Step, Task, View, Window, Windows,
    epsilon_greedy, epsilon_ladder, no_frames, stack_frame, stacked_space,
};
use crate::net::QNetwork;
use crate::optim::{Optimizer, incremental_update};
use podracer_dsl::prelude::*;
use podracer_envs::Space;

/// The agent of [`DqnSettings`].
#[derive(Clone, Debug)]
pub struct Dqn {
    /// Space of the observations.
    pub observation: Space,
    /// Number of actions.
    pub actions: usize,
    /// Number of iterations of the run, over which the schedules extend.
    pub iterations: usize,
    /// Settings of the agent. [`Replayed`](crate::learn::Replayed) reads the settings of the
    /// replay.
    pub settings: DqnSettings,
}

/// Memory of a lane.
#[derive(Tree, Clone)]
pub struct DqnMemory {
    /// Probability of a random action in this lane, f32 `[]`; `None` without
    /// [`DqnExploration::Ladder`].
    pub epsilon: Option<Tensor>,
    /// The observations before the present one.
    pub frames: FrameMemory,
}

/// State of learning.
#[derive(Tree, Clone)]
pub struct DqnState {
    /// The network that acts, and its optimizer.
    pub online: Optimized<QNetwork, DqnOptimizerState>,
    /// The target network, which gives the values of next observations.
    pub target: QNetwork,
    /// Number of gradient steps taken. i32 `[]`
    pub steps: Tensor,
    /// Probability of a random action according to the schedule, f32 `[]`. Actors read it from
    /// [`Exploring`].
    pub epsilon: Tensor,
}

type DqnOptimizerState = <ActorCriticOptimizer as Optimizer>::State<QNetwork>;

/// Metrics of a gradient step, f32 `[]`.
#[derive(Tree, Clone, Copy)]
pub struct DqnMetrics {
    /// The mean loss.
    pub loss: Tensor,
    /// Mean value of the actions that were taken.
    pub value: Tensor,
    /// Probability of a random action according to the schedule.
    pub epsilon: Tensor,
}

impl Dqn {
    /// The agent for a task.
    pub fn for_task(task: &Task, settings: &DqnSettings) -> Dqn {
        let actions = match task.action {
            Space::Discrete { n, .. } => n,
            _ => task.action.elements(),
        };
        Dqn {
            observation: task.observation.clone(),
            actions,
            iterations: task.iterations,
            settings: settings.clone(),
        }
    }

    /// The probability of a random action in an iteration, i32 `[]`, according to the schedule. f32
    /// `[]`
    #[track_caller]
    pub(super) fn scheduled(&self, iteration: Tensor) -> Tensor {
        self.settings.epsilon.schedule(self.iterations).value(iteration)
    }

    /// Adam at an iteration's learning rate.
    #[track_caller]
    fn optimizer(&self, iteration: Tensor) -> ActorCriticOptimizer {
        self.settings.optimizer.at(iteration, self.iterations)
    }

    /// A new network.
    #[track_caller]
    pub(super) fn network(&self, key: Key) -> QNetwork {
        let settings = &self.settings;
        let seen = stacked_space(&self.observation, settings.frames);
        QNetwork::init(key, &seen, &settings.networks, &settings.head(self.actions))
    }

    /// The initial learning state of a network, or of several along a leading axis.
    #[track_caller]
    pub(super) fn begin(&self, network: QNetwork) -> DqnState {
        DqnState {
            online: Optimized::new(&self.optimizer(scalar(0)), network.clone()),
            target: network,
            steps: scalar(0),
            epsilon: self.scheduled(scalar(0)),
        }
    }

    /// Acts by the values, f32 `[A]`, that `values` returns for stacked observations, with noise if
    /// it gets a key.
    pub(super) fn act_by(
        &self,
        values: impl FnOnce(Tensor, Option<Key>) -> Tensor,
        scheduled: Tensor,
        memory: DqnMemory,
        input: Input,
        mode: Mode,
        key: Key,
    ) -> (Tensor, DqnMemory) {
        let DqnSettings { noisy, exploration, evaluation_epsilon, .. } = self.settings;
        let DqnMemory { epsilon, frames } = memory;
        let (seen, frames) = stack_frame(frames, input.observation, input.first);
        let [noise, draw] = key.split_into();
        let q = values(seen, (noisy && mode == Mode::Explore).then_some(noise));
        let rate = match mode {
            Mode::Explore if exploration == DqnExploration::Noise => None,
            Mode::Explore => Some(epsilon.unwrap_or(scheduled)),
            Mode::Greedy => (evaluation_epsilon > 0.0).then(|| full([], evaluation_epsilon)),
        };
        let mode = if rate.is_some() { Mode::Explore } else { Mode::Greedy };
        let rate = rate.unwrap_or(scalar(0.0));
        let action = epsilon_greedy(q, input.legal_actions, rate, mode, draw);
        (action, DqnMemory { epsilon, frames })
    }

    /// Takes a gradient step on a loss of the online and the target network.
    #[track_caller]
    pub(super) fn descend(
        &self,
        state: DqnState,
        cx: &Cx,
        loss: impl FnOnce(&QNetwork, &QNetwork) -> DqnLoss,
    ) -> (DqnState, Tensor, DqnMetrics) {
        let DqnState { online, target, steps, epsilon } = state;
        let optimizer = self.optimizer(cx.iteration);
        let (online, DqnLoss { loss, priorities, value }) =
            online.gradient_step(&optimizer, cx, |network| {
                let loss = loss(&network, &target);
                (loss.loss, loss)
            });
        let steps = next_of_period(steps, self.settings.target_period);
        let due = steps.rem(self.settings.target_period as i32).eq(0);
        let moved = incremental_update(&online.params, &target, self.settings.target_tau);
        let target = tree_select(due, &moved, &target);
        let metrics = DqnMetrics { loss: cx.mean(loss), value: cx.mean(value), epsilon };
        (DqnState { online, target, steps, epsilon }, priorities, metrics)
    }
}

impl Agent for Dqn {
    type Observation = Tensor;
    type Params = Exploring<QNetwork>;
    type Memory = DqnMemory;
    type Extras = ();

    fn init_memory(&self, lane: LaneId) -> DqnMemory {
        let &DqnSettings { exploration, ladder_base, ladder_power, frames, .. } = &self.settings;
        let epsilon = (exploration == DqnExploration::Ladder)
            .then(|| epsilon_ladder(lane, ladder_base, ladder_power));
        DqnMemory { epsilon, frames: no_frames(&self.observation, frames) }
    }

    fn begin_episode(&self, memory: DqnMemory) -> DqnMemory {
        memory
    }

    fn act(
        &self,
        params: &Exploring<QNetwork>,
        memory: DqnMemory,
        input: Input,
        mode: Mode,
        key: Key,
    ) -> Act<DqnMemory, ()> {
        let values = |seen, noise| params.network.mean(seen, noise);
        let (action, memory) = self.act_by(values, params.epsilon, memory, input, mode, key);
        Act { action, memory, extras: () }
    }

    /// Shows the values without noise.
    fn view(
        &self,
        params: &Exploring<QNetwork>,
        memory: DqnMemory,
        input: Input,
        _: Mode,
        _: Key,
    ) -> View {
        let (seen, _) = stack_frame(memory.frames, input.observation, input.first);
        View::of_action_values(params.network.mean(seen, None), input.legal_actions)
    }
}

impl LearnFromReplay for Dqn {
    type State = DqnState;
    type Step = Step;
    type Start = ();
    type Metrics = DqnMetrics;

    fn init(&self, key: Key) -> DqnState {
        self.begin(self.network(key))
    }

    fn params(&self, state: &DqnState) -> Exploring<QNetwork> {
        Exploring { network: state.online.params.clone(), epsilon: state.epsilon }
    }

    fn keep(&self, rollout: Rollout<Self>) -> (Step, ()) {
        (Step::of(rollout), ())
    }

    fn window(&self, steps: &Spec<Step>) -> Window {
        self.window_of(steps)
    }

    fn gradient_step(
        &self,
        state: DqnState,
        windows: Windows<Step>,
        cx: &Cx,
    ) -> (DqnState, Tensor, DqnMetrics) {
        self.descend(state, cx, |online, target| self.loss(online, target, &windows, &cx.key))
    }

    fn next_iteration(&self, state: DqnState, _: Tensor, cx: &Cx) -> DqnState {
        DqnState { epsilon: self.scheduled(next_count(cx.iteration)), ..state }
    }
}
