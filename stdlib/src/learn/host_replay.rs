//! Learning from a replay on the host: the learner devices' part of the replay, and their requests
//! to it.
//!
//! The devices know where steps are and how windows are drawn; the steps themselves are on the
//! host. Windows drawn in iteration `k` are learnt from in iteration `k + 2`: the host gathers them
//! while iteration `k + 1` learns from the windows drawn before.

use super::any::typed;
use super::replayed::{Batch, KeptStep, Outcome, Rate, Replayed, ReplayedMetrics, ReplayedState};
use super::{Axes, Cx, LearnFromReplay, RolloutOf, RolloutShape, Windows};
use crate::counter::later;
use crate::replay::{Replay, Stored};
use podracer_dsl::prelude::*;
use podracer_dsl::tree::AnyTree;
use podracer_dsl::{Loc, report_at};
use std::rc::Rc;

/// Number of iterations from the draw of windows to the gradient steps that learn from them.
const AHEAD: usize = 2;

/// The replay's part of a rollout (steps `[T, N, ..]`, starts `[N, ..]`), or windows of it (steps `[G, L, B, ..]`, starts
/// `[G, B, ..]`).
#[derive(Tree, Clone)]
pub struct Kept<I: Tree, S: Tree> {
    /// The steps in the replay.
    pub steps: I,
    /// Data that is kept once for the start of each window, such as a recurrent memory.
    pub starts: S,
}

/// A learner device's part of a replay with its steps on the host.
#[derive(Tree, Clone)]
pub struct HostStore<M: Tree> {
    /// Positions and priorities of a ring that holds no steps and starts on the device.
    pub replay: Stored<Tensor, Option<Tensor>>,
    /// The draws that have not been learnt from yet, one for each of the next iterations.
    pub draws: Vec<Draws>,
    /// Metrics of the last iteration that learnt, f32 `[1]`.
    pub metrics: ReplayedMetrics<M>,
}

/// Windows that were drawn for an iteration, `B` for each of at most `G` gradient steps.
#[derive(Tree, Clone, Copy)]
pub struct Draws {
    /// Number of gradient steps of the iteration. i32 `[1]`, at most `G`
    pub count: Tensor,
    /// Indices of the windows, over all devices. i32 `[G, B]`
    pub indices: Tensor,
    /// Their weights in the loss. f32 `[G, B]`
    pub weights: Tensor,
    /// Number of steps of the lane from the start of each window to its draw. i32 `[G, B]`
    pub ages: Tensor,
}

/// An iteration's request to the host for the windows of a [`Draws`].
#[derive(Tree, Clone, Copy)]
pub struct Requests {
    /// Number of gradient steps that need windows, at most `G`. i32 `[1]`
    pub count: Tensor,
    /// Indices of the windows, over all devices. Each device owns a contiguous range of indices.
    /// i32 `[G, B]`
    pub indices: Tensor,
}

/// Sizes of a replay on the host, per learner device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostReplayShape {
    /// Number of steps per lane that windows are drawn from: a multiple of the rollout's steps.
    pub steps: usize,
    /// Number of steps of a window.
    pub length: usize,
    /// Steps between the starts of two windows of a lane.
    pub period: usize,
    /// Greatest number of gradient steps in an iteration, `G`.
    pub gradient_steps: usize,
    /// Number of windows in a gradient step, `B`.
    pub batch: usize,
    /// Number of iterations from the draw of windows to learning from them.
    pub ahead: usize,
}

impl HostReplayShape {
    /// The types of an iteration's windows, given the types of the kept steps `[T, N, ..]` and
    /// starts `[N, ..]` of a rollout.
    #[must_use]
    pub fn windows<I: Tree, S: Tree>(&self, kept: &Spec<Kept<I, S>>) -> Spec<Kept<I, S>> {
        let HostReplayShape { gradient_steps, length, batch, .. } = *self;
        let windows_of = |leaf: Tensor, axes: usize, first: &[usize]| {
            zeros(leaf.dtype(), [first, &leaf.shape()[axes..]].concat())
        };
        let windows = eval_shape(kept, |kept| Kept {
            steps: tree_map(&kept.steps, |leaf| {
                windows_of(leaf, 2, &[gradient_steps, length, batch])
            }),
            starts: tree_map(&kept.starts, |leaf| windows_of(leaf, 1, &[gradient_steps, batch])),
        });
        windows.expect("zeros of any shape can be made")
    }
}

