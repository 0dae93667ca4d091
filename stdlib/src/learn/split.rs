//! Learning once from each rollout, in several gradient steps on a split batch, as search-based
//! agents do in the Podracer paper (Hessel et al., "Podracer architectures for scalable
//! Reinforcement Learning", 2021). A large number of lanes can thus act at once without a larger
//! batch per gradient step.

use super::{Axes, Cx, Input, Learn, LearnFromReplay, Rollout, Windows, Wrapper, scan_mean};
use podracer_dsl::fail;
use podracer_dsl::prelude::*;

/// An agent that learns from its rollouts without a replay. The lanes of a device are split into
/// groups, in order. Each group is the batch of one gradient step, with all `T` steps of each lane
/// as one window.
#[derive(Clone, Debug)]
pub struct Split<A> {
    /// The agent that learns from the groups.
    pub agent: A,
    /// Number of gradient steps per iteration, which is the number of groups.
    pub gradient_steps: usize,
}

impl<A> Split<A> {
    /// Checks that the lanes of a device divide equally into the gradient steps.
    ///
    /// # Errors
    /// Returns a sentence that names the setting if they do not.
    pub(crate) fn check(lanes: usize, gradient_steps: usize) -> Result<(), String> {
        if lanes.is_multiple_of(gradient_steps) {
            return Ok(());
        }
        Err(format!(
            "{lanes} environments per device do not divide into agent.gradient_steps = {gradient_steps}: each step learns from an \
             equal part of them"
        ))
    }
}

impl<A: LearnFromReplay> Split<A> {
    /// Takes the gradient steps from the kept part of a rollout: its steps, `[T, N, ..]`, and the
    /// data of its first steps, `[N, ..]`. Returns the state, and the means of the metrics.
    #[track_caller]
    pub fn learn_from(
        &self,
        state: A::State,
        (steps, starts): (A::Step, A::Start),
        cx: &Cx,
    ) -> (A::State, A::Metrics) {
        let lanes = steps.leaves().first().map_or(1, |leaf| leaf.dim(1));
        let groups = match Self::check(lanes, self.gradient_steps) {
            Ok(()) => self.gradient_steps,
            Err(message) => {
                let _ = fail("Split", message, &[], TensorType::scalar(F32));
                1
            }
        };
        // [T, N, ..] -> [groups, T, N / groups, ..], and the starts without time.
        let split = |leaf: Tensor, axis: usize| {
            let shape = leaf.shape();
            let parts = [groups, lanes / groups];
            let shape = [&shape[..axis], &parts[..], &shape[axis + 1..]].concat();
            leaf.reshape(shape)
        };
        let steps = tree_map(&steps, |leaf| split(leaf, 1).swap_axes(0, 1));
        let starts = tree_map(&starts, |leaf| split(leaf, 0));
        scan_mean(state, groups, |state, group| {
            let windows = Windows {
                steps: tree_map(&steps, |leaf| leaf.at(group)),
                starts: tree_map(&starts, |leaf| leaf.at(group)),
                weights: ones(F32, [lanes / groups]),
            };
            let cx = Cx { key: cx.key.fold_in(group), ..cx.clone() };
            let (state, _, metrics) = self.agent.gradient_step(state, windows, &cx);
            (state, metrics)
        })
    }
}

impl<A: LearnFromReplay> Wrapper for Split<A> {
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

impl<A: LearnFromReplay> Learn for Split<A> {
    type State = A::State;
    type Store = ();
    type Metrics = A::Metrics;

    fn init(&self, key: Key) -> A::State {
        self.agent.init(key)
    }

    fn init_store(&self, _: &Spec<Rollout<Self>>, _: &Axes) {}

    fn params(&self, state: &A::State) -> A::Params {
        self.agent.params(state)
    }

    fn learn(
        &self,
        state: A::State,
        (): (),
        rollout: Rollout<Self>,
        cx: Cx,
    ) -> (A::State, (), A::Metrics) {
        let kept = self.agent.keep(rollout);
        let (state, metrics) = self.learn_from(state, kept, &cx);
        (self.agent.next_iteration(state, constant(true), &cx), (), metrics)
    }
}
