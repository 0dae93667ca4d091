//! Acting: the part of an agent that steps with environments, in training and in evaluation.

use super::steps::of_legal;
use crate::distributions::Categorical;
use podracer_dsl::prelude::*;

/// Index of a lane, which is one environment with its agent's memory and its keys.
#[derive(Clone, Copy, Debug)]
pub struct LaneId {
    /// Position among all lanes of the run, on all devices, from 0. i32 `[]`
    pub index: Tensor,
    /// Number of lanes of the run.
    pub lanes: usize,
}

/// Ways to choose actions. The mode is known while tracing: each mode is a separate program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Actions as in training: drawn from the policy, or explored by the agent's own rule.
    Explore,
    /// The actions that the agent values most, for evaluation.
    Greedy,
}

/// The input of one step of acting.
#[derive(Tree, Clone)]
pub struct Input<O: Tree = Tensor> {
    /// The environment's observation.
    pub observation: O,
    /// Mask of the allowed actions, bool `[A]`; `None` if the environment always allows all.
    pub legal_actions: Option<Tensor>,
    /// Action of the previous step, of the action space's type; zeros at an episode's first step.
    pub last_action: Tensor,
    /// Reward of `last_action`, f32 `[]`; 0 at an episode's first step.
    pub last_reward: Tensor,
    /// True at an episode's first step. bool `[]`
    pub first: Tensor,
}

impl<O: Tree> Input<O> {
    /// The input with the observation mapped by `f`.
    #[track_caller]
    pub fn map_observation<P: Tree>(self, f: impl FnOnce(O) -> P) -> Input<P> {
        let Input { observation, legal_actions, last_action, last_reward, first } = self;
        Input { observation: f(observation), legal_actions, last_action, last_reward, first }
    }
}

/// The result of one step of acting.
#[derive(Tree, Clone)]
pub struct Act<M: Tree, X: Tree> {
    /// The action, of the action space's type.
    pub action: Tensor,
    /// The memory after this step.
    pub memory: M,
    /// Data of this step that learning reads.
    pub extras: X,
}

/// The agent's values in one step, for display. Parts that the agent does not have are `None`.
#[derive(Tree, Clone, Debug, Default)]
pub struct View {
    /// The value of the state, in units of the rewards that the agent learns from. f32 `[]`
    pub value: Option<Tensor>,
    /// The probability of each action by the policy. f32 `[A]`
    pub probabilities: Option<Tensor>,
    /// The value of each action. f32 `[A]`
    pub action_values: Option<Tensor>,
    /// A picture of the agent's computation, such as a search tree or a map of attention. u8
    /// `[height, width, 3]`
    pub picture: Option<Tensor>,
}

impl View {
    /// The view of an agent with action values, f32 `[A]`: the state's value is the value of the
    /// best legal action.
    #[track_caller]
    pub(crate) fn of_action_values(values: Tensor, legal: Option<Tensor>) -> View {
        let value = of_legal(values, legal).max();
        View { value: Some(value), action_values: Some(values), ..View::default() }
    }

    /// The view of an agent with only a policy, from its logits, f32 `[A]`.
    #[track_caller]
    pub(crate) fn of_logits(logits: Tensor, legal: Option<Tensor>) -> View {
        let policy = Categorical::new(of_legal(logits, legal));
        View { probabilities: Some(policy.probs()), ..View::default() }
    }
}

/// An agent that acts in environments. It is written for one lane: `vmap` makes the batch.
pub trait Agent: Clone + 'static {
    /// Observations that the agent acts on.
    type Observation: Tree;
    /// Parameters that acting reads: published to actors, exported, evaluated.
    type Params: Tree;
    /// One lane's memory, across episodes: recurrent state, exploration rate.
    type Memory: Tree;
    /// Data of a step of acting that learning reads: log-probability, value, search policy.
    type Extras: Tree;

    /// The memory of a lane at the start of a run.
    fn init_memory(&self, lane: LaneId) -> Self::Memory;

    /// The memory at the start of an episode, made from the memory after the lane's last step. It
    /// resets a recurrent state, and keeps the data that belongs to the lane.
    fn begin_episode(&self, memory: Self::Memory) -> Self::Memory;

    /// Chooses an action.
    fn act(
        &self,
        params: &Self::Params,
        memory: Self::Memory,
        input: Input<Self::Observation>,
        mode: Mode,
        key: Key,
    ) -> Act<Self::Memory, Self::Extras>;

    /// The agent's view of an input, given the arguments of [`Agent::act`]: `podracer play
    /// --values` shows it next to the picture of the state. A training's programs do not contain
    /// it.
    fn view(
        &self,
        _params: &Self::Params,
        _memory: Self::Memory,
        _input: Input<Self::Observation>,
        _mode: Mode,
        _key: Key,
    ) -> View {
        View::default()
    }
}