impl<A: LearnFromReplay> Replayed<A> {
    fn rate(&self, learnt: usize, shape: RolloutShape, axes: &Axes) -> Rate {
        let acted = (shape.lanes * shape.unroll * axes.members()) as f64;
        Rate { acted, learnt: (self.settings.batch * learnt) as f64 }
    }

    /// The replay of one device, and its sizes.
    fn on_host(
        &self,
        steps: &Spec<KeptStep<A::Step>>,
        shape: RolloutShape,
        axes: &Axes,
    ) -> (Replay, HostReplayShape, Rate) {
        let (replay, window) = self.replay(steps, axes);
        let rate = self.rate(window.learnt, shape, axes);
        let due = self.settings.replay_ratio * rate.acted / rate.learnt;
        let sizes = HostReplayShape {
            // The store reports an impossible capacity.
            steps: replay.ring_steps(shape).unwrap_or(shape.unroll),
            length: window.length,
            period: window.period,
            gradient_steps: due.ceil().max(1.0) as usize,
            batch: (self.settings.batch / axes.members().max(1)).max(1),
            ahead: AHEAD,
        };
        (replay, sizes, rate)
    }

    /// The store of one device, given the types of the steps and starts that are kept of every
    /// rollout.
    #[track_caller]
    fn init_host_store(
        &self,
        (steps, starts): (&Spec<KeptStep<A::Step>>, &Spec<A::Start>),
        shape: RolloutShape,
        axes: &Axes,
    ) -> HostStore<A::Metrics> {
        let (replay, sizes, _) = self.on_host(steps, shape, axes);
        if steps.step.types().is_empty() {
            let message = "the steps to keep have no leaves: expected a tree with a tensor of each step, such as its observation";
            report_at(Loc::caller(), "keep", message.to_owned(), &[]);
        }
        // No data per step: only the ring's shape is needed.
        let nothing = || TensorType::new(U8, [0]).into_spec();
        let start = (!starts.types().is_empty()).then_some(zeros(U8, [0])).spec();
        let stored = replay.init(&nothing(), &start, shape);
        // Only the types of the metrics are needed: no gradient step is left in the program.
        let [init, key] = Key::new(0).split_into();
        let cx = Cx { key, iteration: scalar(0), axes: axes.clone() };
        let &HostReplayShape { length, batch, gradient_steps, .. } = &sizes;
        let windows = Windows {
            steps: steps.unstacked().unstacked().stacked(batch).stacked(length).zeros(),
            starts: starts.unstacked().stacked(batch).zeros(),
            weights: zeros(F32, [batch]),
        };
        let (_, _, metrics) = self.gradient_step(self.agent.init(init), windows, &cx);
        let none = [gradient_steps, batch];
        let draws = Draws {
            count: zeros(I32, [1]),
            indices: zeros(I32, none),
            weights: zeros(F32, none),
            ages: zeros(I32, none),
        };
        HostStore {
            replay: stored,
            draws: vec![draws; AHEAD],
            metrics: ReplayedMetrics::none(&metrics.spec()),
        }
    }

