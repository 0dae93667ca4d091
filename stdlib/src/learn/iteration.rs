//! Learning: the agent owns one whole iteration.

use super::agent::{Agent, Input};
use super::axes::Axes;
use super::host_replay::AnyHostReplay;
use crate::optim::Optimizer;
use crate::ravel::{ravel, unravel};
use podracer_dsl::prelude::*;
use std::ops::Deref;

/// Inputs, actions and outcomes of `T` steps in `N` lanes, with the agent's own extras.
pub type Rollout<A> =
    RolloutOf<<A as Agent>::Observation, <A as Agent>::Memory, <A as Agent>::Extras>;

/// A [`Rollout`] of observations `O`, memories `M` and extras `X`.
#[derive(Tree, Clone)]
pub struct RolloutOf<O: Tree, M: Tree, X: Tree> {
    /// Inputs on which the agent acted. `[T, N, ..]`
    pub input: Input<O>,
    /// Actions of the agent. `[T, N, ..]`
    pub action: Tensor,
    /// Rewards for the actions. f32 `[T, N]`
    pub reward: Tensor,
    /// True if the step ended its episode in a terminal state, with the value 0. bool `[T, N]`
    pub terminated: Tensor,
    /// True if the step's episode was cut off, in a state with a value. bool `[T, N]`
    pub truncated: Tensor,
    /// Reset-only steps, which environments of some packages have at the start of an episode, bool
    /// `[T, N]`; `None` if the environment has no such steps. They set both `terminated` and
    /// `truncated`, so that nothing flows along the rollout across them. No loss, statistic or
    /// memory may depend on the rest of such a step. [`step_weights`](super::step_weights) are for
    /// means.
    pub skipped: Option<Tensor>,
    /// Observations after each step, `[T, N, ..]`, including an episode's last observation; `None`
    /// if the environment never truncates. Except at an episode's end, it equals the next step's
    /// observation.
    pub next_observation: Option<O>,
    /// The next inputs to act on. `[N, ..]`
    pub next_input: Input<O>,
    /// True if the first step does not follow the last step of the previous rollout, although no
    /// episode ended between them. Another worker has taken over the lane, or the run was resumed
    /// from a checkpoint, and its environments or later steps were lost. bool `[N]`; `None` if that
    /// is impossible.
    pub taken_over: Option<Tensor>,
    /// The memory before the first step. `[N, ..]`
    pub memory: M,
    /// Extras of [`Agent::act`]. `[T, N, ..]`
    pub extras: X,
}

impl<O: Tree, M: Tree, X: Tree> RolloutOf<O, M, X> {
    /// True if the episode is over after the step, terminated or truncated. bool `[T, N]`
    #[track_caller]
    pub fn done(&self) -> Tensor {
        self.terminated | self.truncated
    }

    /// The rollout with observations mapped by `f`: `[T, N, ..]`, and `[N, ..]` for the next input.
    /// `f` also gets the number of leading axes.
    #[track_caller]
    pub fn map_observations<P: Tree>(self, mut f: impl FnMut(O, usize) -> P) -> RolloutOf<P, M, X> {
        RolloutOf {
            input: self.input.map_observation(|seen| f(seen, 2)),
            action: self.action,
            reward: self.reward,
            terminated: self.terminated,
            truncated: self.truncated,
            skipped: self.skipped,
            next_observation: self.next_observation.map(|next| f(next, 2)),
            next_input: self.next_input.map_observation(|seen| f(seen, 1)),
            taken_over: self.taken_over,
            memory: self.memory,
            extras: self.extras,
        }
    }

    /// The observation after each step, `[T, N, ..]`. At an episode's end it is the episode's last
    /// observation if the environment truncates. Otherwise it is the next episode's first
    /// observation, which nothing bootstraps from.
    #[track_caller]
    pub fn observations_after(&self) -> O {
        self.next_observation.clone().unwrap_or_else(|| {
            let last = tree_map(&self.next_input.observation, |leaf| leaf.expand_dims(0));
            self.input.observation.zip_with(&last, |all, last| {
                concatenate(&[all.slice_axis(0, 1..all.dim(0)), last], 0)
            })
        })
    }
}

/// The axes `[T, N]` of the rollouts that one device learns from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RolloutShape {
    /// Number of lanes of the device, `N`.
    pub lanes: usize,
    /// Number of steps per lane and iteration, `T`.
    pub unroll: usize,
}

impl RolloutShape {
    /// The shape of a device's rollouts.
    pub fn of<O: Tree, M: Tree, X: Tree>(rollout: &Spec<RolloutOf<O, M, X>>) -> RolloutShape {
        let shape = &rollout.reward.shape;
        RolloutShape { lanes: shape[1], unroll: shape[0] }
    }
}

/// The key, the number and the axes of an iteration of learning. Derefs to [`Axes`]: `cx.mean(grads)`.
#[derive(Clone)]
pub struct Cx {
    /// Key for the iteration's learning, equal on all members of the axes.
    pub key: Key,
    /// The iteration's number in the run, from 0. i32 `[]`
    pub iteration: Tensor,
    /// The axes over which data is spread.
    pub axes: Axes,
}

impl Deref for Cx {
    type Target = Axes;

    fn deref(&self) -> &Axes {
        &self.axes
    }
}

/// Results of an iteration: state, store, metrics, and the tree that acting returned for the loop.
pub type Iterated<L, W> = (<L as Learn>::State, <L as Learn>::Store, <L as Learn>::Metrics, W);

