//! Learning: the agent owns one whole iteration.

use super::agent::{Agent, Input};
use super::axes::Axes;
use super::host_replay::AnyHostReplay;
use crate::optim::Optimizer;
use crate::ravel::{ravel, unravel};
use podracer_dsl::prelude::*;
use std::ops::Deref;

/// Inputs, actions and outcomes of `T` steps in an agent's `N` lanes, with the agent's own extras.
pub type Rollout<A> =
    RolloutOf<<A as Agent>::Observation, <A as Agent>::Memory, <A as Agent>::Extras>;

/// A [`Rollout`] of observations `O`, memories `M` and extras `X`.
#[derive(Tree, Clone)]
pub struct RolloutOf<O: Tree, M: Tree, X: Tree> {
    /// Inputs that the agent acted on. `[T, N, ..]`
    pub input: Input<O>,
    /// Actions of the agent. `[T, N, ..]`
    pub action: Tensor,
    /// Rewards of the actions. f32 `[T, N]`
    pub reward: Tensor,
    /// True if the step ended its episode in a terminal state: nothing follows. bool `[T, N]`
    pub terminated: Tensor,
    /// True if the step's episode was cut off: what would have followed has a value. bool `[T, N]`
    pub truncated: Tensor,
    /// Reset-only steps, which environments of some packages have at the start of an episode, bool `[T, N]`; `None` where
    /// the environment has none. `terminated` and `truncated` are both set there, so that nothing flows along the rollout
    /// across them; no loss, statistic or memory may depend on the rest. [`step_weights`](super::step_weights) are for means.
    pub skipped: Option<Tensor>,
    /// Observations after each step, `[T, N, ..]`, an episode's last observation included; `None` where the
    /// environment never truncates. Elsewhere it is the next step's observation.
    pub next_observation: Option<O>,
    /// Inputs that the agent acts on next. `[N, ..]`
    pub next_input: Input<O>,
    /// True where the first step does not follow the last one of the rollout before, and no end stands between them: another worker
    /// has taken over the lane, or the run went on from a checkpoint and its environments, or steps since, were lost. bool `[N]`;
    /// `None` where that cannot be.
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

    /// The rollout with other observations, which `f` makes of these: `[T, N, ..]`, and of the next input `[N, ..]`, whose number of leading axes it
    /// is given too.
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

    /// The observation after each step, `[T, N, ..]`: at an episode's end its own last one where the environment truncates,
    /// else the next episode's first, from which nothing is bootstrapped.
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
    /// Lanes of the device, `N`.
    pub lanes: usize,
    /// Steps of each lane in an iteration, `T`.
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
    /// Key of all randomness in the iteration's learning, equal on all members of the axes.
    pub key: Key,
    /// The iteration's number in the run, from 0. i32 `[]`
    pub iteration: Tensor,
    /// The axes that data is spread over.
    pub axes: Axes,
}

impl Deref for Cx {
    type Target = Axes;

    fn deref(&self) -> &Axes {
        &self.axes
    }
}

/// Results of an iteration: state, store, metrics, and the tree that acting gave for the loop.
pub type Iterated<L, W> = (<L as Learn>::State, <L as Learn>::Store, <L as Learn>::Metrics, W);

/// An agent that learns. It owns one whole iteration: one rollout of every lane, and all learning from it.
pub trait Learn: Agent {
    /// Parameters, targets, optimizers' states, moments, counters: equal on all learner devices.
    type State: Tree;
    /// Data of lanes, or data spread over the learner devices: a replay, per-lane statistics, or `()`. The leading axis
    /// of every leaf is shared out over the devices, so that a device's scalar is `[1]`.
    type Store: Tree;
    /// Scalars of an iteration, f32 `[]`, which a run records under their paths, and a single tensor under `metric`. `iteration`,
    /// `iterations`, `env_steps`, `episodes`, `mean_return`, `seconds` and names that begin with `episode_` are the run's own.
    type Metrics: Tree;

    /// The state at the start of a run.
    fn init(&self, key: Key) -> Self::State;

    /// The store of one learner device at the start of a run; `rollout` are the types of the device's rollouts, and `axes` those
    /// that the data of all devices is spread over.
    fn init_store(&self, rollout: &Spec<Rollout<Self>>, axes: &Axes) -> Self::Store;

    /// The part of the state that acting reads: leaves of the state as they are.
    fn params(&self, state: &Self::State) -> Self::Params;

    /// Learns from a rollout.
    fn learn(
        &self,
        state: Self::State,
        store: Self::Store,
        rollout: Rollout<Self>,
        cx: Cx,
    ) -> (Self::State, Self::Store, Self::Metrics);

    /// Acts and learns: one whole iteration. `act` gives the rollout that its parameters act, and a tree for the loop.
    ///
    /// An agent that differentiates through acting itself (the minimal unit of Podracer's Anakin) overrides this and calls
    /// `act` inside of its gradient, so that the update reuses acting's forward pass. The result must be that of
    /// [`Learn::learn`].
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

    /// The effect on learning of rollouts that were acted with older parameters than the present ones.
    fn staleness(&self) -> Staleness {
        Staleness::Corrected
    }

    /// The agent's learning with its replay on the host; `None` for an agent that has no replay.
    fn host_replay(&self) -> Option<AnyHostReplay<Self::Observation>> {
        None
    }
}

/// The effect on an agent's learning of rollouts that were acted with older parameters than the present ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Staleness {
    /// Learning is wrong with them: loops that would act with older parameters refuse the agent.
    Refused,
    /// Learning takes them for rollouts of the present parameters, and bears that they are not quite: loops in which acting may be far
    /// behind warn.
    Tolerated,
    /// Learning corrects for older parameters, as V-trace does, or expects them, as a replay does.
    Corrected,
}

/// Parameters with the state of the optimizer that moves them: the whole state of an agent that needs no more.
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

    /// Takes one gradient step. `loss` gives f32 `[]`, a mean over this device's data, and a further result; the gradient is
    /// averaged over the axes.
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

    /// The gradient that [`Optimized::gradient_step`] steps along, averaged over the axes, and the loss's further result.
    #[track_caller]
    pub fn gradient<X: Tree>(&self, axes: &Axes, loss: impl FnOnce(P) -> (Tensor, X)) -> (P, X) {
        let ((_, with), grads) = value_and_grad(self.params.clone(), loss);
        (axes.mean(grads), with)
    }

    /// The optimizer's step along a gradient.
    #[track_caller]
    pub fn step<O: Optimizer<State<P> = S>>(self, optimizer: &O, grads: P) -> Self {
        let (params, opt) = optimizer.step(self.params, self.opt, grads);
        Optimized { params, opt }
    }
}

/// Runs `step` for each of `0..steps` (i32 `[]`) in a scan, and gives the last carry and the means of the metrics.
#[track_caller]
pub fn scan_mean<C: Tree, M: Tree>(
    carry: C,
    steps: usize,
    mut step: impl FnMut(C, Tensor) -> (C, M),
) -> (C, M) {
    let mut spec = None;
    // As one vector: a stack of each scalar by itself would be a kernel for each.
    let (carry, metrics) = scan(carry, 0..steps, |carry, i| {
        let (carry, metrics) = step(carry, i);
        spec = Some(metrics.spec());
        (carry, ravel(&metrics))
    });
    let metrics = tree_map(&metrics, |metrics| metrics.mean_axis(0));
    (carry, unravel(&metrics, &spec.expect("the loop's body is traced")))
}