    /// Learns from the windows drawn for this iteration, registers that a rollout of this shape was
    /// added, and draws the windows of a later iteration.
    #[track_caller]
    fn learn_from_windows(
        &self,
        state: ReplayedState<A::State>,
        store: HostStore<A::Metrics>,
        windows: Kept<KeptStep<A::Step>, A::Start>,
        shape: RolloutShape,
        cx: Cx,
    ) -> Learnt<A> {
        let steps = windows.steps.spec().unstacked().unstacked().unstacked();
        let steps = steps.stacked(shape.lanes).stacked(shape.unroll);
        let (replay, sizes, rate) = self.on_host(&steps, shape, &cx);
        let members = cx.members();
        let [draw_key, key] = cx.key.split_into();
        let cx = Cx { key, ..cx };
        let HostStore { replay: stored, mut draws, metrics: before } = store;
        let now = draws.remove(0);

        let before = tree_map(&before, |metric| metric.index(0));
        let unroll = shape.unroll as i32;
        let start = (state.agent, stored.priorities.clone());
        let count = now.count.index(0);
        let taken =
            self.take(count, start, &before.learning, &cx, |step, state, priorities, cx| {
                let of_step = |all: Tensor| all.take(step.reshape([1]), 0).index(0);
                let Draws { indices, weights, ages, .. } = tree_map(&now, |all| match all.rank() {
                    1 => all,
                    _ => of_step(all),
                });
                let windows = Windows {
                    steps: tree_map(&windows.steps, of_step),
                    starts: tree_map(&windows.starts, of_step),
                    weights,
                };
                let (state, errors, metrics) = self.gradient_step(state, windows, cx);
                // Rollouts were added since the draw: windows that they overwrote have no priority
                // any more.
                let added = (AHEAD as i32 - 1) * unroll;
                let gone = (ages + added).gt(sizes.steps as i32);
                let indices = select(gone, -1, indices);
                let stored = Stored { priorities, ..stored.clone() };
                let stored = replay.set_priorities(stored, indices, errors, cx);
                let batch = Batch { errors, ages: ages + AHEAD as i32 * unroll };
                Outcome { state, priorities: stored.priorities, metrics, batch }
            });
        let stored = Stored { priorities: taken.priorities.clone(), ..stored };
        let added = zeros(U8, [shape.unroll, shape.lanes, 0]);
        let start = tree_map(&stored.starts, |_| zeros(U8, [shape.lanes, 0]));
        let stored = replay.add(stored, added, start);

        let size = replay.steps(&stored) * members as i32;
        let learning = size.ge(self.settings.minimum as i32) & replay.windows(&stored).gt(0);
        let (count, owed) = self.due(state.owed, learning, &rate);
        let next = self.draw(&replay, &stored, (count, &sizes), draw_key, &cx);
        draws.push(next);

        let size = (size, replay.mean_priority(&stored, &cx));
        let metrics = taken.metrics(&before, size, &rate, &cx);
        let store = HostStore {
            replay: stored,
            draws,
            metrics: tree_map(&metrics, |metric| metric.reshape([1])),
        };
        let agent = self.agent.next_iteration(taken.state, learning, &cx);
        let requests = Requests { count: next.count, indices: next.indices };
        Learnt { state: ReplayedState { agent, owed }, store, metrics, requests }
    }

    /// Draws the windows of `count` gradient steps, i32 `[]`.
    #[track_caller]
    fn draw(
        &self,
        replay: &Replay,
        stored: &Stored<Tensor, Option<Tensor>>,
        (count, sizes): (Tensor, &HostReplayShape),
        key: Key,
        cx: &Cx,
    ) -> Draws {
        let later = later(cx.iteration, AHEAD as i32);
        let ((), (indices, weights, ages)) = scan((), 0..sizes.gradient_steps, |(), step| {
            let cx = Cx { key: key.fold_in(step), iteration: later, axes: cx.axes.clone() };
            let sample = replay.sample(stored, self.settings.batch, cx.key.again(), &cx);
            let weights = self.weights(&sample, &cx);
            ((), (sample.indices, weights, sample.ages))
        });
        Draws { count: count.reshape([1]), indices, weights, ages }
    }
}

/// The results of [`Replayed::learn_from_windows`].
struct Learnt<A: LearnFromReplay> {
    state: ReplayedState<A::State>,
    store: HostStore<A::Metrics>,
    metrics: ReplayedMetrics<A::Metrics>,
    requests: Requests,
}

/// Learning of an agent with its replay on the host, for any agent with observations `O`. State and
/// metrics are as in [`Learn::learn`](super::Learn::learn).
#[derive(Clone)]
pub struct AnyHostReplay<O: Tree>(Rc<dyn ErasedReplay<O>>);

impl<O: Tree> AnyHostReplay<O> {
    pub(super) fn new<A: LearnFromReplay<Observation = O>>(agent: Replayed<A>) -> Self {
        AnyHostReplay(Rc::new(agent))
    }

