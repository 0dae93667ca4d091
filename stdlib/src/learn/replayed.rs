//! Learning from a replay: the parts that all such agents share.
//!
//! An iteration adds its rollout to the replay, and then takes gradient steps, each on newly drawn
//! windows. [`ReplaySettings::replay_ratio`] determines their number; fractions of a step add up
//! over iterations. Nothing is learnt until the replay has [`ReplaySettings::minimum`] steps, and
//! the gradient steps of that time are not made up for.

use super::{
    Agent, AnyHostReplay, Axes, Cx, Input, Learn, ReplaySettings, Rollout, RolloutShape, Task,
    Window, Wrapper,
};
use crate::ravel::{ravel, unravel};
use crate::replay::{Replay, Sample, Stored, StoredPriorities};
use podracer_dsl::prelude::*;

/// A batch of windows. `B` is the number of windows for this device.
#[derive(Tree, Clone)]
pub struct Windows<I: Tree, S: Tree = ()> {
    /// Steps of the windows. `[L, B, ..]`
    pub steps: I,
    /// Data that was kept for the starts of the windows. `[B, ..]`
    pub starts: S,
    /// Weight of each window in the loss, which corrects for drawing by priority; 1 if windows are
    /// drawn uniformly. f32 `[B]`
    pub weights: Tensor,
}

/// An agent that learns from windows of its replay. [`Replayed`] makes it [learn](Learn) in every
/// loop.
pub trait LearnFromReplay: Agent {
    /// Parameters, targets, optimizer states, counters.
    type State: Tree;
    /// The part of one step of one lane that the replay keeps.
    type Step: Tree;
    /// Data that the replay keeps for the start of a window, such as a recurrent memory.
    type Start: Tree;
    /// Scalars of a gradient step, f32 `[]`.
    type Metrics: Tree;

    /// The state at the start of a run.
    fn init(&self, key: Key) -> Self::State;

    /// The part of the state that acting reads: unchanged leaves of the state.
    fn params(&self, state: &Self::State) -> Self::Params;

    /// The part of a rollout that the replay keeps: its steps `[T, N, ..]`, and the data of its
    /// first steps, `[N, ..]`.
    fn keep(&self, rollout: Rollout<Self>) -> (Self::Step, Self::Start);

    /// The windows to learn from; `steps` has the types of the steps from
    /// [`LearnFromReplay::keep`].
    fn window(&self, steps: &Spec<Self::Step>) -> Window;

    /// Takes one gradient step. Returns the state, the priority of each window (f32 `[B]`, at least
    /// 0: the size of the agent's error), and metrics. The loss is a mean over this device's
    /// windows; the gradient is averaged over the axes.
    fn gradient_step(
        &self,
        state: Self::State,
        windows: Windows<Self::Step, Self::Start>,
        cx: &Cx,
    ) -> (Self::State, Tensor, Self::Metrics);

    /// Updates the state between iterations, such as an exploration rate, before the next iteration
    /// acts. `learning` is true if the replay has enough steps, bool `[]`.
    fn next_iteration(&self, state: Self::State, learning: Tensor, cx: &Cx) -> Self::State {
        let _ = (learning, cx);
        state
    }
}

/// An agent with its replay.
#[derive(Clone, Debug)]
pub struct Replayed<A> {
    /// The agent that learns from windows of the replay.
    pub agent: A,
    /// Settings of the replay.
    pub settings: ReplaySettings,
    /// Number of iterations of the run, over which [`ReplaySettings::anneal_importance`] extends.
    pub iterations: usize,
}

/// The agent's state, with the state of the replay's loop.
#[derive(Tree, Clone)]
pub struct ReplayedState<S: Tree> {
    /// The agent's state.
    pub agent: S,
    /// The fraction of a gradient step that is owed. f32 `[]`, below 1
    pub owed: Tensor,
}

/// A step in the replay.
#[derive(Tree, Clone)]
pub struct KeptStep<I: Tree> {
    /// The agent's part of the step.
    pub step: I,
    /// True if the step does not follow the lane's previous step: see
    /// [`RolloutOf::taken_over`](super::RolloutOf::taken_over). bool `[]`; `None` if that is
    /// impossible.
    pub taken_over: Option<Tensor>,
}

/// The store of one device: its part of the replay.
#[derive(Tree, Clone)]
pub struct ReplayedStore<I: Tree, S: Tree, M: Tree> {
    /// The replay's rings and priorities.
    pub replay: Stored<KeptStep<I>, S>,
    /// Metrics of the last iteration that learnt, f32 `[1]`. Iterations that do not learn repeat
    /// them.
    pub metrics: ReplayedMetrics<M>,
}