/// An agent that learns. It owns one whole iteration: one rollout of every lane, and all learning from it.
pub trait Learn: Agent {
    /// Parameters, targets, optimizer states, moments, counters: equal on all learner devices.
    type State: Tree;
    /// Data of lanes, or data spread over the learner devices: a replay, per-lane statistics, or
    /// `()`. The leading axis of every leaf is divided over the devices, so a scalar per device is
    /// `[1]`.
    type Store: Tree;
    /// Scalars of an iteration, f32 `[]`. A run records them under their paths, and a single tensor
    /// under `metric`. The names `iteration`, `iterations`, `env_steps`, `episodes`, `mean_return`,
    /// `seconds` and names that begin with `episode_` are reserved for the run.
    type Metrics: Tree;

    /// The state at the start of a run.
    fn init(&self, key: Key) -> Self::State;

    /// The store of one learner device at the start of a run. `rollout` has the types of the
    /// device's rollouts, and the devices' data is spread over `axes`.
    fn init_store(&self, rollout: &Spec<Rollout<Self>>, axes: &Axes) -> Self::Store;

    /// The part of the state that acting reads: unchanged leaves of the state.
    fn params(&self, state: &Self::State) -> Self::Params;

    /// Learns from a rollout.
    fn learn(
        &self,
        state: Self::State,
        store: Self::Store,
        rollout: Rollout<Self>,
        cx: Cx,
    ) -> (Self::State, Self::Store, Self::Metrics);

    /// Acts and learns: one whole iteration. `act` maps parameters to the rollout acted with them,
    /// and a tree for the loop.
    ///
    /// An agent that differentiates through acting itself (the minimal unit of Podracer's Anakin)
    /// overrides this method and calls `act` inside its gradient, so that the update reuses
    /// acting's forward pass. The result must equal [`Learn::learn`]'s result.
    fn iterate<W: Tree>(
        &self,
        state: Self::State,
        store: Self::Store,
        act: impl FnOnce(&Self::Params) -> (Rollout<Self>, W),
        cx: Cx,
    ) -> Iterated<Self, W> {
        let (rollout, with) = act(&self.params(&state));
        let (state, store, metrics) = self.learn(state, store, rollout, cx);
        (state, store, metrics, with)
    }

    /// The effect on learning if rollouts were acted with older parameters.
    fn staleness(&self) -> Staleness {
        Staleness::Corrected
    }

    /// The agent's learning with its replay on the host; `None` for an agent without a replay.
    fn host_replay(&self) -> Option<AnyHostReplay<Self::Observation>> {
        None
    }
}

/// The effect on an agent's learning if rollouts were acted with older parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Staleness {
    /// Learning is wrong: loops that would act with older parameters reject the agent.
    Refused,
    /// Learning treats the rollouts as on-policy, which is approximately right: loops with a large
    /// lag of acting print a warning.
    Tolerated,
    /// Learning corrects for older parameters, as V-trace does, or expects them, as a replay does.
    Corrected,
}

/// Parameters with their optimizer's state: the whole state of an agent that needs nothing else.
#[derive(Tree, Clone)]
pub struct Optimized<P: Tree, S: Tree> {
    /// The parameters.
    pub params: P,
    /// The optimizer's state.
    pub opt: S,
}

impl<P: Tree, S: Tree> Optimized<P, S> {
    /// Parameters before their first gradient step.
    #[track_caller]
    pub fn new<O: Optimizer<State<P> = S>>(optimizer: &O, params: P) -> Self {
        Optimized { opt: optimizer.init(&params), params }
    }

    /// Takes one gradient step. `loss` returns f32 `[]`, a mean over this device's data, and a
    /// further result. The gradient is averaged over the axes.
    #[track_caller]
    pub fn gradient_step<O: Optimizer<State<P> = S>, X: Tree>(
        self,
        optimizer: &O,
        axes: &Axes,
        loss: impl FnOnce(P) -> (Tensor, X),
    ) -> (Self, X) {
        let (grads, with) = self.gradient(axes, loss);
        (self.step(optimizer, grads), with)
    }

    /// The gradient used by [`Optimized::gradient_step`], averaged over the axes, and the further
    /// result of the loss.
    #[track_caller]
    pub fn gradient<X: Tree>(&self, axes: &Axes, loss: impl FnOnce(P) -> (Tensor, X)) -> (P, X) {
        let ((_, with), grads) = value_and_grad(self.params.clone(), loss);
        (axes.mean(grads), with)
    }

    /// Applies the optimizer's update for a gradient.
    #[track_caller]
    pub fn step<O: Optimizer<State<P> = S>>(self, optimizer: &O, grads: P) -> Self {
        let (params, opt) = optimizer.step(self.params, self.opt, grads);
        Optimized { params, opt }
    }
}

/// Runs `step` for each of `0..steps` (i32 `[]`) in a scan, and returns the last carry and the
/// means of the metrics.
#[track_caller]
pub fn scan_mean<C: Tree, M: Tree>(
    carry: C,
    steps: usize,
    mut step: impl FnMut(C, Tensor) -> (C, M),
) -> (C, M) {
    let mut spec = None;
    // As one vector: stacking each scalar separately would need one kernel per scalar.
    let (carry, metrics) = scan(carry, 0..steps, |carry, i| {
        let (carry, metrics) = step(carry, i);
        spec = Some(metrics.spec());
        (carry, ravel(&metrics))
    });
    let metrics = tree_map(&metrics, |metrics| metrics.mean_axis(0));
    (carry, unravel(&metrics, &spec.expect("the loop's body is traced")))
}