    /// The host's part of a rollout, or of any of the rollout's lanes.
    #[track_caller]
    pub fn keep(&self, rollout: AnyRollout<O>) -> Kept<AnyTree, AnyTree> {
        self.0.keep(rollout)
    }

    /// The sizes of the replay, for rollouts of such types on each device.
    ///
    /// # Errors
    /// Returns the mistakes in the agent's [`LearnFromReplay::keep`], with the user's lines.
    pub fn sizes(
        &self,
        rollout: &Spec<AnyRollout<O>>,
        axes: &Axes,
    ) -> Result<HostReplayShape, TraceErrors> {
        self.0.sizes(rollout, axes)
    }

    /// The store of one learner device at the start of a run.
    #[track_caller]
    pub fn init_store(&self, rollout: &Spec<AnyRollout<O>>, axes: &Axes) -> AnyTree {
        self.0.init_store(rollout, axes)
    }

    /// One iteration, for a rollout of this shape that the host keeps: state, store, metrics, and
    /// the windows to gather.
    #[track_caller]
    pub fn learn(
        &self,
        state: AnyTree,
        store: AnyTree,
        windows: Kept<AnyTree, AnyTree>,
        shape: RolloutShape,
        cx: Cx,
    ) -> (AnyTree, AnyTree, AnyTree, Requests) {
        self.0.learn(state, store, windows, shape, cx)
    }
}

/// A rollout of an agent with types that are known only while tracing.
type AnyRollout<O> = RolloutOf<O, AnyTree, AnyTree>;

/// Object-safe form of the learning, with [`AnyTree`]s as trees.
trait ErasedReplay<O: Tree> {
    fn keep(&self, rollout: AnyRollout<O>) -> Kept<AnyTree, AnyTree>;
    fn sizes(
        &self,
        rollout: &Spec<AnyRollout<O>>,
        axes: &Axes,
    ) -> Result<HostReplayShape, TraceErrors>;
    fn init_store(&self, rollout: &Spec<AnyRollout<O>>, axes: &Axes) -> AnyTree;
    fn learn(
        &self,
        state: AnyTree,
        store: AnyTree,
        windows: Kept<AnyTree, AnyTree>,
        shape: RolloutShape,
        cx: Cx,
    ) -> (AnyTree, AnyTree, AnyTree, Requests);
}

impl<A: LearnFromReplay> ErasedReplay<A::Observation> for Replayed<A> {
    fn keep(&self, rollout: AnyRollout<A::Observation>) -> Kept<AnyTree, AnyTree> {
        let (steps, starts) = Replayed::keep(self, typed::<A>(rollout));
        Kept { steps: AnyTree::new(steps), starts: AnyTree::new(starts) }
    }
    fn sizes(
        &self,
        rollout: &Spec<AnyRollout<A::Observation>>,
        axes: &Axes,
    ) -> Result<HostReplayShape, TraceErrors> {
        let kept = eval_shape(rollout, |rollout| Replayed::keep(self, typed::<A>(rollout)))?;
        let (steps, _) = &*kept;
        Ok(self.on_host(&Spec::clone(steps), RolloutShape::of(rollout), axes).1)
    }
    fn init_store(&self, rollout: &Spec<AnyRollout<A::Observation>>, axes: &Axes) -> AnyTree {
        let (steps, starts) = Replayed::keep(self, typed::<A>(rollout.zeros()));
        let kept = (&steps.spec(), &starts.spec());
        AnyTree::new(self.init_host_store(kept, RolloutShape::of(rollout), axes))
    }
    fn learn(
        &self,
        state: AnyTree,
        store: AnyTree,
        windows: Kept<AnyTree, AnyTree>,
        shape: RolloutShape,
        cx: Cx,
    ) -> (AnyTree, AnyTree, AnyTree, Requests) {
        let windows = Kept { steps: windows.steps.get(), starts: windows.starts.get() };
        let Learnt { state, store, metrics, requests } =
            self.learn_from_windows(state.get(), store.get(), windows, shape, cx);
        (AnyTree::new(state), AnyTree::new(store), AnyTree::new(metrics), requests)
    }
}