/// Metrics of an iteration.
#[derive(Tree, Clone)]
pub struct ReplayedMetrics<M: Tree> {
    /// The agent's metrics: means over the gradient steps of the iteration.
    pub learning: M,
    /// Metrics of the replay.
    pub replay: ReplayMetrics,
}

/// Metrics of a replay, f32 `[]`.
#[derive(Tree, Clone, Copy)]
pub struct ReplayMetrics {
    /// Number of steps in the replay, over all devices.
    pub size: Tensor,
    /// Number of steps learnt from in this iteration per acted step.
    pub replay_ratio: Tensor,
    /// Mean of the windows' priorities, raised to the priority exponent; 1 if windows are drawn
    /// uniformly.
    pub mean_priority: Tensor,
    /// Mean number of steps since the windows of the last batch began.
    pub age: Tensor,
    /// Median of the errors of the last batch. The errors are the priorities that the agent gave to
    /// the windows.
    pub error_p50: Tensor,
    /// 90th percentile of the errors.
    pub error_p90: Tensor,
    /// 99th percentile of the errors.
    pub error_p99: Tensor,
}

impl<A: LearnFromReplay> Replayed<A> {
    /// An agent for a task, with a replay of these settings.
    pub fn for_task(agent: A, settings: &ReplaySettings, task: &Task) -> Self {
        Replayed { agent, settings: settings.clone(), iterations: task.iterations }
    }

    /// The replay of one member of these axes, and its windows, given the types of the kept steps.
    pub(super) fn replay(&self, steps: &Spec<KeptStep<A::Step>>, axes: &Axes) -> (Replay, Window) {
        let window = self.agent.window(&steps.step);
        (self.settings.store(window, axes.members()), window)
    }

    /// The kept part of a rollout, with a flag for lanes where it does not follow the previous
    /// rollout.
    #[track_caller]
    pub(super) fn keep(&self, rollout: Rollout<A>) -> (KeptStep<A::Step>, A::Start) {
        let shape = rollout.reward.shape();
        let taken_over = rollout.taken_over.map(|lanes| match (lanes.expand_dims(0), shape[0]) {
            (first, 1) => first,
            (first, steps) => concatenate(&[first, zeros(BOOL, [steps - 1, shape[1]])], 0),
        });
        let (step, starts) = self.agent.keep(rollout);
        (KeptStep { step, taken_over }, starts)
    }

    /// Weights of windows, f32 `[B]`.
    #[track_caller]
    pub(super) fn weights<I: Tree, S: Tree>(&self, sample: &Sample<I, S>, cx: &Cx) -> Tensor {
        let &ReplaySettings { prioritized, importance_exponent, anneal_importance, .. } =
            &self.settings;
        if !prioritized {
            return ones(F32, sample.probabilities.shape());
        }
        if !anneal_importance {
            return sample.importance_weights(importance_exponent, cx);
        }
        let done = cx.iteration.astype(F32) / self.iterations.max(1) as f64;
        let rest = (1.0 - importance_exponent) * (1.0 - done).maximum(0.0);
        sample.importance_weights(1.0 - rest, cx)
    }

    /// Draws a batch and learns from it.
    #[track_caller]
    fn draw_and_learn(
        &self,
        replay: &Replay,
        state: A::State,
        kept: Stored<KeptStep<A::Step>, A::Start>,
        cx: &Cx,
    ) -> Outcome<A> {
        let [draw, key] = cx.key.again().split_into();
        let sample = replay.sample(&kept, self.settings.batch, draw, cx);
        let weights = self.weights(&sample, cx);
        let Sample { steps, starts, indices, ages, .. } = sample;
        let cx = &Cx { key, ..cx.clone() };
        let windows = Windows { steps, starts, weights };
        let (state, errors, metrics) = self.gradient_step(state, windows, cx);
        let kept = replay.set_priorities(kept, indices, errors, cx);
        let batch = Batch { errors, ages };
        Outcome { state, priorities: kept.priorities, metrics, batch }
    }

    /// The agent's gradient step: the state, the errors of the windows (f32 `[B]`), and metrics. A
    /// window with steps that do not follow each other has weight and error 0: nothing is learnt
    /// from it, and drawing by priority never selects it again.
    #[track_caller]
    pub(super) fn gradient_step(
        &self,
        state: A::State,
        windows: Windows<KeptStep<A::Step>, A::Start>,
        cx: &Cx,
    ) -> (A::State, Tensor, A::Metrics) {
        let Windows { steps: KeptStep { step, taken_over }, starts, weights } = windows;
        let of_windows = f32(weights.shape()).into_spec();
        let joins = taken_over.filter(|steps| steps.len() > 1);
        let joins = joins.map(|steps| steps.slice(1..).astype(I32).sum_axis(0).gt(0));
        let or_0 = |numbers: Tensor| joins.map_or(numbers, |joins| select(joins, 0.0, numbers));
        let windows = Windows { steps: step, starts, weights: or_0(weights) };
        let _part = part("the agent's gradient_step");
        let (state, errors, metrics) = self.agent.gradient_step(state, windows, cx);
        (state, or_0(expect_types("gradient_step(..).1", errors, &of_windows)), metrics)
    }

    /// The number of gradient steps of an iteration, i32 `[]`, and the fraction that is owed after
    /// them, f32 `[]`. All devices together act `acted` steps in the iteration.
    #[track_caller]
    pub(super) fn due(&self, before: Tensor, learning: Tensor, rate: &Rate) -> (Tensor, Tensor) {
        let due = self.settings.replay_ratio * rate.acted / rate.learnt;
        let owed = before + due.fract();
        let more = owed.ge(1.0);
        let count = select(learning, due.floor() as i32 + more.astype(I32), 0);
        (count, select(learning, owed - more.astype(F32), 0.0))
    }

    /// Takes `count` gradient steps, i32 `[]`, each with its own key. `step` gets the step's
    /// number, i32 `[]`.
    #[track_caller]
    pub(super) fn take(
        &self,
        count: Tensor,
        (state, priorities): (A::State, Option<StoredPriorities>),
        before: &A::Metrics,
        cx: &Cx,
        mut step: impl FnMut(Tensor, A::State, Option<StoredPriorities>, &Cx) -> Outcome<A>,
    ) -> Taken<A> {
        let sums = tree_map(&ravel(before), |sum| sum.zeros_like());
        let none = [self.settings.batch / cx.members().max(1)];
        let none = Batch { errors: zeros(F32, none), ages: zeros(I32, none) };
        let start = (scalar(0), state, priorities, (sums, none));
        let (_, state, priorities, (sums, last)) = while_loop(
            start,
            |(done, ..)| done.lt(count),
            |(done, state, priorities, (sums, _))| {
                let cx = Cx { key: cx.key.fold_in(done), ..cx.clone() };
                let Outcome { state, priorities, metrics, batch } =
                    step(done, state, priorities, &cx);
                let sums = sums.zip_with(&ravel(&metrics), |sum, metric| sum + metric);
                (done + 1, state, priorities, (sums, batch))
            },
        );
        Taken { count, state, priorities, sums, last }
    }
}

/// Steps acted and steps learnt from, over all devices.
pub(super) struct Rate {
    /// Number of steps acted in an iteration.
    pub(super) acted: f64,
    /// Number of steps learnt from in a gradient step.
    pub(super) learnt: f64,
}

/// The results of a gradient step.
pub(super) struct Outcome<A: LearnFromReplay> {
    pub(super) state: A::State,
    pub(super) priorities: Option<StoredPriorities>,
    pub(super) metrics: A::Metrics,
    pub(super) batch: Batch,
}

/// Errors and ages of a batch of windows, for metrics.
#[derive(Tree, Clone, Copy)]
pub(super) struct Batch {
    /// The agent's errors in the windows, which are their priorities. f32 `[B]`
    pub(super) errors: Tensor,
    /// Number of steps of the lane since each window began. i32 `[B]`
    pub(super) ages: Tensor,
}

/// The results of an iteration's gradient steps.
pub(super) struct Taken<A: LearnFromReplay> {
    /// Number of gradient steps. i32 `[]`
    count: Tensor,
    pub(super) state: A::State,
    pub(super) priorities: Option<StoredPriorities>,
    /// Sums of the agent's metrics.
    sums: Vec<Tensor>,
    last: Batch,
}

impl<A: LearnFromReplay> Taken<A> {
    /// The metrics of the iteration, for a replay with `size` steps on all devices, i32 `[]`, and
    /// this mean priority. If no gradient step was taken, the learner's metrics are those in
    /// `before`.
    #[track_caller]
    pub(super) fn metrics(
        &self,
        before: &ReplayedMetrics<A::Metrics>,
        (size, mean_priority): (Tensor, Tensor),
        rate: &Rate,
        cx: &Cx,
    ) -> ReplayedMetrics<A::Metrics> {
        let steps_taken = self.count.astype(F32);
        let means = tree_map(&self.sums, |sum| sum / steps_taken.maximum(1.0));
        let quantiles = cx.gather(self.last.errors).quantile(constant([0.5, 0.9, 0.99]));
        let replay = ReplayMetrics {
            size: size.astype(F32),
            replay_ratio: steps_taken * (rate.learnt / rate.acted),
            mean_priority,
            age: self.last.ages.astype(F32).mean(),
            error_p50: quantiles.index(0),
            error_p90: quantiles.index(1),
            error_p99: quantiles.index(2),
        };
        let learning_means = unravel(&means, &before.learning.spec());
        let learnt = self.count.gt(0);
        ReplayedMetrics {
            learning: tree_select(learnt, &learning_means, &before.learning),
            replay: ReplayMetrics {
                size: replay.size,
                replay_ratio: replay.replay_ratio,
                mean_priority: replay.mean_priority,
                ..tree_select(learnt, &replay, &before.replay)
            },
        }
    }
}

impl<M: Tree> ReplayedMetrics<M> {
    /// Metrics before the first iteration: zeros, f32 `[1]`.
    pub(super) fn none(learning: &Spec<M>) -> Self {
        let zero = zeros(F32, [1]);
        let replay = ReplayMetrics {
            size: zero,
            replay_ratio: zero,
            mean_priority: zero,
            age: zero,
            error_p50: zero,
            error_p90: zero,
            error_p99: zero,
        };
        ReplayedMetrics { learning: learning.stacked(1).zeros(), replay }
    }
}

impl<A: LearnFromReplay> Wrapper for Replayed<A> {
    type Inner = A;
    type Observation = A::Observation;
    type Params = A::Params;

    fn inner(&self) -> &A {
        &self.agent
    }

    fn inner_params<'a>(&self, params: &'a A::Params) -> &'a A::Params {
        params
    }

    fn inner_input(&self, _: &A::Params, input: Input<A::Observation>) -> Input<A::Observation> {
        input
    }
}

impl<A: LearnFromReplay> Learn for Replayed<A> {
    type State = ReplayedState<A::State>;
    type Store = ReplayedStore<A::Step, A::Start, A::Metrics>;
    type Metrics = ReplayedMetrics<A::Metrics>;

    fn init(&self, key: Key) -> Self::State {
        ReplayedState { agent: self.agent.init(key), owed: scalar(0.0) }
    }

    fn init_store(&self, rollout: &Spec<Rollout<Self>>, axes: &Axes) -> Self::Store {
        let shape = RolloutShape::of(rollout);
        let (steps, starts) = self.keep(rollout.zeros());
        let (replay, _) = self.replay(&steps.spec(), axes);
        let step = steps.spec().unstacked().unstacked();
        let kept = replay.init(&step, &starts.spec().unstacked(), shape);
        // Only the types of the metrics are needed: no gradient step is left in the program.
        let [init, key] = Key::new(0).split_into();
        let cx = Cx { key, iteration: scalar(0), axes: axes.clone() };
        let Outcome { metrics, .. } =
            self.draw_and_learn(&replay, self.agent.init(init), kept.clone(), &cx);
        ReplayedStore { replay: kept, metrics: ReplayedMetrics::none(&metrics.spec()) }
    }

    fn params(&self, state: &Self::State) -> A::Params {
        self.agent.params(&state.agent)
    }

    fn learn(
        &self,
        state: Self::State,
        store: Self::Store,
        rollout: Rollout<Self>,
        cx: Cx,
    ) -> (Self::State, Self::Store, Self::Metrics) {
        let &ReplaySettings { minimum, batch, .. } = &self.settings;
        let members = cx.members();
        let acted = (rollout.reward.elements() * members) as f64;
        let (steps, starts) = self.keep(rollout);
        let (replay, window) = self.replay(&steps.spec(), &cx);
        let kept = replay.add(store.replay, steps, starts);
        let size = replay.steps(&kept) * members as i32;
        let learning = size.ge(minimum as i32) & replay.windows(&kept).gt(0);
        let rate = Rate { acted, learnt: (batch * window.learnt) as f64 };
        let (count, owed) = self.due(state.owed, learning, &rate);

        let before = tree_map(&store.metrics, |metric| metric.index(0));
        let start = (state.agent, kept.priorities.clone());
        let taken = self.take(count, start, &before.learning, &cx, |_, state, priorities, cx| {
            self.draw_and_learn(&replay, state, Stored { priorities, ..kept.clone() }, cx)
        });
        let kept = Stored { priorities: taken.priorities.clone(), ..kept };
        let size = (size, replay.mean_priority(&kept, &cx));
        let metrics = taken.metrics(&before, size, &rate, &cx);
        let store = ReplayedStore {
            replay: kept,
            metrics: tree_map(&metrics, |metric| metric.reshape([1])),
        };
        let agent = self.agent.next_iteration(taken.state, learning, &cx);
        (ReplayedState { agent, owed }, store, metrics)
    }

    fn host_replay(&self) -> Option<AnyHostReplay<A::Observation>> {
        Some(AnyHostReplay::new(self.clone()))
    }
}
